//! Several replicas of one run: threads, processes behind sockets, and what comes of it when one goes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::place::{Place, rows};

/// `rl-train serve` at a free port of the loopback.
struct Server {
    child: Child,
    address: String,
    /// Its words go somewhere as long as it lives.
    _said: BufReader<std::process::ChildStdout>,
}

impl Server {
    fn start(place: &Place) -> Self {
        let mut command = place.command("serve --device flex --listen 127.0.0.1:0");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (mut said, mut line) = (BufReader::new(child.stdout.take().unwrap()), String::new());
        said.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("flex serves at ").expect("it says where").to_owned();
        Self { child, address, _said: said }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn metrics(place: &Place, out: &str) -> Vec<Value> {
    let text = fs::read_to_string(place.path(out).join("metrics.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Short runs of the kinds that share gradients.
const SHARED: [(&str, &str); 3] = [
    ("ppo", "--set total_steps=640"),
    ("dpo", "--set total_steps=40"),
    ("reward_model", "--set total_steps=40"),
];

#[test]
fn replicas_in_threads_and_behind_sockets_learn_the_same_bits_and_what_one_device_learns() {
    let place = Place::new();
    let servers = [Server::start(&place), Server::start(&place)];
    for (kind, set) in SHARED {
        // Four parts; two servers, of which each is called once.
        place.succeeds(&format!("train {kind}.toml --out {kind}-alone {set}"));
        place.succeeds(&format!("train {kind}.toml --out {kind}-two {set} --devices flex,flex"));
        let remote = format!("flex,remote:{}", servers[0].address);
        place.succeeds(&format!("train {kind}.toml --out {kind}-remote {set} --devices {remote}"));
        place.assert_same(&format!("{kind}-two"), &format!("{kind}-remote"));
        place.succeeds(&format!("train {kind}.toml --out {kind}-four {set} --devices flex,flex,flex,flex"));
        let [a, b] = [&servers[0].address, &servers[1].address];
        let mixed = format!("flex,remote:{a},flex,remote:{b}");
        place.succeeds(&format!("train {kind}.toml --out {kind}-mixed {set} --devices {mixed}"));
        place.assert_same(&format!("{kind}-four"), &format!("{kind}-mixed"));

        let (alone, two) =
            (metrics(&place, &format!("{kind}-alone")), metrics(&place, &format!("{kind}-two")));
        assert_eq!(alone.len(), two.len());
        for name in ["losses/policy_loss", "losses/grad_norm", "losses/value_loss"] {
            let (Some(x), Some(y)) = (alone[0][name].as_f64(), two[0][name].as_f64()) else { continue };
            assert!((x - y).abs() <= 1e-4 * x.abs().max(1.0), "{kind} {name}: {x} alone, {y} shared");
        }
    }
}

#[test]
fn a_replica_that_is_killed_ends_the_run_cleanly_and_it_goes_on_without_it() {
    let place = Place::new();
    let (mut victim, survivor) = (Server::start(&place), Server::start(&place));
    // Three replicas divide 18 rows, not 16.
    let set = "--set algo.rollout_steps=18 --set algo.minibatch_rows=18 --set total_steps=10800";
    let devices = format!("flex,remote:{},remote:{}", survivor.address, victim.address);
    let line = format!("train ppo.toml --out run {set} --devices {devices}");
    let mut leader = place.command(&line);
    let leader = leader.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    place.wait_for("run", 20);
    victim.child.kill().unwrap();
    victim.child.wait().unwrap();
    let ended = leader.wait_with_output().unwrap();
    let said = crate::place::said(&ended);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    for words in
        ["its last healthy checkpoint is `run/checkpoint/", "replica 2 of 3", "was not finished", "--devices"]
    {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
    let before = rows(&place.path("run"));
    // The server that is left serves again.
    let rest = format!("flex,remote:{}", survivor.address);
    assert!(place.succeeds(&format!("train --resume run --devices {rest}")).contains("goes on after update"));
    let all = rows(&place.path("run"));
    assert!(all == 300 && before < all, "{before} of {all} updates");
    assert!(place.json("run/summary.json")["eval_return_mean"].is_number());
}

#[test]
fn what_cannot_be_shared_is_refused_before_anything_is_written() {
    let place = Place::new();
    for (line, words) in [
        ("ppo.toml --devices flex,flex,flex", "3 devices do not divide `algo.minibatch_rows` = 16 evenly"),
        ("ppo.toml --devices flex,tpu", "`tpu`"),
        ("ppo.toml --devices remote:127.0.0.1:1", "the first device is the run's own"),
        ("trpo.toml --devices flex,flex", "only `ppo`, `dpo` and `reward_model` share their gradients"),
        ("dpo.toml --devices flex,flex --set algo.loss={kind=\"kto_pair\"}", "`kto_pair`"),
        ("ppo.toml --devices flex,flex --set guards.on_alarm=rollback", "replicas cannot roll back"),
    ] {
        let said = place.fails(&format!("train {line} --out refused"), 2);
        assert!(said.contains(words), "{line}: {said}");
        assert!(!place.path("refused").exists(), "{line}");
    }
    let said = place.fails("train ppo.toml --out refused --devices flex,remote:127.0.0.1:1", 1);
    assert!(said.contains("nobody serves at `127.0.0.1:1`") && said.contains("rl-train serve"), "{said}");
}
