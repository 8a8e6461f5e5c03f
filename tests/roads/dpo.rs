//! DPO on comparisons whose exact probabilities are known: the closed-form road to π*.

use std::collections::BTreeMap;

use burn::tensor::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_algos::adam::AdamConfig;
use rl_algos::{Dpo, DpoConfig, PairBatch, Persist, PreferenceLoss, TokenPair, Update};
use rl_core::schedule::Schedule;
use rl_envs::token_world::fixed;
use rl_models::flat_params::{count, flatten};
use rl_models::{Policy, TablePolicy};
use rl_tests::numbers;
use rl_tests::token_lesson::TokenLesson;

/// Every sentence of the world, and its reward.
fn sentences(lesson: &TokenLesson) -> Vec<(Vec<u32>, f64)> {
    let (v, l) = (lesson.world.vocabulary(), lesson.world.length());
    let digit = |i: usize, t: usize| i / v.pow((l - 1 - t) as u32) % v;
    (0..v.pow(l as u32))
        .map(|i| {
            let sentence: Vec<usize> = (0..l).map(|t| digit(i, t)).collect();
            let reward = lesson.reward[lesson.world.index(&sentence)];
            (sentence.into_iter().map(|token| token as u32).collect(), reward)
        })
        .collect()
}

/// The pairs that `wanted` likes, labelled with their exact Bradley–Terry probabilities `σ(r − r')`.
fn comparisons(lesson: &TokenLesson, wanted: impl Fn(usize, usize) -> bool) -> PairBatch {
    let all = sentences(lesson);
    let (mut pairs, mut chances) = (vec![], vec![]);
    for (i, (chosen, r)) in all.iter().enumerate() {
        for (j, (rejected, other)) in all.iter().enumerate().skip(i + 1) {
            if wanted(i, j) {
                pairs.push(TokenPair { prompt: &[], chosen, rejected });
                chances.push((1.0 / (1.0 + (other - r).exp())) as f32);
            }
        }
    }
    let batch = PairBatch::new(&pairs, 0, &Device::flex()).expect("no sentence is empty");
    batch.with_certainty(&chances).with_reference(&lesson.reference(), 4096)
}

fn config(beta: f64, from: f64) -> DpoConfig {
    let learning_rate = Schedule::Cosine { from, to: 0.0 };
    DpoConfig {
        beta,
        max_grad_norm: None,
        optimizer: AdamConfig { learning_rate, eps: 1e-8, ..AdamConfig::default() },
        ..DpoConfig::default()
    }
}

fn steps(dpo: &mut Dpo, mut model: TablePolicy, batch: &PairBatch, n: usize) -> (TablePolicy, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut losses = vec![];
    for _ in 0..n {
        let (next, report) = dpo.update(model, batch, &mut rng).expect("numbers stay finite");
        model = next;
        losses.push(report.loss);
    }
    (model, losses)
}

#[test]
fn dpo_arrives() {
    let lesson = TokenLesson::exact(fixed::small());
    // Each sentence against those at five distances: enough to order all of them, a fortieth of all pairs.
    let batch = comparisons(&lesson, |i, j| [1, 7, 31, 64, 120].contains(&(j - i)));
    // The flatter β makes the loss, the longer the way: at .2 the bar is that of the other roads.
    for (beta, from, n, bar) in [(1.0, 0.1, 150, 1e-3), (0.5, 0.2, 150, 1e-3), (0.2, 0.2, 400, 2e-2)] {
        let mut dpo = Dpo::new(config(beta, from), n);
        let (policy, losses) = steps(&mut dpo, lesson.reference(), &batch, n as usize);
        let (to_best, reached) = lesson.distance_to_optimum(&policy, beta);
        println!("DPO, β = {beta}: KL(π ‖ π*) = {to_best:.2e}, {reached:.5} of β·log Z");
        assert!((losses[0] - 2f64.ln()).abs() < 1e-6, "the first loss is {}", losses[0]);
        assert!(to_best < bar, "β = {beta}: KL(π ‖ π*) = {to_best}");
        assert!(reached > 0.99, "β = {beta}: {reached} of β·log Z");
    }
}

