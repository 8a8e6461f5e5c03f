//! Policy, value and reward networks on burn.
//!
//! A network takes a `&Device` and names no backend. It lives on the *plain* device: rollouts and
//! evaluation record nothing, and only [`Policy::gradient`], [`ValueFunction::gradient`] and
//! [`ActorCritic::gradient`] lift it to autodiff, for the length of one call. Gradients and
//! parameters are one flat vector `[P]` ([`flat_params`]), so an optimiser, a trust region and a
//! global norm each are one line.
//!
//! | letter | axis | letter | axis |
//! |---|---|---|---|
//! | `R` | rows of one forward pass | `N` | decisions, `N = R·L` |
//! | `D` | observation size | `A` | actions, or size of a continuous action |
//! | `H` | hidden units | `P` | parameters |
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use rand::SeedableRng;
//! use rl_core::dist::Distribution;
//! use rl_models::{ActorCritic, CategoricalHead, MlpConfig, MlpPolicy, MlpValue, Policy, Separate};
//!
//! let device = Device::flex();
//! let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
//! let shape = MlpConfig::default();
//! let model = Separate {
//!     policy: MlpPolicy::new(&shape, 4, CategoricalHead::new(2), &mut rng, &device),
//!     value: MlpValue::new(&shape, 4, &mut rng, &device),
//! };
//! let obs = Tensor::zeros([8, 4], &device);
//! let gradient = model.gradient(&obs, &mut rng, |law| law.entropy().mean(), |value| value.mean());
//! assert_eq!(gradient.dims(), [rl_models::flat_params::flatten(&model).dims()[0]]);
//! ```

pub mod activation;
pub mod flat_params;
pub mod head;
mod host;
pub mod init;
pub mod lm;
pub mod mlp;
pub mod mlp_policy;
pub mod q_network;
pub mod sampler;
pub mod separate;
pub mod shared;
pub mod table;
mod tape;
pub mod tempered;
#[cfg(feature = "text")]
pub mod text;
pub mod tokens;
pub mod traits;

pub use activation::Activation;
pub use head::{CategoricalHead, GaussianHead, Head};
pub use mlp::{Kernels, Mlp, MlpConfig};
pub use mlp_policy::{MlpPolicy, MlpValue};
pub use q_network::QNetwork;
pub use sampler::{Response, ResponseEnd, Sampler, Sampling};
pub use separate::Separate;
pub use shared::Shared;
pub use table::{Contexts, TablePolicy, TableValue};
pub use tempered::Tempered;
pub use tokens::Tokens;
pub use traits::{ActorCritic, Policy, Rows, ValueFunction};
