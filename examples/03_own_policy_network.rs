//! Your own policy network: anything that maps observations to laws. Here, CartPole with no hidden layer at all, but
//! with products of what is observed.
//!
//! PPO, collectors, checkpoints and evaluation know a policy by two things: it is a burn module, and it answers with a
//! law. The gradient comes from the trait.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_algos::{AdamConfig, EnvCollector, Ppo, PpoConfig, evaluate, run};
use rl_core::Schedule;
use rl_core::dist::Categorical;
use rl_envs::{CartPole, VecEnv};
use rl_models::{Kernels, MlpConfig, MlpValue, Policy, Separate};

/// `π(a|s) = softmax(W·[s, s⊗s])_a`: four numbers and their sixteen products.
#[derive(Module, Debug)]
struct Quadratic {
    layer: Linear,
}

impl Quadratic {
    /// All weights 0: both actions are equally likely at first.
    fn new(device: &Device) -> Self {
        let layer = LinearConfig::new(4 + 16, 2).with_initializer(burn::nn::Initializer::Zeros).init(device);
        Self { layer }
    }
}

impl Policy for Quadratic {
    type Obs = Tensor<2>;
    type Dist = Categorical;

    /// `[R, 4]` → `R` laws over two actions.
    fn policy(&self, obs: &Tensor<2>) -> Categorical {
        let rows = obs.dims()[0];
        let products: Tensor<3> = obs.clone().unsqueeze_dim::<3>(2) * obs.clone().unsqueeze_dim::<3>(1);
        let features = Tensor::cat(vec![obs.clone(), products.reshape([rows, 16])], 1);
        Categorical::new(self.layer.forward(features))
    }
}

/// Trains, and returns the mean return of 20 greedy episodes; 500 is all there is.
fn learn(seed: u64) -> f64 {
    let (device, mut rng) = (Device::flex(), ChaCha8Rng::seed_from_u64(seed));
    let config = PpoConfig {
        rollout_steps: 128,
        epochs: 10,
        minibatch_rows: 256,
        gamma: 0.99,
        gae_lambda: 0.95,
        optimizer: AdamConfig {
            learning_rate: Schedule::Linear { from: 0.03, to: 0.0 },
            ..AdamConfig::default()
        },
        ..PpoConfig::default()
    };
    config.validate(8 * 128).expect("256 divides 8 environments × 128 steps");

    // The critic is a network of the library: the two need not know each other.
    let shape = MlpConfig { kernels: Kernels::Host, ..MlpConfig::default() };
    let model =
        Separate { policy: Quadratic::new(&device), value: MlpValue::new(&shape, 4, &mut rng, &device) };

    let envs = VecEnv::new((0..8).map(|_| CartPole::v1()).collect(), seed);
    let mut collector =
        EnvCollector::new(envs, config.rollout_steps, config.gamma, config.gae_lambda, &device);
    let mut ppo = Ppo::new(config, 40);
    let next = |model: &_, rng: &mut _| collector.collect(model, rng).0;
    let model = run::run(&mut ppo, model, 40, &mut rng, next, &mut Vec::new()).expect("all is finite");

    let tests = VecEnv::new((0..20).map(|_| CartPole::v1()).collect(), seed + 1000);
    evaluate(|obs| model.policy.policy(obs), tests, None, &device).mean()
}

fn main() {
    println!("a policy of 42 numbers keeps the pole up for {:.1} steps of 500", learn(1));
}

#[test]
fn the_pole_is_kept_up() {
    let returned = learn(1);
    assert!(returned > 400.0, "{returned}");
}
