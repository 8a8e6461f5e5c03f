//! Controllers of β, the price of a nat of KL: fixed, two band rules and a proportional one.
//!
//! The objective is `E[reward] − β·KL`. After each update the controller sees the measured KL and returns itself with
//! the next β: above the target a nat becomes dearer, below it cheaper. Feed it the KL that the reward charges
//! (`KL(π ‖ π_ref)`, summed per sequence and averaged over all sequences), or in PPO-penalty `KL(π_old ‖ π)`, whose
//! unit is nats per decision: target and measurement must be of the same kind.
//!
//! β is part of a run's state: log it at every update and keep it in the checkpoint (the controller is serializable).
//!
//! ```
//! use rl_core::KlController;
//!
//! let controller = KlController::band(0.1, 6.0);
//! assert!((controller.after(12.1).beta() - 0.15).abs() < 1e-12); // KL beyond 2·6: a nat costs 1.5 times as much
//! assert!((controller.after(2.9).beta() - 0.1 / 1.5).abs() < 1e-12); // below 6/2: it costs less
//! assert_eq!(controller.after(7.0).beta(), 0.1); // within the band
//! assert!(KlController::band(0.0, 6.0).validate().is_err()); // a multiplied 0 never moves
//! ```

use serde::{Deserialize, Serialize};

use crate::error::CoreError;

/// Lower cap of β unless set: below it the penalty is nothing beside a reward of order 1, and climbing back would
/// take too many updates.
pub const MIN_BETA: f64 = 1e-6;

/// Upper cap of β unless set: above it a nat costs a thousand rewards, and the policy is the reference.
pub const MAX_BETA: f64 = 1e3;

/// Gain of [`KlController::Proportional`] unless set: the `K_β` of Ziegler 2019.
pub const ZIEGLER_GAIN: f64 = 0.1;

/// The proportional rule never reacts to more than this relative error: Ziegler 2019, §2.2.
const MAX_RELATIVE_ERROR: f64 = 0.2;

/// A rule that moves β after each measured KL. KL and `target` are in nats, β in reward per nat.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum KlController {
    /// β stays where it is; 0 switches the penalty off.
    Fixed {
        /// The coefficient.
        beta: f64,
    },
    /// `KL > 2·target → β·1.5`, `KL < target/2 → β/1.5`, otherwise β stays. A slow rule with a wide dead band.
    Band {
        /// The coefficient now.
        beta: f64,
        /// The KL to hold.
        target: f64,
        /// Lower cap of β.
        #[serde(default = "min_beta")]
        min: f64,
        /// Upper cap of β.
        #[serde(default = "max_beta")]
        max: f64,
    },
    /// `KL > 1.5·target → 2β`, `KL < target/1.5 → β/2`, otherwise β stays.   Schulman 2017 (PPO), §4
    Schulman {
        /// The coefficient now.
        beta: f64,
        /// The KL to hold.
        target: f64,
        /// Lower cap of β.
        #[serde(default = "min_beta")]
        min: f64,
        /// Upper cap of β.
        #[serde(default = "max_beta")]
        max: f64,
    },
    /// `β·(1 + gain·clip(KL/target − 1, −0.2, 0.2))`.   Ziegler 2019, §2.2
    Proportional {
        /// The coefficient now.
        beta: f64,
        /// The KL to hold.
        target: f64,
        /// Strength of the reaction; see [`KlController::with_horizon`] for the other way to state it.
        #[serde(default = "ziegler_gain")]
        gain: f64,
        /// Lower cap of β.
        #[serde(default = "min_beta")]
        min: f64,
        /// Upper cap of β.
        #[serde(default = "max_beta")]
        max: f64,
    },
}

fn min_beta() -> f64 {
    MIN_BETA
}

fn max_beta() -> f64 {
    MAX_BETA
}

fn ziegler_gain() -> f64 {
    ZIEGLER_GAIN
}

impl KlController {
    /// A constant β.
    pub fn fixed(beta: f64) -> Self {
        Self::Fixed { beta }
    }

    /// The rule with the factor-2 band and steps of 1.5, with the default caps.
    pub fn band(beta: f64, target: f64) -> Self {
        Self::Band { beta, target, min: MIN_BETA, max: MAX_BETA }
    }

    /// The rule of the PPO paper, with the default caps.
    pub fn schulman(beta: f64, target: f64) -> Self {
        Self::Schulman { beta, target, min: MIN_BETA, max: MAX_BETA }
    }

    /// Ziegler's rule with his gain of 0.1 and the default caps.
    pub fn proportional(beta: f64, target: f64) -> Self {
        Self::Proportional { beta, target, gain: ZIEGLER_GAIN, min: MIN_BETA, max: MAX_BETA }
    }

