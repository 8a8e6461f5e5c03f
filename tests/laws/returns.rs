//! Laws of returns and advantages along one stream.

use proptest::collection::vec;
use proptest::prelude::*;
use rl_core::returns::{End, discounted_returns, gae, lambda_returns};

use crate::{assert_all_near, assert_near};

#[derive(Debug, Clone)]
struct Stream {
    rewards: Vec<f64>,
    values: Vec<f64>,
    ends: Vec<End<f64>>,
    last_value: f64,
    gamma: f64,
    lambda: f64,
}

impl Stream {
    fn gae(&self) -> rl_core::returns::Advantages<f64> {
        gae(&self.rewards, &self.values, &self.ends, self.last_value, self.gamma, self.lambda)
    }

    fn returns(&self) -> Vec<f64> {
        discounted_returns(&self.rewards, &self.ends, self.last_value, self.gamma)
    }

    /// `V(s_{t+1})` as the end of step `t` says.
    fn next_value(&self, t: usize) -> f64 {
        match self.ends[t] {
            End::Continues if t + 1 < self.values.len() => self.values[t + 1],
            End::Continues => self.last_value,
            End::Terminated => 0.0,
            End::Truncated { bootstrap } => bootstrap,
        }
    }
}

fn end() -> impl Strategy<Value = End<f64>> {
    prop_oneof![
        6 => Just(End::Continues),
        1 => Just(End::Terminated),
        1 => (-5.0..5.0).prop_map(|bootstrap| End::Truncated { bootstrap }),
    ]
}

/// At least one step; γ and λ in [0, 1], the ends included.
fn stream() -> impl Strategy<Value = Stream> {
    let steps = vec((-5.0..5.0, -5.0..5.0, end()), 1..40);
    let unit = || prop_oneof![0.0..=1.0, Just(0.0), Just(1.0)];
    (steps, -5.0..5.0, unit(), unit()).prop_map(|(steps, last_value, gamma, lambda)| Stream {
        rewards: steps.iter().map(|step| step.0).collect(),
        values: steps.iter().map(|step| step.1).collect(),
        ends: steps.iter().map(|step| step.2).collect(),
        last_value,
        gamma,
        lambda,
    })
}

fn stream_and_step() -> impl Strategy<Value = (Stream, usize)> {
    stream().prop_flat_map(|stream| {
        let steps = stream.rewards.len();
        (Just(stream), 0..steps)
    })
}

