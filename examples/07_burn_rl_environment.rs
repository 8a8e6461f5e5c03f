//! An environment written for burn-rl, learnt by PPO through an adapter of twenty lines.
//!
//! burn-rl tells an end from a cut by two booleans that its own buffer then joins (docs/adr/0005-burn-rl.md). Here they
//! become the type that value targets need.

use burn::tensor::Device;
use burn_rl::{Environment, StepResult};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_algos::{AdamConfig, EnvCollector, Ppo, PpoConfig, evaluate, run};
use rl_core::Schedule;
use rl_envs::{ActionSpace, Env, EnvRng, Step, StepEnd, VecEnv};
use rl_models::{CategoricalHead, MlpConfig, MlpPolicy, MlpValue, Policy, Separate};

/// Somebody's environment: a corridor of ten places with the door at the right. Each step costs 1.
#[derive(Clone)]
struct Corridor {
    place: usize,
    steps: usize,
}

impl Environment for Corridor {
    type State = Vec<f32>;
    type Action = usize;
    const MAX_STEPS: usize = 50;

    fn state(&self) -> Vec<f32> {
        (0..10).map(|place| f32::from(u8::from(place == self.place))).collect()
    }

    fn step(&mut self, action: usize) -> StepResult<Vec<f32>> {
        self.place = if action == 1 { self.place + 1 } else { self.place.saturating_sub(1) };
        self.steps += 1;
        let (done, truncated) = (self.place == 9, self.steps == Self::MAX_STEPS);
        StepResult { next_state: self.state(), reward: -1.0, done, truncated }
    }

    fn reset(&mut self) {
        *self = Self { place: 0, steps: 0 };
    }
}

/// Any environment of burn-rl that shows a row of numbers and takes one of `actions` actions.
#[derive(Clone)]
struct FromBurn<E> {
    env: E,
    actions: usize,
}

impl<E: Environment<State = Vec<f32>, Action = usize> + Send> Env for FromBurn<E> {
    type Action = usize;

    fn obs_dim(&self) -> usize {
        self.env.state().len()
    }

    fn action_space(&self) -> ActionSpace {
        ActionSpace::Discrete { n: self.actions }
    }

    // burn-rl hands no generator: what is random in `env` is seeded where it is made.
    fn reset(&mut self, _: &mut EnvRng, obs: &mut [f32]) {
        self.env.reset();
        self.observe(obs);
    }

    fn step(&mut self, action: &usize, _: &mut EnvRng, obs: &mut [f32]) -> Step {
        let StepResult { next_state, reward, done, truncated } = self.env.step(*action);
        obs.copy_from_slice(&next_state);
        let end = StepEnd::terminated_if(done);
        Step { reward: reward as f32, end: if truncated { end.cut() } else { end } }
    }

    fn observe(&self, obs: &mut [f32]) {
        obs.copy_from_slice(&self.env.state());
    }

    // burn-rl cannot put an environment back: such a run trains, but cannot be resumed exactly.
    fn state(&self) -> Vec<f64> {
        unreachable!("only a checkpoint asks for it, and this example makes none")
    }

    fn set_state(&mut self, _: &[f64]) {}
}

/// Trains, and returns the greedy policy's return: −9 is the shortest way.
fn learn(seed: u64) -> f64 {
    let (device, mut rng) = (Device::flex(), ChaCha8Rng::seed_from_u64(seed));
    let optimizer = AdamConfig { learning_rate: Schedule::Constant(1e-2), ..AdamConfig::default() };
    let config = PpoConfig { optimizer, ..PpoConfig::default() };
    let corridor = FromBurn { env: Corridor { place: 0, steps: 0 }, actions: 2 };
    let shape = MlpConfig { hidden: vec![], ..MlpConfig::default() };
    let model = Separate {
        policy: MlpPolicy::new(&shape, 10, CategoricalHead::new(2), &mut rng, &device),
        value: MlpValue::new(&shape, 10, &mut rng, &device),
    };
    let envs = VecEnv::new(vec![corridor.clone(); 4], seed);
    let (steps, gamma, lambda) = (config.rollout_steps, config.gamma, config.gae_lambda);
    let mut collector = EnvCollector::new(envs, steps, gamma, lambda, &device);
    let mut ppo = Ppo::new(config, 20);
    let next = |model: &_, rng: &mut _| collector.collect(model, rng).0;
    let model = run::run(&mut ppo, model, 20, &mut rng, next, &mut Vec::new()).expect("all is finite");
    evaluate(|obs| model.policy.policy(obs), VecEnv::new(vec![corridor], seed), None, &device).mean()
}

fn main() {
    println!("the door is reached with a return of {}", learn(1));
}

#[test]
fn the_shortest_way_is_learnt_and_a_cut_is_no_end() {
    assert_eq!(learn(1), -9.0);
    let mut env = FromBurn { env: Corridor { place: 0, steps: 49 }, actions: 2 };
    let step = env.step(&0, &mut rl_envs::env_rng(0, 0), &mut [0.0; 10]);
    assert_eq!(step.end, StepEnd::Truncated);
}
