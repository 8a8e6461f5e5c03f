//! The Gaussian law of a continuous action with independent coordinates.

use std::f64::consts::{E, PI};

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::{Distribution, read};
use crate::hand_gradient::constant;

/// `π_i = N(μ_i, diag(σ_i²))` over D coordinates, with `σ = exp(log_std)`.
///
/// The raw outputs are `z = [μ, log σ]`, `[N, 2D]`. Actions are unbounded; clipping them to the bounds of an action
/// space is the environment's business, and the log-probability is that of the unclipped action.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use rl_core::dist::{DiagGaussian, Distribution};
///
/// let device = Device::flex();
/// let at = |mean: f32| DiagGaussian::new(Tensor::from_data([[mean]], &device), Tensor::from_data([[0.0]], &device));
/// let kl: f32 = at(0.0).kl(&at(2.0)).into_scalar();
/// assert!((kl - 2.0).abs() < 1e-6); // ½·(μ_p − μ_q)² at σ = 1
/// let entropy: f32 = at(0.0).entropy().into_scalar();
/// assert!((entropy - 1.418_938_5).abs() < 1e-6); // ½·log 2πe
/// ```
#[derive(Clone, Debug)]
pub struct DiagGaussian {
    mean: Tensor<2>,
    log_std: Tensor<2>,
}

impl DiagGaussian {
    /// The law with these means and logarithms of standard deviations. A `log_std` that does not depend on the state
    /// is expanded to `[N, D]` by the caller.
    ///
    /// # Shapes
    /// `mean: [N, D]`, `log_std: [N, D]`
    #[must_use]
    pub fn new(mean: Tensor<2>, log_std: Tensor<2>) -> Self {
        assert_eq!(mean.dims(), log_std.dims(), "one standard deviation per mean");
        Self { mean, log_std }
    }

    /// The means μ, `[N, D]`.
    #[must_use]
    pub fn mean(&self) -> Tensor<2> {
        self.mean.clone()
    }

    /// The logarithms of the standard deviations, `[N, D]`.
    #[must_use]
    pub fn log_std(&self) -> Tensor<2> {
        self.log_std.clone()
    }
}

/// `Σ_d x_d`, `[N, D]` → `[N]`.
fn sum_coordinates(x: Tensor<2>) -> Tensor<1> {
    let [n, _] = x.dims();
    x.sum_dim(1).reshape([n])
}

impl Distribution for DiagGaussian {
    type Event = Tensor<2>;
    type Elem = f32;

    /// `log π(a) = Σ_d [−½·((a_d − μ_d)/σ_d)² − log σ_d] − (D/2)·log 2π`
    fn log_prob(&self, event: &Tensor<2>) -> Tensor<1> {
        let [_, d] = self.mean.dims();
        // An action drawn on the host is f32; a law in double precision is evaluated in double precision.
        let action = if event.dtype() == self.mean.dtype() {
            event.clone()
        } else {
            event.clone().cast(self.mean.dtype())
        };
        let standard = (action - self.mean.clone()) * self.log_std.clone().neg().exp();
        let kernel = standard.square() * -0.5 - self.log_std.clone();
        sum_coordinates(kernel) - 0.5 * d as f64 * (2.0 * PI).ln()
    }

    /// `H = Σ_d log σ_d + (D/2)·log 2πe`
    fn entropy(&self) -> Tensor<1> {
        let [_, d] = self.mean.dims();
        sum_coordinates(self.log_std.clone()) + 0.5 * d as f64 * (2.0 * PI * E).ln()
    }

    /// `KL(p ‖ q) = Σ_d [½·(e^{2δ_d} − 1) − δ_d + ½·((μ^p_d − μ^q_d)/σ^q_d)²]`,   `δ = log σ^p − log σ^q`.
    /// Rounding below zero is cut to zero.
    fn kl(&self, other: &Self) -> Tensor<1> {
        assert_eq!(
            other.mean.dims(),
            self.mean.dims(),
            "KL compares laws over the same decisions and coordinates"
        );
        let delta = self.log_std.clone() - other.log_std.clone();
        let shift = (self.mean.clone() - other.mean.clone()) * other.log_std.clone().neg().exp();
        let spread = (delta.clone() * 2.0).exp() - 1.0;
        sum_coordinates((spread + shift.square()) * 0.5 - delta).clamp_min(0.0)
    }

