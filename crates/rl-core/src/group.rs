//! Advantages within groups of responses to one prompt: a baseline without a critic.
//!
//! `rewards` holds one group after another, `group` responses each: `[G·K]`, row-major. The advantage of a response
//! belongs to each of its tokens.

use crate::real::Real;
use crate::whiten::{Moments, Variance, moments};

/// Added to the standard deviation in [`grpo`] (Hugging Face TRL's and the golden vectors' choice).
pub const GRPO_EPSILON: f64 = 1e-4;

/// REINFORCE leave-one-out: the baseline of a response is the mean reward of the *other* responses.
///
/// `Â_i = r_i − (Σ_{j≠i} r_j)/(K − 1) = K/(K − 1)·(r_i − r̄)`.   Kool 2019; Ahmadian 2024 (RLOO)
///
/// Unbiased, because no response is in its own baseline.
///
/// # Shapes
/// `rewards: [G·K]` → `[G·K]`. Panics if `group` < 2 or does not divide the number of rewards.
///
/// ```
/// assert_eq!(rl_core::group::rloo(&[1.0, 0.0, 0.5, 0.5], 2), [1.0, -1.0, 0.0, 0.0]);
/// ```
pub fn rloo<F: Real>(rewards: &[F], group: usize) -> Vec<F> {
    let scale = group as f64 / (group as f64 - 1.0);
    per_group(rewards, group, |reward, of| scale * (reward - of.mean))
}

/// Group-relative advantage: the reward in standard deviations of its group.
///
/// `Â_i = (r_i − r̄)/(σ + 1e-4)`, `σ` with the unbiased `K − 1`.   Shao 2024, §4.1.2
///
/// Dividing by `σ` weights easy and hopeless prompts up; [`grpo_no_scale`] does not.
///
/// # Shapes
/// `rewards: [G·K]` → `[G·K]`. Panics if `group` < 2 or does not divide the number of rewards.
pub fn grpo<F: Real>(rewards: &[F], group: usize) -> Vec<F> {
    per_group(rewards, group, |reward, of| (reward - of.mean) / (of.variance.sqrt() + GRPO_EPSILON))
}

/// Group-relative advantage without the division.
///
/// `Â_i = r_i − r̄`.   Liu 2025 ("Dr. GRPO")
///
/// # Shapes
/// `rewards: [G·K]` → `[G·K]`. Panics if `group` < 2 or does not divide the number of rewards.
pub fn grpo_no_scale<F: Real>(rewards: &[F], group: usize) -> Vec<F> {
    per_group(rewards, group, |reward, of| reward - of.mean)
}

/// How many groups have equal rewards throughout, and therefore teach nothing: report it, a loss of 0 is then no fault.
///
/// # Shapes
/// `rewards: [G·K]`. Panics if `group` is 0 or does not divide the number of rewards.
pub fn groups_without_signal<F: Real>(rewards: &[F], group: usize) -> usize {
    groups(rewards, group).filter(|group| group.iter().all(|reward| *reward == group[0])).count()
}

fn per_group<F: Real>(rewards: &[F], group: usize, formula: impl Fn(f64, Moments) -> f64) -> Vec<F> {
    assert!(
        group >= 2,
        "a group of {group} has no others to compare with: sample at least 2 responses per prompt"
    );
    groups(rewards, group)
        .flat_map(|rewards| {
            let of = moments(rewards, None, Variance::Unbiased).expect("a group holds at least 2 rewards");
            rewards.iter().map(move |reward| (reward.to_f64(), of))
        })
        .map(|(reward, of)| F::from_f64(formula(reward, of)))
        .collect()
}

fn groups<F: Real>(rewards: &[F], group: usize) -> impl Iterator<Item = &[F]> {
    let exact = group > 0 && rewards.len().is_multiple_of(group);
    assert!(exact, "{} rewards are not whole groups of {group}", rewards.len());
    rewards.chunks_exact(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rloo_compares_with_the_mean_of_the_others() {
        assert_eq!(rloo(&[1.0, 2.0, 6.0], 3), [-3.0, -1.5, 4.5]);
    }

    #[test]
    fn grpo_divides_by_the_unbiased_deviation_of_its_own_group() {
        let got = grpo(&[1.0_f64, 2.0, 3.0, 10.0, 20.0, 30.0], 3);
        assert!((got[2] - 1.0 / 1.0001).abs() < 1e-12);
        assert!((got[3] + 10.0 / 10.0001).abs() < 1e-12);
        assert_eq!(got[1], 0.0);
    }

    #[test]
    fn equal_rewards_have_no_advantage_and_are_counted() {
        let rewards = [0.1, 0.1, 0.1, 0.3, 0.2, 0.1];
        for advantages in [rloo(&rewards, 3), grpo(&rewards, 3), grpo_no_scale(&rewards, 3)] {
            assert_eq!(advantages[..3], [0.0; 3]);
        }
        assert_eq!(groups_without_signal(&rewards, 3), 1);
    }

    #[test]
    #[should_panic(expected = "a group of 1 has no others to compare with")]
    fn a_group_of_one_is_a_bug() {
        rloo(&[1.0], 1);
    }

    #[test]
    #[should_panic(expected = "5 rewards are not whole groups of 2")]
    fn a_torn_group_is_a_bug() {
        grpo(&[1.0; 5], 2);
    }
}
