//! REINFORCE on a bandit with three arms: the smallest world in which a policy can be wrong.
//!
//! Its best arm is known, so the example can say how much of what there is to gain was gained.

use burn::tensor::{Device, Tensor};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_algos::{AdamConfig, Baseline, Credit, EnvCollector, Reinforce, ReinforceConfig, run};
use rl_core::Schedule;
use rl_envs::{Arm, Bandit, VecEnv};
use rl_models::{CategoricalHead, MlpConfig, MlpPolicy, MlpValue, Policy, Separate};

const UPDATES: u64 = 100;
const PULLS: usize = 32;

/// The chance of each arm under a policy. A bandit is always in the same state, and shows it as a 1.
fn chances(policy: &MlpPolicy<CategoricalHead>) -> Vec<f64> {
    let state = Tensor::ones([1, 1], &Device::flex());
    policy.policy(&state).probs().into_data().try_into_vec_as().expect("floats")
}

/// Trains, and returns the chances of the three arms.
fn learn(seed: u64) -> Vec<f64> {
    let (device, mut rng) = (Device::flex(), ChaCha8Rng::seed_from_u64(seed));

    // 1. A world: three coins that pay with these chances.
    let arms = [0.2, 0.5, 0.8].map(|chance| Arm::Bernoulli { chance });
    let bandit = Bandit::new(vec![arms.to_vec()]).expect("each is a chance");
    println!("the best policy earns {} per pull", bandit.best_mean());

    // 2. A policy: without hidden layers, it is three logits. REINFORCE's signature asks for a critic; it stays unused.
    let shape = MlpConfig { hidden: vec![], ..MlpConfig::default() };
    let model = Separate {
        policy: MlpPolicy::new(&shape, 1, CategoricalHead::new(3), &mut rng, &device),
        value: MlpValue::new(&shape, 1, &mut rng, &device),
    };
    println!("before: {:.2?}", chances(&model.policy));

    // 3. The algorithm. What is subtracted from each reward is the mean of those before: it takes away variance and
    //    leaves the gradient's expectation alone, since E[∇log π] = 0.
    let config = ReinforceConfig {
        gamma: 1.0,
        baseline: Baseline::RunningMean { momentum: 0.9 },
        optimizer: AdamConfig { learning_rate: Schedule::Constant(0.05), ..AdamConfig::default() },
        ..ReinforceConfig::default()
    };
    config.validate().expect("these settings can work");
    let mut reinforce = Reinforce::new(config, UPDATES * PULLS as u64);

    // 4. The loop: pull each of the bandits once, learn, again.
    let envs = VecEnv::new(vec![bandit; PULLS], seed);
    let mut collector = EnvCollector::of_whole_episodes(envs, 1.0, Credit::RewardToGo, &device);
    let mut metrics = Vec::new();
    let next = |model: &_, rng: &mut _| collector.collect(model, rng).0;
    let model =
        run::run(&mut reinforce, model, UPDATES, &mut rng, next, &mut metrics).expect("all is finite");

    // 5. Entropy tells how open the choice still is: ln 3 = 1.10 at first.
    for (update, _, entropy) in metrics.iter().filter(|(_, name, _)| *name == "losses/entropy").step_by(20) {
        println!("update {update:>3}: entropy {entropy:.3} nats");
    }
    println!("after: {:.2?}", chances(&model.policy));
    chances(&model.policy)
}

fn main() {
    learn(1);
}

#[test]
fn the_best_arm_is_found() {
    for seed in [1, 2, 3] {
        assert!(learn(seed)[2] > 0.9);
    }
}
