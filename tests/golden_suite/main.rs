//! Golden vectors: numbers computed elsewhere, in 60 digits, against every formula of ours.
//!
//! The folder is `RL_GOLDEN_DIR`, by default `tests/golden`; its README gives the schema. A file names its `function`;
//! one module per subject says which code computes it. Host functions run in `f32` and `f64`, tensor functions on every
//! device of [`rl_tests::devices`], in `f32` and, where the device has it, `f64`. Every number of every expected key is
//! compared, gradients by autodiff included, and nothing is skipped without being counted.

mod action_laws;
mod compare;
mod dpo;
mod kl;
mod on_device;
mod optimiser;
mod ppo;
mod replay;
mod returns;
mod rlhf;
mod statistics;
mod suite;
mod token_world;
mod traces;
mod trust_region;
mod vectors;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use suite::{Formulas, Report};

/// Which code computes which `function`.
const SUBJECTS: &[Formulas] = &[
    action_laws::FORMULAS,
    dpo::FORMULAS,
    kl::FORMULAS,
    optimiser::FORMULAS,
    ppo::FORMULAS,
    returns::FORMULAS,
    rlhf::FORMULAS,
    statistics::FORMULAS,
    token_world::FORMULAS,
    traces::FORMULAS,
    trust_region::FORMULAS,
];

/// The whole folder, run once, by whichever test asks first.
static REPORT: LazyLock<Report> = LazyLock::new(|| {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let report = Report::of(&std::env::var_os("RL_GOLDEN_DIR").map_or(default, PathBuf::from), SUBJECTS);
    // Not `println!`, which the test harness captures: the counts are to be seen when all is well, too.
    let _ = std::io::stdout().write_all(report.summary().as_bytes());
    report
});

#[test]
fn action_laws_agree() {
    REPORT.demand(action_laws::FORMULAS);
}

#[test]
fn kl_estimators_and_controllers_agree() {
    REPORT.demand(kl::FORMULAS);
}

#[test]
fn returns_and_advantages_agree() {
    REPORT.demand(returns::FORMULAS);
}

#[test]
fn whitening_and_running_statistics_agree() {
    REPORT.demand(statistics::FORMULAS);
}

#[test]
fn ppo_losses_and_their_gradients_agree() {
    REPORT.demand(ppo::FORMULAS);
}

#[test]
fn optimiser_steps_agree() {
    REPORT.demand(optimiser::FORMULAS);
}

#[test]
fn natural_gradients_and_trust_region_steps_agree() {
    REPORT.demand(trust_region::FORMULAS);
}

#[test]
fn rlhf_rewards_and_losses_agree() {
    REPORT.demand(rlhf::FORMULAS);
}

#[test]
fn the_dpo_family_and_its_gradients_agree() {
    REPORT.demand(dpo::FORMULAS);
}

#[test]
fn the_token_worlds_agree() {
    REPORT.demand(token_world::FORMULAS);
}

#[test]
fn gymnasium_episodes_are_reproduced_step_by_step() {
    REPORT.demand(traces::FORMULAS);
}

#[test]
fn the_folder_holds_nothing_that_no_code_knows() {
    REPORT.demand_everything();
}
