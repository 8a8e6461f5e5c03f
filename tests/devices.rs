//! The same small computations on every device: what a run computes must not depend on where it runs.
//!
//! Each is compared with flex, in double precision where the computation has a choice. Small enough for a software
//! graphics adapter: `BURN_DEVICE=wgpu cargo test --release -p rl-tests --features wgpu --test devices`.

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rl_algos::adam::{Adam, AdamConfig, AdamKind};
use rl_algos::{EnvCollector, Ppo, PpoConfig, Rollout, Trpo, TrpoConfig, Update};
use rl_core::Schedule;
use rl_core::dist::{Categorical, DiagGaussian, Distribution};
use rl_core::kl::{k1, k2, k3};
use rl_core::masked::{masked_mean, masked_var};
use rl_core::surrogate::{clipped, ratio};
use rl_envs::{Arm, Bandit, VecEnv};
use rl_models::flat_params::{clip_grad_norm, flatten};
use rl_models::{
    Activation, CategoricalHead, GaussianHead, Kernels, MlpConfig, MlpPolicy, MlpValue, Policy, Separate,
};
use rl_tests::{devices, numbers};

const INF: f64 = f64::INFINITY;

/// Where and how precisely to compute.
#[derive(Clone)]
struct Lab {
    device: Device,
    dtype: DType,
}

impl Lab {
    fn tensor<const D: usize>(&self, values: &[f64], shape: [usize; D]) -> Tensor<D> {
        let data = TensorData::new(values.to_vec(), shape).convert_dtype(self.dtype);
        Tensor::from_data(data, (&self.device, self.dtype))
    }

    fn column(&self, values: &[f64]) -> Tensor<1> {
        self.tensor(values, [values.len()])
    }

    fn variable<const D: usize>(&self, values: &[f64], shape: [usize; D]) -> Tensor<D> {
        self.tensor(values, shape).autodiff().require_grad()
    }

    fn actions(&self, actions: &[i64]) -> Tensor<1, Int> {
        Tensor::from_data(TensorData::new(actions.to_vec(), [actions.len()]), &self.device)
    }
}

/// Demands that `compute` gives flex's numbers on every device, to 1e-4 of the larger of 1 and the number.
#[track_caller]
fn check(reference: DType, compute: impl Fn(&Lab) -> Vec<f64>) {
    let want = compute(&Lab { device: Device::flex(), dtype: reference });
    for (name, device) in devices() {
        let got = compute(&Lab { device, dtype: DType::F32 });
        assert_eq!(got.len(), want.len(), "{name}");
        for (i, (got, want)) in got.iter().zip(&want).enumerate() {
            let agrees = got == want || (got - want).abs() <= 1e-4 * want.abs().max(1.0);
            assert!(agrees, "{name}, number {i}: got {got}, flex says {want}");
        }
    }
}

#[test]
fn categorical_laws_agree() {
    check(DType::F64, |lab| {
        let p = Categorical::new(lab.tensor(&[0.3, -1.2, 2.0, 0.0, -INF, 1.5], [2, 3]));
        let q = Categorical::new(lab.tensor(&[1.0, 0.0, -0.5, 30.0, 2.0, -10.0], [2, 3]));
        let actions = lab.actions(&[1, 2]);
        [p.log_prob(&actions), q.log_prob(&actions), p.entropy(), p.kl(&q), q.kl(&p)].map(numbers).concat()
    });
}

#[test]
fn gaussian_laws_agree() {
    check(DType::F64, |lab| {
        let p = DiagGaussian::new(
            lab.tensor(&[0.0, 1.0, -2.0, 0.5], [2, 2]),
            lab.tensor(&[0.1, -1.0, 0.0, 0.7], [2, 2]),
        );
        let q = DiagGaussian::new(lab.tensor(&[0.2, 0.8, -1.5, 0.0], [2, 2]), lab.tensor(&[0.0; 4], [2, 2]));
        let event = lab.tensor(&[0.4, -0.1, -2.5, 3.0], [2, 2]);
        [p.log_prob(&event), p.entropy(), p.kl(&q), q.kl(&p)].map(numbers).concat()
    });
}

#[test]
fn kl_estimators_agree() {
    check(DType::F64, |lab| {
        let log_ratio = lab.column(&[0.0, 1e-3, -0.3, 2.0, -20.0]);
        [k1, k2, k3].map(|k| numbers(k(log_ratio.clone()))).concat()
    });
}

#[test]
fn what_a_mask_drops_spoils_nothing() {
    check(DType::F64, |lab| {
        let values = lab.column(&[1.0, f64::NAN, 3.0, -INF, -5.5]);
        let mask = Tensor::<1, Bool>::from_data([true, false, true, false, true], &lab.device);
        [masked_mean(values.clone(), &mask), masked_var(values, &mask)].map(numbers).concat()
    });
}

#[test]
fn the_gradient_of_the_clipped_surrogate_agrees() {
    check(DType::F64, |lab| {
        let logits = lab.variable(&[0.3, -1.2, 2.0, 0.0, 0.5, -INF, 1.0, 1.0, 1.0], [3, 3]);
        let law = Categorical::new(logits.clone());
        let rho = ratio(law.log_prob(&lab.actions(&[0, 1, 2])), lab.column(&[-1.0, -2.5, -1.1]));
        let loss = (clipped(rho, lab.column(&[1.5, 2.0, -0.7]), 0.2) + law.entropy() * 0.1).mean().neg();
        let gradient = logits.grad(&loss.backward()).expect("the loss depends on the logits");
        [numbers(loss), numbers(gradient)].concat()
    });
}

