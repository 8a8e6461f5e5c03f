//! Responses of unequal length: padding is never read, the end is an action, and the self-check sees what is wrong.

use burn::tensor::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_algos::guard::self_check::{Start, self_check};
use rl_algos::{KlPlace, LmCollector, LmRolloutConfig, MissingEos, Responses};
use rl_core::kl::KlEstimator;
use rl_core::kl_control::KlController;
use rl_models::{Contexts, Policy, Response, ResponseEnd, Sampling, TablePolicy, Tempered, Tokens};
use rl_tests::numbers;

const STOP: u32 = 3;
const LENGTH: usize = 6;

fn table(tilt: f32) -> TablePolicy {
    TablePolicy::new(Contexts::bigram(4, LENGTH), &Device::flex(), |past| {
        let last = past.last().copied().unwrap_or(1) as f32;
        (0..4).map(|v| (tilt * (v as f32 + 0.3 * last)).sin()).collect()
    })
}

/// The sum of its tokens, and 1 for each.
fn score(_: &[&[u32]], written: &[Response]) -> Vec<f64> {
    written.iter().map(|y| y.tokens.iter().map(|&token| f64::from(token) + 1.0).sum()).collect()
}

fn responses(config: LmRolloutConfig) -> Responses {
    let how = Sampling { temperature: 1.0, max_tokens: LENGTH, stop: vec![STOP] };
    let prompts = vec![vec![1, 2], vec![2]];
    let mut collector = LmCollector::new(config, prompts, how, 0, &Device::flex());
    let (policy, reference) = (table(1.0), table(0.7));
    let laws = |model: &TablePolicy, tokens: &Tokens| model.policy(tokens);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    collector.collect(&policy, laws, |tokens| reference.policy(tokens), score, &mut rng)
}

fn config() -> LmRolloutConfig {
    LmRolloutConfig { prompts: 16, group: 2, kl: KlController::fixed(0.3), ..LmRolloutConfig::default() }
}

#[test]
fn the_score_is_paid_on_the_last_real_token_and_rewards_sum_to_score_minus_beta_kl() {
    let responses = responses(config());
    let (columns, mask) = (responses.columns(), responses.mask());
    assert!(responses.written.iter().any(|y| y.tokens.len() < columns), "some responses are padded");
    for (r, (shaped, y)) in responses.rewards().iter().zip(&responses.written).enumerate() {
        let row = r * columns;
        let log_ratio: f32 =
            (row..row + y.tokens.len()).map(|i| responses.log_prob[i] - responses.log_prob_ref[i]).sum();
        let want = responses.score[r] as f32 - 0.3 * log_ratio;
        assert!((shaped.total - want).abs() < 1e-4, "response {r}: {} is not {want}", shaped.total);
        assert!(shaped.rewards[y.tokens.len()..].iter().all(|&reward| reward == 0.0));
        assert!(shaped.rewards[y.tokens.len() - 1] > 0.5, "the score is on the last token");
        assert_eq!(mask[row..row + columns].iter().filter(|&&real| real).count(), y.tokens.len());
        let stopped = y.tokens.last() == Some(&STOP);
        assert_eq!(y.end == ResponseEnd::Stopped, stopped, "the end is a token of the response");
    }
}

#[test]
fn what_values_hold_behind_an_end_changes_nothing() {
    let responses = responses(config());
    let mask = responses.mask();
    let values: Vec<f32> = (0..mask.len()).map(|i| (i as f32).sin()).collect();
    let spoilt: Vec<f32> =
        values.iter().zip(&mask).map(|(&v, &real)| if real { v } else { f32::NAN }).collect();
    let (clean, dirty) =
        (responses.with_critic(&values, 1.0, 0.95), responses.with_critic(&spoilt, 1.0, 0.95));
    for (a, b) in [(&clean.advantage, &dirty.advantage), (&clean.value_target, &dirty.value_target)] {
        assert_eq!(numbers(a.clone()), numbers(b.clone()));
    }
    let behind: Vec<f64> = numbers(clean.advantage)
        .into_iter()
        .zip(&mask)
        .filter_map(|(a, &real)| (!real).then_some(a))
        .collect();
    assert!(!behind.is_empty() && behind.iter().all(|&a| a == 0.0));
}

