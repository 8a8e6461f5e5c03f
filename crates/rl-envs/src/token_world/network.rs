//! The proxy with a hidden layer: `r(y) = a·tanh(b + Σ_i W_i)`, the sum over the features that occur in y.

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::TokenWorld;
use super::proxy::{Comparison, occurrences};

/// Hidden units.
const HIDDEN: usize = 32;
/// Comparisons per step, or all of them if they are fewer.
const MINIBATCH: usize = 64;
/// Adam steps.
const STEPS: usize = 1500;
/// Adam's step size, falling linearly to 0.
const LEARNING_RATE: f64 = 0.01;
/// Decoupled weight decay, as AdamW's.
const WEIGHT_DECAY: f64 = 0.05;

/// `[features + 2, HIDDEN]`: a row per feature, then b, then a.
struct Network {
    weights: Vec<f64>,
    features: usize,
}

/// The score of every sentence after training on `comparisons`, `[K]`.
pub(super) fn fit<R: Rng + ?Sized>(world: &TokenWorld, comparisons: &[Comparison], rng: &mut R) -> Vec<f64> {
    let v = world.vocabulary();
    let mut network = Network::new(v + v * v, rng);
    let pairs: Vec<[Vec<usize>; 2]> = comparisons
        .iter()
        .map(|pair| [occurrences(world, pair.chosen), occurrences(world, pair.rejected)])
        .collect();
    let (mut m, mut s) = (vec![0.0; network.weights.len()], vec![0.0; network.weights.len()]);
    for step in 0..STEPS {
        let mut gradient = vec![0.0; network.weights.len()];
        let batch = MINIBATCH.min(pairs.len());
        for _ in 0..batch {
            let [chosen, rejected] = &pairs[rng.random_range(0..pairs.len())];
            let margin = network.score(chosen) - network.score(rejected);
            let slope = -1.0 / (1.0 + margin.exp()) / batch as f64; // d(−log σ(margin))/d margin
            network.add_gradient(chosen, slope, &mut gradient);
            network.add_gradient(rejected, -slope, &mut gradient);
        }
        // AdamW, as rl_algos::adam, which is out of reach here.
        let rate = LEARNING_RATE * (1.0 - step as f64 / STEPS as f64);
        let (first, second) = (1.0 - 0.9_f64.powi(step as i32 + 1), 1.0 - 0.999_f64.powi(step as i32 + 1));
        for (i, g) in gradient.into_iter().enumerate() {
            m[i] = 0.9 * m[i] + 0.1 * g;
            s[i] = 0.999 * s[i] + 0.001 * g * g;
            let direction = m[i] / first / ((s[i] / second).sqrt() + 1e-8);
            network.weights[i] -= rate * (direction + WEIGHT_DECAY * network.weights[i]);
        }
    }
    (0..world.sentences()).map(|sentence| network.score(&occurrences(world, sentence))).collect()
}

impl Network {
    fn new<R: Rng + ?Sized>(features: usize, rng: &mut R) -> Self {
        let draw = |_| 0.2 * rng.sample::<f64, _>(StandardNormal);
        let mut weights: Vec<f64> = (0..(features + 2) * HIDDEN).map(draw).collect();
        weights[features * HIDDEN..(features + 1) * HIDDEN].fill(0.0);
        Self { weights, features }
    }

    fn row(&self, row: usize) -> &[f64] {
        &self.weights[row * HIDDEN..(row + 1) * HIDDEN]
    }

    fn hidden(&self, occurrences: &[usize]) -> [f64; HIDDEN] {
        let mut h: [f64; HIDDEN] = self.row(self.features).try_into().expect("a row has HIDDEN numbers");
        for &feature in occurrences {
            h.iter_mut().zip(self.row(feature)).for_each(|(h, w)| *h += w);
        }
        h.map(f64::tanh)
    }

    fn score(&self, occurrences: &[usize]) -> f64 {
        self.hidden(occurrences).iter().zip(self.row(self.features + 1)).map(|(h, a)| h * a).sum()
    }

    /// Adds `slope·∇score`.
    fn add_gradient(&self, occurrences: &[usize], slope: f64, gradient: &mut [f64]) {
        let h = self.hidden(occurrences);
        let (output, bias) = ((self.features + 1) * HIDDEN, self.features * HIDDEN);
        for (k, h) in h.into_iter().enumerate() {
            let before = slope * self.weights[output + k] * (1.0 - h * h);
            gradient[output + k] += slope * h;
            gradient[bias + k] += before;
            for &feature in occurrences {
                gradient[feature * HIDDEN + k] += before;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::env_rng;

    #[test]
    fn the_gradient_is_that_of_the_score() {
        let mut network = Network::new(6, &mut env_rng(1, 0));
        let occurrences = [0, 2, 2, 5];
        let mut gradient = vec![0.0; network.weights.len()];
        network.add_gradient(&occurrences, 1.0, &mut gradient);
        for (i, want) in gradient.into_iter().enumerate() {
            let weight = network.weights[i];
            let mut at = |x: f64| {
                network.weights[i] = x;
                network.score(&occurrences)
            };
            let difference = (at(weight + 1e-6) - at(weight - 1e-6)) / 2e-6;
            network.weights[i] = weight;
            assert!((difference - want).abs() < 1e-8, "weight {i}: {want}, difference {difference}");
        }
    }
}
