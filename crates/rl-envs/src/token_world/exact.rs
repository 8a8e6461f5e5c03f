//! Sums over every sentence: what RLHF estimates from samples, to the last digit.
//!
//! A law over K outcomes is a slice of K log-probabilities in nats, `−∞` where it never goes. The same formulas on
//! probabilities are `rl_core::tilt`; logarithms are kept here because a sentence of a peaked policy may be as rare as
//! `e^−700`. A law test compares the two.

/// `log softmax(z)`: `z_k − log Σ_j exp z_j`.
pub fn log_softmax(logits: &[f64]) -> Vec<f64> {
    let log_z = log_sum_exp(logits);
    logits.iter().map(|z| z - log_z).collect()
}

/// `log Σ_k exp z_k`, shifted by the largest z; `−∞` of nothing.
pub fn log_sum_exp(z: &[f64]) -> f64 {
    let max = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY { max } else { max + z.iter().map(|z| (z - max).exp()).sum::<f64>().ln() }
}

/// `E_π[f]`; what f holds where π never goes is not read.
///
/// # Shapes
/// `law, values: [K]`; unequal lengths panic
pub fn expectation(law: &[f64], values: &[f64]) -> f64 {
    assert_eq!(law.len(), values.len(), "one value per outcome");
    law.iter().zip(values).map(|(&l, &x)| if l == f64::NEG_INFINITY { 0.0 } else { l.exp() * x }).sum()
}

/// `E_π[f]` and `σ_π[f]`, the variance about the mean in a second pass.
///
/// # Shapes
/// `law, values: [K]`; unequal lengths panic
pub fn moments(law: &[f64], values: &[f64]) -> (f64, f64) {
    let mean = expectation(law, values);
    let variance: f64 = law.iter().zip(values).map(|(l, x)| l.exp() * (x - mean).powi(2)).sum();
    (mean, variance.sqrt())
}

/// `H(π) = −Σ π log π`, in nats, with `0·log 0 = 0`.
pub fn entropy(law: &[f64]) -> f64 {
    -law.iter().map(|&l| if l == f64::NEG_INFINITY { 0.0 } else { l.exp() * l }).sum::<f64>()
}

/// `KL(P ‖ Q) = Σ P·(log P − log Q)`, in nats: the tuned policy first, the original second.
///
/// # Shapes
/// `p, q: [K]`, log-probabilities; unequal lengths panic
pub fn kl(p: &[f64], q: &[f64]) -> f64 {
    assert_eq!(p.len(), q.len(), "two laws over one space");
    p.iter().zip(q).map(|(&p, &q)| if p == f64::NEG_INFINITY { 0.0 } else { p.exp() * (p - q) }).sum()
}

/// The optimum of `E_π[r] − β·KL(π ‖ p_ref)`, in numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tilt {
    /// The price of a nat.
    pub beta: f64,
    /// `log Z = log Σ_y p_ref(y)·exp(r(y)/β)`.
    pub log_z: f64,
    /// `E_{π*}[r]`.
    pub reward: f64,
    /// `KL(π* ‖ p_ref)`, nats.
    pub kl: f64,
    /// `H(π*)`, nats.
    pub entropy: f64,
    /// `Var_{π*}[r]`: how fast reward (and KL·β) still rise with 1/β.
    pub variance: f64,
}

impl Tilt {
    /// The best objective that any policy reaches, `β·log Z`.   Rafailov 2023 (DPO), eq. 4
    pub fn objective(&self) -> f64 {
        self.beta * self.log_z
    }
}

/// Everything about `π*(y) ∝ p_ref(y)·exp(r(y)/β)` but π* itself, in one pass.
///
/// # Shapes
/// `reference, reward: [K]`; unequal lengths panic, as does β ≤ 0
pub fn tilt(reference: &[f64], reward: &[f64], beta: f64) -> Tilt {
    assert_eq!(reference.len(), reward.len(), "one reward per outcome");
    assert!(beta > 0.0, "a tilt needs β > 0, but it is {beta}");
    let slope = 1.0 / beta;
    let exponent = |l: f64, r: f64| l + r * slope;
    let max = reference.iter().zip(reward).fold(f64::NEG_INFINITY, |max, (&l, &r)| max.max(exponent(l, r)));
    let (mut sum, mut rewards, mut squares, mut exponents) = (0.0, 0.0, 0.0, 0.0);
    for (&l, &r) in reference.iter().zip(reward).filter(|(l, _)| **l != f64::NEG_INFINITY) {
        let e = exponent(l, r) - max;
        let weight = e.exp();
        sum += weight;
        rewards += weight * r;
        squares += weight * r * r;
        exponents += weight * e;
    }
    let (log_z, mean) = (max + sum.ln(), rewards / sum);
    Tilt {
        beta,
        log_z,
        reward: mean,
        // log π* − log p_ref = r/β − log Z
        kl: mean * slope - log_z,
        // log π* = exponent − log Z, and max is inside both
        entropy: sum.ln() - exponents / sum,
        variance: (squares / sum - mean * mean).max(0.0),
    }
}

/// π* itself: `log π*(y) = log p_ref(y) + r(y)/β − log Z`, `[K]`.
///
/// # Shapes
/// `reference, reward: [K]` → `[K]`
pub fn tilted(reference: &[f64], reward: &[f64], beta: f64) -> Vec<f64> {
    let log_z = tilt(reference, reward, beta).log_z;
    reference.iter().zip(reward).map(|(l, r)| l + r / beta - log_z).collect()
}

