//! The startup self-check: a second's worth of tests on the very models, tokens and reward that a run is about to use.
//!
//! | check | fails when |
//! |---|---|
//! | the policy agrees with itself | dropout is on, or what samples is not what is scored (a filter, a temperature) |
//! | KL(π ‖ π) = 0 | a law is not normalised |
//! | DPO pays log 2 at π = π_ref | reference and policy differ before anything was learnt |
//! | padding changes nothing for the policy | padding is attended to, positions are wrong |
//! | padding changes nothing for the reward | the reward model reads a pad instead of the last token |

use burn::tensor::{Tensor, TensorData};
use rl_core::dist::{Categorical, Distribution};
use rl_core::preference::{PairLogProb, dpo};
use rl_models::{Response, Rows, Tokens};

use crate::responses::Responses;
use crate::rollout::indices;

/// Largest difference of log-probabilities that rounding may make.
pub const TOLERANCE: f64 = 1e-3;

/// One thing that does not hold.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("self-check: {what}: off by {by:.2e}. {why}")]
pub struct SelfCheckError {
    what: &'static str,
    by: f64,
    why: &'static str,
}

/// Everything that does not hold; empty is well.
///
/// `laws` and `reference_laws` are the models' laws of given tokens; `score` judges responses that are already written
/// and sees them padded to the longest, or alone.
pub fn self_check(
    responses: &Responses,
    laws: impl Fn(&Tokens) -> Categorical,
    reference_laws: impl Fn(&Tokens) -> Categorical,
    score: impl Fn(&[Response]) -> Vec<f64>,
    start: Start,
) -> Vec<SelfCheckError> {
    let mut found = vec![];
    let mut demand = |what, by: f64, why| {
        if by.is_nan() || by > TOLERANCE {
            found.push(SelfCheckError { what, by, why });
        }
    };
    let tokens = &responses.tokens;
    let law = laws(tokens);
    let mask = responses.mask();
    let log_prob = kept(law.log_prob(&tokens.actions()), &mask);
    let rollout = kept_of(&responses.log_prob, &mask);
    demand(
        "the ratio π/π_old is not 1 before any step",
        largest_gap(&log_prob, &rollout),
        "Two passes of the same model disagree: is dropout on?",
    );
    let sampled: Vec<f64> =
        responses.written.iter().flat_map(|y| y.log_probs.iter().map(|&x| f64::from(x))).collect();
    demand(
        "sampled and scored log-probabilities differ",
        largest_gap(&sampled, &rollout),
        "Something stands between law and token: a filter (top-k, top-p, minimum length), or another temperature.",
    );
    let to_itself = kept(law.kl(&law), &mask).into_iter().fold(0.0, f64::max);
    demand("KL(π ‖ π) is not 0", to_itself, "The policy's law is not normalised.");
    if start == Start::AtReference {
        let sums = |x: &[f64]| per_response(x, responses);
        let reference = kept(reference_laws(tokens).log_prob(&tokens.actions()), &mask);
        demand(
            "the DPO loss is not log 2 at the start",
            (dpo_loss(&sums(&log_prob), &sums(&reference), tokens) - std::f64::consts::LN_2).abs(),
            "Policy and reference differ before anything was learnt: another checkpoint, precision or temperature.",
        );
    }
    let (shortest, y) = responses
        .written
        .iter()
        .enumerate()
        .min_by_key(|(_, y)| y.tokens.len())
        .expect("a rollout has responses");
    let alone = unpadded(tokens, shortest, y.tokens.len());
    let by_itself = numbers(laws(&alone).log_prob(&alone.actions()));
    let columns = responses.columns();
    let in_batch: Vec<f64> = responses.log_prob[shortest * columns..shortest * columns + y.tokens.len()]
        .iter()
        .map(|&x| f64::from(x))
        .collect();
    demand(
        "a response has other log-probabilities in a batch than alone",
        largest_gap(&by_itself, &in_batch),
        "Padding is seen: attention mask or position numbers are wrong.",
    );
    let score_alone = score(std::slice::from_ref(y));
    demand(
        "the reward of a response depends on what it is judged beside",
        (score_alone[0] - responses.raw_score[shortest]).abs(),
        "The reward model reads padding: its score must come from the last real token.",
    );
    found
}

/// Where the policy stands when it is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// It is a copy of the reference.
    AtReference,
    /// It has learnt something.
    Elsewhere,
}

/// The mean DPO loss (β = 1) of pairs of responses, each against the next one; from log-probabilities per response.
fn dpo_loss(policy: &[f64], reference: &[f64], tokens: &Tokens) -> f64 {
    let pairs = |log_prob: &[f64]| {
        let mut next = log_prob.to_vec();
        next.rotate_left(1);
        let column = |x: Vec<f64>| {
            let n = x.len();
            Tensor::from_data(TensorData::new(x, [n]), &tokens.ids.device())
        };
        PairLogProb::new(column(log_prob.to_vec()), column(next))
    };
    dpo(pairs(policy), pairs(reference), 1.0).mean().into_scalar()
}

/// The sum over each response of its tokens' numbers.
fn per_response(values: &[f64], responses: &Responses) -> Vec<f64> {
    let mut rest = values;
    let sum = |y: &Response| {
        let (own, after) = rest.split_at(y.tokens.len());
        rest = after;
        own.iter().sum::<f64>()
    };
    responses.written.iter().map(sum).collect()
}

/// Row `row` without padding.
fn unpadded(tokens: &Tokens, row: usize, response: usize) -> Tokens {
    let device = tokens.ids.device();
    let one = tokens.select(indices(&[row], &device));
    let real: Vec<bool> = one.real.clone().into_data().try_into_vec_as().expect("a mask can be read back");
    let pad = real.iter().position(|&real| real).unwrap_or(0);
    let columns = tokens.prompt - pad + response;
    Tokens {
        ids: one.ids.narrow(1, pad, columns),
        real: one.real.narrow(1, pad, columns),
        prompt: tokens.prompt - pad,
    }
}

fn largest_gap(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "two numbers per token");
    // `max` drops NaN; a difference that is none counts as infinite.
    let gap = |(a, b): (&f64, &f64)| if (a - b).is_nan() { f64::INFINITY } else { (a - b).abs() };
    a.iter().zip(b).map(gap).fold(0.0, f64::max)
}

fn kept(values: Tensor<1>, mask: &[bool]) -> Vec<f64> {
    numbers(values).into_iter().zip(mask).filter_map(|(x, &real)| real.then_some(x)).collect()
}

fn kept_of(values: &[f32], mask: &[bool]) -> Vec<f64> {
    values.iter().zip(mask).filter_map(|(&x, &real)| real.then_some(f64::from(x))).collect()
}

fn numbers(values: Tensor<1>) -> Vec<f64> {
    values.into_data().try_into_vec_as().expect("floats convert to f64")
}
