//! The mathematics of policy gradients and RLHF: one formula per function, nothing but formulas.
//!
//! This crate knows tensors and slices. It knows no environment, no network, no optimizer and no file: those live in
//! the crates above it. A function here is pure; what persists between calls (a KL controller, running statistics) is a
//! small serializable value that the caller owns.
//!
//! # Notation
//!
//! One letter per axis, everywhere:
//!
//! | letter | axis | letter | axis |
//! |---|---|---|---|
//! | `N` | decisions (one action each) | `B` | preference pairs |
//! | `R` | rows: observations or sequences | `S` | tokens of a sequence |
//! | `L` | decisions per row | `A` | actions |
//! | `T` | time steps of one stream | `V` | vocabulary |
//! | `E` | environments | `D` | dimensions |
//!
//! All logarithms are natural; entropies and KL divergences are in nats. `KL(P ‖ Q) = Σ P·log(P/Q)`: the samples come
//! from the first argument.
//!
//! # Two halves
//!
//! *Host* functions take slices of `f32` or `f64` ([`real::Real`]) and follow one stream of time or one sequence:
//! [`returns`], [`group`], [`token_reward`], [`whiten`], [`running`], [`kl_control`], [`schedule`],
//! [`conjugate_gradient`], [`line_search`], [`natural_gradient`], [`tilt`], [`bootstrap`].
//!
//! *Tensor* functions take flat `[N]` decisions and are differentiable: [`dist`], [`token_log_prob`], [`kl`],
//! [`surrogate`], [`value_loss`], [`q_learning`], [`masked`], [`preference`], [`grpo`], [`diagnostics`].
//!
//! # Failure
//!
//! A wrong shape is a bug in the calling code and panics; a wrong number from a user is a [`CoreError`] that names the
//! key, the value and the cure.

pub mod bootstrap;
pub mod conjugate_gradient;
pub mod diagnostics;
pub mod dist;
pub mod error;
pub mod group;
pub mod grpo;
mod hand_gradient;
pub mod kl;
pub mod kl_control;
pub mod line_search;
pub mod masked;
pub mod natural_gradient;
pub mod preference;
pub mod q_learning;
pub mod real;
pub mod returns;
pub mod running;
pub mod schedule;
pub mod surrogate;
pub mod tilt;
pub mod token_log_prob;
pub mod token_reward;
pub mod value_loss;
pub mod whiten;

pub use error::CoreError;
pub use kl_control::KlController;
pub use returns::End;
pub use schedule::Schedule;
