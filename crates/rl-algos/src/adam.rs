//! Adam, AdamW and RMSProp on the flat parameter vector.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor};
use rl_core::schedule::Schedule;
use serde::{Deserialize, Serialize};

use crate::error::{AlgoError, require};
use crate::update::{PersistError, numbers, tensor_from};

/// Which rule: how weight decay enters, and whether the moments are corrected for their start at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdamKind {
    /// `g ← g + wd·θ`: L2 regularisation, scaled like the gradient.   Kingma & Ba 2015
    #[default]
    Adam,
    /// `θ ← θ − lr·wd·θ`: decoupled from the gradient's scale.   Loshchilov & Hutter 2019
    Adamw,
    /// `v ← β₂·v + (1 − β₂)·g²`, `θ ← θ − lr·g / (√v + ε)`: Adam with β₁ = 0 and without bias correction; weight decay
    /// as Adam's. What A3C and Stable-Baselines3's A2C use.   Tieleman & Hinton 2012, lecture 6.5
    Rmsprop,
}

/// The optimiser's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamConfig {
    /// Adam, AdamW, or RMSProp.
    pub kind: AdamKind,
    /// Step size, a number or a schedule over the run.
    pub learning_rate: Schedule,
    /// Decay of the first moment; RMSProp has none, and wants 0.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment. Classic PPO uses 1e-5, most RLHF code 1e-8.
    pub eps: f64,
    /// Weight decay; how it acts is `kind`'s.
    pub weight_decay: f64,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self {
            kind: AdamKind::Adam,
            learning_rate: Schedule::Constant(3e-4),
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-5,
            weight_decay: 0.0,
        }
    }
}

impl AdamConfig {
    /// # Errors
    /// Names the first setting out of range.
    pub fn validate(&self) -> Result<(), AlgoError> {
        self.learning_rate.validate("optimizer.learning_rate")?;
        require((0.0..1.0).contains(&self.beta1), "optimizer.beta1", "[0, 1)", self.beta1)?;
        let momentum = self.kind == AdamKind::Rmsprop && self.beta1 != 0.0;
        require(!momentum, "optimizer.beta1", "{0} with kind = \"rmsprop\"", self.beta1)?;
        require((0.0..1.0).contains(&self.beta2), "optimizer.beta2", "[0, 1)", self.beta2)?;
        require(self.eps > 0.0 && self.eps.is_finite(), "optimizer.eps", "(0, ∞)", self.eps)?;
        require(
            self.weight_decay >= 0.0 && self.weight_decay.is_finite(),
            "optimizer.weight_decay",
            "[0, ∞)",
            self.weight_decay,
        )
    }
}

/// The optimiser's state: how many steps, and the two moments `[P]`.
#[derive(Debug, Clone)]
pub struct Adam {
    config: AdamConfig,
    /// Steps taken, `t`.
    pub steps: u64,
    /// First and second moment, once there has been a gradient.
    pub moments: Option<(Tensor<1>, Tensor<1>)>,
}

impl Adam {
    /// An optimiser that has not stepped yet.
    pub fn new(config: AdamConfig) -> Self {
        Self { config, steps: 0, moments: None }
    }

    /// θ after one step of size `learning_rate` along `grad`:
    ///
    /// ```text
    /// m ← β₁·m + (1 − β₁)·g        m̂ = m / (1 − β₁ᵗ)
    /// v ← β₂·v + (1 − β₂)·g²       v̂ = v / (1 − β₂ᵗ)       θ ← θ − lr·m̂ / (√v̂ + ε)
    /// ```
    /// Kingma & Ba 2015, algorithm 1; ε stands outside the root and after the bias correction, as
    /// in PyTorch.
    ///
    /// # Shapes
    /// `theta, grad: [P]` → `[P]`
    pub fn step(&mut self, theta: Tensor<1>, grad: Tensor<1>, learning_rate: f64) -> Tensor<1> {
        let AdamConfig { beta1, beta2, eps, weight_decay, kind, .. } = self.config;
        let (theta, grad) = match kind {
            _ if weight_decay == 0.0 => (theta, grad),
            AdamKind::Adam | AdamKind::Rmsprop => (theta.clone(), grad + theta * weight_decay),
            AdamKind::Adamw => (theta * (1.0 - learning_rate * weight_decay), grad),
        };
        let (m, v) = self.moments.take().unwrap_or_else(|| (grad.zeros_like(), grad.zeros_like()));
        self.steps += 1;
        let m = m * beta1 + grad.clone() * (1.0 - beta1);
        let v = v * beta2 + grad.square() * (1.0 - beta2);
        let (m, v) = match self.steps.is_multiple_of(SWEEP) {
            true => (normal_or_zero(m), normal_or_zero(v)),
            false => (m, v),
        };
        let t = self.steps as f64;
        let m_hat_scale = learning_rate / (1.0 - beta1.powf(t));
        let v_hat_scale = match kind {
            AdamKind::Adam | AdamKind::Adamw => 1.0 / (1.0 - beta2.powf(t)),
            AdamKind::Rmsprop => 1.0,
        };
        let step = (m.clone() * m_hat_scale) / ((v.clone() * v_hat_scale).sqrt() + eps);
        self.moments = Some((m, v));
        theta - step
    }

