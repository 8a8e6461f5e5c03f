//! Action values learnt from transitions: what Q(s, a) should have said, and how to take it from a table of values.
//!
//! ```text
//! y = r + γ·max_a Q⁻(s′, a)                        Watkins 1989; with a target network Q⁻: Mnih 2015
//! y = r + γ·Q⁻(s′, argmax_a Q(s′, a))              double: van Hasselt 2016, eq. 4
//! y = r                                            where the process itself ended
//! ```
//!
//! The maximum over noisy values is too high on average. Double Q-learning lets one network choose and the other judge.

use burn::tensor::{Bool, Int, Tensor};

/// `Q(s, a)` of the actions taken.
///
/// # Shapes
/// `q: [N, A]`, `actions: [N]`, each in `0..A` → `[N]`
#[must_use]
pub fn chosen(q: Tensor<2>, actions: Tensor<1, Int>) -> Tensor<1> {
    let [n, _] = q.dims();
    q.gather(1, actions.reshape([n, 1])).reshape([n])
}

/// `max_a Q(s, a)`: what the greedy policy is worth, by its own account.
///
/// # Shapes
/// `q: [N, A]` → `[N]`
#[must_use]
pub fn greedy_value(q: Tensor<2>) -> Tensor<1> {
    let [n, _] = q.dims();
    q.max_dim(1).reshape([n])
}

/// `Q⁻(s, argmax_a Q(s, a))`: `q` chooses, `q_target` judges. Never above [`greedy_value`] of `q_target`.
///
/// # Shapes
/// `q: [N, A]`, `q_target: [N, A]` → `[N]`
#[must_use]
pub fn double_value(q: Tensor<2>, q_target: Tensor<2>) -> Tensor<1> {
    let [n, _] = q.dims();
    chosen(q_target, q.argmax(1).reshape([n]))
}

/// `y = r + γ·V(s′)`, and `y = r` where the process itself ended. A cut step has a future and is not `terminated`.
///
/// # Shapes
/// `rewards: [N]`, `next_value: [N]`, `terminated: [N]` → `[N]`
#[must_use]
pub fn target(
    rewards: Tensor<1>,
    next_value: Tensor<1>,
    terminated: Tensor<1, Bool>,
    gamma: f64,
) -> Tensor<1> {
    rewards + (next_value * gamma).mask_fill(terminated, 0.0)
}