/// The objective that a policy reaches, `E_π[r] − β·KL(π ‖ p_ref)`.
///
/// # Shapes
/// `law, reference, reward: [K]`
pub fn objective(law: &[f64], reference: &[f64], reward: &[f64], beta: f64) -> f64 {
    expectation(law, reward) - if beta == 0.0 { 0.0 } else { beta * kl(law, reference) }
}

/// The frontier: the highest `E_π[r]` of any π with `KL(π ‖ p_ref) ≤ kl`, which the tilt of that KL reaches.
///
/// Newton's method in `λ = 1/β`, kept inside a bracket: `dKL/dλ = λ·Var_{π*}[r]`. Accurate to 1e-9 nats. At `kl ≤ 0` it
/// is the reference's reward; where no tilt costs as much (`kl ≥ −log p_ref(best)`), the highest reward there is.
///
/// # Shapes
/// `reference, reward: [K]`
pub fn frontier(reference: &[f64], reward: &[f64], kl: f64) -> f64 {
    if kl <= 0.0 {
        return expectation(reference, reward);
    }
    let at = |slope: f64| tilt(reference, reward, 1.0 / slope);
    let (mut low, mut high) = (0.0, f64::INFINITY);
    // Where rewards have variance 1 under the reference, KL begins as λ²/2.
    let mut slope = (2.0 * kl).sqrt();
    for _ in 0..200 {
        let here = at(slope);
        let error = here.kl - kl;
        if error.abs() < 1e-9 || slope > 1e9 {
            return here.reward;
        }
        if error > 0.0 {
            high = slope
        } else {
            low = slope
        }
        let newton = slope - error / (slope * here.variance).max(1e-300);
        slope = if newton > low && newton < high.min(4.0 * slope) {
            newton
        } else if high.is_finite() {
            0.5 * (low + high)
        } else {
            2.0 * slope
        };
    }
    at(slope).reward
}

/// The next-token laws of a law over sentences: `log π(v | prefix)` for each prefix, in the order of
/// [`prefix_index`](super::TokenWorld::prefix_index); uniform after a prefix that never occurs.
///
/// # Shapes
/// `law: [V^L]` → `[(V^L − 1)/(V − 1)·V]`
pub fn next_token_laws(law: &[f64], vocabulary: usize) -> Vec<f64> {
    // Masses of the sentences' prefixes, longest first: each level sums the one below.
    let mut levels = vec![law.to_vec()];
    while levels[levels.len() - 1].len() > 1 {
        let shorter = levels[levels.len() - 1].chunks_exact(vocabulary).map(log_sum_exp).collect();
        levels.push(shorter);
    }
    levels.pop();
    let uniform = -(vocabulary as f64).ln();
    let normalised = |children: &[f64]| {
        let mass = log_sum_exp(children);
        children
            .iter()
            .map(|l| if mass == f64::NEG_INFINITY { uniform } else { l - mass })
            .collect::<Vec<_>>()
    };
    levels.iter().rev().flat_map(|level| level.chunks_exact(vocabulary)).flat_map(normalised).collect()
}

/// The law over sentences of next-token laws: the inverse of [`next_token_laws`].
///
/// # Shapes
/// `next: [(V^L − 1)/(V − 1)·V]` → `[V^L]`
pub fn sentence_law(next: &[f64], vocabulary: usize) -> Vec<f64> {
    let mut law = vec![0.0];
    let mut rest = next;
    while !rest.is_empty() {
        let (level, deeper) = rest.split_at(law.len() * vocabulary);
        law = level.iter().enumerate().map(|(i, l)| law[i / vocabulary] + l).collect();
        rest = deeper;
    }
    law
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERENCE: [f64; 4] = [0.1, 0.2, 0.3, 0.4];

    fn logs(p: &[f64]) -> Vec<f64> {
        p.iter().map(|p| p.ln()).collect()
    }

    #[test]
    fn the_frontier_runs_from_the_reference_to_the_best_sentence() {
        let (reference, reward) = (logs(&REFERENCE), [3.0, 1.0, 2.0, 0.0]);
        assert!((frontier(&reference, &reward, 0.0) - 1.1).abs() < 1e-12);
        assert!((frontier(&reference, &reward, 50.0) - 3.0).abs() < 1e-9);
        let tilt = tilt(&reference, &reward, 0.7);
        assert!((frontier(&reference, &reward, tilt.kl) - tilt.reward).abs() < 1e-8);
    }

    #[test]
    fn a_law_and_its_next_token_laws_are_one() {
        let law = logs(&[0.05, 0.15, 0.0, 0.0, 0.3, 0.1, 0.25, 0.15]);
        let next = next_token_laws(&law, 2);
        assert_eq!(next.len(), 7 * 2);
        assert!((next[0].exp() - 0.2).abs() < 1e-12);
        let again = sentence_law(&next, 2);
        assert!(again.iter().zip(&law).all(|(a, b)| (a.exp() - b.exp()).abs() < 1e-12));
    }

    #[test]
    fn what_never_happens_costs_nothing() {
        let law = logs(&[0.5, 0.0, 0.5, 0.0]);
        assert!((kl(&law, &logs(&REFERENCE)) - (0.5 * 5f64.ln() + 0.5 * (5.0_f64 / 3.0).ln())).abs() < 1e-12);
        assert!((entropy(&law) - 2f64.ln()).abs() < 1e-12);
        assert_eq!(expectation(&law, &[1.0, f64::NAN, 3.0, f64::INFINITY]), 2.0);
    }
}
