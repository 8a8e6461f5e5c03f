//! Learning is asserted, with a margin: every world here has a known optimum, and the numbers are the shipped configs'.
//!
//! [`worlds`] asks whether PPO gets there, [`policy_gradient`] whether REINFORCE and A2C do, [`value_based`] whether DQN
//! does, [`trust_region`] whether TRPO and NPG do; [`natural_gradient`] looks at one of their steps (docs: T1–T4); [`update`] whether an update does what the
//! details of PPO say (docs: P6, P10, P13, P14) and not what the lecture's listing does.

mod lesson;
mod natural_gradient;
mod policy_gradient;
mod trust_region;
mod update;
mod value_based;
mod watched;
mod worlds;
