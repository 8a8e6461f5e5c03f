//! Returns and advantages along one stream of time: discounted returns, λ-returns and GAE.
//!
//! A stream is `T` consecutive steps of one environment (or of one response), possibly holding several
//! episodes. How a step ends is a type, [`End`], so a time-limit cut can neither be taken for a true end nor
//! forget its bootstrap value.

use crate::real::Real;

/// What follows a step of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End<F> {
    /// The episode goes on with the next step of the stream.
    Continues,
    /// The world ended: nothing follows, the value of what follows is 0. Wins if a cut falls together with it.
    Terminated,
    /// The episode was cut although the world goes on (a time limit, a full response).
    Truncated {
        /// `V(s_{t+1})` of the last observation *before* the reset: what the cut hides.
        bootstrap: F,
    },
}

/// Advantages of a stream, and what its critic should have said.
#[derive(Debug, Clone, PartialEq)]
pub struct Advantages<F> {
    /// `Â_t`, `[T]`, not normalised.
    pub advantages: Vec<F>,
    /// `Â_t + V(s_t)`, `[T]`: the target of the value function, formed *before* any normalisation.
    pub targets: Vec<F>,
}

/// Discounted return of every step, bootstrapped where an episode was cut.
///
/// `G_t = r_t + γ·G_{t+1}`, where `G_{t+1}` is 0 after a termination, the bootstrap value after a cut, and
/// `last_value = V(s_T)` after the last step if it continues.   Sutton & Barto 2018, eq. 3.9
///
/// # Shapes
/// `rewards: [T], ends: [T]` → `[T]`; unequal lengths panic.
///
/// ```
/// use rl_core::returns::{End, discounted_returns};
/// let ends = [End::Continues, End::Terminated, End::Continues];
/// assert_eq!(discounted_returns(&[1.0, 2.0, 4.0], &ends, 8.0, 0.5), [2.0, 2.0, 8.0]);
/// ```
pub fn discounted_returns<F: Real>(rewards: &[F], ends: &[End<F>], last_value: F, gamma: F) -> Vec<F> {
    assert_eq!(rewards.len(), ends.len(), "one end per reward");
    let mut returns = vec![F::ZERO; rewards.len()];
    let mut next_return = last_value;
    for t in (0..rewards.len()).rev() {
        let following = match ends[t] {
            End::Continues => next_return,
            End::Terminated => F::ZERO,
            End::Truncated { bootstrap } => bootstrap,
        };
        returns[t] = rewards[t] + gamma * following;
        next_return = returns[t];
    }
    returns
}

/// Generalised advantage estimation.
///
/// `δ_t = r_t + γ·V(s_{t+1}) − V(s_t)`,   `Â_t = δ_t + γλ·Â_{t+1}`.   Schulman 2016, §3, eq. 16
///
/// A termination makes `V(s_{t+1})` zero, a cut makes it the bootstrap value; both stop the recursion, so no
/// advantage leaks from one episode into the one before it. λ = 0 is the one-step TD error, λ = 1 the discounted
/// return minus the value.
///
/// # Shapes
/// `rewards, values, ends: [T]` → `[T]` each; unequal lengths panic. `values[t] = V(s_t)`;
/// `last_value = V(s_T)` counts only if the last step continues.
pub fn gae<F: Real>(
    rewards: &[F],
    values: &[F],
    ends: &[End<F>],
    last_value: F,
    gamma: F,
    lambda: F,
) -> Advantages<F> {
    assert_eq!(rewards.len(), values.len(), "one value per reward");
    assert_eq!(rewards.len(), ends.len(), "one end per reward");
    let mut advantages = vec![F::ZERO; rewards.len()];
    let (mut next_value, mut next_advantage) = (last_value, F::ZERO);
    for t in (0..rewards.len()).rev() {
        let (v_next, a_next) = match ends[t] {
            End::Continues => (next_value, next_advantage),
            End::Terminated => (F::ZERO, F::ZERO),
            End::Truncated { bootstrap } => (bootstrap, F::ZERO),
        };
        let delta = rewards[t] + gamma * v_next - values[t];
        advantages[t] = delta + gamma * lambda * a_next; // eq. 16
        (next_value, next_advantage) = (values[t], advantages[t]);
    }
    let targets = advantages.iter().zip(values).map(|(&a, &v)| a + v).collect();
    Advantages { advantages, targets }
}

