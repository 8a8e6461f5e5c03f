//! What holds for every language model, on small random ones of each family.

use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_core::dist::Distribution;
use rl_models::flat_params::{flatten, unflatten};
use rl_models::lm::{FloatFormat, Generation, LmConfig, Transformer, generate, score};
use rl_models::{Policy, Tokens};
use rl_tests::numbers;
use rl_tests::small_models::{V, model, shapes};

fn any_model() -> impl Strategy<Value = Transformer> {
    (0..3usize, any::<u64>()).prop_map(|(shape, seed)| model(&shapes()[shape], seed))
}

fn text(tokens: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(0..V as u32, tokens)
}

/// `log π` of each response token of one sequence.
fn log_probs(model: &Transformer, prompt: &[u32], response: &[u32]) -> Vec<f64> {
    numbers(score(model, &Tokens::new(&[(prompt, response)], 0, &Device::flex()), 3).log_prob)
}

fn near(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_token_moves_what_was_said_before_it(
        model in any_model(), text in text(3..12), at in any::<prop::sample::Index>(), other in 0..V as u32,
    ) {
        let at = 1 + at.index(text.len() - 1);
        let mut changed = text.clone();
        changed[at] = other;
        let laws = |text: &[u32]| {
            let tokens = Tokens::new(&[(&text[..1], &text[1..])], 0, &Device::flex());
            numbers(model.policy(&tokens).params())
        };
        // The law of the token at `at` is decision `at − 1`, which sees only the tokens before it.
        prop_assert!(near(&laws(&text)[..at * V], &laws(&changed)[..at * V]));
    }

    #[test]
    fn padding_and_neighbours_change_no_log_prob(
        model in any_model(),
        rows in prop::collection::vec((text(1..6), text(1..6)), 2..4),
        pad in 0..V as u32,
    ) {
        let pairs: Vec<(&[u32], &[u32])> = rows.iter().map(|(p, r)| (p.as_slice(), r.as_slice())).collect();
        let tokens = Tokens::new(&pairs, pad, &Device::flex());
        let (together, l) = (numbers(score(&model, &tokens, 4).log_prob), tokens.response());
        for (row, (prompt, response)) in rows.iter().enumerate() {
            let alone = log_probs(&model, prompt, response);
            prop_assert!(near(&together[row * l..row * l + response.len()], &alone));
            prop_assert!(together[row * l + response.len()..(row + 1) * l].iter().all(|x| *x == 0.0));
        }
    }

    #[test]
    fn what_is_written_has_the_log_probs_that_scoring_gives_it(
        model in any_model(), prompts in prop::collection::vec(text(1..6), 1..4), seed in any::<u64>(),
    ) {
        let prompts: Vec<&[u32]> = prompts.iter().map(Vec::as_slice).collect();
        let rng = |row: usize| ChaCha8Rng::seed_from_u64(seed.wrapping_add(row as u64));
        let how = Generation { max_tokens: 6, stop: vec![3], ..Generation::default() };
        let mut rngs: Vec<_> = (0..prompts.len()).map(rng).collect();
        let written = generate(&model, &prompts, &mut rngs, &how, |_, _| ());
        for (row, written) in written.iter().enumerate() {
            // Cached equals uncached.
            let scored = log_probs(&model, prompts[row], &written.tokens);
            let heard: Vec<f64> = written.raw_log_probs.iter().map(|x| f64::from(*x)).collect();
            prop_assert!(near(&heard, &scored), "{heard:?} is not {scored:?}");
            prop_assert_eq!(&written.log_probs, &written.raw_log_probs);
            // A batch equals its rows.
            let alone = generate(&model, &prompts[row..=row], &mut [rng(row)], &how, |_, _| ());
            prop_assert_eq!(&alone[0].tokens, &written.tokens);
            let stopped = written.tokens.iter().position(|token| *token == 3);
            prop_assert!(stopped.is_none_or(|at| at + 1 == written.tokens.len()));
        }
    }

    #[test]
    fn without_warmth_or_with_one_choice_writing_is_greedy(
        model in any_model(), prompt in text(1..6), seed in any::<u64>(),
    ) {
        let write = |how: Generation| {
            let how = Generation { max_tokens: 6, ..how };
            let mut rng = [ChaCha8Rng::seed_from_u64(seed)];
            generate(&model, &[&prompt], &mut rng, &how, |_, _| ()).remove(0).tokens
        };
        let greedy = write(Generation { temperature: 0.0, ..Generation::default() });
        prop_assert_eq!(&write(Generation { temperature: 1e-9, ..Generation::default() }), &greedy);
        prop_assert_eq!(&write(Generation { top_k: Some(1), ..Generation::default() }), &greedy);
        prop_assert_eq!(&write(Generation { top_p: Some(1e-9), ..Generation::default() }), &greedy);
    }

    #[test]
    fn filters_bar_tokens_and_a_minimum_keeps_stops_away(
        model in any_model(), prompt in text(1..6), seed in any::<u64>(), k in 1..V,
    ) {
        let stop: Vec<u32> = (0..V as u32 / 2).collect();
        let how = Generation { top_k: Some(k), min_tokens: 4, max_tokens: 8, stop: stop.clone(), ..Generation::default() };
        let mut rng = [ChaCha8Rng::seed_from_u64(seed)];
        let written = generate(&model, &[&prompt], &mut rng, &how, |_, _| ()).remove(0);
        prop_assert!(written.tokens.len() >= 4);
        prop_assert!(written.tokens[..3].iter().all(|token| !stop.contains(token)));
        prop_assert!(written.log_probs.iter().zip(&written.raw_log_probs).all(|(drawn, raw)| drawn >= &(raw - 1e-6)));
    }

    #[test]
    fn a_saved_model_is_loaded_bit_for_bit(model in any_model(), text in text(2..8)) {
        let folder = tempfile::tempdir().expect("a scratch folder");
        model.save(folder.path(), FloatFormat::F32).expect("the folder can be written");
        let again = Transformer::load(folder.path(), &Device::flex()).expect("what was saved loads");
        prop_assert_eq!(again.config(), model.config());
        prop_assert_eq!(log_probs(&again, &text[..1], &text[1..]), log_probs(&model, &text[..1], &text[1..]));
        for format in [FloatFormat::F16, FloatFormat::Bf16] {
            model.save(folder.path(), format).expect("the folder can be written");
            let again = Transformer::load(folder.path(), &Device::flex()).expect("what was saved loads");
            let (a, b) = (numbers(flatten(&again)), numbers(flatten(&model)));
            prop_assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 4e-3 * b.abs() + 1e-6));
        }
    }
}

