//! Collapse guards: what to look at while a policy is trained against a reward model, and when to say something.
//!
//! A policy that finds the holes of its reward model narrows, repeats itself, drifts in length, and is praised ever more
//! for it. None of that shows in the loss. After each rollout the guards compare the [`Vitals`] of the responses with
//! those of the reference; a symptom that lasts [`GuardConfig::patience`] rollouts raises an [`Alarm`], which says what
//! was seen, since when, and what to try. What then happens is [`OnAlarm`]'s: warn, stop, or go back to the last healthy
//! checkpoint with a dearer nat.
//!
//! [`self_check`] is for before the first update.

pub mod alarm;
pub mod self_check;
pub mod vitals;

pub use alarm::{Alarm, Symptom};
pub use vitals::{Vitals, distinct, repetition};

use serde::{Deserialize, Serialize};

use crate::error::{AlgoError, require};

/// What an alarm does to the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnAlarm {
    /// Says so and goes on.
    #[default]
    Warn,
    /// Ends the run; its checkpoints stay.
    Stop,
    /// Returns to the last healthy checkpoint and multiplies β by [`GuardConfig::raise_beta`].
    Rollback,
}

/// The bounds. An absent bound is not watched. Relative ones are shares of what the reference showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuardConfig {
    /// What an alarm does.
    pub on_alarm: OnAlarm,
    /// Rollouts in a row that a symptom must last.
    pub patience: u64,
    /// By what a rollback multiplies β.
    pub raise_beta: f64,
    /// Lowest entropy of the next token, as a share of the reference's.
    pub entropy_floor: Option<f64>,
    /// Lowest distinct-2, as a share of the reference's.
    pub distinct_floor: Option<f64>,
    /// Highest repetition within a response, above the reference's, in shares of its n-grams.
    pub repetition_rise: Option<f64>,
    /// Factor by which the mean length may grow or shrink.
    pub length_drift: Option<f64>,
    /// Lowest standard deviation of the scores of a rollout: below it nothing is compared with anything.
    pub score_std_floor: Option<f64>,
    /// How far gold (or a second reward model) may fall below its best while the score rises.
    pub gold_drop: Option<f64>,
    /// Highest share of responses that were cut.
    pub cut_ceiling: Option<f64>,
    /// Highest KL(π ‖ π_ref) per token, as a share of the reference's entropy of the next token: a policy at half of it
    /// has given up all but a vanishing part of what the reference could say, even if its entropy rises.
    pub kl_ceiling: Option<f64>,
    /// KL budget: KL(π ‖ π_ref) in nats per response that a run may spend; over it the run stops, whatever
    /// `on_alarm` says.
    pub kl_budget: Option<f64>,
}

impl Default for GuardConfig {
    fn default() -> Self {
        Self {
            on_alarm: OnAlarm::Warn,
            patience: 5,
            raise_beta: 2.0,
            entropy_floor: Some(0.2),
            distinct_floor: Some(0.5),
            repetition_rise: Some(0.3),
            length_drift: Some(2.0),
            score_std_floor: Some(0.01),
            gold_drop: Some(0.15),
            cut_ceiling: Some(0.9),
            kl_ceiling: Some(0.5),
            kl_budget: None,
        }
    }
}

impl GuardConfig {
    /// # Errors
    /// Names the first bound that cannot work.
    pub fn validate(&self) -> Result<(), AlgoError> {
        require(self.patience > 0, "guards.patience", "[1, ∞)", self.patience as f64)?;
        let raise = self.raise_beta;
        require(raise > 1.0 && raise.is_finite(), "guards.raise_beta", "(1, ∞)", raise)?;
        for (key, share) in [
            ("guards.entropy_floor", self.entropy_floor),
            ("guards.distinct_floor", self.distinct_floor),
            ("guards.repetition_rise", self.repetition_rise),
            ("guards.cut_ceiling", self.cut_ceiling),
        ] {
            let share = share.unwrap_or(0.5);
            require((0.0..=1.0).contains(&share), key, "[0, 1]", share)?;
        }
        let drift = self.length_drift.unwrap_or(2.0);
        require(drift > 1.0 && drift.is_finite(), "guards.length_drift", "(1, ∞)", drift)?;
        for (key, bound) in [
            ("guards.score_std_floor", self.score_std_floor),
            ("guards.gold_drop", self.gold_drop),
            ("guards.kl_ceiling", self.kl_ceiling),
            ("guards.kl_budget", self.kl_budget),
        ] {
            let bound = bound.unwrap_or(1.0);
            require(bound > 0.0 && bound.is_finite(), key, "(0, ∞)", bound)?;
        }
        Ok(())
    }
}

