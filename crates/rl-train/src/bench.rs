//! `rl-train bench`: environment steps per CPU second of the whole loop, and of each of its parts.
//!
//! CPU seconds and not wall seconds: a shared machine stretches the latter. A part is measured alone,
//! on buffers of the run's own shapes, for as many rounds as fit into its share of the time.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use burn::tensor::{Tensor, TensorData};
use rl_algos::collect_env::ActionOf;
use rl_algos::{Collector, Persist, Update};
use rl_core::dist::Distribution;
use rl_core::returns::{End, gae};
use rl_envs::{Env, VecEnv};
use rl_models::ActorCritic;
use serde::Serialize;

use crate::assemble::{EnvJob, Parts, assemble_in_environments};
use crate::cli::BenchArgs;
use crate::config::{RunConfig, shipped};
use crate::env_session::EnvSession;
use crate::learner::Learner;
use crate::progress::grouped;
use crate::world::World;
use crate::{Outcome, device, process};

/// Measures a config.
///
/// # Errors
/// If the config cannot work, or an update goes bad.
pub fn bench(args: &BenchArgs) -> Result<Outcome> {
    let source = shipped::find(args.config.as_deref())?;
    let mut tree = source.tree().with_context(|| source.name.clone())?;
    args.changes.apply(&mut tree)?;
    let config = RunConfig::from_tree(tree).with_context(|| source.name.clone())?;
    anyhow::ensure!(
        matches!(config.task.kind.world(), World::Discrete(_) | World::Continuous(_)),
        "`rl-train bench` measures runs in environments, and {} is none",
        source.name
    );
    let device = device::choose(&config.device)?;
    assemble_in_environments(
        &config,
        device,
        Bench { config: &config, name: source.name, seconds: args.seconds.max(0.1) },
    )
}

struct Bench<'a> {
    config: &'a RunConfig,
    name: String,
    seconds: f64,
}

/// The JSON line. Times are CPU microseconds per environment step.
#[derive(Serialize)]
struct Figures {
    config: String,
    device: String,
    steps_per_cpu_s: f64,
    loop_us: f64,
    environment_us: f64,
    inference_us: f64,
    gae_us: f64,
    update_us: f64,
    peak_rss_mb: Option<f64>,
}

impl EnvJob for Bench<'_> {
    type Output = Result<Outcome>;

    fn run<E, M, C, U>(self, parts: Parts<E, M, C, U>) -> Result<Outcome>
    where
        E: Env,
        M: ActorCritic<Obs = Tensor<2>>,
        <M::Dist as Distribution>::Elem: ActionOf<E::Action>,
        C: Collector<M>,
        U: Update<M, Data = C::Data> + Persist,
    {
        let (envs, steps) = (self.config.task.envs, self.config.algo.rollout_steps());
        let rows = envs * steps;
        let share = self.seconds / 4.0;

        let mut session = EnvSession::new(parts, self.config.eval.clone());
        session.collect_and_update()?; // caches are warm, buffers are there
        let loop_us = per_step(self.seconds, rows, || session.collect_and_update().map(drop))?;
        let EnvSession { learner, mut collector, make_env, .. } = session;
        let Learner { mut model, mut algorithm, mut rng, device, .. } = learner;

        let mut alone = VecEnv::new((0..envs).map(|_| make_env()).collect::<Vec<E>>(), self.config.seed);
        let obs_dim = alone.obs_dim();
        let obs = Tensor::from_data(TensorData::new(alone.obs().to_vec(), [envs, obs_dim]), &device.device);
        let (mut drawn, mut log_probs) = (Vec::new(), Vec::new());
        model.policy(&obs).draw(&mut rng, &mut drawn, &mut log_probs);
        let width = drawn.len() / envs;
        let environment_us = per_step(share, envs, || {
            black_box(alone.step(|env| ActionOf::action(&drawn, env, width)));
            Ok(())
        })?;

        let (mut elems, mut probs) = (Vec::new(), Vec::new());
        let inference_us = per_step(share, envs, || {
            elems.clear();
            probs.clear();
            model.policy(&obs).draw(&mut rng, &mut elems, &mut probs);
            Ok(())
        })?;

        let (rewards, values, ends) = (vec![1.0f32; steps], vec![0.5; steps], vec![End::Continues; steps]);
        let gae_us = per_step(share, steps, || {
            black_box(gae(black_box(&rewards), &values, &ends, 0.5, 0.99, 0.95));
            Ok(())
        })?;

        let (data, _) = collector.collect(&model, &mut rng);
        let mut held = Some(model);
        let update_us = per_step(share, rows, || {
            let (next, _) = algorithm.update(held.take().context("an update went bad")?, &data, &mut rng)?;
            held = Some(next);
            Ok(())
        })?;
        model = held.context("an update went bad")?;
        drop(model);

        print(&Figures {
            config: self.name,
            device: self.config.device.clone(),
            steps_per_cpu_s: 1e6 / loop_us,
            loop_us,
            environment_us,
            inference_us,
            gae_us,
            update_us,
            peak_rss_mb: process::peak_rss_mb(),
        })?;
        Ok(Outcome::Done)
    }
}

/// CPU microseconds per step of `round`, which makes `steps` of them, measured for `seconds`; wall
/// microseconds where the system does not tell CPU time.
fn per_step(seconds: f64, steps: usize, mut round: impl FnMut() -> Result<()>) -> Result<f64> {
    let (limit, started, cpu) = (Duration::from_secs_f64(seconds), Instant::now(), process::cpu_seconds());
    let mut rounds = 0u64;
    while rounds == 0 || started.elapsed() < limit {
        round()?;
        rounds += 1;
    }
    let wall = started.elapsed().as_secs_f64();
    let spent = process::cpu_seconds().zip(cpu).map_or(wall, |(after, before)| after - before);
    Ok(1e6 * spent / (rounds as f64 * steps as f64))
}

fn print(figures: &Figures) -> Result<()> {
    let rest =
        figures.loop_us - figures.environment_us - figures.inference_us - figures.gae_us - figures.update_us;
    say!(
        "{} on {}: {} environment steps per CPU second\n",
        figures.config,
        figures.device,
        grouped(figures.steps_per_cpu_s as u64)
    );
    say!("{:<24}{:>12}{:>10}", "part", "µs a step", "share");
    let parts = [
        ("environment", figures.environment_us),
        ("inference and draw", figures.inference_us),
        ("advantages (GAE)", figures.gae_us),
        ("update", figures.update_us),
        ("the rest", rest),
        ("whole loop", figures.loop_us),
    ];
    for (part, us) in parts {
        say!("{part:<24}{us:>12.3}{:>9.1}%", 100.0 * us / figures.loop_us);
    }
    say!("\n{}", serde_json::to_string(figures)?);
    Ok(())
}
