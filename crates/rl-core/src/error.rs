//! The errors that a user of the toolkit can cause: each names the key, the value and the cure.

/// A number or a choice that a formula of this crate cannot work with.
///
/// Wrong shapes are not here: they are bugs of the calling code, and panic.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CoreError {
    /// A number outside the range in which the formula means something.
    #[error("`{key}` must be in {range}, but is {got}")]
    OutOfRange {
        /// The key as the run file spells it, with its table: `kl.target`.
        key: &'static str,
        /// The range as mathematics writes it: `(0, ∞)`.
        range: &'static str,
        /// What was given.
        got: f64,
    },

    /// An adaptive KL controller that starts at β = 0: it multiplies β, so it would stay at 0 for ever.
    #[error(
        "`kl.beta` = {beta} never moves, because the controller multiplies it: start from a small positive number \
         such as 0.01, or set `kl.kind = \"fixed\"`"
    )]
    StuckBeta {
        /// The β that was given.
        beta: f64,
    },

    /// A KL controller whose first β is not within its own caps.
    #[error(
        "`kl.beta` = {beta} lies outside its caps `kl.min` = {min} and `kl.max` = {max}: move the caps, or start \
         between them"
    )]
    OutsideCaps {
        /// The β that was given.
        beta: f64,
        /// The lower cap.
        min: f64,
        /// The upper cap.
        max: f64,
    },

    /// The estimator k1 as a loss term: `E_π ∇log π = 0`, so its gradient is noise about zero.
    #[error(
        "the KL estimator `k1` cannot be a loss: its expected gradient on samples of the policy itself is zero; use \
         `k2` for the gradient of KL(π ‖ π_ref) or `k3` for that of KL(π_ref ‖ π)"
    )]
    NoGradientInK1,

    /// A decision in which no action is allowed.
    #[error(
        "row {row} of the action mask forbids all {actions} actions: at least one must be allowed in every row"
    )]
    NothingAllowed {
        /// The first such row.
        row: usize,
        /// The number of actions.
        actions: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: CoreError, text: &str) {
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn an_error_names_the_key_the_value_and_the_cure() {
        check(
            CoreError::OutOfRange { key: "kl.target", range: "(0, ∞)", got: 0.0 },
            "`kl.target` must be in (0, ∞), but is 0",
        );
        check(
            CoreError::StuckBeta { beta: 0.0 },
            "`kl.beta` = 0 never moves, because the controller multiplies it: start from a small positive number such \
             as 0.01, or set `kl.kind = \"fixed\"`",
        );
        check(
            CoreError::OutsideCaps { beta: 5.0, min: 0.001, max: 1.0 },
            "`kl.beta` = 5 lies outside its caps `kl.min` = 0.001 and `kl.max` = 1: move the caps, or start between \
             them",
        );
        check(
            CoreError::NoGradientInK1,
            "the KL estimator `k1` cannot be a loss: its expected gradient on samples of the policy itself is zero; \
             use `k2` for the gradient of KL(π ‖ π_ref) or `k3` for that of KL(π_ref ‖ π)",
        );
        check(
            CoreError::NothingAllowed { row: 3, actions: 4 },
            "row 3 of the action mask forbids all 4 actions: at least one must be allowed in every row",
        );
    }
}