/// The guards on duty. Part of a run's state: serialise it with the checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Guards {
    config: GuardConfig,
    reference: Vitals,
    /// Since which update each symptom has shown without a break.
    since: Vec<(Symptom, u64)>,
    /// The rollout of the best gold so far.
    best: Option<Vitals>,
}

impl Guards {
    /// Guards that know what the reference looks like.
    pub fn new(config: GuardConfig, reference: Vitals) -> Self {
        Self { config, best: reference.gold.map(|_| reference), reference, since: vec![] }
    }

    /// The settings.
    pub fn config(&self) -> &GuardConfig {
        &self.config
    }

    /// What the reference looked like.
    pub fn reference(&self) -> &Vitals {
        &self.reference
    }

    /// Whether nothing is wrong at the moment, not even for one rollout: a checkpoint worth going back to.
    pub fn healthy(&self) -> bool {
        self.since.is_empty()
    }

    /// Looks at the rollout of `update`; alarms are those symptoms that have just lasted long enough.
    ///
    /// A symptom that goes on raises no second alarm until it has gone away.
    pub fn watch(&mut self, update: u64, now: &Vitals) -> Vec<Alarm> {
        let found = self.symptoms(now);
        if now.gold > self.best.and_then(|best| best.gold) {
            self.best = Some(*now);
        }
        self.since.retain(|(symptom, _)| found.iter().any(|alarm| alarm.symptom == *symptom));
        let mut alarms = vec![];
        for mut alarm in found {
            let since = match self.since.iter().find(|(symptom, _)| *symptom == alarm.symptom) {
                Some((_, since)) => *since,
                None => {
                    self.since.push((alarm.symptom, update));
                    update
                }
            };
            let patience = if alarm.symptom.is_final() { 1 } else { self.config.patience };
            if update + 1 == since + patience {
                alarm.since = since;
                alarm.update = update;
                alarms.push(alarm);
            }
        }
        alarms
    }

    /// Forgets its streaks, after a rollback.
    pub fn reset(&mut self) {
        self.since.clear();
    }

