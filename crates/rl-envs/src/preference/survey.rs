//! What a dataset is like before anybody trains on it: ties, duplicates, contradictions, lengths.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash};

use super::Pair;

/// Lengths of answers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Lengths {
    /// Their mean.
    pub mean: f64,
    /// The longest.
    pub most: usize,
}

/// What [`Survey::of`] found in a set of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Survey {
    /// Pairs.
    pub pairs: usize,
    /// Pairs with two identical answers.
    pub ties: usize,
    /// Pairs that stood before, word for word.
    pub duplicates: usize,
    /// Pairs that stood before with the opposite preference.
    pub contradictions: usize,
    /// Different prompts.
    pub prompts: usize,
    /// Share of the pairs whose chosen answer is the longer one: far from ½ is a taste for length.
    pub chosen_longer: f64,
    /// Share of the pairs whose rejected answer is the longer one.
    pub rejected_longer: f64,
    /// Lengths of the chosen answers.
    pub chosen: Lengths,
    /// Lengths of the rejected answers.
    pub rejected: Lengths,
}

impl Survey {
    /// Surveys `pairs`; `length` measures an answer (characters, words, tokens).
    pub fn of(pairs: &[Pair], length: impl Fn(&str) -> usize) -> Self {
        let hasher = std::hash::RandomState::new();
        let key = |parts: &dyn Fn(&mut std::hash::DefaultHasher)| {
            use std::hash::Hasher;
            let mut state = hasher.build_hasher();
            parts(&mut state);
            state.finish()
        };
        let (mut seen, mut prompts) = (HashSet::new(), HashSet::new());
        let (mut survey, mut longer) = (Self { pairs: pairs.len(), ..Self::default() }, [0, 0]);
        let (mut chosen, mut rejected) = ((0, 0), (0, 0));
        for pair in pairs {
            let of = |first: &str, second: &str| key(&|state| (&pair.prompt, first, second).hash(state));
            let (this, opposite) = (of(&pair.chosen, &pair.rejected), of(&pair.rejected, &pair.chosen));
            survey.ties += usize::from(pair.is_tie());
            survey.contradictions += usize::from(!pair.is_tie() && seen.contains(&opposite));
            survey.duplicates += usize::from(!seen.insert(this));
            prompts.insert(key(&|state| pair.prompt.hash(state)));
            let (a, b) = (length(&pair.chosen), length(&pair.rejected));
            longer[0] += usize::from(a > b);
            longer[1] += usize::from(b > a);
            chosen = (chosen.0 + a, chosen.1.max(a));
            rejected = (rejected.0 + b, rejected.1.max(b));
        }
        let n = pairs.len().max(1) as f64;
        let lengths = |(sum, most): (usize, usize)| Lengths { mean: sum as f64 / n, most };
        survey.prompts = prompts.len();
        (survey.chosen_longer, survey.rejected_longer) = (longer[0] as f64 / n, longer[1] as f64 / n);
        (survey.chosen, survey.rejected) = (lengths(chosen), lengths(rejected));
        survey
    }
}
