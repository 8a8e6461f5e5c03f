//! Your own environment, learnt by PPO, in one page.
//!
//! The world: a number from 0 to 9 is shown, and the right action is its parity. An episode is one guess.

use burn::tensor::Device;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rl_algos::{EnvCollector, Ppo, PpoConfig, evaluate, run};
use rl_core::Schedule;
use rl_envs::{ActionSpace, Env, EnvRng, Step, StepEnd, VecEnv};
use rl_models::{CategoricalHead, Kernels, MlpConfig, MlpPolicy, MlpValue, Separate};

/// Everything an environment is: a few numbers, and five short methods on them.
#[derive(Clone, Default)]
struct Parity {
    number: usize,
}

impl Env for Parity {
    type Action = usize;

    fn obs_dim(&self) -> usize {
        10
    }

    fn action_space(&self) -> ActionSpace {
        ActionSpace::Discrete { n: 2 }
    }

    // Randomness is an argument: the environment has no generator of its own, so runs repeat exactly.
    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]) {
        self.number = rng.random_range(0..10);
        self.observe(obs);
    }

    fn step(&mut self, action: &usize, _: &mut EnvRng, obs: &mut [f32]) -> Step {
        self.observe(obs);
        // `Terminated` is a true end; a time limit would be `Truncated`, and PPO would bootstrap.
        Step { reward: f32::from(u8::from(*action == self.number % 2)), end: StepEnd::Terminated }
    }

    fn observe(&self, obs: &mut [f32]) {
        obs.fill(0.0);
        obs[self.number] = 1.0;
    }

    // What a checkpoint must remember.
    fn state(&self) -> Vec<f64> {
        vec![self.number as f64]
    }

    fn set_state(&mut self, state: &[f64]) {
        self.number = state[0] as usize;
    }
}

/// Trains, and returns the share of right guesses.
fn learn(seed: u64) -> f64 {
    let device = Device::flex();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);

    // 1. Settings: PPO's defaults, but for what this world needs.
    let config = PpoConfig {
        rollout_steps: 16,
        minibatch_rows: 64,
        optimizer: rl_algos::AdamConfig { learning_rate: Schedule::Constant(3e-3), ..Default::default() },
        ..PpoConfig::default()
    };
    config.validate(16).expect("64 divides 16 environments × 16 steps");

    // 2. A policy and a value function: two small networks that share nothing.
    let shape = MlpConfig { hidden: vec![32], kernels: Kernels::Host, ..MlpConfig::default() };
    let model = Separate {
        policy: MlpPolicy::new(&shape, 10, CategoricalHead::new(2), &mut rng, &device),
        value: MlpValue::new(&shape, 10, &mut rng, &device),
    };

    // 3. A collector samples, PPO updates, `run` is the loop between them.
    let envs = VecEnv::new(vec![Parity::default(); 16], seed);
    let mut collector =
        EnvCollector::new(envs, config.rollout_steps, config.gamma, config.gae_lambda, &device);
    let mut ppo = Ppo::new(config, 40);
    let mut metrics = Vec::new();
    let model =
        run::run(&mut ppo, model, 40, &mut rng, |model, rng| collector.collect(model, rng).0, &mut metrics)
            .expect("no loss became infinite");

    // 4. What did it do? Every metric has a row in docs/metrics.md.
    for (update, _, entropy) in metrics.iter().filter(|(_, name, _)| *name == "losses/entropy").step_by(10) {
        println!("update {update:>2}: entropy {entropy:.3} nats");
    }
    let tests = VecEnv::new(vec![Parity::default(); 200], seed + 1);
    evaluate(|obs| rl_models::Policy::policy(&model.policy, obs), tests, None, &device).mean()
}

fn main() {
    println!("right guesses: {:.1} %", 100.0 * learn(1));
}

#[test]
fn parity_is_learnt() {
    assert!(learn(1) > 0.99);
}
