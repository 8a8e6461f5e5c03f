//! Backtracking line search: the longest of a few shrinking steps that improves without going too far.
//!
//! It is what TRPO adds to the natural gradient: the quadratic model proposes a step, and the true objective and the
//! true distance judge it.
//!
//! ```
//! use rl_core::line_search::{Backtracking, Search, Trial};
//!
//! // A full step goes too far; half of it improves and stays near.
//! let halving = Backtracking { shrink: 0.5, max_tries: 10 };
//! let search = halving.search(0.01, |scale| Trial { improvement: scale, distance: 0.03 * scale * scale });
//! assert!(matches!(search, Search::Accepted { scale: 0.5, tries: 2, .. }));
//! ```

use serde::{Deserialize, Serialize};

use crate::error::CoreError;

/// How to shrink, and when to give up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Backtracking {
    /// Every rejected scale is multiplied by this.
    pub shrink: f64,
    /// How many scales to try, the full step included.
    pub max_tries: usize,
}

impl Default for Backtracking {
    /// The numbers of OpenAI Spinning Up's TRPO: 10 tries, each 0.8 of the one before.
    fn default() -> Self {
        Self { shrink: 0.8, max_tries: 10 }
    }
}

/// What a trial step was found to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// New objective minus old.
    pub improvement: f64,
    /// How far the step went: for TRPO `KL(π_old ‖ π)`, in nats.
    pub distance: f64,
}

/// The verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Search {
    /// This multiple of the step improves and stays near.
    Accepted {
        /// `shrink^(tries − 1)`.
        scale: f64,
        /// Scales tried, the accepted one included.
        tries: usize,
        /// What the accepted step does.
        trial: Trial,
    },
    /// None did: keep the old parameters.
    Rejected {
        /// Scales tried.
        tries: usize,
    },
}

impl Backtracking {
    /// Checks the numbers of a run file.
    ///
    /// # Errors
    /// `shrink` must be in (0, 1), `max_tries` at least 1.
    pub fn validate(&self) -> Result<(), CoreError> {
        if !(self.shrink > 0.0 && self.shrink < 1.0) {
            return Err(CoreError::OutOfRange {
                key: "line_search.shrink",
                range: "(0, 1)",
                got: self.shrink,
            });
        }
        if self.max_tries == 0 {
            return Err(CoreError::OutOfRange { key: "line_search.max_tries", range: "[1, ∞)", got: 0.0 });
        }
        Ok(())
    }

    /// Tries the scales 1, `shrink`, `shrink²`, …, and takes the first for which **both** hold: `improvement > 0` and
    /// `distance ≤ max_distance`.   Schulman 2015 (TRPO), appendix C
    ///
    /// A NaN in a trial rejects it. The search holds no parameters: `attempt` sets them to `old + scale·step`, and after
    /// [`Search::Rejected`] the caller puts the old ones back.
    pub fn search(&self, max_distance: f64, mut attempt: impl FnMut(f64) -> Trial) -> Search {
        let mut scale = 1.0;
        for tries in 1..=self.max_tries {
            let trial = attempt(scale);
            if trial.improvement > 0.0 && trial.distance <= max_distance {
                return Search::Accepted { scale, tries, trial };
            }
            scale *= self.shrink;
        }
        Search::Rejected { tries: self.max_tries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALVES: Backtracking = Backtracking { shrink: 0.5, max_tries: 4 };

    #[test]
    fn the_first_step_that_improves_and_stays_near_is_taken() {
        let search = HALVES.search(0.1, |scale| Trial { improvement: scale, distance: scale * scale });
        let trial = Trial { improvement: 0.25, distance: 0.0625 };
        assert_eq!(search, Search::Accepted { scale: 0.25, tries: 3, trial });
    }

    #[test]
    fn improving_too_far_away_is_not_enough() {
        let search = HALVES.search(0.1, |scale| Trial { improvement: scale, distance: 1.0 });
        assert_eq!(search, Search::Rejected { tries: 4 });
    }

    #[test]
    fn staying_near_without_improving_is_not_enough() {
        for improvement in [0.0, -1.0, f64::NAN] {
            let search = HALVES.search(0.1, |_| Trial { improvement, distance: 0.0 });
            assert_eq!(search, Search::Rejected { tries: 4 });
        }
    }

    #[test]
    fn a_distance_that_is_nan_rejects() {
        let search = HALVES.search(0.1, |_| Trial { improvement: 1.0, distance: f64::NAN });
        assert_eq!(search, Search::Rejected { tries: 4 });
    }

    #[test]
    fn numbers_that_cannot_shrink_are_refused() {
        let error = Backtracking { shrink: 1.0, max_tries: 4 }.validate().unwrap_err();
        assert_eq!(error.to_string(), "`line_search.shrink` must be in (0, 1), but is 1");
        let error = Backtracking { shrink: 0.5, max_tries: 0 }.validate().unwrap_err();
        assert_eq!(error.to_string(), "`line_search.max_tries` must be in [1, ∞), but is 0");
        assert_eq!(Backtracking::default().validate(), Ok(()));
    }
}
