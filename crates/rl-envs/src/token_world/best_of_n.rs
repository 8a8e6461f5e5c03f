//! Best-of-n: sample n answers, keep the one that scores highest. No training, and a strong baseline.
//!
//! With `F(s)` the reference's mass at scores ≤ s, a score class of mass m is the best of n with probability
//!
//! ```text
//! P = F(s)^n − F(s−)^n           KL(best-of-n ‖ p_ref) = Σ P·log(P/m) ≤ log n − (n − 1)/n
//! ```
//!
//! and within a class its sentences share P in proportion to p_ref. The bound is the value for a continuous score.
//! Gao 2022, §2; Beirami 2024 for the bound

use super::MAX_SENTENCES;

/// Scores closer than this are ties: sentences of equal reward differ by rounding, since sums have an order.
const TIE: f64 = 1e-9;

/// Sentences in the order of their scores, ready for any n.
#[derive(Debug, Clone)]
pub struct BestOfN {
    /// `[K]`, as it was given.
    reference: Vec<f64>,
    /// Sentence numbers, worst score first.
    order: Vec<u32>,
    /// The score classes, worst first.
    classes: Vec<Class>,
}

#[derive(Debug, Clone, Copy)]
struct Class {
    /// Where it ends in `order`.
    end: usize,
    /// Its mass under the reference, m.
    mass: f64,
    /// `log F`, the mass up to and including it.
    log_up_to: f64,
}

impl BestOfN {
    /// Sorts the sentences by score.
    ///
    /// # Shapes
    /// `reference, score: [K]`; unequal lengths panic
    pub fn new(reference: &[f64], score: &[f64]) -> Self {
        assert_eq!(reference.len(), score.len(), "one score per outcome");
        let order = ascending(score);
        let mut classes: Vec<Class> = Vec::new();
        let (mut previous, mut below) = (f64::NEG_INFINITY, 0.0);
        for (at, &sentence) in order.iter().enumerate() {
            let (score, mass) = (score[sentence as usize], reference[sentence as usize].exp());
            match classes.last_mut() {
                Some(class) if (score - previous).abs() <= TIE => {
                    (class.end, class.mass) = (at + 1, class.mass + mass);
                }
                _ => classes.push(Class { end: at + 1, mass, log_up_to: 0.0 }),
            }
            previous = score;
        }
        let total: f64 = classes.iter().map(|class| class.mass).sum();
        for class in &mut classes {
            below += class.mass;
            class.log_up_to = (below / total).min(1.0).ln();
        }
        Self { reference: reference.to_vec(), order, classes }
    }

    /// `P = F^n − (F − m)^n` of every class.
    fn probabilities(&self, n: usize) -> impl Iterator<Item = (&Class, f64)> {
        assert!(n > 0, "the best of no samples");
        let mut below = 0.0;
        self.classes.iter().map(move |class| {
            let up_to = (n as f64 * class.log_up_to).exp();
            let p = up_to - below;
            below = up_to;
            (class, p)
        })
    }

    /// The law of the best of n samples, as log-probabilities `[K]`.
    ///
    /// # Panics
    /// If n is 0.
    pub fn law(&self, n: usize) -> Vec<f64> {
        let mut law = vec![f64::NEG_INFINITY; self.reference.len()];
        let mut start = 0;
        for (class, p) in self.probabilities(n) {
            let shift = (p / class.mass).ln();
            for &sentence in &self.order[start..class.end] {
                law[sentence as usize] = self.reference[sentence as usize] + shift;
            }
            start = class.end;
        }
        law
    }

    /// `KL(best-of-n ‖ p_ref)`, exact, in nats.
    ///
    /// # Panics
    /// If n is 0.
    pub fn kl(&self, n: usize) -> f64 {
        self.probabilities(n).map(|(class, p)| if p > 0.0 { p * (p / class.mass).ln() } else { 0.0 }).sum()
    }

    /// `E[f]` of the best of n samples: with another f than the score, what the choice does to it.
    ///
    /// # Shapes
    /// `values: [K]`
    pub fn expectation(&self, n: usize, values: &[f64]) -> f64 {
        let (mut sum, mut start) = (0.0, 0);
        for (class, p) in self.probabilities(n) {
            let members = &self.order[start..class.end];
            sum += p * match members {
                [one] => values[*one as usize],
                several => {
                    let mass = |&sentence: &u32| self.reference[sentence as usize].exp() / class.mass;
                    several.iter().map(|sentence| mass(sentence) * values[*sentence as usize]).sum::<f64>()
                }
            };
            start = class.end;
        }
        sum
    }
}

/// The sentences in order of their scores: sorts whole numbers, 40 bits of score above 24 bits of sentence. Scores that
/// agree in 40 bits are ties anyway.
fn ascending(score: &[f64]) -> Vec<u32> {
    let (low, high) =
        score.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &s| (low.min(s), high.max(s)));
    assert!(
        score.len() <= MAX_SENTENCES && (high - low).is_finite(),
        "finite scores of at most 2^24 sentences"
    );
    let scale = ((1_u64 << 40) - 1) as f64 / (high - low).max(f64::MIN_POSITIVE);
    let mut keys: Vec<u64> =
        score.iter().zip(0..).map(|(&s, i): (_, u64)| (((s - low) * scale) as u64) << 24 | i).collect();
    keys.sort_unstable();
    keys.into_iter().map(|key| (key & 0xff_ffff) as u32).collect()
}

/// `log n − (n − 1)/n`, the KL of best-of-n for a continuous score and an upper bound otherwise, in nats.
/// Stiennon 2020, appendix G.3
pub fn kl_bound(n: usize) -> f64 {
    let n = n as f64;
    n.ln() - (n - 1.0) / n
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(p: &[f64]) -> Vec<f64> {
        p.iter().map(|p| p.ln()).collect()
    }

    #[test]
    fn the_best_of_two_coins() {
        let best = BestOfN::new(&logs(&[0.5, 0.5]), &[0.0, 1.0]);
        let law = best.law(2);
        assert!((law[0].exp() - 0.25).abs() < 1e-12 && (law[1].exp() - 0.75).abs() < 1e-12);
        assert!((best.expectation(2, &[0.0, 8.0]) - 6.0).abs() < 1e-12);
    }

    #[test]
    fn ties_share_in_proportion_to_the_reference_and_rounding_is_a_tie() {
        let reference = logs(&[0.2, 0.6, 0.2]);
        let best = BestOfN::new(&reference, &[1.0, 1.0 + 1e-15, 0.0]);
        let law: Vec<f64> = best.law(3).iter().map(|l| l.exp()).collect();
        assert!((law[1] / law[0] - 3.0).abs() < 1e-12 && (law[2] - 0.008).abs() < 1e-12);
    }

    #[test]
    fn one_sample_is_the_reference_and_costs_nothing() {
        let reference = logs(&[0.1, 0.2, 0.3, 0.4]);
        let best = BestOfN::new(&reference, &[4.0, 1.0, 2.0, 3.0]);
        assert!(best.law(1).iter().zip(&reference).all(|(a, b)| (a - b).abs() < 1e-12));
        assert!(best.kl(1).abs() < 1e-12 && best.kl(1000) <= kl_bound(1000));
        assert!((best.kl(1_000_000) - 10f64.ln()).abs() < 1e-6, "the best sentence has probability 0.1");
    }
}