#[test]
fn a_group_shares_its_prompt_and_every_token_its_advantage() {
    let responses = responses(config());
    let prompts: Vec<f64> = numbers(responses.tokens.ids.clone().float().narrow(1, 0, 2));
    assert!(prompts.chunks(4).all(|group| group[..2] == group[2..]), "two responses to each prompt");
    let advantages: Vec<f64> = (0..responses.rows()).map(|r| r as f64 + 1.0).collect();
    let rollout = responses.with_advantages(&advantages);
    let per_token = numbers(rollout.advantage);
    for (i, real) in responses.mask().into_iter().enumerate() {
        let want = if real { advantages[i / responses.columns()] } else { 0.0 };
        assert_eq!(per_token[i], want);
    }
}

#[test]
fn a_response_without_an_end_is_fined() {
    let fined = responses(LmRolloutConfig { missing_eos: MissingEos::Replace { score: -1.0 }, ..config() });
    assert!(fined.cut_share() > 0.0 && fined.cut_share() < 1.0);
    for (y, (score, raw)) in fined.written.iter().zip(fined.score.iter().zip(&fined.raw_score)) {
        assert_eq!(*score, if y.end == ResponseEnd::Cut { -1.0 } else { *raw });
    }
}

/// `β·(1/N)·Σ_r ½·X_r²` and `β·(1/N)·Σ_t ½·x_t²`, over real tokens, on all rows and on a minibatch.
#[test]
fn the_price_in_the_loss_is_the_mean_over_real_tokens() {
    for kl_place in [KlPlace::SequenceLoss, KlPlace::TokenLoss] {
        let responses = responses(LmRolloutConfig { kl_place, kl_estimator: KlEstimator::K2, ..config() });
        let advantages = vec![0.0; responses.rows()];
        let (columns, mask) = (responses.columns(), responses.mask());
        let rollout = responses.with_advantages(&advantages);
        for rows in [(0..responses.rows()).collect::<Vec<usize>>(), vec![3, 0, 7]] {
            let batch = rollout.select(&rows);
            let got = numbers(batch.reference_penalty(&batch.log_prob_old).expect("β is not 0"))[0];
            let (mut sum, mut n) = (0.0, 0.0);
            for &r in &rows {
                let x: Vec<f64> = (r * columns..(r + 1) * columns)
                    .filter(|&i| mask[i])
                    .map(|i| f64::from(responses.log_prob[i] - responses.log_prob_ref[i]))
                    .collect();
                n += x.len() as f64;
                sum += match kl_place {
                    KlPlace::SequenceLoss => x.iter().sum::<f64>().powi(2),
                    _ => x.iter().map(|x| x * x).sum::<f64>(),
                };
            }
            let want = 0.3 * 0.5 * sum / n;
            assert!((got - want).abs() < 1e-5 * want.max(1.0), "{kl_place:?}: {got} is not {want}");
        }
    }
}

#[test]
fn the_self_check_passes_what_is_well_and_names_what_is_not() {
    let responses = responses(config());
    let (policy, reference) = (table(1.0), table(0.7));
    let judge = |written: &[Response]| score(&[], written);
    let check = |laws: &dyn Fn(&Tokens) -> rl_core::dist::Categorical,
                 judge: &dyn Fn(&[Response]) -> Vec<f64>,
                 start| {
        let found = self_check(&responses, laws, |tokens| reference.policy(tokens), judge, start);
        found.iter().map(ToString::to_string).collect::<Vec<String>>().join("\n")
    };
    assert_eq!(check(&|tokens| policy.policy(tokens), &judge, Start::Elsewhere), "");
    let told = check(&|tokens| policy.policy(tokens), &judge, Start::AtReference);
    assert!(told.contains("the DPO loss is not log 2"), "{told}");
    let warm = Tempered::new(policy.clone(), 1.5);
    let told = check(&|tokens| warm.policy(tokens), &judge, Start::Elsewhere);
    assert!(told.contains("the ratio π/π_old is not 1"), "{told}");
    // A reward model that reads the batch's length.
    let told = check(
        &|tokens| policy.policy(tokens),
        &|written| vec![written.len() as f64; written.len()],
        Start::Elsewhere,
    );
    assert!(told.contains("The reward model reads padding"), "{told}");
}
