//! The categorical law of a discrete action: softmax of logits.

use std::sync::OnceLock;

use burn::tensor::{Bool, Device, IndexingUpdateOp, Int, Tensor, TensorData, activation};
use rand::{Rng, RngExt};

use super::{Distribution, read};
use crate::CoreError;
use crate::hand_gradient::{constant, with_jacobian};

/// `π_i(k) = softmax(z_i)_k` for N rows of logits z over A actions.
///
/// A logit of −∞ forbids its action: probability 0, nothing to the entropy (`0·log 0 = 0`), never drawn, gradient 0.
/// Logits of any finite size are safe: everything goes through the log-softmax.
///
/// The log-probabilities are computed once, at first use, and shared by [`log_prob`](Distribution::log_prob),
/// [`entropy`](Distribution::entropy) and [`kl`](Distribution::kl), whose gradients in z are closed formulas (see each)
/// instead of a tape through the softmax. They share one tape: differentiate them together, in one backward pass.
///
/// ```
/// use burn::tensor::{Bool, Device, Tensor};
/// use rl_core::dist::{Categorical, Distribution};
///
/// let device = Device::flex();
/// let allowed = Tensor::<2, Bool>::from_data([[true, true, false]], &device);
/// let law = Categorical::masked(Tensor::from_data([[0.0, 0.0, 9.0]], &device), allowed);
/// let entropy: f32 = law.entropy().into_scalar();
/// assert!((entropy - 2_f32.ln()).abs() < 1e-6); // a coin: the third action is forbidden
/// let log_prob: f32 = law.log_prob(&Tensor::from_data([1], &device)).into_scalar();
/// assert!((log_prob + 2_f32.ln()).abs() < 1e-6);
/// ```
#[derive(Clone, Debug)]
pub struct Categorical {
    logits: Tensor<2>,
    table: OnceLock<Table>,
    deviation: OnceLock<Tensor<2>>,
}

/// What all quantities share, off the tape, `[N, A]` each.
#[derive(Clone, Debug)]
struct Table {
    /// z.
    logits: Tensor<2>,
    /// `log π(k)`; −∞ where forbidden.
    log_p: Tensor<2>,
    /// `π(k)`.
    p: Tensor<2>,
    /// Where the logit is −∞. (A probability that merely underflows is not forbidden.)
    forbidden: Tensor<2, Bool>,
}

impl Categorical {
    /// The law with these logits; −∞ forbids an action.
    ///
    /// # Shapes
    /// `logits: [N, A]`
    #[must_use]
    pub fn new(logits: Tensor<2>) -> Self {
        Self { logits, table: OnceLock::new(), deviation: OnceLock::new() }
    }

    /// The law restricted to the allowed actions: `z_k = −∞` where `allowed` is false.
    ///
    /// A row that allows nothing has no law. That is only looked for in debug builds, since it costs a read-back; masks
    /// that come from a user go through [`try_masked`](Self::try_masked).
    ///
    /// # Shapes
    /// `logits: [N, A]`, `allowed: [N, A]`
    #[must_use]
    pub fn masked(logits: Tensor<2>, allowed: Tensor<2, Bool>) -> Self {
        debug_assert_eq!(first_empty_row(&allowed), None, "a row of the action mask allows nothing");
        Self::new(logits.mask_fill(allowed.bool_not(), f64::NEG_INFINITY))
    }

    /// [`masked`](Self::masked) for a mask from outside: one read-back, and an error that names the first empty row.
    ///
    /// # Errors
    /// [`CoreError::NothingAllowed`] if a row allows no action.
    pub fn try_masked(logits: Tensor<2>, allowed: Tensor<2, Bool>) -> Result<Self, CoreError> {
        match first_empty_row(&allowed) {
            Some(row) => Err(CoreError::NothingAllowed { row, actions: allowed.dims()[1] }),
            None => Ok(Self::masked(logits, allowed)),
        }
    }

    /// `log π_i(k)` of every action, on the tape if the logits are; −∞ where forbidden.
    ///
    /// # Shapes
    /// → `[N, A]`
    #[must_use]
    pub fn log_probs(&self) -> Tensor<2> {
        if self.logits.is_autodiff() {
            activation::log_softmax(self.logits.clone(), 1)
        } else {
            self.table().log_p.clone()
        }
    }

    /// `π_i(k)` of every action, on the tape if the logits are; 0 where forbidden.
    ///
    /// # Shapes
    /// → `[N, A]`
    #[must_use]
    pub fn probs(&self) -> Tensor<2> {
        self.log_probs().exp()
    }

