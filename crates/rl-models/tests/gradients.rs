//! Laws of networks: the two ways to differentiate agree, flat vectors round-trip, trunks share or do not.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rl_core::dist::Distribution;
use rl_models::flat_params::{clip_grad_norm, flatten, unflatten};
use rl_models::{
    Activation, ActorCritic, CategoricalHead, GaussianHead, Head, Kernels, MlpConfig, MlpPolicy, MlpValue,
    Policy, Separate, Shared, ValueFunction,
};

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

fn normal_rows(rows: usize, dims: usize, seed: u64) -> Tensor<2> {
    let mut rng = rng(seed);
    let x: Vec<f32> = (0..rows * dims).map(|_| rng.random_range(-2.0..2.0)).collect();
    Tensor::from_data(TensorData::new(x, [rows, dims]), &Device::flex())
}

fn numbers(t: Tensor<1>) -> Vec<f64> {
    t.into_data().try_into_vec_as().unwrap()
}

#[track_caller]
fn assert_close(got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    let scale = want.iter().fold(1e-3, |m: f64, w| m.max(w.abs()));
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tolerance * scale, "[{i}]: {g} is not {w} (scale {scale})");
    }
}

/// The same network twice, once with each kind of kernels.
fn twins<M>(config: &MlpConfig, make: impl Fn(&MlpConfig, &mut ChaCha8Rng) -> M, seed: u64) -> [M; 2] {
    [Kernels::Portable, Kernels::Host]
        .map(|kernels| make(&MlpConfig { kernels, ..config.clone() }, &mut rng(seed)))
}

