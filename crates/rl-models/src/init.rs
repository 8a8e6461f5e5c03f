//! Initial weights, drawn on the host so that a seed gives the same network on every device.

use rand::Rng;
use rand_distr::{Distribution as _, StandardNormal};

/// A matrix `W` `[rows, cols]` (row-major) with orthonormal columns or rows, times `gain`:
/// `WᵀW = gain²·I` if `rows ≥ cols`, else `WWᵀ = gain²·I`.
///
/// Gram–Schmidt, twice for accuracy, on a Gaussian matrix in double precision.
/// Saxe et al. 2014, section 3; the gains of PPO are √2 (hidden), 0.01 (policy head) and 1 (value
/// head).
pub fn orthogonal<R: Rng + ?Sized>(rows: usize, cols: usize, gain: f64, rng: &mut R) -> Vec<f32> {
    let (short, long) = (rows.min(cols), rows.max(cols));
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(short);
    while basis.len() < short {
        let mut v: Vec<f64> = (0..long).map(|_| StandardNormal.sample(rng)).collect();
        for _ in 0..2 {
            for b in &basis {
                let along = dot(&v, b);
                v.iter_mut().zip(b).for_each(|(x, y)| *x -= along * y);
            }
        }
        let norm = dot(&v, &v).sqrt();
        // A draw inside the span of the others has probability 0; draw again if rounding says so.
        if norm > 1e-8 {
            v.iter_mut().for_each(|x| *x /= norm);
            basis.push(v);
        }
    }
    let entry = |r: usize, c: usize| if rows >= cols { basis[c][r] } else { basis[r][c] };
    (0..rows * cols).map(|i| (gain * entry(i / cols, i % cols)) as f32).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn short_side_is_orthonormal_times_the_gain() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        for (rows, cols) in [(64, 64), (4, 64), (64, 2), (1, 5)] {
            let w = orthogonal(rows, cols, 2f64.sqrt(), &mut rng);
            let at = |i: usize, k: usize| if rows >= cols { w[k * cols + i] } else { w[i * cols + k] };
            for i in 0..rows.min(cols) {
                for j in 0..rows.min(cols) {
                    let got: f64 = (0..rows.max(cols)).map(|k| (at(i, k) * at(j, k)) as f64).sum();
                    let want = if i == j { 2.0 } else { 0.0 };
                    assert!((got - want).abs() < 1e-5, "({rows}, {cols}) [{i}, {j}] = {got}");
                }
            }
        }
    }
}
