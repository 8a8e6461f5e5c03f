//! Whether a reward model is as sure as it is right, on the host.

/// One bar of a calibration curve: comparisons of which the model is about equally sure.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct CalibrationBin {
    /// Comparisons in it.
    pub count: usize,
    /// Mean of the chances that the model gives to its own verdicts.
    pub confidence: f64,
    /// Share of its verdicts that are right; a tie is half right.
    pub right: f64,
}

/// A calibration curve over margins `Δ = r_w − r_l`: the model's verdict has the chance `σ(|Δ|) ∈ [½, 1]`, and is right
/// where Δ > 0.   Guo 2017, §2
///
/// # Panics
/// Without bins.
///
/// ```
/// use rl_core::preference::{Ensemble, calibration, expected_calibration_error};
///
/// let sure_and_right = calibration(&[9.0, 9.5, 12.0], 10);
/// assert!(expected_calibration_error(&sure_and_right) < 1e-3);
/// assert_eq!(Ensemble::Min.combine(&[0.4, -1.0, 0.2]), -1.0);
/// ```
pub fn calibration(margins: &[f64], bins: usize) -> Vec<CalibrationBin> {
    assert!(bins > 0, "a curve needs bins");
    let mut curve = vec![CalibrationBin::default(); bins];
    for &margin in margins {
        let confidence = 1.0 / (1.0 + (-margin.abs()).exp());
        let at = ((confidence - 0.5) * 2.0 * bins as f64) as usize;
        let bin = &mut curve[at.min(bins - 1)];
        bin.count += 1;
        bin.confidence += confidence;
        bin.right += if margin == 0.0 { 0.5 } else { f64::from(u8::from(margin > 0.0)) };
    }
    for bin in curve.iter_mut().filter(|bin| bin.count > 0) {
        bin.confidence /= bin.count as f64;
        bin.right /= bin.count as f64;
    }
    curve
}

/// The expected calibration error `Σ_b (n_b/n)·|right_b − confidence_b|`; 0 for no comparison.   Guo 2017, eq. 3
pub fn expected_calibration_error(curve: &[CalibrationBin]) -> f64 {
    let n: usize = curve.iter().map(|bin| bin.count).sum();
    let miss = |bin: &CalibrationBin| bin.count as f64 * (bin.right - bin.confidence).abs();
    curve.iter().map(miss).sum::<f64>() / n.max(1) as f64
}

/// How the scores of several reward models become one.   Coste 2024, §3
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Ensemble {
    /// Their mean.
    Mean,
    /// The least: what even the strictest grants.
    Min,
    /// Mean − k·std (unbiased): less where they disagree.
    MeanMinusStd {
        /// k ≥ 0.
        k: f64,
    },
}

impl Ensemble {
    /// One score of each member's.
    ///
    /// # Panics
    /// Without members.
    pub fn combine(self, scores: &[f64]) -> f64 {
        assert!(!scores.is_empty(), "an ensemble has members");
        let n = scores.len() as f64;
        let mean = scores.iter().sum::<f64>() / n;
        match self {
            Self::Mean => mean,
            Self::Min => scores.iter().copied().fold(f64::INFINITY, f64::min),
            Self::MeanMinusStd { k } => {
                let squares: f64 = scores.iter().map(|score| (score - mean).powi(2)).sum();
                mean - k * (squares / (n - 1.0).max(1.0)).sqrt()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_is_as_sure_as_it_is_right_has_no_error() {
        // Three in four right at a confidence of ¾: σ(ln 3) = ¾.
        let margin = 3f64.ln();
        let curve = calibration(&[margin, margin, margin, -margin], 10);
        let bin = curve.iter().find(|bin| bin.count == 4).unwrap();
        assert!((bin.confidence - 0.75).abs() < 1e-12 && bin.right == 0.75);
        assert!(expected_calibration_error(&curve) < 1e-12);
        assert!((expected_calibration_error(&calibration(&[-margin; 4], 10)) - 0.75).abs() < 1e-12);
    }

    #[test]
    fn a_tie_is_half_right_and_nothing_has_no_error() {
        assert_eq!(expected_calibration_error(&calibration(&[0.0; 7], 5)), 0.0);
        assert_eq!(expected_calibration_error(&calibration(&[], 5)), 0.0);
        let sure = calibration(&[1e4, -1e4], 5);
        assert_eq!((sure[4].count, sure[4].confidence, sure[4].right), (2, 1.0, 0.5));
    }

    #[test]
    fn an_ensemble_never_promises_more_than_its_mean() {
        let scores = [1.0, 2.0, 6.0];
        let combined = [Ensemble::Mean, Ensemble::MeanMinusStd { k: 1.0 }, Ensemble::Min]
            .map(|ensemble| ensemble.combine(&scores));
        assert_eq!((combined[0], combined[2]), (3.0, 1.0));
        assert!((combined[1] - (3.0 - 7f64.sqrt())).abs() < 1e-12);
        assert_eq!(Ensemble::MeanMinusStd { k: 2.0 }.combine(&[0.5]), 0.5);
    }
}