    /// Ziegler's rule with the gain of his code: `gain = samples/horizon`, `samples` sequences per update.
    ///
    /// Two updates of 256 sequences then react as one of 512.
    ///
    /// # Errors
    /// [`CoreError::OutOfRange`] if the horizon is not positive and finite, or `samples` is 0.
    pub fn with_horizon(beta: f64, target: f64, samples: usize, horizon: f64) -> Result<Self, CoreError> {
        positive("kl.horizon", horizon)?;
        positive("kl.samples", samples as f64)?;
        let gain = samples as f64 / horizon;
        Ok(Self::Proportional { beta, target, gain, min: MIN_BETA, max: MAX_BETA })
    }

    /// The coefficient now, in reward per nat.
    pub fn beta(&self) -> f64 {
        match *self {
            Self::Fixed { beta }
            | Self::Band { beta, .. }
            | Self::Schulman { beta, .. }
            | Self::Proportional { beta, .. } => beta,
        }
    }

    /// The KL it tries to hold, in nats, if it tries.
    pub fn target(&self) -> Option<f64> {
        match *self {
            Self::Fixed { .. } => None,
            Self::Band { target, .. } | Self::Schulman { target, .. } | Self::Proportional { target, .. } => {
                Some(target)
            }
        }
    }

    /// The controller after an update in which `kl` nats were measured.
    ///
    /// β stays within its caps whatever is measured. An estimate may be negative by chance and counts as a small KL;
    /// `+∞` (the policy does what its reference never does) raises β by one step; NaN and `−∞` are no measurements and
    /// leave β alone.
    #[must_use = "the controller with the new β is returned"]
    pub fn after(self, kl: f64) -> Self {
        if kl.is_nan() || kl == f64::NEG_INFINITY {
            return self;
        }
        match self {
            Self::Fixed { .. } => self,
            Self::Band { beta, target, min, max } => {
                Self::Band { beta: capped(beta * band(kl, target, 2.0, 1.5), min, max), target, min, max }
            }
            Self::Schulman { beta, target, min, max } => {
                Self::Schulman { beta: capped(beta * band(kl, target, 1.5, 2.0), min, max), target, min, max }
            }
            Self::Proportional { beta, target, gain, min, max } => {
                let error = (kl / target - 1.0).clamp(-MAX_RELATIVE_ERROR, MAX_RELATIVE_ERROR);
                Self::Proportional {
                    beta: capped(beta * (1.0 + gain * error), min, max),
                    target,
                    gain,
                    min,
                    max,
                }
            }
        }
    }

    /// The controller with β multiplied by `factor`, within its caps: a nat made dearer by hand.
    #[must_use = "the controller with the new β is returned"]
    pub fn scaled(self, factor: f64) -> Self {
        match self {
            Self::Fixed { beta } => Self::Fixed { beta: capped(beta * factor, 0.0, MAX_BETA) },
            Self::Band { beta, target, min, max } => {
                Self::Band { beta: capped(beta * factor, min, max), target, min, max }
            }
            Self::Schulman { beta, target, min, max } => {
                Self::Schulman { beta: capped(beta * factor, min, max), target, min, max }
            }
            Self::Proportional { beta, target, gain, min, max } => {
                Self::Proportional { beta: capped(beta * factor, min, max), target, gain, min, max }
            }
        }
    }

    /// Checks the numbers of a run file.
    ///
    /// # Errors
    /// A fixed β must be finite and not negative. An adaptive controller needs `target` > 0, `gain` in (0, 5), finite
    /// caps `0 < min ≤ max` and a β between them; β = 0 has its own error, since a multiplied 0 never moves.
    pub fn validate(&self) -> Result<(), CoreError> {
        let (beta, target, min, max) = match *self {
            Self::Fixed { beta } => {
                let valid = beta.is_finite() && beta >= 0.0;
                return valid.then_some(()).ok_or(CoreError::OutOfRange {
                    key: "kl.beta",
                    range: "[0, ∞)",
                    got: beta,
                });
            }
            Self::Band { beta, target, min, max } | Self::Schulman { beta, target, min, max } => {
                (beta, target, min, max)
            }
            Self::Proportional { beta, target, gain, min, max } => {
                // At a gain of 5 an error of −0.2 would make β zero or negative.
                if !(gain > 0.0 && gain * MAX_RELATIVE_ERROR < 1.0) {
                    return Err(CoreError::OutOfRange { key: "kl.gain", range: "(0, 5)", got: gain });
                }
                (beta, target, min, max)
            }
        };
        positive("kl.target", target)?;
        positive("kl.min", min)?;
        positive("kl.max", max)?;
        if beta == 0.0 {
            return Err(CoreError::StuckBeta { beta });
        }
        positive("kl.beta", beta)?;
        if !(min <= beta && beta <= max) {
            return Err(CoreError::OutsideCaps { beta, min, max });
        }
        Ok(())
    }
}

/// What β is multiplied by: `step` above `target·width`, `1/step` below `target/width`, 1 between.
///
/// The comparisons are strict, and exact: `mul_add` rounds once, so the sign of `kl − target·width` is right even where
/// the product or the quotient would round onto `kl`.
fn band(kl: f64, target: f64, width: f64, step: f64) -> f64 {
    if target.mul_add(-width, kl) > 0.0 {
        step
    } else if kl.mul_add(width, -target) < 0.0 {
        1.0 / step
    } else {
        1.0
    }
}

