//! What a user can get wrong: exit code 2, and a text with the key, the value and the cure.

use std::fs;

use crate::{Place, TINY};

/// Training `TINY` with these options must fail with code 2, saying all of `words`.
#[track_caller]
fn refused(options: &str, words: &[&str]) {
    let place = Place::new();
    let said = place.fails(&format!("train tiny.toml --out run {options}"), 2);
    for word in words {
        assert!(said.contains(word), "`{options}` said {said:?}, without {word:?}");
    }
    assert!(!place.path("run").exists(), "`{options}` left a folder");
}

#[test]
fn an_unknown_key_is_named_with_its_table_and_the_nearest() {
    refused(
        "--set algo.epoch=4",
        &["unknown key `epoch` in [algo]; did you mean `epochs`?", "minibatch_rows"],
    );
    refused("--set algo.optimizer.beta3=0.9", &["unknown key `beta3` in [algo.optimizer]", "`beta"]);
    refused("--set sed=4", &["unknown key `sed` in the run file; did you mean `seed`?", "total_steps"]);
    refused("--set model.layers=3", &["unknown key `layers` in [model].", "hidden, activation"]);
    refused("--set algos.gamma=1", &["unknown key `algos` in the run file; did you mean `algo`?"]);
    refused(
        "--set algo.kl.kind=fixed --set algo.kl.beta=1 --set algo.kl.target=1",
        &["unknown key `target` in [algo.kl]"],
    );
}

#[test]
fn a_mistake_in_a_file_reads_as_one_in_set() {
    let place = Place::with(&TINY.replace("epochs = 2", "epoch = 2"));
    let in_file = place.fails("train tiny.toml --out run", 2);
    assert_eq!(in_file, Place::new().fails("train tiny.toml --out run --set algo.epoch=2", 2));
    assert!(in_file.starts_with("error: tiny: unknown key `epoch`"), "{in_file}");
}

#[test]
fn an_unknown_kind_lists_the_known_ones() {
    refused(
        "--set task.kind=cartpole",
        &["`task.kind` = \"cartpole\" is unknown; did you mean `cart_pole`?", "kl_toy"],
    );
    refused(
        "--set algo.kind=pop",
        &["`algo.kind` = \"pop\" is unknown", "Known: ppo, trpo, npg, a2c, reinforce, dqn, rlhf_ppo"],
    );
    refused(
        "--set algo={kind=\"reinforce\",baseline={kind=\"valu\"}}",
        &["`algo.baseline.kind` = \"valu\" is unknown; did you mean `value`?"],
    );
    refused(
        "--set algo.kl={kind=\"fixd\",beta=1}",
        &["`algo.kl.kind` = \"fixd\" is unknown; did you mean `fixed`?"],
    );
    refused("--set model.activation=gelu", &["`model.activation` = \"gelu\" is unknown", "tanh, relu"]);
    refused("--set algo.clip={kind=\"linaer\",from=1,to=0}", &["`algo.clip.kind` = \"linaer\"", "`linear`"]);
}

/// TRPO without what belongs to PPO alone.
const TRUST_REGION: &str = "total_steps = 640\n[task]\nkind = \"cart_pole\"\nenvs = 2\n\
                            [algo]\nkind = \"trpo\"\nrollout_steps = 16\nvalue_minibatch_rows = 16\n";

#[test]
fn what_a_trust_region_cannot_work_with_is_refused_by_name() {
    let place = Place::with(TRUST_REGION);
    for (set, words) in [
        ("model.layout=shared", "`model.layout` = \"shared\" does not go with `algo.kind` = \"trpo\""),
        ("model.dropout=0.1", "`model.dropout` = 0.1 does not go with `algo.kind` = \"trpo\""),
        ("algo.line_search=off", "without a line search it is `algo.kind` = \"npg\""),
        ("algo.line_search.shrink=1", "`line_search.shrink` must be in (0, 1), but is 1"),
        ("algo.max_kl=0", "`max_kl` must be in (0, ∞), but is 0"),
        ("algo.max_kl={kind=\"linear\",from=0.1,to=-1}", "`max_kl` must be in [0, ∞), but is -1"),
        ("algo.fisher_share=0", "`fisher_share` must be in (0, 1], but is 0"),
        ("algo.value_minibatch_rows=15", "try 16"),
        ("algo.clip=0.2", "unknown key `clip` in [algo]"),
    ] {
        let said = place.fails(&format!("train tiny.toml --set {set}"), 2);
        assert!(said.contains(words), "{set}: {said}");
    }
    let npg = "train tiny.toml --set algo.kind=npg --set algo.line_search={shrink=0.5}";
    let said = place.fails(npg, 2);
    assert!(said.contains("with a line search it is `algo.kind` = \"trpo\""), "{said}");
}

#[test]
fn a_wrong_type_says_what_would_do() {
    refused("--set algo.gamma=high", &["`algo.gamma` = \"high\" does not do: it must be a number"]);
    refused("--set algo.epochs=2.5", &["`algo.epochs` = 2.5 does not do: it must be a whole number"]);
    refused("--set algo.epochs=-1", &["`algo.epochs` = -1 does not do"]);
    refused("--set model.hidden=64", &["`model.hidden` = 64 does not do: it must be a list"]);
    refused("--set algo.gamma=off", &["`algo.gamma` = \"off\" does not do: it must be a number"]);
    refused("--set algo.clip=[1]", &["`algo.clip` = [1] does not do"]);
    refused("--set task=3", &["`task` = 3 does not do: it must be a table"]);
    refused("--set algo=3", &["`algo` = 3 does not do: it must be a table"]);
}

