//! Runs under faults: killed at random moments, told to stop, out of space, moved, written twice, read by another version.
//!
//! A few moments of each in CI; `RL_SLOW=1` (`cargo xtask test --slow`) kills each kind of run fifty times.

mod disks;
mod folders;
mod killed;
mod long;
mod numbers;
mod place;
mod replicas;
mod retention;
mod same;
mod signals;