    fn table(&self) -> &Table {
        self.table.get_or_init(|| {
            let logits = constant(&self.logits);
            let forbidden = logits.clone().equal_scalar(f64::NEG_INFINITY);
            let log_p = activation::log_softmax(logits.clone(), 1);
            Table { logits, p: log_p.clone().exp(), log_p, forbidden }
        })
    }

    /// `z − z̄` on the tape: zeros, also where the logit is −∞, so that a forbidden action has gradient 0.
    fn deviation(&self) -> Tensor<2> {
        let Table { logits, forbidden, .. } = self.table();
        self.deviation
            .get_or_init(|| (self.logits.clone() - logits.clone()).mask_fill(forbidden.clone(), 0.0))
            .clone()
    }

    /// `H = −Σ_k π(k)·log π(k)` `[N, 1]` off the tape, and `log π(k)` with `0·log 0 = 0` made safe.
    fn entropy_off_tape(&self) -> (Tensor<2>, Tensor<2>) {
        let Table { log_p, p, forbidden, .. } = self.table();
        let log_p = log_p.clone().mask_fill(forbidden.clone(), 0.0);
        ((p.clone() * log_p.clone()).sum_dim(1).neg(), log_p)
    }
}

impl Distribution for Categorical {
    type Event = Tensor<1, Int>;
    type Elem = usize;

    /// `log π(a) = z_a − log Σ_k exp z_k`,   `∂/∂z_k = 1[k = a] − π(k)`. A forbidden action has −∞ and gradient
    /// `−π(k)` on the others.
    fn log_prob(&self, event: &Tensor<1, Int>) -> Tensor<1> {
        let [n, _] = self.logits.dims();
        let Table { log_p, p, .. } = self.table();
        let action = event.clone().inner().reshape([n, 1]);
        let value = log_p.clone().gather(1, action.clone());
        if !self.logits.is_autodiff() {
            return value.reshape([n]);
        }
        let jacobian = p.clone().neg().scatter(1, action, value.ones_like(), IndexingUpdateOp::Add);
        with_jacobian(value.reshape([n]), self.deviation(), jacobian)
    }

    /// `H = −Σ_k π(k)·log π(k)`,   `∂H/∂z_k = −π(k)·(log π(k) + H)`.
    fn entropy(&self) -> Tensor<1> {
        let [n, _] = self.logits.dims();
        let (entropy, log_p) = self.entropy_off_tape();
        if !self.logits.is_autodiff() {
            return entropy.reshape([n]);
        }
        let jacobian = (log_p + entropy.clone()) * self.table().p.clone().neg();
        with_jacobian(entropy.reshape([n]), self.deviation(), jacobian)
    }

    fn mean_entropy(&self) -> Tensor<1> {
        let [n, _] = self.logits.dims();
        let (entropy, log_p) = self.entropy_off_tape();
        if !self.logits.is_autodiff() {
            return entropy.mean();
        }
        let jacobian = (log_p + entropy.clone()) * self.table().p.clone() * (-1.0 / n as f64);
        (self.deviation() * jacobian).sum() + entropy.mean()
    }

    /// `KL(p ‖ q) = Σ_k p(k)·(log p(k) − log q(k))`,   `∂/∂z^p_k = p(k)·(log p(k) − log q(k) − KL)`,
    /// `∂/∂z^q_k = q(k) − p(k)`.
    ///
    /// Infinite where p allows what q forbids; the gradient of such a row is 0 in p and finite in q. Rounding below zero
    /// is cut to zero.
    fn kl(&self, other: &Self) -> Tensor<1> {
        let [n, a] = self.logits.dims();
        assert_eq!(other.logits.dims(), [n, a], "KL compares laws over the same decisions and actions");
        let (p, q) = (self.table(), other.table());
        let log_ratio = (p.log_p.clone() - q.log_p.clone()).mask_fill(p.forbidden.clone(), 0.0); // 0·log(0/q) = 0
        let escapes = log_ratio.clone().equal_scalar(f64::INFINITY); // p > 0 = q
        let infinite = escapes.clone().any_dim(1);
        let log_ratio = log_ratio.mask_fill(escapes, 0.0);
        let finite_part = (p.p.clone() * log_ratio.clone()).sum_dim(1);

        let mut kl =
            finite_part.clone().clamp_min(0.0).mask_fill(infinite.clone(), f64::INFINITY).reshape([n]);
        if self.logits.is_autodiff() {
            let jacobian = (p.p.clone() * (log_ratio - finite_part)).mask_fill(infinite.expand([n, a]), 0.0);
            kl = with_jacobian(kl, self.deviation(), jacobian);
        }
        if other.logits.is_autodiff() {
            kl = with_jacobian(kl, other.deviation(), q.p.clone() - p.p.clone());
        }
        kl
    }