/// The λ-return: every n-step return of a step, mixed with weights `(1 − λ)·λ^{n−1}`.
///
/// `G_t = r_t + γ·[(1 − λ)·V(s_{t+1}) + λ·G_{t+1}]`.   Sutton & Barto 2018, eq. 12.18 (recursive form)
///
/// It equals the `targets` of [`gae`]; use it where only the critic is trained.
///
/// # Shapes
/// As [`gae`].
pub fn lambda_returns<F: Real>(
    rewards: &[F],
    values: &[F],
    ends: &[End<F>],
    last_value: F,
    gamma: F,
    lambda: F,
) -> Vec<F> {
    assert_eq!(rewards.len(), values.len(), "one value per reward");
    assert_eq!(rewards.len(), ends.len(), "one end per reward");
    let mut returns = vec![F::ZERO; rewards.len()];
    let (mut next_value, mut next_return) = (last_value, last_value);
    for t in (0..rewards.len()).rev() {
        let (v_next, g_next) = match ends[t] {
            End::Continues => (next_value, next_return),
            End::Terminated => (F::ZERO, F::ZERO),
            End::Truncated { bootstrap } => (bootstrap, bootstrap),
        };
        returns[t] = rewards[t] + gamma * ((F::ONE - lambda) * v_next + lambda * g_next);
        (next_value, next_return) = (values[t], returns[t]);
    }
    returns
}

#[cfg(test)]
mod tests {
    use super::*;
    use End::{Continues, Terminated, Truncated};

    #[track_caller]
    fn check(got: &[f64], want: &[f64]) {
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() < 1e-12, "{got} is not {want}");
        }
    }

    #[test]
    fn a_terminated_stream_has_the_hand_computed_advantages() {
        let got = gae(&[1.0; 3], &[0.5; 3], &[Continues, Continues, Terminated], 2.0, 0.9, 1.0);
        check(&got.advantages, &[2.21, 1.4, 0.5]);
        check(&got.targets, &[2.71, 1.9, 1.0]);
    }

    #[test]
    fn a_truncated_stream_bootstraps_from_the_hidden_value() {
        let ends = [Continues, Continues, Truncated { bootstrap: 2.0 }];
        let got = gae(&[1.0; 3], &[0.5; 3], &ends, -7.0, 0.9, 1.0);
        check(&got.advantages, &[3.668, 3.02, 2.3]);
    }

    #[test]
    fn a_stream_that_continues_bootstraps_from_its_last_value() {
        let got = gae(&[1.0; 3], &[0.5; 3], &[Continues; 3], 2.0, 0.9, 1.0);
        check(&got.advantages, &[3.668, 3.02, 2.3]);
    }

    #[test]
    fn changing_the_second_episode_leaves_the_first_bit_identical() {
        for end in [Terminated, Truncated { bootstrap: 0.3_f32 }] {
            let ends = [Continues, end, Continues, Terminated];
            let one = gae(&[0.1, 0.2, 0.3, 0.4], &[0.5, 0.6, 0.7, 0.8], &ends, 0.0, 0.99, 0.95);
            let two = gae(&[0.1, 0.2, f32::NAN, 9.0], &[0.5, 0.6, -3.0, f32::NAN], &ends, 5.0, 0.99, 0.95);
            assert_eq!(one.advantages[..2], two.advantages[..2]);
            assert_eq!(one.targets[..2], two.targets[..2]);
        }
    }

    #[test]
    fn an_empty_stream_has_no_advantages() {
        assert!(gae::<f32>(&[], &[], &[], 1.0, 0.9, 0.9).advantages.is_empty());
        assert!(discounted_returns::<f32>(&[], &[], 1.0, 0.9).is_empty());
    }

    #[test]
    #[should_panic(expected = "one end per reward")]
    fn a_missing_end_is_a_bug() {
        discounted_returns(&[1.0], &[], 0.0, 0.9);
    }
}
