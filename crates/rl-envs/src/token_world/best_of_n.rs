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

/// Classes that are the best of n less often than this cost nothing.
const RARE: f64 = 1e-50;

/// Sentences in the order of their scores, ready for any n.
#[derive(Debug, Clone)]
pub struct BestOfN {
    /// `[K]`, as it was given.
    reference: Vec<f64>,
    /// Sentence numbers, worst score first.
    order: Vec<u32>,
    /// Where each score class ends in `order`, the worst class first.
    ends: Vec<u32>,
    /// Each class's mass under the reference, m.
    mass: Vec<f64>,
    /// Each class's F, the mass up to and including it; a 0 stands before the first.
    up_to: Vec<f64>,
}

impl BestOfN {
    /// Sorts the sentences by score.
    ///
    /// # Shapes
    /// `reference, score: [K]`; unequal lengths panic
    pub fn new(reference: &[f64], score: &[f64]) -> Self {
        assert_eq!(reference.len(), score.len(), "one score per outcome");
        let order = ascending(score);
        let probabilities: Vec<f64> = reference.iter().map(|l| l.exp()).collect();
        let (mut ends, mut mass) = (Vec::with_capacity(order.len()), Vec::with_capacity(order.len()));
        let mut previous = f64::NEG_INFINITY;
        for (end, &sentence) in (1..).zip(&order) {
            let (score, p) = (score[sentence as usize], probabilities[sentence as usize]);
            if (score - previous).abs() <= TIE {
                let last = mass.len() - 1;
                ends[last] = end;
                mass[last] += p;
            } else {
                ends.push(end);
                mass.push(p);
            }
            previous = score;
        }
        let total: f64 = mass.iter().sum();
        let mut below = 0.0;
        let mut up_to = vec![0.0];
        up_to.extend(mass.iter().map(|m| {
            below += m;
            (below / total).min(1.0)
        }));
        Self { reference: reference.to_vec(), order, ends, mass, up_to }
    }

    /// `P = F^n − (F − m)^n` of every class.
    fn probabilities(&self, n: usize) -> Vec<f64> {
        assert!(n > 0, "the best of no samples");
        let n = i32::try_from(n).expect("fewer than 2³¹ samples");
        let powers: Vec<f64> = self.up_to.iter().map(|up_to| up_to.powi(n)).collect();
        powers.windows(2).map(|two| two[1] - two[0]).collect()
    }

    /// Each class's members, in the order of the classes.
    fn members(&self) -> impl Iterator<Item = &[u32]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let members = &self.order[start..end as usize];
            start = end as usize;
            members
        })
    }

    /// The law of the best of n samples, as log-probabilities `[K]`.
    ///
    /// # Panics
    /// If n is 0.
    pub fn law(&self, n: usize) -> Vec<f64> {
        let mut law = vec![f64::NEG_INFINITY; self.reference.len()];
        for ((members, p), m) in self.members().zip(self.probabilities(n)).zip(&self.mass) {
            let shift = (p / m).ln();
            for &sentence in members {
                law[sentence as usize] = self.reference[sentence as usize] + shift;
            }
        }
        law
    }

    /// `KL(best-of-n ‖ p_ref)`, exact, in nats.
    ///
    /// # Panics
    /// If n is 0.
    pub fn kl(&self, n: usize) -> f64 {
        let each = self.probabilities(n).into_iter().zip(&self.mass);
        // What is rarer than this adds less than 1e-40 nats, and takes no logarithm.
        each.map(|(p, m)| if p > RARE { p * (p / m).ln() } else { 0.0 }).sum()
    }

    /// `E[f]` of the best of n samples: with another f than the score, what the choice does to it.
    ///
    /// # Shapes
    /// `values: [K]`
    pub fn expectation(&self, n: usize, values: &[f64]) -> f64 {
        let each = self.members().zip(self.probabilities(n)).zip(&self.mass).map(|((members, p), m)| {
            p * match members {
                [one] => values[*one as usize],
                several => {
                    let share = |&sentence: &u32| self.reference[sentence as usize].exp() / m;
                    several.iter().map(|sentence| share(sentence) * values[*sentence as usize]).sum::<f64>()
                }
            }
        });
        each.sum()
    }
}

/// Bits of score in a key: what agrees in them is nearer than [`TIE`] unless scores span more than 60.
const SCORE_BITS: u32 = 36;
/// Bits of a sentence's number in a key.
const SENTENCE_BITS: u32 = 24;
/// Bits that one pass of the sort looks at.
const DIGIT_BITS: u32 = 12;

/// The sentences in order of their scores: a radix sort of whole numbers, the score above the sentence.
fn ascending(score: &[f64]) -> Vec<u32> {
    let (low, high) =
        score.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &s| (low.min(s), high.max(s)));
    assert!(
        score.len() <= MAX_SENTENCES && (high - low).is_finite(),
        "finite scores of at most 2^24 sentences"
    );
    let scale = ((1_u64 << SCORE_BITS) - 1) as f64 / (high - low).max(f64::MIN_POSITIVE);
    let mut keys: Vec<u64> = score
        .iter()
        .zip(0..)
        .map(|(&s, i): (_, u64)| (((s - low) * scale) as u64) << SENTENCE_BITS | i)
        .collect();
    let mut sorted = vec![0; keys.len()];
    for shift in (SENTENCE_BITS..SENTENCE_BITS + SCORE_BITS).step_by(DIGIT_BITS as usize) {
        let digit = |key: u64| (key >> shift) as usize & ((1 << DIGIT_BITS) - 1);
        let mut next = vec![0_u32; 1 << DIGIT_BITS];
        keys.iter().for_each(|&key| next[digit(key)] += 1);
        let mut before = 0;
        for count in &mut next {
            (*count, before) = (before, before + *count);
        }
        for &key in &keys {
            let place = &mut next[digit(key)];
            sorted[*place as usize] = key;
            *place += 1;
        }
        std::mem::swap(&mut keys, &mut sorted);
    }
    keys.into_iter().map(|key| (key & ((1 << SENTENCE_BITS) - 1)) as u32).collect()
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
