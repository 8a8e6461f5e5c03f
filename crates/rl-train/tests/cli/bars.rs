//! The long bars: what the shipped configs come to at their end, greedy mean of 100 episodes, seeds 1, 2 and 3.
//!
//! Minutes of CPU time each: only with `RL_SLOW=1`, which `cargo xtask test --slow` sets. Measured numbers, and more
//! seeds: docs/performance.md.

use crate::Place;

const SEEDS: [u64; 3] = [1, 2, 3];

/// A config reaches `bar` with each seed.
#[track_caller]
fn reaches(config: &str, bar: f64) {
    if std::env::var_os("RL_SLOW").is_none() {
        println!("skipped: slow (set RL_SLOW=1, or cargo xtask test --slow)");
        return;
    }
    let place = Place::new();
    let returns = SEEDS.map(|seed| {
        let out = format!("{config}-{seed}");
        place.succeeds(&format!("train {config} --seed {seed} --set eval.episodes=100 --out {out}"));
        place.json(&format!("{out}/summary.json"))["eval_return_mean"].as_f64().expect("a mean return")
    });
    println!("{config}: {returns:?} with seeds {SEEDS:?}, the bar {bar}");
    assert!(returns.iter().all(|&mean| mean >= bar), "{config}: {returns:?}, the bar is {bar}");
}

macro_rules! bars {
    ($($name:ident: $config:literal reaches $bar:expr;)*) => {
        $(#[test]
        fn $name() {
            reaches($config, $bar);
        })*
    };
}

bars! {
    ppo_balances_the_pole: "ppo-cart-pole" reaches 495.0;
    trpo_balances_the_pole: "trpo-cart-pole" reaches 495.0;
    npg_balances_the_pole: "npg-cart-pole" reaches 495.0;
    a2c_balances_the_pole: "a2c-cart-pole" reaches 495.0;
    reinforce_balances_the_pole: "reinforce-cart-pole" reaches 450.0;
    dqn_balances_the_pole: "dqn-cart-pole" reaches 475.0;
    ppo_swings_the_acrobot_up: "ppo-acrobot" reaches -85.0;
    trpo_swings_the_acrobot_up: "trpo-acrobot" reaches -85.0;
    ppo_climbs_the_mountain: "ppo-mountain-car" reaches -115.0;
    trpo_climbs_the_mountain: "trpo-mountain-car" reaches -115.0;
    ppo_climbs_with_a_throttle: "ppo-mountain-car-continuous" reaches 88.0;
    trpo_climbs_with_a_throttle: "trpo-mountain-car-continuous" reaches 90.0;
    ppo_swings_the_pendulum_up: "ppo-pendulum" reaches -180.0;
    trpo_swings_the_pendulum_up: "trpo-pendulum" reaches -180.0;
}