    /// Everything that is out of bounds now.
    fn symptoms(&self, now: &Vitals) -> Vec<Alarm> {
        let (config, reference) = (&self.config, &self.reference);
        let mut found = vec![];
        let mut note = |wrong: bool, symptom, got, bound| {
            if wrong {
                found.push(Alarm { symptom, got, bound, since: 0, update: 0 });
            }
        };
        // NaN breaks no bound below: it is a symptom of its own.
        note(!now.is_finite(), Symptom::NonFinite, f64::NAN, 0.0);
        if let Some(share) = config.entropy_floor {
            let floor = share * reference.token_entropy;
            note(now.token_entropy < floor, Symptom::Entropy, now.token_entropy, floor);
        }
        if let Some(share) = config.distinct_floor {
            let floor = share * reference.distinct_2;
            note(now.distinct_2 < floor, Symptom::Distinct, now.distinct_2, floor);
        }
        if let Some(rise) = config.repetition_rise {
            let ceiling = reference.repetition + rise;
            note(now.repetition > ceiling, Symptom::Repetition, now.repetition, ceiling);
        }
        if let Some(drift) = config.length_drift {
            note(now.length > reference.length * drift, Symptom::Longer, now.length, reference.length);
            note(now.length < reference.length / drift, Symptom::Shorter, now.length, reference.length);
        }
        if let Some(floor) = config.score_std_floor {
            note(now.score_std < floor, Symptom::ScoreStd, now.score_std, floor);
        }
        if let Some(ceiling) = config.cut_ceiling {
            note(now.cut_share > ceiling, Symptom::Cut, now.cut_share, ceiling);
        }
        if let Some(share) = config.kl_ceiling {
            let (got, ceiling) = (now.kl_per_token(), share * reference.token_entropy);
            note(got > ceiling, Symptom::KlCeiling, got, ceiling);
        }
        if let Some(budget) = config.kl_budget {
            note(now.kl > budget, Symptom::KlBudget, now.kl, budget);
        }
        if let (Some(drop), Some(gold), Some(best)) = (config.gold_drop, now.gold, self.best) {
            let fallen = best.gold.unwrap_or(gold) - gold;
            note(fallen > drop && now.score > best.score, Symptom::Hacking, fallen, drop);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calm() -> Vitals {
        Vitals {
            kl: 0.0,
            token_entropy: 2.0,
            distinct_2: 0.8,
            repetition: 0.05,
            length: 20.0,
            cut_share: 0.1,
            score: 0.0,
            score_std: 1.0,
            gold: Some(0.0),
        }
    }

    #[test]
    fn a_symptom_must_last_and_is_reported_once() {
        let mut guards = Guards::new(GuardConfig { patience: 3, ..GuardConfig::default() }, calm());
        let narrow = Vitals { token_entropy: 0.1, ..calm() };
        assert!(guards.watch(1, &calm()).is_empty() && guards.healthy());
        assert!(guards.watch(2, &narrow).is_empty() && !guards.healthy());
        assert!(guards.watch(3, &calm()).is_empty(), "one good rollout breaks the streak");
        let alarms: Vec<usize> = (4..10).map(|update| guards.watch(update, &narrow).len()).collect();
        assert_eq!(alarms, [0, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn each_symptom_is_seen() {
        let config = GuardConfig {
            patience: 1,
            kl_budget: Some(5.0),
            kl_ceiling: Some(0.2),
            ..GuardConfig::default()
        };
        let sick = [
            (Symptom::Entropy, Vitals { token_entropy: 0.3, ..calm() }),
            (Symptom::Distinct, Vitals { distinct_2: 0.3, ..calm() }),
            (Symptom::Repetition, Vitals { repetition: 0.4, ..calm() }),
            (Symptom::Longer, Vitals { length: 41.0, ..calm() }),
            (Symptom::Shorter, Vitals { length: 9.0, ..calm() }),
            (Symptom::ScoreStd, Vitals { score_std: 0.0, ..calm() }),
            (Symptom::Cut, Vitals { cut_share: 0.95, ..calm() }),
            (Symptom::KlBudget, Vitals { kl: 5.1, ..calm() }),
            (Symptom::KlCeiling, Vitals { kl: 4.5, length: 11.0, token_entropy: 2.5, ..calm() }),
            (Symptom::Hacking, Vitals { score: 1.0, gold: Some(-0.2), ..calm() }),
        ];
        for (symptom, vitals) in sick {
            let seen: Vec<Symptom> = Guards::new(config.clone(), calm())
                .watch(1, &vitals)
                .iter()
                .map(|alarm| alarm.symptom)
                .collect();
            assert_eq!(seen, [symptom]);
        }
        let seen = Guards::new(config, calm()).watch(1, &Vitals { score: f64::NAN, ..calm() });
        assert!(seen.iter().any(|alarm| alarm.symptom == Symptom::NonFinite));
    }

    /// What `rlhf-stories` showed at β = 0, with 150 nats in 48 tokens, and what it shows at its target of 8.
    #[test]
    fn a_policy_that_leaves_the_language_with_a_rising_entropy_is_seen_and_one_at_its_target_is_not() {
        let story = Vitals { token_entropy: 1.41, distinct_2: 0.297, length: 48.0, ..calm() };
        let gibberish =
            Vitals { kl: 150.0, token_entropy: 1.78, distinct_2: 0.333, gold: Some(0.9), ..story };
        let held = Vitals { kl: 8.0, token_entropy: 1.24, distinct_2: 0.266, gold: Some(0.6), ..story };
        let mut guards = Guards::new(GuardConfig::default(), story);
        assert!((1..20).all(|update| guards.watch(update, &held).is_empty()) && guards.healthy());
        let alarms: Vec<Alarm> = (20..30).flat_map(|update| guards.watch(update, &gibberish)).collect();
        assert_eq!(alarms.len(), 1, "{alarms:?}");
        let said = alarms[0].to_string();
        assert!(said.starts_with("KL(π ‖ π_ref) is 3.12 nats per token, above 0.70"), "{said}");
        assert!(said.contains("since update 20 (now 24). Try: raise β"), "{said}");
    }

    #[test]
    fn gold_that_falls_with_the_score_is_bad_luck_and_no_hacking() {
        let mut guards = Guards::new(GuardConfig { patience: 1, ..GuardConfig::default() }, calm());
        assert!(guards.watch(1, &Vitals { score: 1.0, gold: Some(1.0), ..calm() }).is_empty());
        assert!(guards.watch(2, &Vitals { score: 0.5, gold: Some(0.5), ..calm() }).is_empty());
        assert_eq!(guards.watch(3, &Vitals { score: 1.5, gold: Some(0.5), ..calm() }).len(), 1);
    }

    #[test]
    fn bounds_that_cannot_work_are_refused_by_name() {
        let refused = |config: GuardConfig| config.validate().unwrap_err().to_string();
        let text = refused(GuardConfig { entropy_floor: Some(1.5), ..GuardConfig::default() });
        assert_eq!(text, "`guards.entropy_floor` must be in [0, 1], but is 1.5");
        let text = refused(GuardConfig { raise_beta: 1.0, ..GuardConfig::default() });
        assert_eq!(text, "`guards.raise_beta` must be in (1, ∞), but is 1");
        assert_eq!(GuardConfig::default().validate(), Ok(()));
    }
}
