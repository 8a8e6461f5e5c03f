//! Numbers that change over a run: learning rate, clip range, entropy bonus.

use std::f64::consts::PI;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::error::CoreError;

/// A number as a function of the progress `p` of a run, from 0 (its first update) towards 1 (its end).
///
/// In a run file a plain number is [`Schedule::Constant`]; anything else is a table:
///
/// ```toml
/// clip = 0.2
/// learning_rate = { kind = "linear", from = 3e-4, to = 0.0 }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Schedule {
    /// The same number throughout.
    Constant(f64),
    /// `from + (to − from)·p`. To zero: what classic PPO does with the learning rate.
    Linear {
        /// The first number.
        from: f64,
        /// The number at the end, which the last update does not quite reach.
        to: f64,
    },
    /// `to + (from − to)·(1 + cos πp)/2`: slow at both ends.   Loshchilov 2017, eq. 5
    Cosine {
        /// The first number.
        from: f64,
        /// The number at the end.
        to: f64,
    },
    /// Rises from 0 to `peak` over the first `warmup` of the run, then falls linearly to `to`.
    WarmupLinear {
        /// The share of the run that is warm-up, in `[0, 1)`.
        warmup: f64,
        /// The highest number.
        peak: f64,
        /// The number at the end.
        to: f64,
    },
    /// `from + (to − from)·p/over` over the first `over` of the run, then `to`: how ε-greedy exploration ends.   Mnih
    /// 2015
    Ramp {
        /// The first number.
        from: f64,
        /// The number from `over` on.
        to: f64,
        /// The share of the run in which it moves, in `(0, 1]`.
        over: f64,
    },
    /// Rises from 0 to `peak` over the first `warmup` of the run, then falls to `to` as half a cosine.   GPT-3, app. B
    WarmupCosine {
        /// The share of the run that is warm-up, in `[0, 1)`.
        warmup: f64,
        /// The highest number.
        peak: f64,
        /// The number at the end.
        to: f64,
    },
}

impl Schedule {
    /// The number at progress `p`: update `k` of `N` (counted from 0) has `p = k/N`, so the last one is still before
    /// the end. Outside `[0, 1]` (or NaN, as 0/0) the nearest end counts.
    pub fn at(&self, progress: f64) -> f64 {
        let p = if progress.is_nan() { 0.0 } else { progress.clamp(0.0, 1.0) };
        match *self {
            Self::Constant(value) => value,
            Self::Linear { from, to } => from + (to - from) * p,
            Self::Ramp { from, to, over } => from + (to - from) * (p / over).min(1.0),
            Self::Cosine { from, to } => to + (from - to) * 0.5 * (1.0 + (PI * p).cos()),
            Self::WarmupLinear { warmup, peak, .. } | Self::WarmupCosine { warmup, peak, .. }
                if p < warmup =>
            {
                peak * p / warmup
            }
            Self::WarmupLinear { warmup, peak, to } if warmup < 1.0 => {
                peak + (to - peak) * (p - warmup) / (1.0 - warmup)
            }
            Self::WarmupCosine { warmup, peak, to } if warmup < 1.0 => {
                Self::Cosine { from: peak, to }.at((p - warmup) / (1.0 - warmup))
            }
            Self::WarmupLinear { peak, .. } | Self::WarmupCosine { peak, .. } => peak,
        }
    }

    /// Checks the numbers of a run file; `key` is the name of the setting there.
    ///
    /// # Errors
    /// Every number must be finite and not negative, `warmup` in `[0, 1)`.
    pub fn validate(&self, key: &'static str) -> Result<(), CoreError> {
        let (one, two) = match *self {
            Self::Constant(value) => (value, value),
            Self::Linear { from, to } | Self::Cosine { from, to } => (from, to),
            Self::WarmupLinear { warmup, peak, to } | Self::WarmupCosine { warmup, peak, to } => {
                if !(0.0..1.0).contains(&warmup) {
                    return Err(CoreError::OutOfRange { key, range: "[0, 1) in its `warmup`", got: warmup });
                }
                (peak, to)
            }
            Self::Ramp { from, to, over } => {
                if !(over > 0.0 && over <= 1.0) {
                    return Err(CoreError::OutOfRange { key, range: "(0, 1] in its `over`", got: over });
                }
                (from, to)
            }
        };
        match [one, two].into_iter().find(|x| !(x.is_finite() && *x >= 0.0)) {
            Some(got) => Err(CoreError::OutOfRange { key, range: "[0, ∞)", got }),
            None => Ok(()),
        }
    }
}

impl From<f64> for Schedule {
    fn from(value: f64) -> Self {
        Self::Constant(value)
    }
}

/// The table form, for serde.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Table {
    Constant { value: f64 },
    Linear { from: f64, to: f64 },
    Cosine { from: f64, to: f64 },
    WarmupLinear { warmup: f64, peak: f64, to: f64 },
    Ramp { from: f64, to: f64, over: f64 },
    WarmupCosine { warmup: f64, peak: f64, to: f64 },
}

impl From<Table> for Schedule {
    fn from(table: Table) -> Self {
        match table {
            Table::Constant { value } => Self::Constant(value),
            Table::Linear { from, to } => Self::Linear { from, to },
            Table::Cosine { from, to } => Self::Cosine { from, to },
            Table::WarmupLinear { warmup, peak, to } => Self::WarmupLinear { warmup, peak, to },
            Table::Ramp { from, to, over } => Self::Ramp { from, to, over },
            Table::WarmupCosine { warmup, peak, to } => Self::WarmupCosine { warmup, peak, to },
        }
    }
}

