//! The loop: sample, update, report.

use rand_chacha::ChaCha8Rng;

use crate::error::UpdateError;
use crate::update::{MetricSink, Report, Update};

/// Runs `updates` updates: `next` samples data with the current model, `algorithm` learns from it.
///
/// The step number given to `sink` is the update's, counted from 1.
///
/// # Errors
/// The first [`UpdateError`], after which the model is gone.
pub fn run<M, U: Update<M>>(
    algorithm: &mut U,
    mut model: M,
    updates: u64,
    rng: &mut ChaCha8Rng,
    mut next: impl FnMut(&M, &mut ChaCha8Rng) -> U::Data,
    sink: &mut dyn MetricSink,
) -> Result<M, UpdateError> {
    for update in 1..=updates {
        let data = next(&model, rng);
        let (updated, report) = algorithm.update(model, &data, rng)?;
        model = updated;
        report.each(&mut |name, value| sink.record(update, name, value));
    }
    Ok(model)
}
