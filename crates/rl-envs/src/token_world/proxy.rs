//! Proxy reward models: what RLHF has instead of the judge, fitted to comparisons and standardised on the reference.
//!
//! | kind | sees | can it be the judge? |
//! |---|---|---|
//! | unigram | how often each token occurs | no: it believes that more of a good token is always better, and is hacked |
//! | bigram | that, and each pair of neighbours | almost: saturation alone escapes it |
//! | network | the same counts, through a hidden layer | yes, with enough comparisons |
//!
//! All minimise the Bradley–Terry loss `−Σ log σ(r(chosen) − r(rejected))` with a Gaussian prior on their weights.

use rand::Rng;
use serde::{Deserialize, Serialize};

use super::{TokenWorld, network};

/// Two sentences, and which of them the judge prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison {
    /// The number of the better sentence.
    pub chosen: usize,
    /// The number of the worse one.
    pub rejected: usize,
}

/// Pairs of reference samples, labelled by gold. A pair of equal gold says nothing and is drawn again.
pub fn comparisons<R: Rng + ?Sized>(world: &TokenWorld, pairs: usize, rng: &mut R) -> Vec<Comparison> {
    let gold = world.gold();
    let mut drawn = Vec::with_capacity(pairs);
    while drawn.len() < pairs {
        let (a, b) = (world.sample(rng), world.sample(rng));
        if gold[a] > gold[b] {
            drawn.push(Comparison { chosen: a, rejected: b });
        } else if gold[b] > gold[a] {
            drawn.push(Comparison { chosen: b, rejected: a });
        }
    }
    drawn
}

/// The share of comparisons that `score` `[K]` puts in the judge's order; ties are wrong.
pub fn accuracy(score: &[f64], comparisons: &[Comparison]) -> f64 {
    let right = comparisons.iter().filter(|pair| score[pair.chosen] > score[pair.rejected]).count();
    right as f64 / comparisons.len() as f64
}

/// What a reward model can see and say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyKind {
    /// Linear in the V token counts.
    Unigram,
    /// Linear in the V token counts and the V² counts of neighbours.
    Bigram,
    /// A hidden layer over the same V + V² counts.
    Network,
}

/// The reward of every sentence as a model of this kind learns it from `comparisons`, `[K]`, with mean 0 and standard
/// deviation 1 under the reference. `rng` draws the network's first weights and its minibatches.
///
/// `None` if it learns nothing: a model with one score for all cannot be standardised.
pub fn fit<R: Rng + ?Sized>(
    world: &TokenWorld,
    kind: ProxyKind,
    comparisons: &[Comparison],
    rng: &mut R,
) -> Option<Vec<f64>> {
    let v = world.vocabulary();
    let scores = match kind {
        ProxyKind::Unigram => linear(world, v, comparisons),
        ProxyKind::Bigram => linear(world, v + v * v, comparisons),
        ProxyKind::Network => network::fit(world, comparisons, rng),
    };
    world.standardised(&scores)
}

/// The counts of a sentence as a list of features, one entry per occurrence: token `y` is feature y, and the neighbours
/// `(a, b)` are feature `V + a·V + b`.
pub(super) fn occurrences(world: &TokenWorld, sentence: usize) -> Vec<usize> {
    let (v, tokens) = (world.vocabulary(), world.tokens(sentence));
    let pairs = tokens.windows(2).map(|pair| v + pair[0] * v + pair[1]).collect::<Vec<_>>();
    tokens.into_iter().chain(pairs).collect()
}

/// Precision of the Gaussian prior on each weight of the linear models: standard deviation 1.
const PRIOR: f64 = 1.0;

/// The scores of the linear model on the first `features` counts.
fn linear(world: &TokenWorld, features: usize, comparisons: &[Comparison]) -> Vec<f64> {
    let weights = logistic_regression(&differences(world, features, comparisons), features);
    let v = world.vocabulary();
    let weight_of = |feature: usize| weights.get(feature).copied().unwrap_or(0.0);
    // Level by level: the score of a sentence is that of its prefix and what its last token adds.
    let mut scores: Vec<f64> = (0..v).map(weight_of).collect();
    for _ in 1..world.length() {
        let longer = |i: usize| {
            let (prefix, token) = (i / v, i % v);
            scores[prefix] + weight_of(token) + weight_of(v + (prefix % v) * v + token)
        };
        scores = (0..scores.len() * v).map(longer).collect();
    }
    scores
}

/// Counts of the chosen sentence minus counts of the rejected, row after row.
fn differences(world: &TokenWorld, features: usize, comparisons: &[Comparison]) -> Vec<f64> {
    let mut rows = vec![0.0; comparisons.len() * features];
    for (row, pair) in rows.chunks_exact_mut(features).zip(comparisons) {
        for (sentence, sign) in [(pair.chosen, 1.0), (pair.rejected, -1.0)] {
            for feature in occurrences(world, sentence).into_iter().filter(|&f| f < features) {
                row[feature] += sign;
            }
        }
    }
    rows
}