proptest! {
    #[test]
    fn with_lambda_one_gae_plus_value_is_the_discounted_return(stream in stream()) {
        let stream = Stream { lambda: 1.0, ..stream };
        assert_all_near(&stream.gae().targets, &stream.returns(), 1e-12);
    }

    #[test]
    fn with_lambda_zero_gae_is_the_one_step_td_error(stream in stream()) {
        let stream = Stream { lambda: 0.0, ..stream };
        for (t, advantage) in stream.gae().advantages.into_iter().enumerate() {
            let delta = stream.rewards[t] + stream.gamma * stream.next_value(t) - stream.values[t];
            assert_near(advantage, delta, 1e-12);
        }
    }

    #[test]
    fn value_targets_are_the_lambda_returns(stream in stream()) {
        let Stream { rewards, values, ends, last_value, gamma, lambda } = &stream;
        let returns = lambda_returns(rewards, values, ends, *last_value, *gamma, *lambda);
        assert_all_near(&stream.gae().targets, &returns, 1e-12);
    }

    #[test]
    fn an_episode_end_hides_everything_after_it(
        (mut stream, t) in stream_and_step(),
        bootstrap in proptest::option::of(-5.0..5.0),
    ) {
        stream.ends[t] = bootstrap.map_or(End::Terminated, |bootstrap| End::Truncated { bootstrap });
        let mut other = stream.clone();
        other.rewards[t + 1..].fill(f64::NAN);
        other.values[t + 1..].fill(f64::INFINITY);
        other.ends[t + 1..].fill(End::Continues);
        other.last_value = f64::NAN;
        prop_assert_eq!(&stream.gae().advantages[..=t], &other.gae().advantages[..=t]);
        prop_assert_eq!(&stream.gae().targets[..=t], &other.gae().targets[..=t]);
        prop_assert_eq!(&stream.returns()[..=t], &other.returns()[..=t]);
    }

    #[test]
    fn a_cut_differs_from_a_true_end_by_the_discounted_bootstrap(
        (mut stream, t) in stream_and_step(),
        bootstrap in -5.0..5.0,
    ) {
        stream.ends[t] = End::Terminated;
        let terminated = stream.clone();
        stream.ends[t] = End::Truncated { bootstrap };
        let first = stream.ends[..t].iter().rposition(|end| *end != End::Continues).map_or(0, |t| t + 1);
        for k in 0..stream.rewards.len() {
            // γ^{t−k+1}·b in the returns of the same episode, (γλ)^{t−k}·γ·b in its advantages, nothing elsewhere.
            let (of_return, of_advantage) = if (first..=t).contains(&k) {
                let before = (t - k) as i32;
                let discounted = stream.gamma * bootstrap;
                (stream.gamma.powi(before) * discounted, (stream.gamma * stream.lambda).powi(before) * discounted)
            } else {
                (0.0, 0.0)
            };
            assert_near(stream.returns()[k] - terminated.returns()[k], of_return, 1e-12);
            assert_near(stream.gae().advantages[k] - terminated.gae().advantages[k], of_advantage, 1e-12);
        }
    }

    #[test]
    fn a_cut_that_bootstraps_from_zero_is_a_true_end((mut stream, t) in stream_and_step()) {
        stream.ends[t] = End::Truncated { bootstrap: 0.0 };
        let cut = stream.gae();
        stream.ends[t] = End::Terminated;
        prop_assert_eq!(cut, stream.gae());
    }

    #[test]
    fn a_stream_may_be_collected_in_two_parts((stream, t) in stream_and_step()) {
        let whole = stream.returns();
        let part = discounted_returns(&stream.rewards[..t], &stream.ends[..t], whole[t], stream.gamma);
        prop_assert_eq!(&whole[..t], &part[..]);
    }

    #[test]
    fn a_perfect_critic_leaves_no_advantage(stream in stream()) {
        let values = stream.returns();
        let stream = Stream { values, ..stream };
        for advantage in stream.gae().advantages {
            assert_near(advantage, 0.0, 1e-12);
        }
    }

    #[test]
    fn advantages_scale_with_rewards_and_values(stream in stream(), factor in -3.0..3.0) {
        let times = |xs: &[f64]| xs.iter().map(|x| factor * x).collect::<Vec<_>>();
        let scaled = Stream {
            rewards: times(&stream.rewards),
            values: times(&stream.values),
            last_value: factor * stream.last_value,
            ends: stream.ends.iter().map(|&end| match end {
                End::Truncated { bootstrap } => End::Truncated { bootstrap: factor * bootstrap },
                other => other,
            }).collect(),
            ..stream
        };
        assert_all_near(&scaled.gae().advantages, &times(&stream.gae().advantages), 1e-12);
    }

    #[test]
    fn single_precision_gives_the_same_advantages(stream in stream()) {
        let single = |xs: &[f64]| xs.iter().map(|&x| x as f32).collect::<Vec<_>>();
        let ends: Vec<End<f32>> = stream.ends.iter().map(|&end| match end {
            End::Continues => End::Continues,
            End::Terminated => End::Terminated,
            End::Truncated { bootstrap } => End::Truncated { bootstrap: bootstrap as f32 },
        }).collect();
        let got = gae(
            &single(&stream.rewards),
            &single(&stream.values),
            &ends,
            stream.last_value as f32,
            stream.gamma as f32,
            stream.lambda as f32,
        );
        let got: Vec<f64> = got.advantages.into_iter().map(f64::from).collect();
        assert_all_near(&got, &stream.gae().advantages, 1e-4);
    }
}
