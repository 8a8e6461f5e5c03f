//! The token world: golden vectors to 1e-9, and the laws that tie its sums to the formulas of `rl-core`.
//!
//! The folder of the vectors is `RL_GOLDEN_DIR`, by default `tests/golden`.

mod laws;
mod mdp;
mod responses;

use std::path::{Path, PathBuf};

use rl_tests::token_world_vectors::{FUNCTION, check};

#[test]
fn every_number_of_the_golden_worlds_is_reproduced() {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let folder = std::env::var_os("RL_GOLDEN_DIR").map_or(default, PathBuf::from);
    let path = folder.join("token_world.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(file["function"], FUNCTION);
    let (compared, faults) = check(&file);
    println!("token world: {compared} numbers of {} compared", path.display());
    assert!(compared > 100, "only {compared} numbers were compared");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
