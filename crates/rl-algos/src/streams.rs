//! Which stream of a run's seed serves what, so that a run is the same wherever it is put together.
//!
//! Environment `i` draws from stream `i` ([`rl_envs::VecEnv`]); the learner's streams are the last.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Draws the first weights.
pub fn weights(seed: u64) -> ChaCha8Rng {
    stream(seed, u64::MAX)
}

/// Draws actions, minibatches and dropout masks.
pub fn actions(seed: u64) -> ChaCha8Rng {
    stream(seed, u64::MAX - 1)
}

/// Draws a reward model's comparisons and first weights.
pub fn judge(seed: u64) -> ChaCha8Rng {
    stream(seed, u64::MAX - 2)
}

/// Draws the order in which a dataset's rows are seen in this epoch.
pub fn epoch(seed: u64, epoch: u64) -> ChaCha8Rng {
    stream(seed, (1 << 48) + epoch)
}

fn stream(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    #[test]
    fn streams_of_one_seed_differ_and_are_the_same_again() {
        assert_ne!(weights(1).next_u64(), actions(1).next_u64());
        assert_ne!(weights(1).next_u64(), weights(2).next_u64());
        assert_eq!(weights(1).next_u64(), weights(1).next_u64());
    }
}
