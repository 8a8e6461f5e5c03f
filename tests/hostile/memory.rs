//! How much memory a load takes, measured from outside: in a process of its own, which says what it needed at most.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use burn::tensor::Device;
use rl_algos::checkpoint::Checkpoint;
use rl_envs::preference::{Dataset, ReadOptions};
use rl_models::lm::Transformer;
use rl_models::text::TextTokenizer;

const MIB: u64 = 1 << 20;

/// What is loaded.
const KIND: &str = "RL_HOSTILE_KIND";
/// From where.
const PATH: &str = "RL_HOSTILE_PATH";

/// What came of a load, and the bytes by which it raised the peak of its process's memory.
#[track_caller]
pub fn load(kind: &str, path: &Path) -> (String, u64) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "memory::a_process_of_its_own_loads_one_file", "--nocapture"])
        .envs([(KIND, kind.as_ref()), (PATH, path.as_os_str())])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success(), "{said}{}", String::from_utf8_lossy(&child.stderr));
    let line =
        said.lines().find_map(|line| line.split_once("LOADED ")).expect("the child says what it did").1;
    let (grown, outcome) = line.split_once(' ').expect("bytes and outcome");
    (outcome.to_owned(), grown.parse().expect("a number of bytes"))
}

/// The most memory that this process has had.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it has a line for it");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("kilobytes") * 1024
}

#[test]
fn a_process_of_its_own_loads_one_file() {
    let (Ok(kind), Some(path)) = (std::env::var(KIND), std::env::var_os(PATH)) else { return };
    let path = PathBuf::from(path);
    let small = crate::model(9).0;
    let before = {
        // What any load needs is there already.
        Transformer::load(small.path(), &Device::flex()).unwrap();
        peak()
    };
    let outcome = match kind.as_str() {
        "model" => Transformer::load(&path, &Device::flex()).map(drop).map_err(|e| e.to_string()),
        "preference" => Dataset::load(&path, &ReadOptions::default()).map(drop).map_err(|e| e.to_string()),
        "tokenizer" => TextTokenizer::load(&path).map(drop).map_err(|e| e.to_string()),
        "checkpoint" => Checkpoint::load(&path).map(drop).map_err(|e| e.to_string()),
        other => panic!("nobody loads a {other}"),
    };
    let outcome = outcome.map_or_else(|error| error.replace('\n', " "), |()| "ok".to_owned());
    println!("\nLOADED {} {outcome}", peak() - before);
}

/// Four times its files, and a little.
#[test]
fn a_model_takes_at_most_four_times_its_files() {
    if !cfg!(target_os = "linux") {
        return;
    }
    use rand::SeedableRng;
    use rl_models::lm::{FloatFormat, LmConfig};
    let config = LmConfig::llama(8192, 512, 2, 8, 4);
    let model = Transformer::new(config, &mut rand_chacha::ChaCha8Rng::seed_from_u64(1), &Device::flex());
    for format in [FloatFormat::F32, FloatFormat::Bf16] {
        let folder = tempfile::tempdir().unwrap();
        model.save(folder.path(), format).unwrap();
        let bytes = fs::metadata(folder.path().join("model.safetensors")).unwrap().len();
        let (outcome, grown) = load("model", folder.path());
        assert_eq!(outcome, "ok");
        println!("{format:?}: a file of {} MiB takes {} MiB", bytes / MIB, grown / MIB);
        assert!(grown < 4 * bytes + 16 * MIB, "{format:?}: a file of {bytes} bytes takes {grown}");
    }
}

#[test]
fn a_checkpoint_takes_at_most_four_times_its_file() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("1.safetensors");
    let tensors = [("model".to_owned(), vec![0.5; 8 << 20])].into();
    Checkpoint { state: serde_json::json!({}), tensors }.save(&path).unwrap();
    let (outcome, grown) = load("checkpoint", &path);
    assert_eq!(outcome, "ok");
    assert!(grown < 4 * 32 * MIB + 16 * MIB, "{grown} bytes");
}
