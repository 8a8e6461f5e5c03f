//! Alarms in words: what was seen, since when, what to try.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Symptom {
    /// A number is infinite or not a number.
    NonFinite,
    /// The next token is all but certain.
    Entropy,
    /// All responses use the same few word pairs.
    Distinct,
    /// Responses repeat themselves.
    Repetition,
    /// Responses grow.
    Longer,
    /// Responses shrink.
    Shorter,
    /// All responses earn the same.
    ScoreStd,
    /// The score rises while gold falls.
    Hacking,
    /// Responses do not end.
    Cut,
    /// The policy is far from the reference, token by token.
    KlCeiling,
    /// The KL budget is spent.
    KlBudget,
}

impl Symptom {
    /// Whether once is enough, and the run cannot go on.
    pub fn is_final(self) -> bool {
        matches!(self, Self::NonFinite | Self::KlBudget)
    }

    /// Its name in metrics and run files.
    pub fn name(self) -> &'static str {
        match self {
            Self::NonFinite => "non_finite",
            Self::Entropy => "entropy",
            Self::Distinct => "distinct",
            Self::Repetition => "repetition",
            Self::Longer => "longer",
            Self::Shorter => "shorter",
            Self::ScoreStd => "score_std",
            Self::Hacking => "hacking",
            Self::Cut => "cut",
            Self::KlCeiling => "kl_ceiling",
            Self::KlBudget => "kl_budget",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::NonFinite => {
                "go back to the last checkpoint with a smaller learning rate or a smaller `max_grad_norm`, and look at \
                 what the reward model says of that batch"
            }
            Self::Entropy | Self::Distinct => {
                "raise β (`rollout.kl.beta`) or lower the KL target; a smaller learning rate and fewer epochs slow the \
                 narrowing"
            }
            Self::Repetition => {
                "the reward model likes repetition: raise β or lower the KL target, and add repetitive answers to the \
                 rejected side of its training pairs"
            }
            Self::Longer => {
                "the reward model likes length: raise β, compare scores at equal length, or fine a missing end \
                 (`rollout.missing_eos`)"
            }
            Self::Shorter => "raise β; look whether the fine for a missing end is larger than the reward",
            Self::ScoreStd => {
                "responses are all alike or the reward model is saturated: raise β, or check the reward model's input"
            }
            Self::Hacking => {
                "the policy is cheating its reward model: stop at the best gold, raise β or lower the KL target, or \
                 train the reward model on these responses"
            }
            Self::Cut => {
                "raise `max_tokens`, or set `rollout.missing_eos` so that not ending costs something"
            }
            Self::KlCeiling => {
                "raise β, or let a controller hold a target (`rollout.kl = { kind = \"proportional\", … }`); read some \
                 responses: what the reference would hardly say, the reward model has hardly seen"
            }
            Self::KlBudget => {
                "this is the end that `guards.kl_budget` asked for; a controller with a target below the budget would \
                 have held it"
            }
        }
    }
}

/// A symptom that lasted.
#[derive(Debug, Clone, PartialEq)]
pub struct Alarm {
    /// What is wrong.
    pub symptom: Symptom,
    /// The number that was seen.
    pub got: f64,
    /// The bound that it broke (for a drifting length: the reference's length).
    pub bound: f64,
    /// The first update of the streak.
    pub since: u64,
    /// The update that raised the alarm.
    pub update: u64,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { symptom, got, bound, since, update } = self;
        match symptom {
            Symptom::NonFinite => write!(f, "a measured number is not finite"),
            Symptom::Entropy => {
                write!(f, "the next token has an entropy of {got:.3} nats, below the floor of {bound:.3}")
            }
            Symptom::Distinct => {
                write!(f, "only {:.1}% of token pairs are distinct, below {:.1}%", 100.0 * got, 100.0 * bound)
            }
            Symptom::Repetition => {
                write!(
                    f,
                    "{:.1}% of a response's pairs are repeats, above {:.1}%",
                    100.0 * got,
                    100.0 * bound
                )
            }
            Symptom::Longer | Symptom::Shorter => {
                write!(f, "responses have {got:.1} tokens, the reference's {bound:.1}")
            }
            Symptom::ScoreStd => {
                write!(f, "scores of a rollout deviate by {got:.2e}, less than {bound:.2e}")
            }
            Symptom::Hacking => {
                write!(f, "gold is {got:.3} below its best (allowed: {bound:.3}) while the score is above it")
            }
            Symptom::Cut => write!(
                f,
                "{:.0}% of responses were cut before they ended, more than {:.0}%",
                100.0 * got,
                100.0 * bound
            ),
            Symptom::KlCeiling => {
                write!(f, "KL(π ‖ π_ref) is {got:.2} nats per token, above {bound:.2}")
            }
            Symptom::KlBudget => {
                write!(f, "KL(π ‖ π_ref) is {got:.2} nats per response, over the budget of {bound:.2}")
            }
        }?;
        write!(f, ", since update {since} (now {update}). Try: {}", symptom.advice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_says_what_it_saw_since_when_and_what_to_try() {
        let alarm = Alarm { symptom: Symptom::Hacking, got: 0.4, bound: 0.15, since: 12, update: 16 };
        assert_eq!(
            alarm.to_string(),
            "gold is 0.400 below its best (allowed: 0.150) while the score is above it, since update 12 (now 16). Try: \
             the policy is cheating its reward model: stop at the best gold, raise β or lower the KL target, or train \
             the reward model on these responses"
        );
    }
}
