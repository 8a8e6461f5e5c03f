//! `rl-train eval`: greedy episodes of a run's last policy.

use std::path::PathBuf;

use anyhow::{Context, Result};
use burn::tensor::Tensor;
use rl_algos::checkpoint::Checkpoint;
use rl_algos::collect_env::ActionOf;
use rl_algos::{Persist, Rollout, Update};
use rl_core::dist::Distribution;
use rl_envs::Env;
use rl_models::ActorCritic;

use crate::assemble::{Job, Parts, assemble};
use crate::cli::EvalArgs;
use crate::rlhf::train::EvalRlhf;
use crate::run_folder::RunFolder;
use crate::session::Session;
use crate::{Outcome, device, rlhf};

/// Evaluates the last checkpoint. With the run's own episodes and seed this gives its summary's numbers.
///
/// # Errors
/// If there is no such run, or its last checkpoint does not load.
pub fn eval(args: &EvalArgs) -> Result<Outcome> {
    let (folder, config, text) = RunFolder::open(&args.run)?;
    let device = device::choose(args.device.as_deref().unwrap_or(&config.device))?;
    let (checkpoint, path) = folder.last_checkpoint()?;
    if config.algo.rlhf_rollout().is_some() {
        let job = EvalRlhf { config: &config, text, checkpoint, path };
        return rlhf::assemble(&config, device, job)?.context("an RLHF run has a token world")?;
    }
    let episodes = args.episodes.map_or(config.eval.episodes, |episodes| episodes as usize);
    let seed = args.seed.unwrap_or(config.eval.seed);
    let job = Eval { checkpoint, path, algorithm: config.algo.name(), text, episodes, seed };
    assemble(&config, device, job)
}

struct Eval {
    checkpoint: Checkpoint,
    path: PathBuf,
    algorithm: &'static str,
    text: String,
    episodes: usize,
    seed: u64,
}

impl Job for Eval {
    type Output = Result<Outcome>;

    fn run<E, M, U>(self, parts: Parts<E, M, U>) -> Result<Outcome>
    where
        E: Env,
        M: ActorCritic<Obs = Tensor<2>>,
        <M::Dist as Distribution>::Elem: ActionOf<E::Action>,
        U: Update<M, Data = Rollout<Tensor<2>, M::Dist>> + Persist,
    {
        let session = Session::new(parts);
        let (session, _) = session.restore(&self.checkpoint, &self.path, self.algorithm, &self.text)?;
        let evaluation = session.evaluate(self.episodes, self.seed);
        let lengths: usize = evaluation.lengths.iter().sum();
        let n = evaluation.returns.len();
        say!(
            "after update {} ({} steps), {n} greedy episodes with seed {}",
            session.update,
            session.step,
            self.seed
        );
        say!("return {} ± {}", evaluation.mean(), evaluation.std());
        say!("length {}", lengths as f64 / n as f64);
        let each: Vec<String> = evaluation.returns.iter().map(f64::to_string).collect();
        say!("returns {}", each.join(" "));
        Ok(Outcome::Done)
    }
}
