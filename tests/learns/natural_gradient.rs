//! One step of NPG and of TRPO, looked at closely: details T1 to T4.

use burn::tensor::{Device, Int, Tensor, TensorData};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rl_algos::collect_env::ActionOf;
use rl_algos::{EnvCollector, Fisher, Rollout, Trpo, TrpoConfig, TrpoReport, Update};
use rl_core::Schedule;
use rl_core::dist::{Categorical, Distribution};
use rl_core::line_search::Backtracking;
use rl_envs::{Env, KlToy, Lqr, TimeLimit, VecEnv};
use rl_models::flat_params::{count, flatten, unflatten};
use rl_models::{CategoricalHead, GaussianHead, Head, MlpConfig, MlpPolicy, MlpValue, Policy, Separate};
use rl_tests::numbers;

type Model = Separate<MlpPolicy<CategoricalHead>, MlpValue>;
type Sample = Rollout<Tensor<2>, Categorical>;

const ROWS: usize = 64;

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(5)
}

fn column(values: &[f64]) -> Tensor<1> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]).convert::<f32>(), &Device::flex())
}

fn uniform(n: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    (0..n).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// A policy of three inputs and four hidden units, with parameters in ±1: far from symmetric.
fn small<H: Head>(head: H, rng: &mut ChaCha8Rng) -> MlpPolicy<H> {
    let shape = MlpConfig { hidden: vec![4], ..MlpConfig::default() };
    let policy = MlpPolicy::new(&shape, 3, head, rng, &Device::flex());
    let theta = column(&uniform(count(&policy), rng));
    unflatten(policy, &theta)
}

/// A rollout that holds six observations and nothing else that a Fisher matrix reads.
fn observed<D: Distribution>(actions: D::Event, rng: &mut ChaCha8Rng) -> Rollout<Tensor<2>, D> {
    let zeros = column(&[0.0; 6]);
    Rollout {
        obs: column(&uniform(18, rng)).reshape([6, 3]),
        actions,
        log_prob_old: zeros.clone(),
        value_old: zeros.clone(),
        advantage: zeros.clone(),
        value_target: zeros,
        mask: None,
        reference: None,
    }
}

fn actions(actions: &[i64]) -> Tensor<1, Int> {
    Tensor::from_data(TensorData::new(actions.to_vec(), [actions.len()]), &Device::flex())
}

/// ‖got − want‖ / ‖want‖
fn error(got: &[f64], want: &[f64]) -> f64 {
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>().sqrt();
    norm(&mut got.iter().zip(want).map(|(a, b)| a - b)) / norm(&mut want.iter().copied())
}

/// `Σ w·g·(gᵀv)` over gradients and their weights.
fn outer_products(gradients: &[(f64, Vec<f64>)], v: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; v.len()];
    for (weight, g) in gradients {
        let along: f64 = g.iter().zip(v).map(|(g, v)| g * v).sum();
        sum.iter_mut().zip(g).for_each(|(sum, g)| *sum += weight * along * g);
    }
    sum
}

/// T1: the matrix by its definition, `E[Σ_a π(a)·∇log π(a)·∇log π(a)ᵀ]`, from one gradient per state and action.
#[test]
fn products_agree_with_the_dense_fisher_matrix_of_a_categorical_policy() {
    let mut rng = rng();
    let policy = small(CategoricalHead::new(3), &mut rng);
    let rollout = observed::<Categorical>(actions(&[0; 6]), &mut rng);
    let mut gradients = vec![];
    for row in 0..6 {
        let obs = rollout.obs.clone().narrow(0, row, 1);
        let probs = numbers(policy.policy(&obs).probs());
        for (action, p) in probs.into_iter().enumerate() {
            let one = actions(&[action as i64]);
            let score = policy.gradient(&obs, &mut rng, |law| law.log_prob(&one));
            gradients.push((p / 6.0, numbers(score)));
        }
    }
    for _ in 0..5 {
        let v = uniform(count(&policy), &mut rng);
        let got = numbers(Fisher::new(&policy, &rollout, 0.0).product(&column(&v), &mut rng));
        let want = outer_products(&gradients, &v);
        assert!(error(&got, &want) < 1e-4, "{} from {want:?}", error(&got, &want));
        let damped = numbers(Fisher::new(&policy, &rollout, 0.5).product(&column(&v), &mut rng));
        let want: Vec<f64> = want.iter().zip(&v).map(|(fv, v)| fv + 0.5 * v).collect();
        assert!(error(&damped, &want) < 1e-4, "{}", error(&damped, &want));
    }
}