    fn params(&self) -> Tensor<2> {
        self.logits.clone()
    }

    fn with_params(&self, params: Tensor<2>) -> Self {
        Self::new(params)
    }

    /// Shares the table, so that measuring costs no second softmax.
    fn constant(&self) -> Self {
        Self { logits: constant(&self.logits), table: self.table.clone(), deviation: OnceLock::new() }
    }

    /// `F_z = diag(π) − π πᵀ`, so `(F_z dz)_k = π(k)·(dz_k − Σ_j π(j)·dz_j)`. What `dz` holds at a forbidden action is
    /// ignored (the difference of two −∞ logits is NaN).
    fn fisher_vec(&self, dz: Tensor<2>) -> Tensor<2> {
        let Table { p, forbidden, .. } = self.table();
        let dz = dz.inner().mask_fill(forbidden.clone(), 0.0);
        let mean = (p.clone() * dz.clone()).sum_dim(1);
        p.clone() * (dz - mean)
    }

    fn mode(&self) -> Tensor<1, Int> {
        let [n, _] = self.logits.dims();
        constant(&self.logits).argmax(1).reshape([n])
    }

    /// Inverse CDF: one uniform number per row, in row order; forbidden actions are never chosen.
    ///
    /// # Panics
    /// If a row has no law: a logit is NaN or +∞, or all are −∞.
    fn draw<R: Rng + ?Sized>(&self, rng: &mut R, actions: &mut Vec<usize>, log_probs: &mut Vec<f32>) {
        let [_, a] = self.logits.dims();
        let mut weights = Vec::with_capacity(a);
        for (row, logits) in read(&self.logits).chunks_exact(a).enumerate() {
            let drawn = draw_softmax(logits, &mut weights, rng);
            let (action, log_prob) = drawn.unwrap_or_else(|| {
                panic!("decision {row} has no action law: its logits hold NaN or +∞, or are all −∞")
            });
            actions.push(action);
            log_probs.push(log_prob as f32);
        }
    }

    fn event(elems: &[usize], rows: usize, device: &Device) -> Tensor<1, Int> {
        assert_eq!(elems.len(), rows, "a discrete action is one number per decision");
        let ids: Vec<i64> = elems.iter().map(|&action| action as i64).collect();
        Tensor::from_data(TensorData::new(ids, [rows]), device)
    }

    fn select(event: &Tensor<1, Int>, rows: Tensor<1, Int>) -> Tensor<1, Int> {
        event.clone().select(0, rows)
    }

    fn elems(event: &Tensor<1, Int>) -> Vec<usize> {
        let ids = event.clone().inner().try_into_vec_as::<i64>().expect("a computed tensor can be read back");
        ids.into_iter().map(|id| usize::try_from(id).expect("an action is not negative")).collect()
    }
}

/// One action of `softmax(logits)` on the host, and its log-probability: inverse CDF of one uniform number.
///
/// `None` if there is no law: a logit is NaN or +∞, or all are −∞. `weights` is scratch space, reused between calls.
///
/// # Shapes
/// `logits: [A]`
pub fn draw_softmax<R: Rng + ?Sized>(
    logits: &[f64],
    weights: &mut Vec<f64>,
    rng: &mut R,
) -> Option<(usize, f64)> {
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    weights.clear();
    weights.extend(logits.iter().map(|logit| (logit - max).exp()));
    let total: f64 = weights.iter().sum();
    if !total.is_finite() {
        return None;
    }
    let mut left = rng.random::<f64>() * total;
    let inverted = weights.iter().position(|weight| {
        left -= weight;
        left < 0.0
    });
    // Rounding may leave a sliver above the last weight: it belongs to the last possible action.
    let action = inverted.or_else(|| weights.iter().rposition(|&weight| weight > 0.0))?;
    Some((action, logits[action] - max - total.ln()))
}