/// `f64::clamp` panics if the caps cross; a controller that nobody validated must not.
fn capped(beta: f64, min: f64, max: f64) -> f64 {
    beta.max(min).min(max)
}

fn positive(key: &'static str, got: f64) -> Result<(), CoreError> {
    let valid = got.is_finite() && got > 0.0;
    valid.then_some(()).ok_or(CoreError::OutOfRange { key, range: "(0, ∞)", got })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(controller: KlController, text: &str) {
        assert_eq!(controller.validate().unwrap_err().to_string(), text);
    }

    #[test]
    fn the_horizon_form_has_the_hand_computed_step() {
        let controller = KlController::with_horizon(0.2, 6.0, 256, 10_000.0).unwrap();
        assert!((controller.after(9.0).beta() - 0.201024).abs() < 1e-12);
    }

    #[test]
    fn a_band_is_strict_at_its_edges() {
        let controller = KlController::band(0.3, 1.0);
        assert_eq!(controller.after(2.0).beta(), 0.3);
        assert_eq!(controller.after(0.5).beta(), 0.3);
        assert!((controller.after(2.1).beta() - 0.45).abs() < 1e-12);
        assert!((controller.after(0.4).beta() - 0.2).abs() < 1e-12);
        let controller = KlController::schulman(0.3, 1.0);
        assert_eq!(controller.after(1.5).beta(), 0.3);
        assert_eq!(controller.after(1.6).beta(), 0.6);
        assert_eq!(controller.after(0.6).beta(), 0.15);
        // The largest double below 4/3, at which 2/1.5 and 1.5·kl both round to a tie.
        assert_eq!(KlController::schulman(0.3, 2.0).after(1.3333333333333333).beta(), 0.15);
    }

    #[test]
    fn what_is_no_measurement_leaves_beta_alone() {
        for controller in [
            KlController::band(0.3, 1.0),
            KlController::schulman(0.3, 1.0),
            KlController::proportional(0.3, 1.0),
        ] {
            assert_eq!(controller.after(f64::NAN), controller);
            assert_eq!(controller.after(f64::NEG_INFINITY), controller);
            assert!(controller.after(f64::INFINITY).beta() > 0.3);
            assert!(controller.after(-0.1).beta() < 0.3);
        }
    }

    #[test]
    fn a_fixed_beta_stays() {
        assert_eq!(KlController::fixed(0.1).after(1e9).beta(), 0.1);
        assert_eq!(KlController::fixed(0.0).validate(), Ok(()));
        refused(KlController::fixed(-0.1), "`kl.beta` must be in [0, ∞), but is -0.1");
        refused(KlController::fixed(f64::NAN), "`kl.beta` must be in [0, ∞), but is NaN");
    }

    #[test]
    fn numbers_that_cannot_control_are_refused() {
        refused(KlController::band(0.1, 0.0), "`kl.target` must be in (0, ∞), but is 0");
        refused(KlController::schulman(0.1, f64::INFINITY), "`kl.target` must be in (0, ∞), but is inf");
        refused(
            KlController::proportional(0.0, 6.0),
            "`kl.beta` = 0 never moves, because the controller multiplies it: start from a small positive number such \
             as 0.01, or set `kl.kind = \"fixed\"`",
        );
        refused(
            KlController::Proportional { beta: 0.1, target: 6.0, gain: 5.0, min: 1e-3, max: 1.0 },
            "`kl.gain` must be in (0, 5), but is 5",
        );
        refused(
            KlController::Band { beta: 0.1, target: 6.0, min: 0.5, max: 1.0 },
            "`kl.beta` = 0.1 lies outside its caps `kl.min` = 0.5 and `kl.max` = 1: move the caps, or start between \
             them",
        );
        refused(
            KlController::Band { beta: 0.1, target: 6.0, min: 0.0, max: 1.0 },
            "`kl.min` must be in (0, ∞), but is 0",
        );
        let error = KlController::with_horizon(0.2, 6.0, 256, 0.0).unwrap_err();
        assert_eq!(error.to_string(), "`kl.horizon` must be in (0, ∞), but is 0");
    }

    #[test]
    fn a_run_file_states_only_what_differs() {
        let read: KlController = toml::from_str("kind = \"band\"\nbeta = 0.01\ntarget = 0.02").unwrap();
        assert_eq!(read, KlController::band(0.01, 0.02));
        let read: KlController = toml::from_str("kind = \"proportional\"\nbeta = 0.2\ntarget = 6.0").unwrap();
        assert_eq!(read, KlController::proportional(0.2, 6.0));
        let error =
            toml::from_str::<KlController>("kind = \"fixed\"\nbeta = 0.01\ntarget = 1.0").unwrap_err();
        assert!(error.to_string().contains("unknown field `target`"), "{error}");
    }
}
