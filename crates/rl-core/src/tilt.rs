//! The exact optimum of `E[r] − β·KL(π ‖ π_ref)` on a finite space: the exponential tilt of the reference.
//!
//! For real language `Z` cannot be summed; in worlds that can be enumerated it can, and then no trained policy may
//! score above [`Tilt::value`]. It is what RLHF and DPO are measured against.

/// The optimal policy and everything about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tilt {
    /// `π*(y) = π_ref(y)·exp(r(y)/β)/Z`, `[K]`.
    pub policy: Vec<f64>,
    /// `log Z = log Σ_y π_ref(y)·exp(r(y)/β)`.
    pub log_z: f64,
    /// The best objective that any policy reaches, `β·log Z`, in units of reward.
    pub value: f64,
    /// `E_{π*}[r]`.
    pub expected_reward: f64,
    /// `KL(π* ‖ π_ref)`, in nats.
    pub kl: f64,
}

/// Tilts a reference distribution towards reward.
///
/// `π*(y) = π_ref(y)·exp(r(y)/β)/Z`,   `max_π E_π[r] − β·KL(π ‖ π_ref) = β·log Z`.   Rafailov 2023 (DPO), eq. 4;
/// Korbak 2022
///
/// An outcome that the reference never produces stays at 0, whatever its reward. β may be as small as `r/β` allows to be
/// finite: the exponential is taken after the shift by the largest exponent.
///
/// # Shapes
/// `reference, rewards: [K]` → `[K]`; unequal lengths panic, as do β ≤ 0 and a reference without mass. The reference is
/// divided by its sum first.
///
/// ```
/// let tilt = rl_core::tilt::tilt(&[0.5, 0.5], &[0.0, 2.0_f64.ln()], 1.0);
/// assert!((tilt.policy[1] - 2.0 / 3.0).abs() < 1e-12); // twice as good, twice as likely
/// assert!((tilt.log_z - 1.5_f64.ln()).abs() < 1e-12);
/// ```
pub fn tilt(reference: &[f64], rewards: &[f64], beta: f64) -> Tilt {
    assert_eq!(reference.len(), rewards.len(), "one reward per outcome");
    assert!(beta > 0.0, "a tilt needs β > 0, but it is {beta}");
    let reference = normalized(reference);
    // log π_ref + r/β, shifted by its maximum before the exponential.
    let exponents: Vec<f64> = reference
        .iter()
        .zip(rewards)
        .map(|(&p, &r)| if p > 0.0 { p.ln() + r / beta } else { f64::NEG_INFINITY })
        .collect();
    let max = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = exponents.iter().map(|e| (e - max).exp()).collect();
    let sum: f64 = powers.iter().sum();
    let log_z = max + sum.ln();
    let policy: Vec<f64> = powers.iter().map(|p| p / sum).collect();
    Tilt {
        log_z,
        value: beta * log_z,
        expected_reward: expectation(&policy, rewards),
        kl: kl(&policy, &reference),
        policy,
    }
}

/// The objective of RLHF for a policy that can be written down: `E_π[r] − β·KL(π ‖ π_ref)`, in units of reward.
///
/// `−∞` if the policy produces what the reference never does.   Ziegler 2019, eq. 2 (in expectation)
///
/// # Shapes
/// `policy, reference, rewards: [K]`; unequal lengths panic. Both distributions are divided by their sums first.
pub fn objective(policy: &[f64], reference: &[f64], rewards: &[f64], beta: f64) -> f64 {
    let (policy, reference) = (normalized(policy), normalized(reference));
    let cost = kl(&policy, &reference);
    // β = 0 makes KL free, an infinite one too.
    expectation(&policy, rewards) - if beta == 0.0 { 0.0 } else { beta * cost }
}

/// `KL(p ‖ q) = Σ p·log(p/q)` of two distributions, in nats.
///
/// `0·log(0/q) = 0`; `∞` where `p > 0 = q`.
///
/// # Shapes
/// `p, q: [K]`, each summing to 1; unequal lengths panic.
pub fn kl(p: &[f64], q: &[f64]) -> f64 {
    assert_eq!(p.len(), q.len(), "two distributions over one space");
    let term = |(&p, &q): (&f64, &f64)| match (p > 0.0, q > 0.0) {
        (false, _) => 0.0,
        (true, false) => f64::INFINITY,
        (true, true) => p * (p.ln() - q.ln()),
    };
    p.iter().zip(q).map(term).sum()
}

/// `E_π[r]`; the reward of an impossible outcome is not read.
fn expectation(policy: &[f64], rewards: &[f64]) -> f64 {
    assert_eq!(policy.len(), rewards.len(), "one reward per outcome");
    policy.iter().zip(rewards).filter(|&(&p, _)| p > 0.0).map(|(p, r)| p * r).sum()
}

fn normalized(weights: &[f64]) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    assert!(sum > 0.0 && sum.is_finite(), "a distribution needs positive finite mass, but has {sum}");
    weights.iter().map(|w| w / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rewards_leave_the_reference() {
        let got = tilt(&[0.2, 0.8], &[3.0, 3.0], 0.1);
        assert!((got.policy[0] - 0.2).abs() < 1e-12 && got.kl.abs() < 1e-12);
        assert!((got.value - 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_tiny_beta_takes_the_best_outcome_without_overflow() {
        let got = tilt(&[0.5, 0.5], &[1.0, 2.0], 1e-300);
        assert_eq!(got.policy, [0.0, 1.0]);
        assert!((got.kl - 2.0_f64.ln()).abs() < 1e-12 && (got.value - 2.0).abs() < 1e-12);
    }

    #[test]
    fn what_the_reference_never_does_stays_impossible() {
        let got = tilt(&[0.5, 0.0, 0.5], &[1.0, 1e6, 1.0], 0.1);
        assert_eq!(got.policy[1], 0.0);
        assert_eq!(objective(&[0.5, 0.5, 0.0], &[0.5, 0.0, 0.5], &[1.0; 3], 0.1), f64::NEG_INFINITY);
    }

    #[test]
    fn the_direction_of_kl_is_from_the_first_argument() {
        assert_eq!(kl(&[1.0, 0.0], &[0.5, 0.5]), 2.0_f64.ln());
        assert_eq!(kl(&[0.5, 0.5], &[1.0, 0.0]), f64::INFINITY);
    }

    #[test]
    #[should_panic(expected = "a tilt needs β > 0, but it is 0")]
    fn a_tilt_without_a_price_is_a_bug() {
        tilt(&[1.0], &[1.0], 0.0);
    }
}
