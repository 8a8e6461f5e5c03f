//! The two laws of overoptimization, fitted to measured points.
//!
//! ```text
//! best-of-n:  gold(d) = d·(α − β·d)        RL:  gold(d) = d·(α − β·ln d)        d = √KL(π ‖ π_ref)
//! ```
//!
//! Both are linear in α and β: least squares on two columns.   Gao 2022, §3.1

/// Which of the two laws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// `d·(α − β·d)`, found for best-of-n.
    Quadratic,
    /// `d·(α − β·ln d)`, found for RL.
    Logarithmic,
}

/// A fitted law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// The slope at the start.
    pub alpha: f64,
    /// What bends it down.
    pub beta: f64,
    /// `1 − Σ residual² / Σ (gold − mean)²`
    pub r_squared: f64,
}

/// The least-squares fit to points `(KL, gold)`; those at no KL say nothing. `None` of fewer than three.
pub fn fit(law: Law, points: &[(f64, f64)]) -> Option<Fit> {
    let rows: Vec<[f64; 3]> = points
        .iter()
        .filter(|(kl, _)| *kl > 0.0)
        .map(|&(kl, gold)| {
            let d = kl.sqrt();
            [d, -d * if law == Law::Quadratic { d } else { d.ln() }, gold]
        })
        .collect();
    if rows.len() < 3 {
        return None;
    }
    let sum = |i: usize, j: usize| rows.iter().map(|row| row[i] * row[j]).sum::<f64>();
    let determinant = sum(0, 0) * sum(1, 1) - sum(0, 1).powi(2);
    let alpha = (sum(0, 2) * sum(1, 1) - sum(1, 2) * sum(0, 1)) / determinant;
    let beta = (sum(1, 2) * sum(0, 0) - sum(0, 2) * sum(0, 1)) / determinant;
    let mean = rows.iter().map(|row| row[2]).sum::<f64>() / rows.len() as f64;
    let residual: f64 = rows.iter().map(|row| (row[2] - alpha * row[0] - beta * row[1]).powi(2)).sum();
    let total: f64 = rows.iter().map(|row| (row[2] - mean).powi(2)).sum();
    Some(Fit { alpha, beta, r_squared: 1.0 - residual / total })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_law_finds_its_own_numbers_again() {
        let at = |kl: f64, law| {
            let d: f64 = f64::sqrt(kl);
            d * (1.5 - 0.4 * if law == Law::Quadratic { d } else { d.ln() })
        };
        for law in [Law::Quadratic, Law::Logarithmic] {
            let points: Vec<(f64, f64)> =
                (0..12).map(|i| 0.5 * f64::from(i)).map(|kl| (kl, at(kl, law))).collect();
            let got = fit(law, &points).expect("twelve points");
            assert!((got.alpha - 1.5).abs() < 1e-9 && (got.beta - 0.4).abs() < 1e-9, "{got:?}");
            assert!(got.r_squared > 1.0 - 1e-12);
        }
        assert_eq!(fit(Law::Quadratic, &[(0.0, 0.0), (1.0, 1.0), (2.0, 1.5)]), None);
    }
}