/// The minimum of `Σ log(1 + exp(−w·x)) + ½·PRIOR·‖w‖²` by Newton's method, halving steps that do not descend.
fn logistic_regression(rows: &[f64], features: usize) -> Vec<f64> {
    let loss = |w: &[f64]| {
        let each = rows.chunks_exact(features).map(|x| (-dot(w, x)).exp().ln_1p());
        each.sum::<f64>() + 0.5 * PRIOR * dot(w, w)
    };
    let mut w = vec![0.0; features];
    for _ in 0..50 {
        let mut gradient: Vec<f64> = w.iter().map(|w| PRIOR * w).collect();
        let mut hessian = vec![0.0; features * features];
        (0..features).for_each(|i| hessian[i * features + i] = PRIOR);
        for x in rows.chunks_exact(features) {
            let wrong = 1.0 / (1.0 + dot(&w, x).exp()); // σ(−w·x)
            let curvature = wrong * (1.0 - wrong);
            for i in (0..features).filter(|&i| x[i] != 0.0) {
                gradient[i] -= wrong * x[i];
                for j in 0..=i {
                    hessian[i * features + j] += curvature * x[i] * x[j];
                }
            }
        }
        let step = cholesky_solve(hessian, &gradient);
        let before = loss(&w);
        let moved = |scale: f64| w.iter().zip(&step).map(|(w, s)| w - scale * s).collect::<Vec<f64>>();
        let Some(next) = (0..30).map(|k| moved(0.5_f64.powi(k))).find(|next| loss(next) < before) else {
            break;
        };
        w = next;
        if dot(&gradient, &step) < 1e-12 {
            break;
        }
    }
    w
}

/// `A⁻¹·b` of a positive definite matrix given by its lower triangle.
fn cholesky_solve(mut a: Vec<f64>, b: &[f64]) -> Vec<f64> {
    let n = b.len();
    for i in 0..n {
        for j in 0..=i {
            let known = dot(&a[i * n..i * n + j], &a[j * n..j * n + j]);
            let rest = a[i * n + j] - known;
            a[i * n + j] = if i == j { rest.sqrt() } else { rest / a[j * n + j] };
        }
    }
    let mut x = b.to_vec();
    for i in 0..n {
        x[i] = (x[i] - dot(&a[i * n..i * n + i], &x[..i])) / a[i * n + i];
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| a[k * n + i] * x[k]).sum();
        x[i] = (x[i] - known) / a[i * n + i];
    }
    x
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::env_rng;
    use crate::token_world::fixed;

    #[test]
    fn cholesky_solves_a_system_known_by_hand() {
        let x = cholesky_solve(vec![4.0, 0.0, 2.0, 3.0], &[8.0, 7.0]); // [[4, 2], [2, 3]]
        assert!((x[0] - 1.25).abs() < 1e-12 && (x[1] - 1.5).abs() < 1e-12);
    }

    #[test]
    fn each_kind_learns_and_the_one_that_sees_more_learns_more() {
        let world = fixed::full();
        let mut rng = env_rng(3, 0);
        let (train, held_out) = (comparisons(&world, 2000, &mut rng), comparisons(&world, 2000, &mut rng));
        let mut accuracy_of = |kind| {
            let score = fit(&world, kind, &train, &mut rng).expect("it learns");
            let (mean, std) = crate::token_world::exact::moments(world.reference(), &score);
            assert!(mean.abs() < 1e-9 && (std - 1.0).abs() < 1e-9);
            accuracy(&score, &held_out)
        };
        let [unigram, bigram, network] =
            [ProxyKind::Unigram, ProxyKind::Bigram, ProxyKind::Network].map(&mut accuracy_of);
        assert!((0.78..0.92).contains(&unigram), "unigram {unigram}");
        assert!(bigram > unigram + 0.02, "bigram {bigram}, unigram {unigram}");
        assert!(network > unigram + 0.02, "network {network}, unigram {unigram}");
    }

    #[test]
    fn a_linear_model_scores_a_sentence_by_its_counts() {
        let world = fixed::small();
        let pairs = comparisons(&world, 300, &mut env_rng(5, 0));
        let features = 4 + 16;
        let weights = logistic_regression(&differences(&world, features, &pairs), features);
        let scores = linear(&world, features, &pairs);
        for sentence in [0, 77, 255] {
            let want: f64 = occurrences(&world, sentence).into_iter().map(|feature| weights[feature]).sum();
            assert!((scores[sentence] - want).abs() < 1e-12);
        }
    }
}