/// T1 for a Gaussian: `Jᵀ·diag(1/σ², 2)·J`, from one gradient per state and raw output.
#[test]
fn products_agree_with_the_dense_fisher_matrix_of_a_gaussian_policy() {
    let mut rng = rng();
    let policy = small(GaussianHead::new(2, -0.5, (-5.0, 2.0), &Device::flex()), &mut rng);
    let rollout = observed(column(&[0.0; 12]).reshape([6, 2]), &mut rng);
    let mut gradients = vec![];
    for row in 0..6 {
        let obs = rollout.obs.clone().narrow(0, row, 1);
        let z = numbers(policy.policy(&obs).params());
        for output in 0..4 {
            let row = policy.gradient(&obs, &mut rng, |law| law.params().narrow(1, output, 1).sum());
            let fisher = if output < 2 { (-2.0 * z[output + 2]).exp() } else { 2.0 };
            gradients.push((fisher / 6.0, numbers(row)));
        }
    }
    for _ in 0..5 {
        let v = uniform(count(&policy), &mut rng);
        let got = numbers(Fisher::new(&policy, &rollout, 0.0).product(&column(&v), &mut rng));
        let want = outer_products(&gradients, &v);
        assert!(error(&got, &want) < 1e-4, "{} from {want:?}", error(&got, &want));
    }
}

fn settings() -> TrpoConfig {
    TrpoConfig { rollout_steps: ROWS, value_epochs: 2, value_minibatch_rows: 16, ..TrpoConfig::default() }
}

/// Networks for the lecture's toy, and 64 steps of it.
fn start() -> (Model, Sample) {
    let (env, device) = (KlToy::episodic(), Device::flex());
    let shape = MlpConfig { hidden: vec![16], ..MlpConfig::default() };
    let head = CategoricalHead::new(env.action_space().width());
    let model = Separate {
        policy: MlpPolicy::new(&shape, env.obs_dim(), head, &mut rng(), &device),
        value: MlpValue::new(&shape, env.obs_dim(), &mut rng(), &device),
    };
    let mut collector = EnvCollector::new(VecEnv::new(vec![env], 3), ROWS, 0.99, 0.95, &device);
    let sample = collector.collect(&model, &mut rng()).0;
    (model, sample)
}

fn update(config: TrpoConfig, model: Model, sample: &Sample) -> (Model, TrpoReport) {
    config.validate(1).expect("settings that can work");
    Trpo::new(config, 1).update(model, sample, &mut rng()).expect("finite numbers")
}

fn bits(model: &impl burn::module::Module) -> Vec<u64> {
    numbers(flatten(model)).into_iter().map(f64::to_bits).collect()
}

/// E[KL(π_old ‖ π)] over the observations of a sample.
fn kl(old: &Model, new: &Model, sample: &Sample) -> f64 {
    let [old, new] = [old, new].map(|model| model.policy.policy(&sample.obs));
    numbers(old.kl(&new).mean())[0]
}

/// F sees one row of 64 and little damping, so a full step is too long for the rows it has not seen.
fn blind() -> TrpoConfig {
    TrpoConfig { fisher_share: 0.01, damping: 1e-4, max_kl: 0.5.into(), ..settings() }
}

#[test]
fn an_accepted_step_gains_and_its_measured_kl_is_within_the_bound() {
    let (start, sample) = start();
    for config in [settings(), blind(), TrpoConfig { max_kl: 0.5.into(), ..settings() }] {
        let max_kl = config.max_kl.at(0.0);
        let config = TrpoConfig { line_search: Some(Backtracking { shrink: 0.5, max_tries: 30 }), ..config };
        let (end, report) = update(config, start.clone(), &sample);
        assert!(report.step_scale > 0.0 && report.improvement > 0.0, "{report:?}");
        let measured = kl(&start, &end, &sample);
        assert!(measured > 0.0 && measured <= max_kl, "{measured} of {max_kl}");
        assert!((measured - report.kl).abs() < 1e-6, "{measured}, reported {}", report.kl);
        assert!(report.line_search_tries >= 1.0 && report.cg_residual < 1.0, "{report:?}");
    }
}

