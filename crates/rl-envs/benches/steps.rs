//! Nanoseconds per environment step: `cargo bench -p rl-envs`.
//!
//! The first number is one bare environment in a loop (with a reset after every end), the second one
//! of 64 environments in a `VecEnv`. Actions come from a small counter so that only the environment
//! is measured.

use std::hint::black_box;
use std::time::Instant;

use rl_envs::{Acrobot, CartPole, Env, MountainCar, Pendulum, TimeLimit, VecEnv, env_rng};

const STEPS: usize = 2_000_000;
const ENVS: usize = 64;

/// Best of five runs of `work`, in nanoseconds per step.
fn best_of_five(steps: usize, mut work: impl FnMut()) -> f64 {
    let mut timed = || {
        let start = Instant::now();
        work();
        start.elapsed().as_nanos() as f64 / steps as f64
    };
    (0..5).map(|_| timed()).fold(f64::INFINITY, f64::min)
}

fn measure<E: Env + Clone>(name: &str, env: TimeLimit<E>, actions: &[&E::Action; 4])
where
    E::Action: Sync,
{
    let (mut single, mut rng) = (env.clone(), env_rng(1, 0));
    let mut obs = vec![0.0; env.obs_dim()];
    single.reset(&mut rng, &mut obs);
    let alone = best_of_five(STEPS, || {
        for t in 0..STEPS {
            let step = single.step(black_box(actions[(t >> 1) & 3]), &mut rng, &mut obs);
            if step.end.is_over() {
                single.reset(&mut rng, &mut obs);
            }
            black_box(&obs);
        }
    });
    let mut envs = VecEnv::new(vec![env; ENVS], 1);
    let together = best_of_five(STEPS, || {
        for t in 0..STEPS / ENVS {
            black_box(envs.step(|i| black_box(actions[(t + i) & 3])));
        }
    });
    println!("{name:<14} {alone:7.1} ns/step alone   {together:7.1} ns/step in a vector of {ENVS}");
}

fn main() {
    measure("CartPole", CartPole::v1(), &[&0, &1, &1, &0]);
    measure("MountainCar", MountainCar::v0(), &[&0, &2, &1, &2]);
    measure("Acrobot", Acrobot::v1(), &[&0, &2, &1, &2]);
    measure("Pendulum", Pendulum::v1(), &[&[-2.0][..], &[0.5], &[2.0], &[0.0]]);
}