/// The seeded network 4-8-8-3, in `f32` as networks are.
fn network(activation: Activation, device: &Device) -> MlpPolicy<CategoricalHead> {
    let shape =
        MlpConfig { hidden: vec![8, 8], activation, kernels: Kernels::Portable, ..MlpConfig::default() };
    MlpPolicy::new(&shape, 4, CategoricalHead::new(3), &mut ChaCha8Rng::seed_from_u64(7), device)
}

#[test]
fn the_gradient_of_a_network_agrees() {
    for activation in [Activation::Tanh, Activation::Relu] {
        check(DType::F32, |lab| {
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let obs: Vec<f64> = (0..5 * 4).map(|_| rng.random_range(-2.0..2.0)).collect();
            let gradient =
                network(activation, &lab.device).gradient(&lab.tensor(&obs, [5, 4]), &mut rng, |law| {
                    law.log_prob(&lab.actions(&[0, 1, 2, 1, 0])).mean()
                });
            numbers(gradient)
        });
    }
}

#[test]
fn clipped_adam_steps_agree() {
    for kind in [AdamKind::Adam, AdamKind::Adamw] {
        check(DType::F64, |lab| {
            let mut adam = Adam::new(AdamConfig { kind, weight_decay: 0.1, ..AdamConfig::default() });
            let mut theta = lab.column(&[1.0, -2.0, 0.5]);
            for grad in [[0.3, -4.0, 1e-3], [0.1, 2.0, 0.0]] {
                let (grad, _) = clip_grad_norm(lab.column(&grad), 1.0);
                theta = adam.step(theta, grad, 0.1);
            }
            numbers(theta)
        });
    }
}

#[test]
fn a_seed_draws_the_same_actions_everywhere() {
    check(DType::F32, |lab| {
        let law = Categorical::new(lab.tensor(&[0.3, -1.2, 2.0, 0.1].repeat(64), [64, 4]));
        let (mut actions, mut log_probs) = (vec![], vec![]);
        law.draw(&mut ChaCha8Rng::seed_from_u64(3), &mut actions, &mut log_probs);
        let actions: Vec<f64> = actions.into_iter().map(|action| action as f64).collect();
        [actions, log_probs.into_iter().map(f64::from).collect()].concat()
    });
    check(DType::F32, |lab| {
        let head = GaussianHead::new(2, -0.5, (-5.0, 2.0), &lab.device);
        let policy =
            MlpPolicy::new(&MlpConfig::default(), 3, head, &mut ChaCha8Rng::seed_from_u64(7), &lab.device);
        let law = policy.policy(&lab.tensor(&[0.5; 30], [10, 3]));
        numbers(law.sample(&mut ChaCha8Rng::seed_from_u64(3)))
    });
}

type Networks = Separate<MlpPolicy<CategoricalHead>, MlpValue>;

/// A bandit's rollout of 32 rows, its actions, the networks that made it, and the stream that goes on.
fn sample(lab: &Lab) -> (Rollout<Tensor<2>, Categorical>, Vec<f64>, Networks, ChaCha8Rng) {
    let arms = [0.1, 0.9, 0.5].map(|mean| Arm::Normal { mean, std: 0.1 });
    let envs = VecEnv::new(vec![Bandit::new(vec![arms.to_vec(); 4]).expect("three arms"); 8], 1);
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let shape = MlpConfig { hidden: vec![8], ..MlpConfig::default() };
    let model = Separate {
        policy: network(Activation::Tanh, &lab.device),
        value: MlpValue::new(&shape, 4, &mut rng, &lab.device),
    };
    let mut collector = EnvCollector::new(envs, 4, 0.99, 0.95, &lab.device);
    let (rollout, _) = collector.collect(&model, &mut rng);
    let actions = Categorical::elems(&rollout.actions).into_iter().map(|a| a as f64).collect();
    (rollout, actions, model, rng)
}

#[test]
fn a_ppo_update_agrees() {
    check(DType::F32, |lab| {
        let (rollout, actions, model, mut rng) = sample(lab);
        let mut config =
            PpoConfig { rollout_steps: 4, epochs: 2, minibatch_rows: 16, ..PpoConfig::default() };
        config.optimizer.learning_rate = Schedule::Constant(1e-3);
        let (model, report) = Ppo::new(config, 1).update(model, &rollout, &mut rng).expect("finite numbers");
        let report =
            vec![report.policy_loss, report.value_loss, report.entropy, report.approx_kl, report.grad_norm];
        [actions, report, numbers(flatten(&model))].concat()
    });
}

#[test]
fn a_trpo_update_agrees() {
    check(DType::F32, |lab| {
        let (rollout, actions, model, mut rng) = sample(lab);
        let config = TrpoConfig {
            rollout_steps: 4,
            cg_iterations: 3,
            value_epochs: 2,
            value_minibatch_rows: 16,
            ..TrpoConfig::default()
        };
        let (model, report) = Trpo::new(config, 1).update(model, &rollout, &mut rng).expect("finite numbers");
        let report =
            vec![report.improvement, report.kl, report.step_scale, report.value_loss, report.grad_norm];
        [actions, report, numbers(flatten(&model))].concat()
    });
}

/// Why replicas exchange gradients by our own means (docs/adr/0012-replicas.md). If this fails, burn has learnt it: read
/// that page again.
#[test]
fn burns_own_collectives_do_not_know_the_cpu() {
    use burn::tensor::distributed::{ReduceOperation, all_reduce};
    let device = Device::flex();
    let ones = Tensor::<1>::ones([2], &device);
    let sum = std::panic::catch_unwind(|| all_reduce(ones, ReduceOperation::Mean, vec![device]).resolve());
    let said = sum.expect_err("it sums").downcast::<String>().expect("it has words");
    assert!(said.contains("Distributed operations are not supported for tensor kind Flex"), "{said}");
}
