//! Low-rank adapters: nothing at first, the formula afterwards, and a gradient that is theirs alone.

use burn::module::Param;
use burn::tensor::{DType, Device, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rl_core::dist::{Categorical, Distribution};
use rl_models::flat_params::{flatten, unflatten};
use rl_models::lm::{LanguageModel, LmConfig, LoraConfig, LoraTargets, LoraTransformer, Transformer};
use rl_models::{Policy, Tokens};
use rl_tests::numbers;

use crate::laws::in_double;

fn base() -> Transformer {
    let config = LmConfig { max_positions: 16, ..LmConfig::llama(7, 8, 2, 2, 1) };
    in_double(Transformer::new(config, &mut ChaCha8Rng::seed_from_u64(4), &Device::flex()))
}

fn adapters(targets: LoraTargets, alpha: f64) -> LoraTransformer {
    LoraTransformer::new(base(), LoraConfig { rank: 2, alpha, targets }, &mut ChaCha8Rng::seed_from_u64(5))
}

fn tokens() -> Tokens {
    Tokens::new(&[(&[1, 3], &[4, 5, 2]), (&[1], &[6, 2])], 0, &Device::flex())
}

fn at(model: LoraTransformer, theta: &[f64]) -> LoraTransformer {
    let theta = TensorData::new(theta.to_vec(), [theta.len()]);
    unflatten(model, &Tensor::from_data(theta, (&Device::flex(), DType::F64)))
}

fn random(model: LoraTransformer) -> (LoraTransformer, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let theta: Vec<f64> = (0..flatten(&model).dims()[0]).map(|_| rng.random_range(-0.5..0.5)).collect();
    (at(model, &theta), theta)
}

#[test]
fn new_adapters_change_nothing_and_count_as_few() {
    for (targets, per_block) in [
        (LoraTargets::QueryValue, (8 + 8) + (8 + 4)),
        (LoraTargets::Attention, (8 + 8) + 2 * (8 + 4) + (8 + 8)),
        (LoraTargets::All, (8 + 8) + 2 * (8 + 4) + (8 + 8) + 3 * (8 + 24)),
    ] {
        let model = adapters(targets, 4.0);
        assert_eq!(flatten(&model).dims()[0], 2 * 2 * per_block, "{targets:?}");
        let laws = |law: Categorical| numbers(law.params());
        assert_eq!(laws(model.policy(&tokens())), laws(base().policy(&tokens())));
    }
}

#[test]
fn a_correction_is_alpha_over_r_times_the_product() {
    let (model, _) = random(adapters(LoraTargets::QueryValue, 3.0));
    let (whole, base) = (model.whole(), base());
    // Adapter 2 is of the second block's queries.
    let product = model.adapters[2].a.val().matmul(model.adapters[2].b.val()) * 1.5;
    let weight = |map: &Param<Tensor<2>>| map.val();
    let difference = weight(&whole.blocks[1].q.weight) - weight(&base.blocks[1].q.weight);
    let near =
        |a: Tensor<2>, b: Tensor<2>| numbers(a).iter().zip(numbers(b)).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(near(difference, product));
    assert!(near(weight(&whole.blocks[1].k.weight), weight(&base.blocks[1].k.weight)));
}

#[test]
fn the_gradient_of_adapters_is_the_central_difference() {
    let (model, theta) = random(adapters(LoraTargets::All, 4.0));
    let tokens = tokens();
    let loss =
        |law: Categorical| law.log_prob(&tokens.actions()).mask_fill(tokens.mask().bool_not(), 0.0).sum();
    let grad = numbers(model.gradient(&tokens, &mut ChaCha8Rng::seed_from_u64(1), loss));
    assert_eq!(grad.len(), theta.len());
    for i in (0..theta.len()).step_by(11) {
        let value = |h: f64| {
            let mut moved = theta.clone();
            moved[i] += h;
            numbers(loss(at(model.clone(), &moved).policy(&tokens)))[0]
        };
        let difference = (value(1e-5) - value(-1e-5)) / 2e-5;
        let near = (grad[i] - difference).abs() < 1e-6 * difference.abs().max(1.0);
        assert!(near, "parameter {i}: {} is not {difference}", grad[i]);
    }
}
