//! From a network's raw outputs to a law over actions.

use burn::module::{Module, ModuleDisplay, Param};
use burn::tensor::{Device, Tensor};
use rl_core::dist::{Categorical, DiagGaussian, Distribution};

/// The last, law-giving part of a policy network.
pub trait Head: Module + ModuleDisplay {
    /// The law over actions.
    type Dist: Distribution;

    /// How many raw outputs per decision it reads.
    fn outputs(&self) -> usize;

    /// The law with raw outputs `z`.
    ///
    /// # Shapes
    /// `z: [N, outputs]` → `N` laws
    fn law(&self, z: Tensor<2>) -> Self::Dist;
}

/// Discrete actions: the outputs are logits, `π(a) = softmax(z/T)_a`. No parameters of its own.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use rl_core::dist::Distribution;
/// use rl_models::{CategoricalHead, Head};
///
/// let z = || Tensor::<2>::from_data([[2.0, 0.0]], &Device::flex());
/// let (cold, hot) = (CategoricalHead::new(2).with_temperature(0.5), CategoricalHead::new(2));
/// let entropy = |head: &CategoricalHead| head.law(z()).entropy().into_scalar::<f32>();
/// assert!(entropy(&cold) < entropy(&hot));
/// ```
#[derive(Module, Debug)]
pub struct CategoricalHead {
    actions: usize,
    temperature: f64,
}

impl CategoricalHead {
    /// A head over `actions` choices.
    pub fn new(actions: usize) -> Self {
        Self { actions, temperature: 1.0 }
    }

    /// `π ∝ π₁^{1/T}` in place of the law π₁ at temperature 1, in play and in learning alike.
    ///
    /// # Panics
    /// Unless `0 < T < ∞`.
    #[must_use]
    pub fn with_temperature(mut self, temperature: f64) -> Self {
        assert!(temperature > 0.0 && temperature.is_finite(), "a temperature of {temperature}");
        self.temperature = temperature;
        self
    }
}

impl Head for CategoricalHead {
    type Dist = Categorical;

    fn outputs(&self) -> usize {
        self.actions
    }

    fn law(&self, z: Tensor<2>) -> Categorical {
        Categorical::new(if self.temperature == 1.0 { z } else { z / self.temperature })
    }
}

/// Continuous actions: the outputs are means, and log σ is a parameter that no state moves,
/// `π(a) = N(z, T·diag(exp(2·clamp(log σ))))`.
#[derive(Module, Debug)]
pub struct GaussianHead {
    log_std: Param<Tensor<1>>,
    log_std_min: f64,
    log_std_max: f64,
    temperature: f64,
}

impl GaussianHead {
    /// A head over actions of `dims` numbers, all with the same first `log_std`.
    ///
    /// `limits` bound log σ: the law never becomes a point, nor noise without end.
    pub fn new(dims: usize, log_std: f64, limits: (f64, f64), device: &Device) -> Self {
        assert!(limits.0 < limits.1, "log_std limits {limits:?} are empty");
        Self {
            log_std: Param::from_tensor(Tensor::full([dims], log_std, device)).set_require_grad(true),
            log_std_min: limits.0,
            log_std_max: limits.1,
            temperature: 1.0,
        }
    }

    /// `π ∝ π₁^{1/T}` in place of the law π₁ at temperature 1: T times the variance, in play and in learning alike.
    ///
    /// # Panics
    /// Unless `0 < T < ∞`.
    #[must_use]
    pub fn with_temperature(mut self, temperature: f64) -> Self {
        assert!(temperature > 0.0 && temperature.is_finite(), "a temperature of {temperature}");
        self.temperature = temperature;
        self
    }
}

impl Head for GaussianHead {
    type Dist = DiagGaussian;

    fn outputs(&self) -> usize {
        self.log_std.dims()[0]
    }

    fn law(&self, z: Tensor<2>) -> DiagGaussian {
        let dims = z.dims();
        let log_std = self.log_std.val().clamp(self.log_std_min, self.log_std_max);
        let log_std = match self.temperature {
            1.0 => log_std,
            t => log_std + 0.5 * t.ln(),
        };
        DiagGaussian::new(z, log_std.unsqueeze::<2>().expand(dims))
    }
}
