//! Learning is asserted, with a margin: every world here has a known optimum, and the numbers are the shipped configs'.
//!
//! [`worlds`] asks whether PPO gets there, [`policy_gradient`] whether REINFORCE and A2C do; [`update`] whether an update
//! does what the details of PPO say (docs: P6, P10, P13, P14) and not what the lecture's listing does.

mod lesson;
mod policy_gradient;
mod update;
mod watched;
mod worlds;
