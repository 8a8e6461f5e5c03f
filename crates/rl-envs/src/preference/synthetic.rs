//! Preferences with a known true reward: Bradley–Terry noise, flipped labels, a taste for length.

use rand::{Rng, RngExt};

/// Which of two answers was preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preferred {
    /// The first.
    First,
    /// The second.
    Second,
}

/// A judge with a true reward and known faults.
///
/// ```text
/// p(y₁ ≻ y₂) = (1 − ε)·σ(x) + ε·σ(−x),    x = (r₁ − r₂)/τ + c·(|y₁| − |y₂|)
/// ```
///
/// Bradley & Terry 1952 with temperature τ, flip rate ε and length bias c.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SyntheticPreferences {
    /// τ > 0: how far apart rewards must be to be told apart.
    pub temperature: f64,
    /// ε in [0, ½]: the share of labels that are flipped.
    pub flip: f64,
    /// c: log-odds per token of length.
    pub length_bias: f64,
}

impl Default for SyntheticPreferences {
    fn default() -> Self {
        Self { temperature: 1.0, flip: 0.0, length_bias: 0.0 }
    }
}

impl SyntheticPreferences {
    /// The probability that the first answer is preferred, for the two true rewards and lengths.
    pub fn probability(&self, rewards: [f64; 2], lengths: [usize; 2]) -> f64 {
        let x = (rewards[0] - rewards[1]) / self.temperature
            + self.length_bias * (lengths[0] as f64 - lengths[1] as f64);
        let right = 1.0 / (1.0 + (-x).exp());
        (1.0 - self.flip) * right + self.flip * (1.0 - right)
    }

    /// One judgement.
    pub fn judge<R: Rng + ?Sized>(&self, rewards: [f64; 2], lengths: [usize; 2], rng: &mut R) -> Preferred {
        let first = rng.random::<f64>() < self.probability(rewards, lengths);
        if first { Preferred::First } else { Preferred::Second }
    }
}
