//! Replicas that share a gradient stay equal to the last bit, and learn what one device learns from the whole batch.

use std::thread;

use burn::module::Module;
use burn::tensor::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_algos::adam::AdamConfig;
use rl_algos::{
    Dpo, DpoConfig, EnvCollector, PairBatch, Ppo, PpoConfig, RewardModelConfig, RewardModelling, Team,
    TokenPair, Update, UpdateError,
};
use rl_envs::{CartPole, VecEnv};
use rl_models::flat_params::flatten;
use rl_models::lm::{LmConfig, RewardModel, Transformer};
use rl_models::{CategoricalHead, MlpConfig, MlpPolicy, MlpValue, Separate};

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

fn parameters<M: Module>(model: &M) -> Vec<f32> {
    flatten(model).into_data().try_into_vec_as().unwrap()
}

/// θ after three updates of PPO with a penalty, several epochs and minibatches.
fn ppo(team: Team) -> Result<Vec<f32>, UpdateError> {
    let (device, shape) = (Device::flex(), MlpConfig { hidden: vec![16], ..MlpConfig::default() });
    let mut weights = rng(1);
    let mut model = Separate {
        policy: MlpPolicy::new(&shape, 4, CategoricalHead::new(2), &mut weights, &device),
        value: MlpValue::new(&shape, 4, &mut weights, &device),
    };
    let envs = VecEnv::new((0..4).map(|_| CartPole::v1()).collect(), 1);
    let mut collector = EnvCollector::new(envs, 16, 0.99, 0.95, &device);
    let kl = Some(rl_core::kl_control::KlController::Fixed { beta: 0.5 });
    let config = PpoConfig { minibatch_rows: 16, kl, ..PpoConfig::default() };
    let mut algorithm = Ppo::new(config, 3).with_team(team);
    let mut rng = rng(2);
    for _ in 0..3 {
        let (rollout, _) = collector.collect(&model, &mut rng);
        model = algorithm.update(model, &rollout, &mut rng)?.0;
    }
    Ok(parameters(&model))
}

fn language_model() -> Transformer {
    let config = LmConfig { intermediate: 16, max_positions: 16, ..LmConfig::llama(11, 8, 1, 2, 1) };
    Transformer::new(config, &mut rng(3), &Device::flex())
}

/// Eight pairs of answers of different lengths.
fn pairs() -> PairBatch {
    const TEXT: [u32; 9] = [1, 4, 2, 8, 5, 7, 3, 9, 6];
    let pair = |i: usize| TokenPair {
        prompt: &TEXT[..2 + i % 3],
        chosen: &TEXT[i % 4..5 + i % 4],
        rejected: &TEXT[i % 5..2 + i % 5 + i % 2],
    };
    let pairs: Vec<TokenPair> = (0..8).map(pair).collect();
    PairBatch::new(&pairs, 0, &Device::flex()).unwrap()
}

fn optimizer() -> AdamConfig {
    AdamConfig { learning_rate: 1e-2.into(), ..AdamConfig::default() }
}

fn dpo(team: Team) -> Result<Vec<f32>, UpdateError> {
    let mut model = language_model();
    let batch = pairs().with_reference(&model, 8);
    let config = DpoConfig { accumulate: 2, sft_coef: 0.1, optimizer: optimizer(), ..DpoConfig::default() };
    let mut algorithm = Dpo::new(config, 3).with_team(team);
    for _ in 0..3 {
        model = algorithm.update(model, &batch, &mut rng(2))?.0;
    }
    Ok(parameters(&model))
}

fn reward_model(team: Team) -> Result<Vec<f32>, UpdateError> {
    let mut model = RewardModel::with_random_head(language_model(), &mut rng(4));
    let config =
        RewardModelConfig { centring_coef: 0.1, optimizer: optimizer(), ..RewardModelConfig::default() };
    let (batch, mut algorithm) = (pairs(), RewardModelling::new(config, 3).with_team(team));
    for _ in 0..3 {
        model = algorithm.update(model, &batch, &mut rng(2))?.0;
    }
    Ok(parameters(&model))
}

/// θ of each replica of a team of `size` threads.
fn together(train: fn(Team) -> Result<Vec<f32>, UpdateError>, size: usize) -> Vec<Vec<f32>> {
    let threads: Vec<_> =
        Team::of_threads(size).into_iter().map(|team| thread::spawn(move || train(team).unwrap())).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[track_caller]
fn equal_and_right(train: fn(Team) -> Result<Vec<f32>, UpdateError>, tolerance: f32) {
    let alone = train(Team::default()).unwrap();
    for size in [2, 4] {
        let replicas = together(train, size);
        assert!(replicas.iter().all(|theta| *theta == replicas[0]), "{size} replicas differ");
        let off = alone.iter().zip(&replicas[0]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        println!("{size} replicas: {off:e} from one device");
        assert!(off <= tolerance, "{size} replicas are {off} from one device");
    }
}

#[test]
fn ppo_is_shared() {
    equal_and_right(ppo, 1e-6);
}

/// Adam divides by the gradient's own size: where that is nothing but rounding, a step is not small.
#[test]
fn dpo_is_shared() {
    equal_and_right(dpo, 1e-5);
}

#[test]
fn reward_modelling_is_shared() {
    equal_and_right(reward_model, 1e-5);
}

#[test]
fn a_replica_that_goes_is_noticed_by_all() {
    let mut team = Team::of_threads(2);
    drop(team.pop());
    let error = ppo(team.pop().unwrap()).unwrap_err().to_string();
    assert!(error.contains("update 1 was not finished: replica 1 of 2: its thread has ended"), "{error}");

    let mut team = Team::of_threads(2);
    let follower = team.pop().unwrap();
    drop(team);
    let error = ppo(follower).unwrap_err().to_string();
    assert!(error.contains("replica 0 of 2: its thread has ended"), "{error}");
}

#[test]
#[should_panic(expected = "16 rows are not divided among 3 replicas")]
fn a_minibatch_that_cannot_be_divided_is_our_mistake() {
    let _ = Team::of_threads(3)[0].share(16);
}
