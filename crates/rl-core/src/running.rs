//! Running mean and standard deviation of rows, for normalising observations and returns.
//!
//! The statistics are part of a checkpoint (a resumed run must pick the same next action), and are frozen in
//! evaluation simply by not calling [`RunningMeanStd::update`].
//!
//! ```
//! use rl_core::running::RunningMeanStd;
//!
//! let mut seen = RunningMeanStd::new(1);
//! seen.update(&[1.0_f32, 2.0]);
//! seen.update(&[3.0_f32, 4.0]);
//! assert!((seen.mean()[0] - 2.5).abs() < 1e-3 && (seen.variance()[0] - 1.25).abs() < 1e-3);
//! let mut row = [2.5_f32];
//! seen.normalize(&mut row, 10.0);
//! assert!(row[0].abs() < 1e-3);
//! ```

use serde::{Deserialize, Serialize};

use crate::real::Real;

/// How many observations the starting guess (mean 0, variance 1) is worth, unless set.
pub const PRIOR_COUNT: f64 = 1e-4;

/// Added to the variance under the root of [`RunningMeanStd::normalize`].
const VARIANCE_FLOOR: f64 = 1e-8;

/// Mean and population variance of every column seen so far, in double precision.
///
/// Batches are merged by the parallel update, which loses no digits when the mean is large beside the spread:
///
/// `δ = μ_b − μ_a`,   `μ = μ_a + δ·n_b/n`,   `M = M_a + M_b + δ²·n_a·n_b/n`,   `σ² = M/n`.
/// Chan, Golub & LeVeque 1983, eq. 2.1
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunningMeanStd {
    mean: Vec<f64>,
    variance: Vec<f64>,
    count: f64,
}

impl RunningMeanStd {
    /// Statistics of rows of `dims` numbers, starting at mean 0 and variance 1 with the weight [`PRIOR_COUNT`].
    pub fn new(dims: usize) -> Self {
        Self::with_prior_count(dims, PRIOR_COUNT)
    }

    /// As [`RunningMeanStd::new`], with the starting guess worth `count` observations. Panics unless it is positive.
    pub fn with_prior_count(dims: usize, count: f64) -> Self {
        assert!(count > 0.0, "the prior count must be positive, but is {count}");
        Self { mean: vec![0.0; dims], variance: vec![1.0; dims], count }
    }

    /// Numbers per row, `D`.
    pub fn dims(&self) -> usize {
        self.mean.len()
    }

    /// Mean of every column, `[D]`.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Population variance of every column, `[D]`.
    pub fn variance(&self) -> &[f64] {
        &self.variance
    }

    /// Rows seen, plus the weight of the starting guess.
    pub fn count(&self) -> f64 {
        self.count
    }

    /// Takes in a batch of rows; no row changes nothing.
    ///
    /// # Shapes
    /// `rows: [B·D]`, row-major; a torn row panics.
    pub fn update<F: Real>(&mut self, rows: &[F]) {
        let dims = self.dims();
        assert!(
            dims > 0 && rows.len().is_multiple_of(dims),
            "{} numbers are not whole rows of {dims}",
            rows.len()
        );
        if rows.is_empty() {
            return;
        }
        let count = (rows.len() / dims) as f64;
        let total = self.count + count;
        for d in 0..dims {
            let column = || rows[d..].iter().step_by(dims).map(|x| x.to_f64());
            // Deviations from the first value, so that a constant column has exactly its mean and variance 0.
            let origin = rows[d].to_f64();
            let mean = origin + column().map(|x| x - origin).sum::<f64>() / count;
            let squares: f64 = column().map(|x| (x - mean).powi(2)).sum();

            let delta = mean - self.mean[d];
            self.mean[d] += delta * count / total;
            let merged = self.variance[d] * self.count + squares + delta * delta * self.count * count / total;
            self.variance[d] = merged / total;
        }
        self.count = total;
    }

    /// Replaces a row by `clip((x − μ)/√(σ² + 1e-8), −clip, clip)`.
    ///
    /// # Shapes
    /// `row: [D]`; another length panics.
    pub fn normalize<F: Real>(&self, row: &mut [F], clip: f64) {
        assert_eq!(row.len(), self.dims(), "a row has one number per column");
        for ((x, mean), variance) in row.iter_mut().zip(&self.mean).zip(&self.variance) {
            let z = (x.to_f64() - mean) / (variance + VARIANCE_FLOOR).sqrt();
            *x = F::from_f64(z.clamp(-clip, clip));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_columns_are_followed_apart() {
        let mut stats = RunningMeanStd::with_prior_count(2, 1e-12);
        stats.update(&[1.0_f32, 10.0, 3.0, 10.0]);
        assert!((stats.mean()[0] - 2.0).abs() < 1e-9 && (stats.mean()[1] - 10.0).abs() < 1e-9);
        assert!((stats.variance()[0] - 1.0).abs() < 1e-9 && stats.variance()[1].abs() < 1e-9);
    }

    #[test]
    fn normalising_shifts_scales_and_clips() {
        let mut stats = RunningMeanStd::with_prior_count(1, 1e-12);
        stats.update(&[1.0, 3.0]);
        for (x, want) in [(2.0_f64, 0.0), (3.0, 1.0), (100.0, 5.0), (-100.0, -5.0)] {
            let mut row = [x];
            stats.normalize(&mut row, 5.0);
            assert!((row[0] - want).abs() < 1e-6, "{row:?} is not {want}");
        }
    }

    #[test]
    fn an_empty_batch_changes_nothing() {
        let mut stats = RunningMeanStd::new(3);
        stats.update::<f32>(&[]);
        assert_eq!(stats, RunningMeanStd::new(3));
    }

    #[test]
    #[should_panic(expected = "5 numbers are not whole rows of 2")]
    fn a_torn_row_is_a_bug() {
        RunningMeanStd::new(2).update(&[0.0; 5]);
    }
}