/// The first row that allows no action. One read-back.
fn first_empty_row(allowed: &Tensor<2, Bool>) -> Option<usize> {
    let any = allowed.clone().inner().any_dim(1).int().try_into_vec_as::<i64>();
    any.expect("a computed tensor can be read back").iter().position(|&any| any == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    const INF: f32 = f32::INFINITY;

    fn law<const A: usize>(logits: [f32; A]) -> Categorical {
        Categorical::new(Tensor::from_data([logits], &Device::flex()))
    }

    fn number(x: Tensor<1>) -> f32 {
        x.into_scalar()
    }

    /// The gradient of `f` in the logits, at `logits`.
    fn gradient<const A: usize>(logits: [f32; A], f: impl Fn(&Categorical) -> Tensor<1>) -> Vec<f32> {
        let z = Tensor::<2>::from_data([logits], &Device::flex()).autodiff().require_grad();
        let tape = f(&Categorical::new(z.clone())).sum().backward();
        z.grad(&tape).unwrap().into_data().try_to_vec().unwrap()
    }

    #[test]
    fn zero_log_zero_is_zero_in_entropy_and_kl() {
        let half = law([0.0, -INF, 0.0]);
        assert_eq!(number(half.entropy()), 2f32.ln());
        assert!((number(half.kl(&law([0.0, 0.0, 0.0]))) - 1.5f32.ln()).abs() < 1e-6);
        assert_eq!(number(law([0.0, 0.0, 0.0]).kl(&half)), INF);
        assert_eq!(number(law([5.0]).entropy()), 0.0);
    }

    #[test]
    fn a_forbidden_action_has_gradient_zero_and_spoils_no_other() {
        let all = |p: &Categorical| {
            let q = law([0.3, 0.1, -INF, 0.2]);
            p.log_prob(&Tensor::from_data([0], &Device::flex())) + p.entropy() + p.kl(&q) + q.kl(p)
        };
        let g = gradient([1.0, -0.5, -INF, 0.25], all);
        assert!(g.iter().all(|g| g.is_finite()), "{g:?}");
        assert_eq!(g[2], 0.0);
    }

    #[test]
    fn an_infinite_kl_has_a_finite_gradient() {
        let q = law([0.0, -INF]);
        assert_eq!(gradient([1.0, 2.0], |p| p.kl(&q)), [0.0, 0.0]);
        assert!(gradient([1.0, -INF], |q| law([1.0, 1.0]).kl(q)).iter().all(|g| g.is_finite()));
    }

    #[test]
    fn logits_of_ten_thousand_are_ordinary() {
        let p = law([1e4, -1e4, 5e3]);
        assert_eq!(number(p.log_prob(&Tensor::from_data([1], &Device::flex()))), -2e4);
        assert_eq!(number(p.entropy()), 0.0);
        assert!(gradient([1e4, -1e4, 5e3], |p| p.entropy()).iter().all(|g| g.is_finite()));
    }

    #[test]
    fn a_draw_reports_the_log_probability_of_the_action_it_appends() {
        let logits = Tensor::<2>::from_data([[0.3, -1.2, 2.0], [0.0, -INF, -INF]], &Device::flex());
        let law = Categorical::new(logits);
        let (mut actions, mut log_probs) = (vec![7], vec![0.5]);
        law.draw(&mut ChaCha8Rng::seed_from_u64(1), &mut actions, &mut log_probs);
        assert_eq!((actions[0], log_probs[0], actions.len(), log_probs.len()), (7, 0.5, 3, 3));
        let event = Categorical::event(&actions[1..], 2, &Device::flex());
        assert_eq!(Categorical::elems(&event), actions[1..]);
        let again: Vec<f32> = law.log_prob(&event).into_data().try_to_vec().unwrap();
        assert!(again.iter().zip(&log_probs[1..]).all(|(a, b)| (a - b).abs() < 1e-6));
        assert_eq!((actions[2], log_probs[2]), (0, 0.0));
    }

    #[test]
    fn a_mask_that_forbids_everything_is_an_error_naming_the_row() {
        let device = Device::flex();
        let allowed = Tensor::<2, Bool>::from_data([[true, false], [false, false]], &device);
        let error = Categorical::try_masked(Tensor::zeros([2, 2], &device), allowed).unwrap_err();
        assert_eq!(error, CoreError::NothingAllowed { row: 1, actions: 2 });
    }

    #[test]
    #[should_panic(expected = "decision 1 has no action law")]
    fn a_nan_logit_is_never_sampled_around() {
        let law = Categorical::new(Tensor::from_data([[0.0, 0.0], [0.0, f32::NAN]], &Device::flex()));
        law.draw(&mut ChaCha8Rng::seed_from_u64(1), &mut vec![], &mut vec![]);
    }

    #[test]
    fn the_fisher_product_ignores_forbidden_columns() {
        let fv = law([0.0, 0.0, -INF]).fisher_vec(Tensor::from_data([[1.0, 0.0, f32::NAN]], &Device::flex()));
        assert_eq!(fv.into_data().try_to_vec::<f32>().unwrap(), [0.25, -0.25, 0.0]);
    }
}