/// Every parameter of each family, in double precision.
#[test]
fn the_gradient_is_the_central_difference() {
    for config in shapes() {
        let small = LmConfig {
            vocabulary: 5,
            hidden: 8,
            heads: 2,
            kv_heads: if config.kv_heads == 4 { 2 } else { 1 },
            head_dim: 4,
            intermediate: 8,
            layers: 1,
            max_positions: 6,
            ..config
        };
        let model = in_double(model(&small, 3));
        let tokens = Tokens::new(&[(&[1, 2], &[3, 0, 4]), (&[2], &[1, 1])], 0, &Device::flex());
        let loss = |model: &Transformer| {
            model.policy(&tokens).log_prob(&tokens.actions()).mask_fill(tokens.mask().bool_not(), 0.0).sum()
        };
        let grad = numbers(model.gradient(&tokens, &mut rand::rng(), |law| {
            law.log_prob(&tokens.actions()).mask_fill(tokens.mask().bool_not(), 0.0).sum()
        }));
        let theta = numbers(flatten(&model));
        for i in 0..theta.len() {
            let at = |h: f64| {
                let mut moved = theta.clone();
                moved[i] += h;
                let moved =
                    Tensor::from_data(TensorData::new(moved, [theta.len()]), (&Device::flex(), DType::F64));
                numbers(loss(&unflatten(model.clone(), &moved)))[0]
            };
            let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!(
                (grad[i] - difference).abs() < 1e-6 * difference.abs().max(1.0),
                "{small:?}, parameter {i}: {} is not {difference}",
                grad[i]
            );
        }
    }
}

/// The same parameters as 64-bit floats.
pub fn in_double<M: burn::module::Module>(model: M) -> M {
    struct Double;
    impl burn::module::ModuleMapper for Double {
        fn map_float<const D: usize>(
            &mut self,
            param: burn::module::Param<Tensor<D>>,
        ) -> burn::module::Param<Tensor<D>> {
            let (id, tensor, mapper) = param.consume();
            burn::module::Param::from_mapped_value(id, tensor.cast(FloatDType::F64), mapper)
        }
    }
    burn::module::Module::map(model, &mut Double)
}