/// `−β·σ(r̂_l − r̂_w)·[∇log π(y_w) − ∇log π(y_l)]`, pair by pair, away from the reference.   Rafailov 2023, §4
#[test]
fn the_gradient_is_the_published_formula_term_by_term() {
    let lesson = TokenLesson::exact(fixed::small());
    let batch = PairBatch { certainty: None, ..comparisons(&lesson, |i, j| (j - i) % 97 == 5) };
    let beta = 0.3;
    let (model, _) = steps(&mut Dpo::new(config(beta, 0.3), 3), lesson.reference(), &batch, 2);

    let log_probs = batch.log_probs(&model.policy(&batch.tokens));
    let reference = batch.reference.clone().expect("the reference has seen the pairs");
    let [w, l, ref_w, ref_l] =
        [log_probs.chosen, log_probs.rejected, reference.chosen, reference.rejected].map(numbers);
    let n = batch.pairs();
    let mut want = vec![0.0; count(&model)];
    for i in 0..n {
        let weight = beta / (1.0 + (beta * ((w[i] - ref_w[i]) - (l[i] - ref_l[i]))).exp()) / n as f64;
        let one = batch.select(&[i]);
        let score = model.gradient(&one.tokens, &mut rand::rng(), |law| {
            let pair = one.log_probs(&law);
            (pair.chosen - pair.rejected).sum()
        });
        want.iter_mut().zip(numbers(score)).for_each(|(sum, score)| *sum -= weight * score);
    }
    let got = numbers(model.gradient(&batch.tokens, &mut rand::rng(), |law| {
        rl_core::preference::dpo(batch.log_probs(&law), reference_of(&batch), beta).mean()
    }));
    let worst = got.iter().zip(&want).map(|(got, want)| (got - want).abs()).fold(0.0, f64::max);
    assert!(worst < 1e-6, "the gradients differ by {worst}");
}

fn reference_of(batch: &PairBatch) -> rl_core::preference::PairLogProb {
    batch.reference.clone().expect("the reference has seen the pairs")
}

#[test]
fn parts_of_a_step_add_up_to_the_whole_step() {
    let lesson = TokenLesson::exact(fixed::small());
    let batch = comparisons(&lesson, |i, j| j - i == 16); // 240 pairs
    let learn = |accumulate| {
        let config = DpoConfig { accumulate, sft_coef: 0.1, ..config(0.5, 0.1) };
        config.validate(batch.pairs()).expect("the parts are even");
        let (model, losses) = steps(&mut Dpo::new(config, 5), lesson.reference(), &batch, 5);
        (numbers(flatten(&model)), losses)
    };
    let (whole, losses) = learn(1);
    for parts in [2, 8, 60] {
        let (model, others) = learn(parts);
        assert!(whole.iter().zip(&model).all(|(a, b)| (a - b).abs() < 1e-4), "{parts} parts");
        assert!(losses.iter().zip(&others).all(|(a, b)| (a - b).abs() < 1e-5), "{parts} parts");
    }
    let error = DpoConfig { accumulate: 7, ..DpoConfig::default() }.validate(240).unwrap_err().to_string();
    assert!(error.contains("accumulate") && error.contains("divisor"), "{error}");
}

#[test]
fn a_step_after_a_checkpoint_is_the_step_without_one() {
    let lesson = TokenLesson::exact(fixed::small());
    let batch = comparisons(&lesson, |i, j| j - i == 16);
    let mut straight = Dpo::new(config(0.5, 0.1), 6);
    let (model, _) = steps(&mut straight, lesson.reference(), &batch, 3);
    let mut tensors = BTreeMap::new();
    let state = straight.save(&mut tensors);
    let mut again = Dpo::new(config(0.5, 0.1), 6);
    again.load(&state, &tensors, count(&model), &Device::flex()).expect("what was saved loads");
    let go_on = |dpo: &mut Dpo| numbers(flatten(&steps(dpo, model.clone(), &batch, 3).0));
    assert_eq!(go_on(&mut again), go_on(&mut straight));
}

#[test]
fn every_loss_of_the_family_prefers_the_chosen() {
    let lesson = TokenLesson::exact(fixed::small());
    let batch = PairBatch { certainty: None, ..comparisons(&lesson, |i, j| j == 255 - i && i < 100) };
    let smooth = 0.1;
    for loss in [
        PreferenceLoss::Dpo,
        PreferenceLoss::Cdpo { label_smoothing: smooth },
        PreferenceLoss::Robust { label_smoothing: smooth },
        PreferenceLoss::Ipo,
        PreferenceLoss::IpoNorm,
        PreferenceLoss::Hinge,
        PreferenceLoss::ExoPair { label_smoothing: smooth },
        PreferenceLoss::SppoHard,
        PreferenceLoss::NcaPair,
        PreferenceLoss::BcoPair,
        PreferenceLoss::ApoZero,
        PreferenceLoss::ApoDown,
        PreferenceLoss::KtoPair,
    ] {
        let config = DpoConfig { loss, ..config(0.5, 0.02) };
        config.validate(batch.pairs()).expect("the settings can work");
        let mut dpo = Dpo::new(config, 40);
        let (model, losses) = steps(&mut dpo, lesson.reference(), &batch, 40);
        let pair = batch.log_probs(&model.policy(&batch.tokens)).log_ratio(reference_of(&batch));
        let margin = numbers(pair.margin().mean())[0];
        assert!(
            losses[39] < losses[0] && margin > 0.1,
            "{loss:?}: {} to {}, margin {margin}",
            losses[0],
            losses[39]
        );
    }
}

#[test]
fn an_empty_answer_is_an_error_not_a_panic() {
    let pair = TokenPair { prompt: &[], chosen: &[1], rejected: &[] };
    let error = PairBatch::new(&[pair], 0, &Device::flex()).unwrap_err().to_string();
    assert!(error.contains("pair 1: the rejected answer has no token"), "{error}");
}
