//! One PPO update, looked at closely: what the details of PPO demand, and where the lecture's listing goes wrong.

use burn::tensor::{Device, Tensor};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_algos::AdvantageNorm;
use rl_algos::{EnvCollector, Ppo, PpoConfig, PpoReport, Rollout, Update};
use rl_core::dist::Categorical;
use rl_envs::{Arm, Bandit, Env, KlToy, VecEnv};
use rl_models::flat_params::{count, flatten, unflatten};
use rl_models::{ActorCritic, CategoricalHead, MlpConfig, MlpPolicy, MlpValue, Separate};
use rl_tests::numbers;

use crate::watched::Watched;

type Model = Watched<Separate<MlpPolicy<CategoricalHead>, MlpValue>>;
type Sample = Rollout<Tensor<2>, Categorical>;

const ROWS: usize = 64;

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(5)
}

/// Policy and value for `env`, of one hidden layer.
fn model(env: &impl Env) -> Model {
    let (shape, device) = (MlpConfig { hidden: vec![16], ..MlpConfig::default() }, Device::flex());
    let head = CategoricalHead::new(env.action_space().width());
    Watched::new(Separate {
        policy: MlpPolicy::new(&shape, env.obs_dim(), head, &mut rng(), &device),
        value: MlpValue::new(&shape, env.obs_dim(), &mut rng(), &device),
    })
}

/// 64 steps of `env`, with λ = 0 or 1.
fn sample<E: Env<Action = usize>>(env: E, model: &Model, gae_lambda: f64) -> Sample {
    let mut collector = EnvCollector::new(VecEnv::new(vec![env], 3), ROWS, 0.99, gae_lambda, &Device::flex());
    collector.collect(model, &mut rng()).0
}

/// PPO without annealing, gradient limit and entropy bonus: one epoch of one minibatch.
fn plain() -> PpoConfig {
    let mut config =
        PpoConfig { rollout_steps: ROWS, epochs: 1, minibatch_rows: ROWS, ..PpoConfig::default() };
    config.optimizer.learning_rate = 0.01.into();
    config.entropy_coef = 0.0.into();
    config.max_grad_norm = None;
    config
}

fn update(config: PpoConfig, model: Model, sample: &Sample) -> (Ppo, Model, PpoReport) {
    config.validate(1).expect("settings that can work");
    let mut ppo = Ppo::new(config, 1);
    let (model, report) = ppo.update(model, sample, &mut rng()).expect("finite numbers");
    (ppo, model, report)
}

/// The model with another critic: the same value everywhere.
fn with_constant_value(model: Model, value: f32) -> Model {
    let critic = model.model.value.clone();
    let parameters = count(&critic);
    let mut theta = vec![0.0; parameters];
    theta[parameters - 1] = value; // the bias of the last layer
    let theta = Tensor::from_data(theta.as_slice(), &Device::flex());
    let value = unflatten(critic, &theta);
    Watched::new(Separate { policy: model.model.policy, value })
}

#[test]
fn the_first_minibatch_has_ratio_one_and_with_learning_rate_zero_every_one_has() {
    let env = KlToy::episodic();
    let (start, mut config) = (model(&env), plain());
    let sample = sample(env, &start, 0.95);
    let (_, _, report) = update(config.clone(), start.clone(), &sample);
    assert!(report.old_approx_kl.abs() < 1e-5 && report.approx_kl < 1e-9, "{report:?}");
    assert_eq!(report.clip_fraction, 0.0);

    config.optimizer.learning_rate = 0.0.into();
    (config.epochs, config.minibatch_rows) = (5, 16);
    let (_, _, report) = update(config, start, &sample);
    assert!(report.old_approx_kl.abs() < 1e-5 && report.approx_kl < 1e-9, "{report:?}");
    assert_eq!(report.clip_fraction, 0.0);
}

/// The listing takes one gradient step per batch, so that neither clip nor penalty ever acts.
#[test]
fn only_with_several_epochs_is_there_anything_to_clip() {
    let env = KlToy::episodic();
    let (start, config) = (model(&env), plain());
    let sample = sample(env, &start, 0.95);
    let (_, _, once) = update(config.clone(), start.clone(), &sample);
    let (_, _, often) = update(PpoConfig { epochs: 20, ..config }, start, &sample);
    assert_eq!(once.clip_fraction, 0.0);
    assert!(often.clip_fraction > 0.1 && often.approx_kl > 1e-3, "{often:?}");
}

#[test]
fn each_epoch_covers_every_row_exactly_once() {
    let env = KlToy::episodic();
    let start = model(&env);
    let sample = sample(env, &start, 0.95);
    let (_, end, _) = update(PpoConfig { epochs: 3, minibatch_rows: 16, ..plain() }, start, &sample);
    let minibatches = end.minibatches();
    assert_eq!(minibatches.len(), 3 * 4);
    let sorted = |mut rows: Vec<f64>| {
        rows.sort_by(f64::total_cmp);
        rows
    };
    let all = sorted(numbers(sample.obs.clone()));
    for epoch in minibatches.chunks(4) {
        assert!(epoch.iter().all(|minibatch| minibatch.len() == 16 * 10));
        assert_eq!(sorted(epoch.concat()), all);
    }
    assert_ne!(minibatches[0], minibatches[4], "each epoch shuffles anew");
}

