//! What can be wrong with something the *user* wrote: a map, a probability, a saved state.
//!
//! A wrong shape or an action that does not exist is a bug of the program and panics; these errors
//! are for data that came from outside, and each names the key, the value and the cure.

/// Why an environment could not be built or restored.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvError {
    /// A number outside its range.
    #[error("`{key}` must be in {range}, but is {got}")]
    OutOfRange {
        /// The parameter.
        key: &'static str,
        /// The allowed range, as text.
        range: &'static str,
        /// What was given.
        got: f64,
    },
    /// A row of transition probabilities that is not a (sub-)distribution.
    #[error(
        "the probabilities of action {action} in state {state} sum to {sum}; they must be non-negative and sum to at \
         most 1 (what is missing from 1 is the chance that the episode ends)"
    )]
    NotADistribution {
        /// The state of the row.
        state: usize,
        /// The action of the row.
        action: usize,
        /// The sum that was found (NaN if an entry is not a probability at all).
        sum: f64,
    },
    /// A character that means nothing in a grid map.
    #[error(
        "unknown cell `{got}` in line {line}, column {column}; a map is drawn with `S`, `G`, `X`, `#` and `.`"
    )]
    UnknownCell {
        /// The character.
        got: char,
        /// Line of the map, from 1.
        line: usize,
        /// Column of the map, from 1.
        column: usize,
    },
    /// Map lines of different lengths.
    #[error("line {line} of the map has {got} cells, but the first line has {want}; pad it with `#`")]
    RaggedMap {
        /// Line of the map, from 1.
        line: usize,
        /// Its length.
        got: usize,
        /// The length of the first line.
        want: usize,
    },
    /// A map without a cell that it cannot do without.
    #[error("the map has no `{cell}` ({meaning}); draw at least one")]
    MissingCell {
        /// The missing character.
        cell: char,
        /// What it stands for.
        meaning: &'static str,
    },
    /// A fixed point that was not reached.
    #[error(
        "value iteration still moves by {residual} after {sweeps} sweeps; use `gamma` < 1, or end episodes with \
         positive probability under every policy"
    )]
    NotConverged {
        /// Sweeps made.
        sweeps: usize,
        /// The largest change in the last sweep.
        residual: f64,
    },
    /// A saved state of another vector of environments.
    #[error(
        "the saved state holds {got} {what}, but this run has {want}; resume with the configuration it was saved by"
    )]
    StateMismatch {
        /// What is counted.
        what: &'static str,
        /// What the saved state holds.
        got: usize,
        /// What this run needs.
        want: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_where_and_what_would_do() {
        let text = EnvError::OutOfRange { key: "slip", range: "[0, 1]", got: 1.5 }.to_string();
        assert_eq!(text, "`slip` must be in [0, 1], but is 1.5");
        let text = EnvError::StateMismatch { what: "environments", got: 8, want: 4 }.to_string();
        assert!(text.contains("holds 8 environments, but this run has 4"), "{text}");
    }
}
