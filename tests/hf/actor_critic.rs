//! A language model with a critic: the same laws, one gradient, and a seat in every RLHF algorithm.

use burn::tensor::{DType, Device, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rl_algos::{
    Grpo, GrpoConfig, LmCollector, LmRolloutConfig, Responses, RlhfPpo, RlhfPpoConfig, Rloo, RlooConfig,
    Update,
};
use rl_core::dist::{Categorical, Distribution};
use rl_core::schedule::Schedule;
use rl_models::flat_params::{flatten, unflatten};
use rl_models::lm::{LmActorCritic, LmConfig, Transformer, score};
use rl_models::{ActorCritic, Policy, Response, Sampler, Sampling, Tempered, Tokens};
use rl_tests::numbers;

use crate::laws::in_double;

const END: u32 = 2;

fn shape() -> LmConfig {
    LmConfig { max_positions: 16, ..LmConfig::llama(7, 8, 1, 2, 1) }
}

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Every parameter random, the critic's too.
fn actor_critic(seed: u64) -> LmActorCritic {
    let (device, mut rng) = (Device::flex(), rng(seed));
    let model = LmActorCritic::new(Transformer::new(shape(), &mut rng, &device));
    let theta: Vec<f32> = (0..flatten(&model).dims()[0]).map(|_| rng.random_range(-0.5..0.5)).collect();
    let n = theta.len();
    unflatten(model, &Tensor::from_data(TensorData::new(theta, [n]), &device))
}

fn tokens() -> Tokens {
    Tokens::new(&[(&[1, 3], &[4, 5, 2]), (&[1], &[6, 2])], 0, &Device::flex())
}

fn policy_loss(tokens: &Tokens, law: &Categorical) -> Tensor<1> {
    let pad = tokens.mask().bool_not();
    (law.log_prob(&tokens.actions()) + law.entropy() * 0.3).mask_fill(pad, 0.0).sum()
}

fn value_loss(tokens: &Tokens, value: Tensor<1>) -> Tensor<1> {
    (value - 0.7).square().mask_fill(tokens.mask().bool_not(), 0.0).sum()
}

#[test]
fn its_laws_are_the_language_models_and_its_gradient_the_central_difference() {
    let (tokens, model) = (tokens(), actor_critic(5));
    let laws = |law: Categorical| numbers(law.params());
    assert_eq!(laws(ActorCritic::policy(&model, &tokens)), laws(Policy::policy(&model.policy, &tokens)));

    let model = in_double(model);
    let loss = |model: &LmActorCritic| {
        let value = model.value(&tokens);
        policy_loss(&tokens, &ActorCritic::policy(model, &tokens)) + value_loss(&tokens, value)
    };
    let grad = numbers(model.gradient(
        &tokens,
        &mut rng(1),
        |law| policy_loss(&tokens, &law),
        |value| value_loss(&tokens, value),
    ));
    let theta = numbers(flatten(&model));
    assert_eq!(grad.len(), theta.len());
    for i in (0..theta.len()).step_by(5).chain(theta.len() - 9..theta.len()) {
        let at = |h: f64| {
            let mut moved = theta.clone();
            moved[i] += h;
            let moved =
                Tensor::from_data(TensorData::new(moved, [theta.len()]), (&Device::flex(), DType::F64));
            numbers(loss(&unflatten(model.clone(), &moved)))[0]
        };
        let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
        let near = (grad[i] - difference).abs() < 1e-6 * difference.abs().max(1.0);
        assert!(near, "parameter {i}: {} is not {difference}", grad[i]);
    }
}

#[test]
fn log_probs_of_what_it_writes_are_those_of_reading_it_again() {
    let model = actor_critic(8);
    let prompts: [&[u32]; 3] = [&[1], &[1, 4, 5], &[1, 6]];
    let how = Sampling { temperature: 1.0, max_tokens: 5, stop: vec![END] };
    let written = model.respond(&prompts, &mut [rng(1), rng(2), rng(3)], &how);
    for (prompt, response) in prompts.iter().zip(&written) {
        let tokens = Tokens::new(&[(prompt, &response.tokens)], 0, &Device::flex());
        let read = numbers(score(&model.policy, &tokens, 2).log_prob);
        let near = read.iter().zip(&response.log_probs).all(|(a, b)| (a - f64::from(*b)).abs() < 1e-5);
        assert!(near, "{read:?} is not {:?}", response.log_probs);
    }
}

#[test]
fn dropout_is_of_training_alone_and_keeps_the_mean() {
    let tokens = tokens();
    let plain = actor_critic(3).policy;
    let dropped = plain.clone().with_dropout(0.5);
    let laws = |law: Categorical| numbers(law.params());
    assert_eq!(laws(dropped.policy(&tokens)), laws(plain.policy(&tokens)));
    assert_ne!(laws(dropped.policy_in_training(&tokens, &mut rng(1))), laws(plain.policy(&tokens)));
    let again = |seed| laws(dropped.policy_in_training(&tokens, &mut rng(seed)));
    assert_eq!(again(4), again(4));
    assert_ne!(again(4), again(5));
}

/// The reward of a response: how many 5s it has.
fn fives(_: &[&[u32]], written: &[Response]) -> Vec<f64> {
    written.iter().map(|y| y.tokens.iter().filter(|token| **token == 5).count() as f64).collect()
}

/// Mean score of the first and of the last of `updates` rollouts.
fn train<M, U>(model: M, laws: fn(&M, &Tokens) -> Categorical, mut algorithm: U, group: usize) -> [f64; 2]
where
    M: Sampler + Clone,
    U: Update<M, Data = Responses>,
{
    let rollout = LmRolloutConfig { prompts: 32 / group, group, ..LmRolloutConfig::default() };
    let how = Sampling { temperature: 1.0, max_tokens: 4, stop: vec![END] };
    let mut collector = LmCollector::new(rollout, vec![vec![1], vec![1, 3]], how, 0, &Device::flex());
    let (reference, mut model, mut rng) = (model.clone(), model, rng(11));
    let mut scores = vec![];
    for _ in 0..12 {
        let read = |tokens: &Tokens| laws(&reference, tokens);
        let responses = collector.collect(&model, laws, read, fives, &mut rng);
        scores.push(Responses::mean(&responses.raw_score));
        model = algorithm.update(model, &responses, &mut rng).expect("numbers stay finite").0;
    }
    [scores[0], scores[11]]
}

#[test]
fn every_rlhf_algorithm_teaches_it() {
    let lively = Schedule::Constant(2e-2);
    let fresh = || Transformer::new(shape(), &mut rng(2), &Device::flex());
    let laws: fn(&Tempered<Transformer>, &Tokens) -> Categorical =
        |model, tokens| Policy::policy(model, tokens);

    let mut ppo = RlhfPpoConfig { minibatch_rows: 16, epochs: 2, ..RlhfPpoConfig::default() };
    ppo.optimizer.learning_rate = lively;
    let model = Tempered::new(LmActorCritic::new(fresh()), 1.0);
    let [first, last] = train(model, ActorCritic::policy, RlhfPpo::new(&ppo, 12), 1);
    assert!(last > first + 0.5, "RLHF-PPO: {first} to {last}");

    let mut rloo = RlooConfig::default();
    rloo.steps.minibatch_rows = 32;
    rloo.steps.optimizer.learning_rate = lively;
    let [first, last] = train(Tempered::new(fresh(), 1.0), laws, Rloo::new(&rloo, 12), 4);
    assert!(last > first + 0.5, "RLOO: {first} to {last}");

    let mut grpo = GrpoConfig::default();
    grpo.steps.minibatch_rows = 32;
    grpo.steps.optimizer.learning_rate = lively;
    let [first, last] = train(Tempered::new(fresh(), 1.0), laws, Grpo::new(&grpo, 4, 12), 4);
    assert!(last > first + 0.5, "GRPO: {first} to {last}");
}