/// The KL that each epoch starts with is read off runs of 1, 2, … epochs; then a target is put between two of them.
#[test]
fn the_kl_target_ends_the_whole_update_at_the_predicted_epoch() {
    let env = KlToy::episodic();
    let start = model(&env);
    let sample = sample(env, &start, 0.95);
    let run = |epochs, target_kl| update(PpoConfig { epochs, target_kl, ..plain() }, start.clone(), &sample);
    let sums: Vec<f64> = (1..=8).map(|epochs| epochs as f64 * run(epochs, None).2.approx_kl).collect();
    let kl_of_epoch = |epoch: usize| sums[epoch - 1] - if epoch > 1 { sums[epoch - 2] } else { 0.0 };
    assert!(kl_of_epoch(6) > kl_of_epoch(5) && kl_of_epoch(5) > kl_of_epoch(4), "KL grows: {sums:?}");

    let between = (kl_of_epoch(5) + kl_of_epoch(6)) / 2.0;
    let (ppo, stopped, report) = run(8, Some(between / 1.5));
    assert_eq!(report.epochs, 5.0, "the sixth epoch finds KL above 1.5·target");
    assert_eq!(ppo.adam.steps, 5);
    let (_, five, _) = run(5, None);
    assert_eq!(numbers(flatten(&stopped)), numbers(flatten(&five)), "nothing moved after the stop");
}

#[test]
fn the_kl_target_is_heeded_between_minibatches_too() {
    let env = KlToy::episodic();
    let start = model(&env);
    let sample = sample(env, &start, 0.95);
    let mut config = PpoConfig { epochs: 3, minibatch_rows: 16, target_kl: Some(1e-4), ..plain() };
    config.optimizer.learning_rate = 0.1.into();
    let (ppo, end, report) = update(config, start, &sample);
    let seen = end.minibatches().len();
    assert!(seen < 4 && report.epochs == 0.0, "the first epoch ends after {seen} minibatches");
    assert_eq!(ppo.adam.steps as usize, seen - 1, "the minibatch that asks for the stop takes no step");
}

#[test]
fn without_advantages_the_entropy_bonus_raises_entropy_and_nothing_else_moves_the_policy() {
    let env = KlToy::episodic();
    let start = model(&env);
    let theta = numbers(flatten(&start)).iter().map(|&x| (3.0 * x) as f32).collect::<Vec<f32>>();
    let start = unflatten(start, &Tensor::from_data(theta.as_slice(), &Device::flex())); // far from uniform
    let mut sample = sample(env, &start, 0.95);
    sample.advantage = sample.advantage.zeros_like();
    let entropy = |model: &Model| {
        numbers(rl_core::dist::Distribution::entropy(&model.policy(&sample.obs))).iter().sum::<f64>()
    };
    let mut config = PpoConfig { epochs: 10, advantage_norm: AdvantageNorm::Off, ..plain() };

    let (_, still, _) = update(config.clone(), start.clone(), &sample);
    assert_eq!(numbers(flatten(&still.model.policy)), numbers(flatten(&start.model.policy)));
    config.entropy_coef = 0.1.into();
    let (_, moved, _) = update(config, start.clone(), &sample);
    assert!(entropy(&moved) > entropy(&start) + 1e-3, "{} from {}", entropy(&moved), entropy(&start));
}

/// The listing normalises the advantage and then adds the values to it: its critic is taught `V ± 1` for ever.
#[test]
fn the_value_target_has_the_scale_of_the_returns_whatever_normalises_the_advantage() {
    let arms = [90.0, 110.0].map(|mean| Arm::Normal { mean, std: 0.0 });
    let env = Bandit::new(vec![arms.to_vec()]).expect("two arms");
    let start = model(&env);
    let sample = sample(env, &start, 0.95);
    let targets = numbers(sample.value_target.clone());
    assert!(targets.iter().all(|v| (v - 90.0).abs() < 1e-3 || (v - 110.0).abs() < 1e-3), "{targets:?}");
    assert_eq!(numbers(sample.clone().standardised().value_target), targets);

    let mut config = PpoConfig { epochs: 400, advantage_norm: AdvantageNorm::Rollout, ..plain() };
    config.optimizer.learning_rate = 0.05.into();
    let (_, end, _) = update(config, start, &sample);
    let mean = targets.iter().sum::<f64>() / targets.len() as f64;
    let value = numbers(end.value(&sample.obs))[0];
    assert!((value - mean).abs() < 1.0, "the critic says {value}, the returns average {mean}");
}

/// With λ = 0 the target of a step is `r + γ·V(s')`: 9.9 more than r where the critic says 10 everywhere, unless the
/// world ended.
#[test]
fn a_time_limit_bootstraps_and_a_true_end_does_not() {
    let toy = rl_envs::TimeLimit::new(KlToy::new(), 8); // every eighth row is cut
    let critic = with_constant_value(model(&toy), 10.0);
    let future = |sample: Sample, reward_of: fn(usize) -> f64| -> Vec<f64> {
        let actions = <Categorical as rl_core::dist::Distribution>::elems(&sample.actions);
        let targets = numbers(sample.value_target);
        targets.into_iter().zip(actions).map(|(target, action)| target - reward_of(action)).collect()
    };
    let cut = future(sample(toy, &critic, 0.0), KlToy::mean_reward);
    assert!(cut.iter().all(|future| (future - 9.9).abs() < 6.0 * KlToy::REWARD_STD), "{cut:?}");

    let arms = [0.0, 1.0].map(|mean| Arm::Normal { mean, std: 0.0 });
    let bandit = Bandit::new(vec![arms.to_vec()]).expect("two arms");
    let critic = with_constant_value(model(&bandit), 10.0);
    let ended = future(sample(bandit, &critic, 0.0), |action| action as f64);
    assert!(ended.iter().all(|future| future.abs() < 1e-5), "{ended:?}");
}