#[test]
fn a_missing_key_names_its_table() {
    let without = |line: &str| Place::with(&TINY.replace(line, "")).fails("train tiny.toml --out run", 2);
    assert!(without("total_steps = 640").contains("the run file needs the key `total_steps`"));
    assert!(without("kind = \"ppo\"").contains("[algo] needs the key `kind`"));
    assert!(without("kind = \"cart_pole\"").contains("[task] needs the key `kind`"));
    refused("--set algo.kl.beta=1", &["[algo.kl] needs the key `kind`"]);
}

#[test]
fn a_number_out_of_range_names_the_range() {
    refused("--set algo.gamma=1.5", &["`gamma` must be in [0, 1], but is 1.5", "[algo]"]);
    refused("--set algo.optimizer.beta1=1", &["optimizer.beta1` must be in [0, 1), but is 1"]);
    refused("--set task.envs=0", &["`task.envs` must be in [1, 65536], but is 0"]);
    refused("--set model.dropout=1", &["`model.dropout` must be in [0, 1), but is 1"]);
    refused("--set model.hidden=[8,0]", &["`model.hidden` must be in [1, 65536]"]);
    refused("--set model.log_std_init=9", &["`model.log_std_init` must be in [log_std_min, log_std_max]"]);
    refused("--set eval.episodes=0", &["`eval.episodes` must be in [1, ∞)"]);
    refused("--set checkpoint.keep=0", &["`checkpoint.keep` must be in [1, ∞)"]);
    refused("--set normalize.obs_clip=-1", &["`normalize.obs_clip` must be in (0, ∞), but is -1"]);
    refused("--set algo.kl={kind=\"band\",beta=0,target=1}", &["`kl.beta` = 0 never moves"]);
    refused(
        "--set algo.optimizer.kind=rmsprop",
        &["`optimizer.beta1` must be in {0} with kind = \"rmsprop\", but is 0.9"],
    );
    refused("--set algo.gamma=nan", &["gamma", "NaN"]);
}

#[test]
fn settings_that_do_not_fit_together_say_what_would() {
    refused(
        "--set algo.minibatch_rows=15",
        &["`minibatch_rows` = 15 does not divide the rollout of 32 rows (2 envs × 16 steps); try 16"],
    );
    refused(
        "--set total_steps=31",
        &["`total_steps` = 31 is less than one rollout of 32 steps (2 envs × 16 steps); use at least 32"],
    );
    refused("--set model.layout=shared --set model.hidden=[]", &["needs a hidden layer to share"]);
}

#[test]
fn a_set_that_is_no_assignment_shows_how_to_write_one() {
    refused("--set algo.gamma", &["`--set algo.gamma`: write `--set key=value`"]);
    refused("--set seed.x=1 --set seed=2 --set seed.x=1", &["`seed` is 2, not a table with keys"]);
}

#[test]
fn a_missing_file_lists_the_shipped_configs() {
    let place = Place::new();
    let said = place.fails("train cart-pole --out run", 2);
    assert!(said.contains("no file `cart-pole`, and no config of that name"), "{said}");
    assert!(said.contains("ppo-cart-pole, ppo-cart-pole-cleanrl"), "{said}");
    let said = place.fails("train configs/ppo-cart-pol.toml", 2);
    assert!(said.contains("did you mean `ppo-cart-pole`?"), "{said}");
}

#[test]
fn a_file_that_is_no_toml_shows_the_line() {
    let place = Place::with("total_steps = \n");
    let said = place.fails("train tiny.toml", 2);
    assert!(said.contains("not TOML") && said.contains("line 1"), "{said}");
}

#[test]
fn a_device_that_is_not_there_says_how_to_get_it() {
    refused("--device tpu", &["unknown device `tpu`", "flex, ndarray, wgpu, cuda"]);
    refused("--device flx", &["did you mean `flex`?"]);
    if !cfg!(feature = "wgpu") {
        refused(
            "--device wgpu",
            &["built without `wgpu`", "cargo run --release -p rl-train --features wgpu"],
        );
    }
    if !cfg!(feature = "cuda") {
        refused("--device cuda", &["built without `cuda`", "flex, ndarray"]);
    }
}

#[test]
fn a_folder_with_something_in_it_is_not_written_to() {
    let place = Place::new();
    fs::create_dir(place.path("full")).unwrap();
    fs::write(place.path("full/notes.txt"), "mine").unwrap();
    let said = place.fails("train tiny.toml --out full", 2);
    assert!(said.contains("`full` is not empty and holds no run; choose another folder"), "{said}");
    assert_eq!(fs::read_dir(place.path("full")).unwrap().count(), 1);

    place.succeeds("train tiny.toml --out run");
    let before = place.bytes("run/metrics.jsonl");
    let said = place.fails("train tiny.toml --out run", 2);
    assert!(said.contains("`run` holds a run; go on with it by `rl-train train --resume run`"), "{said}");
    assert_eq!(before, place.bytes("run/metrics.jsonl"));
    let said = place.fails("train tiny.toml --out tiny.toml", 2);
    assert!(said.contains("`tiny.toml` is a file"), "{said}");
}

#[test]
fn a_run_that_is_none_is_refused() {
    let place = Place::new();
    for line in ["eval nowhere", "train --resume nowhere"] {
        assert!(place.fails(line, 2).contains("`nowhere` is no run: there is no such folder"));
    }
    fs::create_dir(place.path("empty")).unwrap();
    assert!(place.fails("eval empty", 2).contains("`empty` is no run: it has no `config.toml`"));
}

#[test]
fn a_command_line_that_says_nothing_is_a_usage_error() {
    let place = Place::new();
    assert!(place.fails("", 2).contains("Usage"));
    assert!(place.fails("tarin", 2).contains("train"));
    assert!(place.fails("train tiny.toml --sed 3", 2).contains("--seed"));
    assert!(place.fails("train tiny.toml --seed -3", 2).contains("-3"));
}
