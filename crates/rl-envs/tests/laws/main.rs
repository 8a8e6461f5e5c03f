//! Laws of the environments: what must hold for every seed, action sequence, size and thread count.

mod exact_worlds;
mod faults;
mod resume;
mod tabular;
mod toys;
mod vector;
mod wrappers;

use std::borrow::Borrow;

use rand::RngExt;
use rl_envs::{ActionSpace, Env, EnvRng, StepEnd, env_rng};

/// What one step showed, down to the bits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    reward: u32,
    end: StepEnd,
    obs: Vec<u32>,
}

/// Steps `env` with actions from `draw`, resetting after every end, and records everything.
pub(crate) fn record<E: Env, A: Borrow<E::Action>>(
    env: &mut E,
    rng: &mut EnvRng,
    steps: usize,
    mut draw: impl FnMut(usize) -> A,
) -> Vec<Seen> {
    let mut obs = vec![0.0; env.obs_dim()];
    let mut seen = Vec::with_capacity(steps);
    for t in 0..steps {
        let step = env.step(draw(t).borrow(), rng, &mut obs);
        if step.end.is_over() {
            env.reset(rng, &mut obs);
        }
        seen.push(Seen {
            reward: step.reward.to_bits(),
            end: step.end,
            obs: obs.iter().map(|o| o.to_bits()).collect(),
        });
    }
    seen
}

/// `count` random actions of a discrete environment.
pub(crate) fn discrete_actions<E: Env<Action = usize>>(env: &E, seed: u64, count: usize) -> Vec<usize> {
    let ActionSpace::Discrete { n } = env.action_space() else {
        panic!("a usize action means a discrete space")
    };
    let mut rng = env_rng(seed, u64::MAX);
    (0..count).map(|_| rng.random_range(0..n)).collect()
}

/// `count` random actions of a continuous environment, some of them out of bounds.
pub(crate) fn continuous_actions<E: Env<Action = [f32]>>(env: &E, seed: u64, count: usize) -> Vec<Vec<f32>> {
    let dims = env.action_space().width();
    let mut rng = env_rng(seed, u64::MAX);
    (0..count).map(|_| (0..dims).map(|_| rng.random_range(-3.0..3.0)).collect()).collect()
}
