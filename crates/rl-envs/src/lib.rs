//! Environments: toys with known optima, the classics, and vectors of them. No tensors.
//!
//! Everything here is plain `f32` and `f64` on the host; the crate depends on none of the others and
//! never links burn. Three kinds of world:
//!
//! | world | what is known about it | use |
//! |---|---|---|
//! | [`Bandit`], [`Kakade`], [`GridWorld`], [`Lqr`] | the exact optimum, in closed form or from the [`TabularMdp`] oracle | to check that a learner learns the right thing |
//! | [`CartPole`], [`MountainCar`], [`MountainCarContinuous`], [`Acrobot`], [`Pendulum`] | Gymnasium's traces, matched step by step in double precision | to compare with everybody else |
//! | [`KlToy`] | expected reward = number of the action | the worked example of the KL-control lecture |
//!
//! # Notation
//!
//! | symbol | meaning |
//! |---|---|
//! | `E` | environments of a [`VecEnv`] |
//! | `T` | steps |
//! | `D` | observation entries ([`Env::obs_dim`]) |
//! | `S`, `A` | states and actions of a [`TabularMdp`] |
//! | `s_t, a_t, r_{t+1}` | state, action, and the reward the action earned |
//! | `γ` | discount factor; a property of the learner's aim, not of an [`Env`] |
//! | `[E·D]` | a flat slice, the first axis outermost |
//!
//! # Ends have a type
//!
//! [`StepEnd::Terminated`] means there is no future; [`StepEnd::Truncated`] means nobody watched it.
//! [`VecEnv`] resets whatever ended and keeps the final observation in
//! [`VecStep::final_obs`](vec_env::VecStep::final_obs), so the learner can bootstrap from the right
//! place. Running normalisation of observations and rewards is not a wrapper here: its statistics are
//! shared by a whole vector and belong to the learner (`rl-algos`, on `rl-core`'s `RunningMeanStd`).
//!
//! # Your own environment
//!
//! Implement [`Env`]; every method is a line or two. A walk on a line of seven cells that pays 1 at
//! the right end:
//!
//! ```
//! use rl_envs::{ActionSpace, Env, EnvRng, Step, StepEnd, TimeLimit, VecEnv};
//!
//! #[derive(Clone)]
//! struct Walk {
//!     cell: usize,
//! }
//!
//! impl Env for Walk {
//!     type Action = usize;
//!
//!     fn obs_dim(&self) -> usize { 1 }
//!     fn action_space(&self) -> ActionSpace { ActionSpace::Discrete { n: 2 } }
//!     fn reset(&mut self, _: &mut EnvRng, obs: &mut [f32]) {
//!         self.cell = 3;
//!         self.observe(obs);
//!     }
//!     fn step(&mut self, &action: &usize, _: &mut EnvRng, obs: &mut [f32]) -> Step {
//!         self.cell = if action == 1 { self.cell + 1 } else { self.cell.saturating_sub(1) };
//!         self.observe(obs);
//!         let arrived = self.cell == 6;
//!         Step { reward: f32::from(u8::from(arrived)), end: StepEnd::terminated_if(arrived) }
//!     }
//!     fn state(&self) -> Vec<f64> { vec![self.cell as f64] }
//!     fn set_state(&mut self, state: &[f64]) { self.cell = state[0] as usize }
//!     fn observe(&self, obs: &mut [f32]) { obs[0] = self.cell as f32 / 6.0 }
//! }
//!
//! let mut envs = VecEnv::new(vec![TimeLimit::new(Walk { cell: 3 }, 100); 2], 0);
//! envs.step(|_| &1);
//! envs.step(|_| &1);
//! let step = envs.step(|i| if i == 0 { &1 } else { &0 });
//! assert_eq!(step.ends, [StepEnd::Terminated, StepEnd::Continues]);
//! assert_eq!(step.final_obs, [(0, vec![1.0])]); // where it ended …
//! assert_eq!(envs.obs(), [0.5, 4.0 / 6.0]); // … and where the next episode starts
//! ```

pub mod acrobot;
pub mod bandit;
pub mod cart_pole;
pub mod env;
pub mod episode;
pub mod error;
pub mod fault;
pub mod flaky;
pub mod gridworld;
pub mod kakade;
pub mod kl_toy;
mod lane;
pub mod lqr;
pub mod map;
pub mod mountain_car;
pub mod mountain_car_continuous;
pub mod pendulum;
pub mod preference;
pub mod sentiment;
pub mod story;
pub mod tabular;
pub mod time_limit;
pub mod token_mdp;
pub mod token_world;
pub mod value_iteration;
pub mod vec_env;

pub use acrobot::Acrobot;
pub use bandit::{Arm, Bandit};
pub use cart_pole::CartPole;
pub use env::{ActionSpace, Env, EnvRng, Step, StepEnd, env_rng};
pub use episode::{Episode, EpisodeWindow};
pub use error::EnvError;
pub use fault::{EnvFault, Misdeed, Pulse};
pub use gridworld::GridWorld;
pub use kakade::Kakade;
pub use kl_toy::KlToy;
pub use lqr::{Lqr, LqrConfig, LqrOptimum};
pub use map::{MapObs, MapReward};
pub use mountain_car::MountainCar;
pub use mountain_car_continuous::MountainCarContinuous;
pub use pendulum::Pendulum;
pub use story::Story;
pub use tabular::{ActionValues, SoftmaxTable, Target, TdConfig};
pub use time_limit::TimeLimit;
pub use token_mdp::TokenMdp;
pub use token_world::{TokenWorld, TokenWorldParameters};
pub use value_iteration::{Solution, TabularMdp};
pub use vec_env::{VecEnv, VecEnvState, VecStep};