    fn params(&self) -> Tensor<2> {
        Tensor::cat(vec![self.mean.clone(), self.log_std.clone()], 1)
    }

    fn with_params(&self, params: Tensor<2>) -> Self {
        let [n, d] = self.mean.dims();
        assert_eq!(params.dims(), [n, 2 * d], "the raw outputs are [mean, log_std]");
        Self::new(params.clone().narrow(1, 0, d), params.narrow(1, d, d))
    }

    /// `F_z = diag(1/σ², 2)`: `1/σ_d²` on the means, 2 on the logarithms of the standard deviations.
    fn fisher_vec(&self, dz: Tensor<2>) -> Tensor<2> {
        let [n, d] = self.mean.dims();
        assert_eq!(dz.dims(), [n, 2 * d], "the raw outputs are [mean, log_std]");
        let dz = dz.inner();
        let precision = (constant(&self.log_std) * -2.0).exp();
        Tensor::cat(vec![dz.clone().narrow(1, 0, d) * precision, dz.narrow(1, d, d) * 2.0], 1)
    }

    fn mode(&self) -> Tensor<2> {
        constant(&self.mean)
    }

    /// `a_d = μ_d + σ_d·ε_d` with standard normal ε from the host generator, coordinate after coordinate.
    fn draw<R: Rng + ?Sized>(&self, rng: &mut R, actions: &mut Vec<f32>, log_probs: &mut Vec<f32>) {
        self.draw_correlated(rng, 0.0, &mut Vec::new(), actions, log_probs);
    }

    /// `a_d = μ_d + σ_d·ξ_d`, with ξ of `memory` moved on first.
    ///
    /// # Panics
    /// If `memory` is of other decisions: neither empty nor `[N·D]`.
    fn draw_correlated<R: Rng + ?Sized>(
        &self,
        rng: &mut R,
        correlation: f64,
        memory: &mut Vec<f64>,
        actions: &mut Vec<f32>,
        log_probs: &mut Vec<f32>,
    ) {
        let [n, d] = self.mean.dims();
        let half_log_two_pi = 0.5 * (2.0 * PI).ln();
        let fresh = (1.0 - correlation * correlation).sqrt();
        match memory.len() {
            0 => memory.extend((0..n * d).map(|_| rng.sample::<f64, _>(StandardNormal))),
            held => {
                assert_eq!(held, n * d, "the noise remembered is of other decisions");
                for noise in memory.iter_mut() {
                    *noise = correlation * *noise + fresh * rng.sample::<f64, _>(StandardNormal);
                }
            }
        }
        for (z, noise) in read(&self.params()).chunks_exact(2 * d).zip(memory.chunks_exact(d)) {
            let (means, log_stds) = z.split_at(d);
            let mut log_prob = 0.0;
            for ((mean, log_std), noise) in means.iter().zip(log_stds).zip(noise) {
                let action = (mean + log_std.exp() * noise) as f32;
                let standard = (f64::from(action) - mean) / log_std.exp();
                log_prob -= 0.5 * standard * standard + log_std + half_log_two_pi;
                actions.push(action);
            }
            log_probs.push(log_prob as f32);
        }
    }

    fn event(elems: &[f32], rows: usize, device: &Device) -> Tensor<2> {
        assert!(
            rows > 0 && elems.len().is_multiple_of(rows),
            "{} numbers are not {rows} actions",
            elems.len()
        );
        Tensor::from_data(TensorData::new(elems.to_vec(), [rows, elems.len() / rows]), device)
    }

    fn select(event: &Tensor<2>, rows: Tensor<1, Int>) -> Tensor<2> {
        event.clone().select(0, rows)
    }