#[test]
fn a_rejected_step_leaves_the_policy_bit_for_bit_and_the_value_still_learns() {
    let (start, sample) = start();
    let (_, unchecked) = update(TrpoConfig { line_search: None, ..blind() }, start.clone(), &sample);
    assert!(unchecked.kl > 0.5, "the full step must be too long for this test: {unchecked:?}");

    let once = Some(Backtracking { shrink: 0.5, max_tries: 1 });
    let (end, report) = update(TrpoConfig { line_search: once, ..blind() }, start.clone(), &sample);
    assert_eq!((report.step_scale, report.kl, report.improvement), (0.0, 0.0, 0.0));
    assert_eq!(bits(&end.policy), bits(&start.policy));
    assert_ne!(bits(&end.value), bits(&start.value));
}

/// One update on 64 steps of `env`: accepted steps gain and are within the bound, others change no bit.
fn check_the_bound<E: Env, H: Head>(
    env: E,
    head: H,
    config: TrpoConfig,
    seed: u64,
) -> Result<(), TestCaseError>
where
    <H::Dist as Distribution>::Elem: ActionOf<E::Action>,
{
    let (device, mut rng) = (Device::flex(), ChaCha8Rng::seed_from_u64(seed));
    let shape = MlpConfig { hidden: vec![8], ..MlpConfig::default() };
    let start = Separate {
        policy: MlpPolicy::new(&shape, env.obs_dim(), head, &mut rng, &device),
        value: MlpValue::new(&shape, env.obs_dim(), &mut rng, &device),
    };
    let mut collector = EnvCollector::new(VecEnv::new(vec![env], seed), ROWS, 0.99, 0.95, &device);
    let sample = collector.collect(&start, &mut rng).0;
    let max_kl = config.max_kl.at(0.0);
    let law = |model: &Separate<MlpPolicy<H>, MlpValue>| model.policy.policy(&sample.obs);
    let (end, report) =
        Trpo::new(config, 1).update(start.clone(), &sample, &mut rng).expect("finite numbers");
    let measured = numbers(law(&start).kl(&law(&end)).mean())[0];
    if report.step_scale > 0.0 {
        prop_assert!(report.improvement > 0.0 && report.kl <= max_kl, "{report:?}");
        prop_assert!((measured - report.kl).abs() <= 1e-5 * max_kl.max(0.1), "{measured}: {report:?}");
    } else {
        prop_assert_eq!(bits(&end.policy), bits(&start.policy));
        prop_assert_eq!((report.improvement, report.kl), (0.0, 0.0));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_step_is_within_the_bound_or_not_taken(
        seed in 0..10_000_u64,
        max_kl in prop_oneof![Just(0.01), 1e-4..3.0],
        damping in prop_oneof![Just(0.0), 1e-5..0.1],
        fisher_share in prop_oneof![Just(1.0), 0.01..1.0],
        max_tries in 1..12_usize,
    ) {
        let line_search = Some(Backtracking { shrink: 0.6, max_tries });
        let max_kl = max_kl.into();
        let config = TrpoConfig { max_kl, damping, fisher_share, line_search, value_epochs: 1, ..settings() };
        check_the_bound(KlToy::episodic(), CategoricalHead::new(2), config.clone(), seed)?;
        let gaussian = GaussianHead::new(1, -0.5, (-5.0, 2.0), &Device::flex());
        check_the_bound(TimeLimit::new(Lqr::kakade(), 20), gaussian, config, seed)?;
    }
}

#[test]
fn without_advantages_there_is_no_way_up_and_nothing_is_not_a_number() {
    let (start, mut sample) = start();
    sample.advantage = sample.advantage.zeros_like();
    for line_search in [None, Some(Backtracking::default())] {
        let (end, report) = update(TrpoConfig { line_search, ..settings() }, start.clone(), &sample);
        assert_eq!((report.grad_norm, report.predicted_improvement, report.kl), (0.0, 0.0, 0.0));
        assert_eq!(bits(&end.policy), bits(&start.policy));
    }
}

/// T5: δ may fall over a run; the step of update `k` of `N` costs at most its own.
#[test]
fn a_falling_bound_holds_at_each_update() {
    let (mut model, sample) = start();
    let config = TrpoConfig { max_kl: Schedule::Linear { from: 0.1, to: 0.0 }, ..settings() };
    let mut trpo = Trpo::new(config, 4);
    for bound in [0.1, 0.075, 0.05, 0.025] {
        let (next, report) = trpo.update(model, &sample, &mut rng()).expect("finite numbers");
        assert!((report.max_kl - bound).abs() < 1e-12 && report.kl <= bound, "{bound}: {report:?}");
        model = next;
    }
}

/// T4: the same direction, without the check.
#[test]
fn the_natural_policy_gradient_is_the_step_that_trpo_shortens() {
    let (start, sample) = start();
    let (npg, _) = update(TrpoConfig { line_search: None, ..blind() }, start.clone(), &sample);
    let half = Some(Backtracking { shrink: 0.5, max_tries: 30 });
    let (trpo, report) = update(TrpoConfig { line_search: half, ..blind() }, start.clone(), &sample);
    assert!(report.step_scale > 0.0 && report.step_scale < 1.0, "{report:?}");
    let moved = |model: &Model| numbers(flatten(&model.policy) - flatten(&start.policy));
    let want: Vec<f64> = moved(&npg).into_iter().map(|delta| delta * report.step_scale).collect();
    assert!(error(&moved(&trpo), &want) < 1e-4, "{}", error(&moved(&trpo), &want));
}

/// T4: with one logit per action, `Δθ = α·A` up to a constant, which a softmax does not see.   Kakade 2001, theorem 1
///
/// The rows hold every action as often as the policy (1/8, 1/8, 1/4, 1/2) would take it.
#[test]
fn in_a_table_the_natural_gradient_moves_each_logit_by_its_advantage() {
    let device = Device::flex();
    let shape = MlpConfig { hidden: vec![], ..MlpConfig::default() };
    let policy = MlpPolicy::new(&shape, 1, CategoricalHead::new(4), &mut rng(), &device);
    let logits = [0.125_f64, 0.125, 0.25, 0.5].map(f64::ln);
    let policy = unflatten(policy, &column(&[logits, [0.0; 4]].concat())); // weights, then biases
    let value = MlpValue::new(&shape, 1, &mut rng(), &device);
    let taken = [0, 1, 2, 2, 3, 3, 3, 3];
    let q = [3.0, -1.0, 2.0, 0.5];
    let worth = |values: [f64; 4]| column(&taken.map(|action| values[action as usize]));
    let v = 0.125 * 3.0 - 0.125 + 0.25 * 2.0 + 0.5 * 0.5;
    let obs = Tensor::ones([8, 1], &device);
    let sample = Rollout {
        log_prob_old: policy.policy(&obs).log_prob(&actions(&taken)),
        obs,
        actions: actions(&taken),
        value_old: worth([v; 4]),
        advantage: worth(q.map(|q| q - v)),
        value_target: worth(q),
        mask: None,
        reference: None,
    };
    let logits_of =
        |model: &MlpPolicy<CategoricalHead>| numbers(model.policy(&Tensor::ones([1, 1], &device)).params());
    let before = logits_of(&policy);
    let config = TrpoConfig {
        rollout_steps: 8,
        damping: 0.0,
        line_search: None,
        value_minibatch_rows: 8,
        ..settings()
    };
    let (model, _) = update(config, Separate { policy, value }, &sample);
    let moved: Vec<f64> = logits_of(&model.policy).iter().zip(before).map(|(a, b)| a - b).collect();
    let centred = |v: &[f64]| {
        let mean = v.iter().sum::<f64>() / v.len() as f64;
        v.iter().map(|x| x - mean).collect::<Vec<f64>>()
    };
    let (moved, advantage) = (centred(&moved), centred(&q));
    let alpha = moved[0] / advantage[0];
    let want: Vec<f64> = advantage.iter().map(|a| alpha * a).collect();
    assert!(alpha > 0.0 && error(&moved, &want) < 1e-3, "{moved:?} is not {alpha} × {advantage:?}");
}
