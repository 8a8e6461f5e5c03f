//! The worked example of the KL-control lecture as an environment: [`KlToy`].
//!
//! Ten random numbers that say nothing, four actions, and a reward drawn around the number of the
//! action:
//!
//! ```text
//! o_t ~ N(0, I₁₀),      r = a + 0.5·w,   w ~ N(0, 1),     a ∈ {0, 1, 2, 3}
//! ```
//!
//! The best policy always takes action 3 and earns 3 a step; the uniform one earns 1.5. Nothing ever
//! terminates: episodes are *cut* after 200 steps and end [`Truncated`](StepEnd::Truncated). The
//! listing this comes from had one `done` flag for both kinds of end and so taught its critic that
//! the world stops at step 200, which no observation can foretell.

use rand::RngExt;
use rand_distr::StandardNormal;

use crate::env::{ActionSpace, Env, EnvRng, Step, StepEnd};
use crate::time_limit::TimeLimit;

const OBS_DIM: usize = 10;
const ACTIONS: usize = 4;

/// The toy without its limit of 200 steps. Its state is the observation the policy sees next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KlToy {
    obs: [f32; OBS_DIM],
}

impl KlToy {
    /// Standard deviation of the reward.
    pub const REWARD_STD: f64 = 0.5;

    /// The action of highest expected reward.
    pub const BEST_ACTION: usize = ACTIONS - 1;

    /// The endless toy.
    pub fn new() -> Self {
        Self::default()
    }

    /// The toy in episodes of 200 steps, as in the listing.
    pub fn episodic() -> TimeLimit<Self> {
        TimeLimit::new(Self::new(), 200)
    }

    /// Expected reward of an action: its number.
    pub fn mean_reward(action: usize) -> f64 {
        action as f64
    }

    fn look(&mut self, rng: &mut EnvRng) {
        self.obs = std::array::from_fn(|_| rng.sample(StandardNormal));
    }
}

impl Env for KlToy {
    type Action = usize;

    fn obs_dim(&self) -> usize {
        OBS_DIM
    }

    fn action_space(&self) -> ActionSpace {
        ActionSpace::Discrete { n: ACTIONS }
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]) {
        self.look(rng);
        self.observe(obs);
    }

    fn step(&mut self, &action: &usize, rng: &mut EnvRng, obs: &mut [f32]) -> Step {
        assert!(action < ACTIONS, "KlToy has actions 0 to 3, but got {action}");
        let noise: f64 = rng.sample(StandardNormal);
        let reward = Self::mean_reward(action) + Self::REWARD_STD * noise;
        self.look(rng);
        self.observe(obs);
        Step { reward: reward as f32, end: StepEnd::Continues }
    }

    fn state(&self) -> Vec<f64> {
        self.obs.map(f64::from).to_vec()
    }

    fn set_state(&mut self, state: &[f64]) {
        self.obs = crate::env::exactly::<OBS_DIM>("KlToy", state).map(|value| value as f32);
    }

    fn observe(&self, obs: &mut [f32]) {
        obs.copy_from_slice(&self.obs);
    }
}
