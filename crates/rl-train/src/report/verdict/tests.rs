//! Each fault on rows made for it, and none on healthy ones.

use super::*;

/// Rows of a run of `n` updates; `metrics` gives them at the share `t` of the run, in [0, 1].
fn rows(n: u64, metrics: impl Fn(f64) -> Vec<(&'static str, f64)>) -> Columns {
    let mut columns = Columns::default();
    for update in 1..=n {
        let t = (update - 1) as f64 / (n - 1).max(1) as f64;
        let mut row = serde_json::Map::new();
        row.insert("step".into(), (update * 256).into());
        row.insert("update".into(), update.into());
        for (name, value) in metrics(t) {
            let value = serde_json::Number::from_f64(value).map_or(value.to_string().into(), Into::into);
            row.insert(name.into(), value);
        }
        assert!(columns.push(serde_json::to_string(&row).unwrap().as_bytes()));
    }
    columns
}

/// A run in an environment that is well, a little noisy.
fn well(t: f64) -> Vec<(&'static str, f64)> {
    let noise = (t * 1000.0).sin();
    vec![
        ("losses/value_loss", 30.0 - 25.0 * t),
        ("losses/entropy", 0.69 - 0.4 * t),
        ("losses/approx_kl", 0.008),
        ("losses/clipfrac", 0.1 + 0.05 * noise),
        ("losses/explained_variance", (4.0 * t).min(0.9)),
        ("losses/grad_norm", 2.0 + noise),
        ("charts/episodic_return", 20.0 + 400.0 * t + 10.0 * noise),
    ]
}

/// A healthy RLHF run: KL at 1.3.
fn aligned(t: f64) -> Vec<(&'static str, f64)> {
    let learnt = (3.0 * t).min(1.0);
    vec![
        ("losses/entropy", 1.8 - 0.3 * learnt),
        ("losses/approx_kl", 1e-4),
        ("objective/kl", 1.3 * learnt),
        ("objective/ref_coef", 0.6),
        ("objective/scores", 1.8 * learnt),
        ("objective/gold", 1.1 * learnt),
        ("objective/rlhf_reward", 0.95 * learnt),
        ("responses/token_entropy", 1.8 - 0.3 * learnt),
        ("responses/distinct_2", 0.05),
        ("responses/repetition", 0.05 + 0.05 * learnt),
        ("responses/length", 6.0),
    ]
}

fn with(
    base: impl Fn(f64) -> Vec<(&'static str, f64)>,
    changed: impl Fn(f64) -> Vec<(&'static str, f64)>,
) -> impl Fn(f64) -> Vec<(&'static str, f64)> {
    move |t| {
        let changed = changed(t);
        let kept = base(t).into_iter().filter(|(name, _)| changed.iter().all(|(other, _)| other != name));
        kept.chain(changed.clone()).collect()
    }
}

fn facts() -> Facts {
    Facts { finished: true, epochs: Some(4.0), ..Facts::default() }
}

fn held_at(target: f64) -> Facts {
    let rule = KlRule { target: Some(target), band: 1.5, max: Some(1.0), key: "algo.rollout.kl" };
    Facts { kl: Some(rule), ..facts() }
}

#[track_caller]
fn worst(facts: &Facts, columns: &Columns) -> Finding {
    let verdict = judge(facts, columns);
    let Some(finding) = verdict.findings.first() else { panic!("nothing found: {}", verdict.course) };
    assert_eq!(verdict.title, finding.fault.title());
    assert!(!finding.evidence.is_empty() && !finding.cure.is_empty());
    finding.clone()
}

#[test]
fn a_healthy_run_is_healthy_however_long_it_is() {
    for n in [40, 200, 5000] {
        let verdict = judge(&facts(), &rows(n, well));
        assert_eq!((verdict.title.as_str(), verdict.fault()), ("Healthy", None), "{:?}", verdict.findings);
        let verdict = judge(&held_at(1.3), &rows(n, aligned));
        assert_eq!((verdict.title.as_str(), verdict.fault()), ("Healthy", None), "{:?}", verdict.findings);
        assert!(verdict.course.contains("1.3 nats against a target of 1.3"), "{}", verdict.course);
    }
}

#[test]
fn a_run_that_is_level_at_its_best_is_healthy_and_plateaued() {
    let level = with(well, |t| vec![("charts/episodic_return", 20.0 + 480.0 * (4.0 * t).min(1.0))]);
    let verdict = judge(&facts(), &rows(200, level));
    assert_eq!(verdict.title, "Healthy");
    let plateau = &verdict.findings[0];
    assert_eq!(plateau.fault, Fault::Plateaued);
    assert!((40..60).contains(&plateau.since.unwrap()), "{plateau:?}");
}

#[test]
fn a_return_that_falls_for_good_is_a_collapse() {
    let fallen =
        with(well, |t| vec![("charts/episodic_return", if t < 0.6 { 20.0 + 700.0 * t } else { 15.0 })]);
    let finding = worst(&facts(), &rows(200, fallen));
    assert_eq!(finding.fault, Fault::Collapsing);
    assert!((115..=130).contains(&finding.since.unwrap()), "{finding:?}");
    assert!(finding.evidence.contains("15 at the end"), "{}", finding.evidence);
}

#[test]
fn responses_that_are_all_alike_are_a_collapse() {
    let alike = with(aligned, |t| {
        vec![("responses/token_entropy", 1.8 * (1.0 - 0.98 * t)), ("responses/distinct_2", 0.05 - 0.045 * t)]
    });
    assert_eq!(worst(&held_at(1.3), &rows(200, alike)).fault, Fault::Collapsing);
}

#[test]
fn a_score_that_rises_while_gold_falls_is_cheating() {
    let cheats =
        with(aligned, |t| vec![("objective/scores", 5.0 * t), ("objective/gold", 4.0 * t - 6.0 * t * t)]);
    let finding = worst(&held_at(1.3), &rows(200, cheats));
    assert_eq!(finding.fault, Fault::CheatingRewardModel);
    assert!((55..80).contains(&finding.since.unwrap()), "{finding:?}");
    let both_fall =
        with(aligned, |t| vec![("objective/scores", 2.0 * t * (1.0 - t)), ("objective/gold", t - t * t)]);
    let verdict = judge(&held_at(1.3), &rows(200, both_fall));
    assert!(verdict.findings.iter().all(|finding| finding.fault != Fault::CheatingRewardModel));
}

#[test]
fn kl_far_above_its_target_explodes_and_somewhat_above_is_above() {
    let at = |kl: f64| with(aligned, move |t| vec![("objective/kl", kl * t), ("objective/ref_coef", 1.0)]);
    let finding = worst(&held_at(1.3), &rows(200, at(9.0)));
    assert_eq!(finding.fault, Fault::ExplodingKl);
    assert!(finding.evidence.contains("upper cap of 1"), "{}", finding.evidence);
    assert_eq!(worst(&held_at(1.3), &rows(200, at(3.0))).fault, Fault::KlAboveTarget);
    let verdict = judge(&held_at(1.3), &rows(200, at(0.4)));
    assert!(
        verdict.fault().is_none() && verdict.findings.iter().any(|it| it.evidence.contains("at most 0.39"))
    );
    // Without a target, half of what a response can spend: 1.8 nats × 6 tokens.
    assert_eq!(worst(&facts(), &rows(200, at(8.0))).fault, Fault::ExplodingKl);
    assert_eq!(judge(&facts(), &rows(200, at(4.0))).fault(), None);
}

#[test]
fn a_learning_rate_of_almost_nothing_is_dead() {
    let dead = with(well, |t| {
        vec![
            ("losses/approx_kl", 5e-16),
            ("losses/clipfrac", 0.0),
            ("losses/entropy", 0.69),
            ("charts/learning_rate", 1e-12),
            ("charts/episodic_return", 20.0 + (t * 1000.0).sin()),
        ]
    });
    let finding = worst(&facts(), &rows(200, dead));
    assert_eq!(finding.fault, Fault::DeadLearningRate);
    assert!(finding.evidence.contains("The learning rate is 1.00e-12"), "{}", finding.evidence);
}

#[test]
fn steps_that_are_too_long_are_a_learning_rate_too_high() {
    for sick in [("losses/approx_kl", 0.3), ("losses/clipfrac", 0.7), ("charts/epochs", 1.0)] {
        let finding = worst(&facts(), &rows(200, with(well, |_| vec![sick])));
        assert_eq!(finding.fault, Fault::LearningRateTooHigh, "{sick:?}");
    }
}

#[test]
fn values_that_predict_nothing_are_a_critic_that_does_not_learn() {
    let poor = |loss: f64| {
        with(well, move |t| vec![("losses/explained_variance", 0.01), ("losses/value_loss", 30.0 + loss * t)])
    };
    assert_eq!(worst(&facts(), &rows(200, poor(20.0))).fault, Fault::CriticNotLearning);
    // Once all returns are the same there is nothing to explain, and the loss is small.
    assert_eq!(judge(&facts(), &rows(200, poor(-29.9))).fault(), None);
    let blind = Facts { critic: Critic::Blind, ..facts() };
    assert_eq!(judge(&blind, &rows(200, poor(20.0))).fault(), None);
}

#[test]
fn certainty_before_anything_is_learnt_is_entropy_gone_and_a_certain_optimum_is_not() {
    let certain = |gain: f64| {
        with(well, move |t| {
            let entropy = if t == 0.0 { 0.69 } else { 1e-6 };
            vec![
                ("losses/entropy", entropy),
                ("charts/episodic_return", 9.4 + gain * t + 0.1 * (t * 1000.0).sin()),
            ]
        })
    };
    let finding = worst(&facts(), &rows(200, certain(0.0)));
    assert_eq!(finding.fault, Fault::EntropyGone);
    assert_eq!(judge(&facts(), &rows(200, certain(400.0))).fault(), None);
}

#[test]
fn falls_that_come_back_are_instability_and_no_gain_is_no_learning() {
    let waves = with(well, |t| vec![("charts/episodic_return", 20.0 + 400.0 * (14.2 * t).sin().max(0.0))]);
    assert_eq!(worst(&facts(), &rows(200, waves)).fault, Fault::Unstable);
    let flat = with(well, |t| vec![("charts/episodic_return", -200.0 + (t * 1000.0).sin())]);
    assert_eq!(worst(&facts(), &rows(200, flat)).fault, Fault::NotLearning);
}

#[test]
fn a_number_that_is_none_is_named_with_its_update() {
    let broken = with(well, |t| vec![("losses/value_loss", if t > 0.5 { f64::NAN } else { 1.0 })]);
    let finding = worst(&facts(), &rows(201, broken));
    assert_eq!((finding.fault, finding.since), (Fault::NotFinite, Some(102)));
    assert!(finding.evidence.contains("`losses/value_loss` is NaN at update 102"), "{}", finding.evidence);
}

#[test]
fn few_rows_and_unfinished_runs_are_said_to_be_so() {
    assert_eq!(judge(&facts(), &Columns::default()).title, "Nothing to judge yet");
    assert!(judge(&facts(), &rows(2, well)).course.contains("too few"));
    let running = Facts { finished: false, total_steps: Some(100_000), ..facts() };
    let verdict = judge(&running, &rows(40, well));
    assert!(verdict.findings.iter().any(|it| it.evidence.contains("at step 10240 of 100000")), "{verdict:?}");
}

#[test]
fn numbers_are_written_with_four_significant_digits() {
    let written: Vec<String> =
        [0.0, 1.0, 123.456, 0.0123456, 1e-9, -2.5, 500.0, 1_234_567.0, f64::NAN].map(number).to_vec();
    assert_eq!(written, ["0", "1", "123.5", "0.01235", "1.00e-9", "-2.5", "500", "1234567", "NaN"]);
}