fn configs() -> impl Strategy<Value = MlpConfig> {
    let hidden = prop::collection::vec(1usize..9, 0..4);
    let activation = prop_oneof![Just(Activation::Tanh), Just(Activation::Relu)];
    let dropout = prop_oneof![Just(0.0), Just(0.3)];
    (hidden, activation, dropout).prop_map(|(hidden, activation, dropout)| MlpConfig {
        hidden,
        activation,
        dropout,
        kernels: Kernels::Portable,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn host_kernels_see_what_burn_sees(config in configs(), seed in 0u64..1000) {
        let device = Device::flex();
        let [a, b] = twins(&config, |c, rng| MlpPolicy::new(c, 3, CategoricalHead::new(4), rng, &device), seed);
        let obs = normal_rows(5, 3, seed);
        let z = |m: &MlpPolicy<CategoricalHead>| numbers(m.policy(&obs).params().reshape([20]));
        assert_close(&z(&b), &z(&a), 2e-5);
    }

    #[test]
    fn host_kernels_give_the_gradient_of_autodiff(config in configs(), seed in 0u64..1000) {
        let device = Device::flex();
        let obs = normal_rows(5, 3, seed);
        let policies = twins(&config, |c, rng| MlpPolicy::new(c, 3, GaussianHead::new(2, -0.5, (-5.0, 2.0), &device), rng, &device), seed);
        let action = normal_rows(5, 2, seed + 1);
        let [a, b] = policies.map(|m| numbers(m.gradient(&obs, &mut rng(seed), |law| law.log_prob(&action).square().mean())));
        assert_close(&b, &a, 1e-4);

        let values = twins(&config, |c, rng| MlpValue::new(c, 3, rng, &device), seed);
        let [a, b] = values.map(|m| numbers(m.gradient(&obs, &mut rng(seed), |v| (v - 1.0).square().mean())));
        assert_close(&b, &a, 1e-4);
    }

    #[test]
    fn flatten_and_unflatten_are_inverse(config in configs(), seed in 0u64..1000) {
        let device = Device::flex();
        let model = MlpValue::new(&config, 3, &mut rng(seed), &device);
        let theta = flatten(&model);
        let shifted = unflatten(model.clone(), &(theta.clone() + 1.0));
        prop_assert_eq!(numbers(flatten(&shifted)), numbers(theta.clone() + 1.0));
        prop_assert_eq!(numbers(flatten(&unflatten(shifted, &theta))), numbers(theta));
    }

    #[test]
    fn clipped_gradients_are_never_longer_and_never_turned(g in prop::collection::vec(-10.0f32..10.0, 1..20), max in 0.01f64..20.0) {
        let grad = Tensor::<1>::from_floats(g.as_slice(), &Device::flex());
        let (clipped, norm) = clip_grad_norm(grad, max);
        let (clipped, norm) = (numbers(clipped), norm.into_scalar::<f64>());
        let length = clipped.iter().map(|x| x * x).sum::<f64>().sqrt();
        prop_assert!(length <= max.min(norm) * (1.0 + 1e-5));
        for (c, g) in clipped.iter().zip(&g) {
            prop_assert!(c.signum() == f64::from(*g).signum() || *c == 0.0);
        }
    }
}

/// The same network in double precision.
fn double<M: Module>(module: M) -> M {
    struct Cast;
    impl ModuleMapper for Cast {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let (id, value, mapper) = param.consume();
            Param::from_mapped_value(id, value.cast(FloatDType::F64), mapper)
        }
    }
    module.map(&mut Cast)
}

/// `gradient` against `(L(θ + h) − L(θ − h)) / 2h` in f64, parameter by parameter.
fn check_gradient<M: Module>(model: M, gradient: impl Fn(&M) -> Tensor<1>, loss: impl Fn(&M) -> f64) {
    let theta = flatten(&model);
    let got = numbers(gradient(&model));
    let h = 1e-5;
    let want: Vec<f64> = (0..got.len())
        .map(|i| {
            let at = |sign: f64| {
                let mut moved = numbers(theta.clone());
                moved[i] += sign * h;
                let n = moved.len();
                loss(&unflatten(
                    model.clone(),
                    &Tensor::from_data(TensorData::new(moved, [n]), (&theta.device(), DType::F64)),
                ))
            };
            (at(1.0) - at(-1.0)) / (2.0 * h)
        })
        .collect();
    assert_close(&got, &want, 1e-6);
}

#[test]
fn gradients_of_networks_match_a_central_difference() {
    let device = Device::flex();
    let config = MlpConfig { hidden: vec![5, 4], ..MlpConfig::default() };
    let obs = normal_rows(6, 3, 2).cast(FloatDType::F64);
    let action = normal_rows(6, 2, 3).cast(FloatDType::F64);
    fn loss_of<D: Distribution>(law: &D, action: &D::Event) -> Tensor<1> {
        (law.log_prob(action) * law.entropy()).mean()
    }
    let head = GaussianHead::new(2, -0.3, (-5.0, 2.0), &device);
    let policy = double(MlpPolicy::new(&config, 3, head.clone(), &mut rng(5), &device));
    check_gradient(
        policy,
        |m| m.gradient(&obs, &mut rng(0), |law| loss_of(&law, &action)),
        |m| loss_of(&m.policy(&obs), &action).into_scalar(),
    );
    let shared = double(Shared::new(&config, 3, head, &mut rng(6), &device));
    check_gradient(
        shared,
        |m| m.gradient(&obs, &mut rng(0), |law| loss_of(&law, &action), |v| v.square().mean()),
        |m| (loss_of(&m.policy(&obs), &action) + m.value(&obs).square().mean()).into_scalar(),
    );
}

#[test]
fn a_value_loss_moves_a_shared_trunk_but_never_a_separate_policy() {
    let device = Device::flex();
    let config = MlpConfig::default();
    let obs = normal_rows(6, 3, 2);
    let policy = MlpPolicy::new(&config, 3, CategoricalHead::new(2), &mut rng(1), &device);
    let policy_size = flatten(&policy).dims()[0];
    let separate = Separate { policy, value: MlpValue::new(&config, 3, &mut rng(2), &device) };
    let no_policy_loss = |law: rl_core::dist::Categorical| law.entropy().mean() * 0.0;
    let gradient =
        numbers(separate.gradient(&obs, &mut rng(0), no_policy_loss, |v| (v - 1.0).square().mean()));
    assert!(gradient[..policy_size].iter().all(|g| *g == 0.0));
    assert!(gradient[policy_size..].iter().any(|g| *g != 0.0));

    let shared = Shared::new(&config, 3, CategoricalHead::new(2), &mut rng(1), &device);
    let gradient = numbers(shared.gradient(&obs, &mut rng(0), no_policy_loss, |v| (v - 1.0).square().mean()));
    assert!(gradient[..64].iter().any(|g| *g != 0.0), "the first layer of the trunk");
}

#[test]
fn a_new_policy_is_almost_uniform() {
    let device = Device::flex();
    for actions in [2, 5] {
        let head = CategoricalHead::new(actions);
        let policy = MlpPolicy::new(&MlpConfig::default(), 4, head, &mut rng(1), &device);
        let entropy = policy.policy(&normal_rows(64, 4, 9)).entropy().mean().into_scalar::<f64>();
        assert!(entropy > 0.999 * (actions as f64).ln(), "{entropy}");
    }
}

#[test]
fn dropout_acts_in_training_passes_only_and_follows_its_generator() {
    let device = Device::flex();
    let config = MlpConfig { dropout: 0.5, ..MlpConfig::default() };
    let value = MlpValue::new(&config, 4, &mut rng(1), &device);
    let obs = normal_rows(8, 4, 3);
    let eval = numbers(value.value(&obs));
    let train = |seed| numbers(value.value_in_training(&obs, &mut rng(seed)));
    assert_eq!(eval, numbers(value.value(&obs)));
    assert_ne!(eval, train(1));
    assert_ne!(train(1), train(2));
    assert_eq!(train(1), train(1));
}

#[test]
fn a_gaussian_head_keeps_log_std_within_its_limits() {
    let device = Device::flex();
    let z = Tensor::<2>::zeros([1, 2], &device);
    let wide = GaussianHead::new(2, 9.0, (-5.0, 2.0), &device).law(z.clone()).entropy().into_scalar::<f64>();
    let two = GaussianHead::new(2, 2.0, (-5.0, 2.0), &device).law(z).entropy().into_scalar::<f64>();
    assert_eq!(wide, two);
}

#[test]
fn a_law_at_temperature_t_is_the_law_to_the_power_of_one_over_t() {
    let device = Device::flex();
    let z = normal_rows(5, 3, 1);
    let logs = |head: CategoricalHead| numbers(head.law(z.clone()).log_probs().reshape([15]));
    let (cold, plain) = (logs(CategoricalHead::new(3).with_temperature(0.5)), logs(CategoricalHead::new(3)));
    for (cold, plain) in cold.chunks(3).zip(plain.chunks(3)) {
        let norm = plain.iter().map(|log_p| (2.0 * log_p).exp()).sum::<f64>().ln();
        plain.iter().zip(cold).for_each(|(p, c)| assert!((2.0 * p - norm - c).abs() < 1e-5, "{p} {c}"));
    }
    // A Gaussian to the power 1/T has T times the variance: a deviation of √T costs what 1 did.
    let head = GaussianHead::new(1, -0.3, (-5.0, 2.0), &device);
    let drop = |head: &GaussianHead, by: f32| {
        let law = head.law(Tensor::zeros([1, 1], &device));
        let at = |x: f32| law.log_prob(&Tensor::from_data([[x]], &device)).into_scalar::<f64>();
        at(0.0) - at(by)
    };
    let (plain, warm) = (drop(&head, 1.0), drop(&head.clone().with_temperature(4.0), 2.0));
    assert!((plain - warm).abs() < 1e-5, "{plain} {warm}");
}
