//! x
pub mod verdict;