impl Serialize for Schedule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Constant(value) => serializer.serialize_f64(value),
            Self::Linear { from, to } => Table::Linear { from, to }.serialize(serializer),
            Self::Cosine { from, to } => Table::Cosine { from, to }.serialize(serializer),
            Self::WarmupLinear { warmup, peak, to } => {
                Table::WarmupLinear { warmup, peak, to }.serialize(serializer)
            }
            Self::Ramp { from, to, over } => Table::Ramp { from, to, over }.serialize(serializer),
            Self::WarmupCosine { warmup, peak, to } => {
                Table::WarmupCosine { warmup, peak, to }.serialize(serializer)
            }
        }
    }
}

/// By hand instead of `#[serde(untagged)]`, whose errors do not say what is wrong with a table.
impl<'de> Deserialize<'de> for Schedule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrTable;

        impl<'de> Visitor<'de> for NumberOrTable {
            type Value = Schedule;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a table such as { kind = \"linear\", from = 3e-4, to = 0.0 }")
            }

            fn visit_f64<E>(self, value: f64) -> Result<Schedule, E> {
                Ok(Schedule::Constant(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Schedule, E> {
                Ok(Schedule::Constant(value as f64))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Schedule, E> {
                Ok(Schedule::Constant(value as f64))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Schedule, A::Error> {
                Table::deserialize(MapAccessDeserializer::new(map)).map(Schedule::from)
            }
        }

        deserializer.deserialize_any(NumberOrTable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Run {
        rate: Schedule,
    }

    #[track_caller]
    fn read(text: &str) -> Schedule {
        toml::from_str::<Run>(text).unwrap().rate
    }

    #[track_caller]
    fn refused(text: &str, why: &str) {
        let error = toml::from_str::<Run>(text).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn a_linear_rate_is_what_is_left_of_the_run() {
        let rate = Schedule::Linear { from: 3e-4, to: 0.0 };
        for k in 0..10 {
            assert!((rate.at(f64::from(k) / 10.0) - 3e-4 * (1.0 - f64::from(k) / 10.0)).abs() < 1e-18);
        }
        assert!(rate.at(0.9) > 0.0);
    }

    #[test]
    fn a_warm_up_rises_to_its_peak_and_falls_to_its_end() {
        let rate = Schedule::WarmupLinear { warmup: 0.2, peak: 1.0, to: 0.5 };
        for (progress, want) in [(0.0, 0.0), (0.1, 0.5), (0.2, 1.0), (0.6, 0.75), (1.0, 0.5)] {
            assert!((rate.at(progress) - want).abs() < 1e-12, "at {progress}: {}", rate.at(progress));
        }
        assert_eq!(Schedule::WarmupLinear { warmup: 0.0, peak: 1.0, to: 0.5 }.at(0.0), 1.0);
    }

    #[test]
    fn a_ramp_arrives_early_and_stays() {
        let epsilon = Schedule::Ramp { from: 1.0, to: 0.04, over: 0.16 };
        for (progress, want) in [(0.0, 1.0), (0.08, 0.52), (0.16, 0.04), (0.5, 0.04), (1.0, 0.04)] {
            assert!((epsilon.at(progress) - want).abs() < 1e-12, "at {progress}: {}", epsilon.at(progress));
        }
        let error = Schedule::Ramp { from: 1.0, to: 0.0, over: 0.0 }.validate("epsilon").unwrap_err();
        assert_eq!(error.to_string(), "`epsilon` must be in (0, 1] in its `over`, but is 0");
        assert_eq!(read("rate = { kind = \"ramp\", from = 1, to = 0.04, over = 0.16 }"), epsilon);
    }

    #[test]
    fn a_cosine_is_half_way_at_half_time() {
        let rate = Schedule::Cosine { from: 1.0, to: 0.0 };
        assert!((rate.at(0.5) - 0.5).abs() < 1e-12);
        assert_eq!(rate.at(f64::NAN), 1.0);
    }

    #[test]
    fn a_run_file_gives_a_number_or_a_table() {
        assert_eq!(read("rate = 0.2"), Schedule::Constant(0.2));
        assert_eq!(read("rate = 1"), Schedule::Constant(1.0));
        let linear = Schedule::Linear { from: 3e-4, to: 0.0 };
        assert_eq!(read("rate = { kind = \"linear\", from = 3e-4, to = 0 }"), linear);
        assert_eq!(read("[rate]\nkind = \"constant\"\nvalue = 0.5"), Schedule::Constant(0.5));
    }

    #[test]
    fn what_is_wrong_with_a_table_is_said() {
        refused(
            "rate = \"fast\"",
            "expected a number or a table such as { kind = \"linear\", from = 3e-4, to = 0.0 }",
        );
        refused("rate = { kind = \"linear\", from = 1.0 }", "missing field `to`");
        refused("rate = { kind = \"linear\", from = 1.0, to = 0.0, too = 1.0 }", "unknown field `too`");
        refused("rate = { kind = \"step\" }", "unknown variant `step`, expected one of `constant`, `linear`");
    }

    #[test]
    fn negative_rates_are_refused_by_name() {
        let error = Schedule::Linear { from: 1.0, to: -0.5 }.validate("ppo.clip").unwrap_err();
        assert_eq!(error.to_string(), "`ppo.clip` must be in [0, ∞), but is -0.5");
        let error =
            Schedule::WarmupLinear { warmup: 1.0, peak: 1.0, to: 0.0 }.validate("dpo.rate").unwrap_err();
        assert_eq!(error.to_string(), "`dpo.rate` must be in [0, 1) in its `warmup`, but is 1");
        assert_eq!(Schedule::Constant(0.2).validate("ppo.clip"), Ok(()));
    }
}
