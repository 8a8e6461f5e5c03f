//! The scalars of an update's minibatches: kept on the device, read back in one transfer.

use burn::tensor::Tensor;

use crate::error::UpdateError;

/// `K` named numbers per minibatch.
pub(crate) struct Scalars<const K: usize> {
    names: [&'static str; K],
    values: Vec<Tensor<1>>,
}

impl<const K: usize> Scalars<K> {
    /// No minibatch yet.
    pub(crate) fn new(names: [&'static str; K]) -> Self {
        Self { names, values: Vec::new() }
    }

    /// Adds one minibatch's numbers, `[1]` each, in the order of the names.
    pub(crate) fn push(&mut self, row: [Tensor<1>; K]) {
        self.values.extend(row);
    }

    /// Each number's mean over the minibatches. Reads back once.
    ///
    /// # Errors
    /// Names the first number that is not finite, in update `update`, of `per_epoch` minibatches an
    /// epoch.
    pub(crate) fn means(self, update: u64, per_epoch: usize) -> Result<[f64; K], UpdateError> {
        let rows = self.values.len() / K;
        let values: Vec<f64> =
            Tensor::cat(self.values, 0).into_data().try_into_vec_as().expect("scalars are floats");
        let mut means = [0.0; K];
        for (i, row) in values.chunks_exact(K).enumerate() {
            for (k, &value) in row.iter().enumerate() {
                if !value.is_finite() {
                    return Err(UpdateError::NonFinite {
                        what: self.names[k],
                        value,
                        update,
                        epoch: i / per_epoch.max(1) + 1,
                    });
                }
                means[k] += value / rows as f64;
            }
        }
        Ok(means)
    }
}
