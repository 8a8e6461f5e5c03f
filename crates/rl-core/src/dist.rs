//! N independent action laws: what every policy-gradient formula asks of a distribution.
//!
//! A law is always flat: `[N, P]` raw outputs of a network in, `[N]` numbers out. Callers reshape, and the rank of
//! observations, sequences or batches never leaks into a formula.
//!
//! Randomness is an argument. [`Distribution::draw`] reads the raw outputs back once and takes its noise from `&mut R`
//! on the host, so one seed picks the same actions on every device, and sampling costs no device generator.

mod categorical;
mod diag_gaussian;

pub use categorical::{Categorical, draw_softmax};
pub use diag_gaussian::DiagGaussian;

use burn::tensor::{Device, Int, Tensor};
use rand::Rng;

/// N independent laws over actions, parameterised by the raw outputs `z: [N, P]` of a network.
pub trait Distribution: Clone {
    /// N actions: `Tensor<1, Int>` `[N]` or `Tensor<2>` `[N, D]`.
    type Event: Clone;
    /// One host number of an action: a `usize`, or an `f32` coordinate.
    type Elem: Copy + Send + Sync;

    /// `log π(a_i)` of each decision, in nats (a log-density for continuous actions).
    ///
    /// # Shapes
    /// `event: [N]` or `[N, D]` → `[N]`
    fn log_prob(&self, event: &Self::Event) -> Tensor<1>;

    /// `H(π_i) = −E_{a∼π_i} log π_i(a)`, in nats. The differential entropy of a density may be negative.
    ///
    /// # Shapes
    /// → `[N]`
    fn entropy(&self) -> Tensor<1>;

    /// The mean over decisions of [`entropy`](Self::entropy): the bonus of an actor-critic loss, in nats.
    ///
    /// The same number as `entropy().mean()`; a law whose rows need no sums of their own on the tape overrides it.
    ///
    /// # Shapes
    /// → `[1]`
    fn mean_entropy(&self) -> Tensor<1> {
        self.entropy().mean()
    }

    /// `KL(self ‖ other) = E_{a∼self} [log self(a) − log other(a)]`, exact, in nats, never negative.
    ///
    /// # Shapes
    /// → `[N]`
    fn kl(&self, other: &Self) -> Tensor<1>;

    /// The raw outputs z, `[N, P]`, as they came (on the tape if they were).
    fn params(&self) -> Tensor<2>;

    /// The law of the same family with other raw outputs, `[N, P]`.
    #[must_use]
    fn with_params(&self, params: Tensor<2>) -> Self;

    /// The same laws off the tape: for what is measured, not differentiated.
    #[must_use]
    fn constant(&self) -> Self {
        self.with_params(self.params().inner())
    }

    /// `F_z·dz` of each decision, with `F_z = E_{a∼π} [∇_z log π(a) ∇_z log π(a)ᵀ]` the Fisher matrix in the raw
    /// outputs: the middle factor of the Gauss–Newton product `Jᵀ F_z J v` of natural gradient and TRPO.
    ///
    /// F_z is also the Hessian of `KL(π_z ‖ π_{z+dz})` at `dz = 0`.   Schulman 2015, appendix C.1
    ///
    /// # Shapes
    /// `dz: [N, P]` → `[N, P]`, off the tape
    fn fisher_vec(&self, dz: Tensor<2>) -> Tensor<2>;

    /// The most probable action of each decision.
    fn mode(&self) -> Self::Event;

    /// Draws one action per decision and appends it and its log-probability.
    ///
    /// One read-back of the raw outputs; everything else happens on the host in `f64`. Appends N·(numbers per action)
    /// to `actions` and N to `log_probs`: the log-probability is that of the numbers appended, as rounded.
    fn draw<R: Rng + ?Sized>(&self, rng: &mut R, actions: &mut Vec<Self::Elem>, log_probs: &mut Vec<f32>);

    /// [`draw`](Self::draw) with noise that remembers, for laws that are a mean plus normal noise: the noise of a
    /// decision is `ξ_t = ρ·ξ_{t−1} + √(1 − ρ²)·ε_t` with standard normal ε, and `ρ` is `correlation`.
    ///
    /// Each draw by itself follows the law, and its log-probability is the law's; only from step to step the noise keeps
    /// its direction, for about `1/(1 − ρ)` steps. `memory` holds ξ between calls; empty, it starts with ξ = ε. Other
    /// laws draw as ever.   Korenkevych et al. 2019, *Autoregressive policies for continuous control*, p = 1
    fn draw_correlated<R: Rng + ?Sized>(
        &self,
        rng: &mut R,
        correlation: f64,
        memory: &mut Vec<f64>,
        actions: &mut Vec<Self::Elem>,
        log_probs: &mut Vec<f32>,
    ) {
        let _ = (correlation, memory);
        self.draw(rng, actions, log_probs);
    }

    /// The actions of `rows` decisions as an event on `device`: the inverse of [`elems`](Self::elems).
    ///
    /// # Panics
    /// If `elems` does not divide into `rows` actions.
    fn event(elems: &[Self::Elem], rows: usize, device: &Device) -> Self::Event;

    /// The host numbers of an event, row after row. One read-back.
    fn elems(event: &Self::Event) -> Vec<Self::Elem>;

    /// The actions of the decisions at `rows`, in that order.
    ///
    /// # Shapes
    /// `rows: [n]`, each in `0..N` → n actions
    fn select(event: &Self::Event, rows: Tensor<1, Int>) -> Self::Event;

    /// Draws one action per decision, as an event on the device of the raw outputs (off the tape).
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> Self::Event {
        let params = self.params().inner();
        let (mut actions, mut log_probs) = (Vec::new(), Vec::new());
        self.draw(rng, &mut actions, &mut log_probs);
        Self::event(&actions, params.dims()[0], &params.device())
    }
}

/// Every number of a tensor on the host in double precision: one read-back.
fn read<const D: usize>(tensor: &Tensor<D>) -> Vec<f64> {
    tensor.clone().inner().try_into_vec_as::<f64>().expect("a computed tensor can be read back")
}