    /// [`Adam::save`], for an algorithm that is its optimiser and a count of updates: its whole other state.
    pub(crate) fn save_after(
        &self,
        updates: u64,
        tensors: &mut BTreeMap<String, Vec<f32>>,
    ) -> serde_json::Value {
        self.save(tensors);
        serde_json::to_value((updates, self.steps)).expect("numbers become JSON")
    }

    /// Takes back what [`Adam::save_after`] saved, and returns the updates.
    ///
    /// # Errors
    /// If the state is of another kind, and [`Adam::load`]'s.
    pub(crate) fn load_after(
        &mut self,
        state: &serde_json::Value,
        tensors: &BTreeMap<String, Vec<f32>>,
        parameters: usize,
        device: &Device,
    ) -> Result<u64, PersistError> {
        let (updates, steps) =
            serde_json::from_value(state.clone()).map_err(|e| PersistError::State(e.to_string()))?;
        self.load(steps, tensors, parameters, device)?;
        Ok(updates)
    }

    /// Adds the moments to a checkpoint.
    pub fn save(&self, tensors: &mut BTreeMap<String, Vec<f32>>) {
        if let Some((m, v)) = &self.moments {
            tensors.insert("adam.m".into(), numbers(m));
            tensors.insert("adam.v".into(), numbers(v));
        }
    }

    /// Takes the moments back, after `steps` steps.
    ///
    /// # Errors
    /// If steps were taken and a moment is missing or has not `parameters` numbers.
    pub fn load(
        &mut self,
        steps: u64,
        tensors: &BTreeMap<String, Vec<f32>>,
        parameters: usize,
        device: &Device,
    ) -> Result<(), PersistError> {
        self.steps = steps;
        self.moments = match steps {
            0 => None,
            _ => Some((
                tensor_from(tensors, "adam.m", parameters, device)?,
                tensor_from(tensors, "adam.v", parameters, device)?,
            )),
        };
        Ok(())
    }
}

/// Steps between two calls of [`normal_or_zero`] on the moments.
const SWEEP: u64 = 64;

/// Subnormal numbers become 0.
///
/// Where the gradient is exactly 0, of a saturated unit for example, moments shrink until they are subnormal and stay
/// there: 0.9 times the smallest number rounds to itself. No parameter can tell them from 0, but processors take a hundred
/// times as long for them, and a long run slows down (docs/survives.md).
fn normal_or_zero(x: Tensor<1>) -> Tensor<1> {
    let subnormal = x.clone().abs().lower_elem(f32::MIN_POSITIVE);
    x.mask_fill(subnormal, 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_a_parameter_without_gradient_end_at_0() {
        let device = Device::flex();
        let mut adam = Adam::new(AdamConfig::default());
        let mut theta = Tensor::<1>::from_floats([1.0, 1.0], &device);
        theta = adam.step(theta, Tensor::from_floats([1e-20, 1e-20], &device), 1e-3);
        for _ in 0..2000 {
            theta = adam.step(theta, Tensor::from_floats([0.0, 1e-3], &device), 1e-3);
        }
        let mut tensors = BTreeMap::new();
        adam.save(&mut tensors);
        let [m, v] = ["adam.m", "adam.v"].map(|name| tensors[name].clone());
        assert_eq!((m[0], v[0]), (0.0, 0.0));
        assert!((m[1] / 1e-3 - 1.0).abs() < 1e-3 && v[1] > 0.0, "{m:?} {v:?}");
    }
}