    fn elems(event: &Tensor<2>) -> Vec<f32> {
        event.clone().inner().try_into_vec_as::<f32>().expect("a computed tensor can be read back")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn law(mean: [f32; 2], log_std: [f32; 2]) -> DiagGaussian {
        let device = Device::flex();
        DiagGaussian::new(Tensor::from_data([mean], &device), Tensor::from_data([log_std], &device))
    }

    fn number(x: Tensor<1>) -> f32 {
        x.into_scalar()
    }

    #[test]
    fn the_standard_normal_has_its_textbook_numbers() {
        let p = law([0.0, 0.0], [0.0, 0.0]);
        let log_prob = number(p.log_prob(&Tensor::from_data([[1.0, 0.0]], &Device::flex())));
        assert!((log_prob - (-0.5 - 1.837_877_1)).abs() < 1e-6);
        assert!((number(p.entropy()) - 2.837_877).abs() < 1e-6);
        assert_eq!(number(p.kl(&p)), 0.0);
    }

    #[test]
    fn kl_between_unit_gaussians_is_half_the_squared_distance() {
        let kl = number(law([3.0, 0.0], [0.0, 0.0]).kl(&law([0.0, 4.0], [0.0, 0.0])));
        assert!((kl - 12.5).abs() < 1e-5);
    }

    #[test]
    fn a_draw_reports_the_log_probability_of_the_numbers_it_appends() {
        let p = law([1.0, -2.0], [0.5, -3.0]);
        let (mut actions, mut log_probs) = (vec![], vec![]);
        p.draw(&mut ChaCha8Rng::seed_from_u64(3), &mut actions, &mut log_probs);
        let event = DiagGaussian::event(&actions, 1, &Device::flex());
        assert_eq!(DiagGaussian::elems(&event), actions);
        assert!((number(p.log_prob(&event)) - log_probs[0]).abs() < 1e-5);
    }

    /// The correlation of neighbours in a row of numbers.
    fn autocorrelation(x: &[f64]) -> f64 {
        let square: f64 = x.iter().map(|x| x * x).sum();
        x.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / square
    }

    #[test]
    fn correlated_noise_keeps_its_direction_and_each_draw_keeps_the_law() {
        let p = law([0.0, 0.0], [0.0, 0.5f32.ln()]);
        for rho in [0.0, 0.5, 0.9] {
            let (mut rng, mut memory) = (ChaCha8Rng::seed_from_u64(3), vec![]);
            let (mut actions, mut log_probs) = (vec![], vec![]);
            for _ in 0..20_000 {
                p.draw_correlated(&mut rng, rho, &mut memory, &mut actions, &mut log_probs);
            }
            for (start, std) in [(0, 1.0), (1, 0.5)] {
                let x: Vec<f64> = actions.iter().skip(start).step_by(2).map(|&x| f64::from(x)).collect();
                let second = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
                assert!((second / (std * std) - 1.0).abs() < 0.15, "ρ = {rho}: variance {second}");
                assert!((autocorrelation(&x) - rho).abs() < 0.03, "ρ = {rho}: {}", autocorrelation(&x));
            }
            let event = DiagGaussian::event(&actions[..2], 1, &Device::flex());
            assert!((number(p.log_prob(&event)) - log_probs[0]).abs() < 1e-5);
        }
    }

    #[test]
    fn without_correlation_a_memory_changes_nothing() {
        let p = law([1.0, -2.0], [0.5, -3.0]);
        let (mut plain, mut held) = ((vec![], vec![]), (vec![], vec![]));
        let (mut a, mut b, mut memory) = (ChaCha8Rng::seed_from_u64(3), ChaCha8Rng::seed_from_u64(3), vec![]);
        for _ in 0..5 {
            p.draw(&mut a, &mut plain.0, &mut plain.1);
            p.draw_correlated(&mut b, 0.0, &mut memory, &mut held.0, &mut held.1);
        }
        assert_eq!(plain, held);
    }

    #[test]
    fn raw_outputs_make_the_same_law_again() {
        let p = law([1.0, -2.0], [0.5, -3.0]);
        let again = p.with_params(p.params());
        assert_eq!(number(again.kl(&p)), 0.0);
    }
}
