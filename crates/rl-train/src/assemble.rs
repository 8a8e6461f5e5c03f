//! The composition root: one exhaustive match from a config to concrete types.
//!
//! No registry and no `dyn Algorithm`: a [`Job`] is a generic function, and [`assemble`] calls it
//! with the types that task and algorithm ask for. A new algorithm is a new arm here.

use std::time::Duration;

use anyhow::Result;
use burn::tensor::Tensor;
use rl_algos::collect_env::ActionOf;
use rl_algos::{
    A2c, Collector, Dqn, DqnConfig, EnvCollector, EpsilonGreedy, Persist, Ppo, Reinforce, Rollout, Trpo,
    Update, streams,
};
use rl_core::dist::Distribution;
use rl_envs::{ActionSpace, Env, VecEnv};
use rl_models::{
    ActorCritic, CategoricalHead, GaussianHead, Head, MlpPolicy, MlpValue, QNetwork, Separate, Shared,
};

use crate::config::{AlgoConfig, Layout, RunConfig};
use crate::device::ChosenDevice;
use crate::drive::Session;
use crate::env_session::EnvSession;
use crate::learner::Learner;
use crate::world::{AnyEnv, World};
use crate::{lm, preference, rlhf};

/// Something to do with a run, whatever kind of run it is.
pub trait Job {
    /// What comes of it.
    type Output;

    /// Does it.
    fn run<S: Session>(self, session: S) -> Self::Output;
}

/// Calls `job` with what `config` asks for.
///
/// # Errors
/// If the run cannot be put together.
pub fn assemble<J: Job>(config: &RunConfig, device: ChosenDevice, job: J) -> Result<J::Output> {
    match config.task.kind.world() {
        World::Tokens => rlhf::assemble(config, device, job),
        World::Texts => preference::assemble(config, device, job),
        World::Corpus => lm::assemble(config, device, job),
        World::Discrete(_) | World::Continuous(_) => {
            Ok(assemble_in_environments(config, device, InEnvironments { config, job }))
        }
    }
}

/// What a run in environments is made of, before its first update.
pub struct Parts<E: Env, M, C, U> {
    /// Policy and value, and what teaches them.
    pub learner: Learner<M, U>,
    /// What samples.
    pub collector: C,
    /// Makes one more environment.
    pub make_env: fn() -> E,
}

/// Something to do with the parts of a run in environments.
pub trait EnvJob {
    /// What comes of it.
    type Output;

    /// Does it.
    fn run<E, M, C, U>(self, parts: Parts<E, M, C, U>) -> Self::Output
    where
        E: Env,
        M: ActorCritic<Obs = Tensor<2>>,
        <M::Dist as Distribution>::Elem: ActionOf<E::Action>,
        C: Collector<M>,
        U: Update<M, Data = C::Data> + Persist;
}

/// A job that needs no parts gets them as a session.
struct InEnvironments<'a, J> {
    config: &'a RunConfig,
    job: J,
}

impl<J: Job> EnvJob for InEnvironments<'_, J> {
    type Output = J::Output;

    fn run<E, M, C, U>(self, parts: Parts<E, M, C, U>) -> J::Output
    where
        E: Env,
        M: ActorCritic<Obs = Tensor<2>>,
        <M::Dist as Distribution>::Elem: ActionOf<E::Action>,
        C: Collector<M>,
        U: Update<M, Data = C::Data> + Persist,
    {
        let session = EnvSession::new(parts, self.config.eval.clone());
        let task = &self.config.task;
        let limit = task.step_timeout_s.map(Duration::from_secs_f64);
        let session = session.with_on_alarm(self.config.guards().on_alarm);
        self.job.run(session.with_patience(task.kind.name(), limit))
    }
}

/// Calls `job` with the parts that `config` asks for.
///
/// # Panics
/// If `config` is of no run in environments.
pub fn assemble_in_environments<J: EnvJob>(config: &RunConfig, device: ChosenDevice, job: J) -> J::Output {
    match config.task.kind.world() {
        World::Discrete(make) => {
            if let AlgoConfig::Dqn(dqn) = &config.algo {
                return with_q_network(config, dqn, device, make, job);
            }
            let head = CategoricalHead::new(make().action_space().width())
                .with_temperature(config.model.temperature);
            with_head(config, device, make, head, job)
        }
        World::Continuous(make) => {
            let head = gaussian(config, &make().action_space(), &device);
            with_head(config, device, make, head, job)
        }
        World::Tokens | World::Texts | World::Corpus => unreachable!("such a run is put together elsewhere"),
    }
}

fn gaussian(config: &RunConfig, actions: &ActionSpace, device: &ChosenDevice) -> GaussianHead {
    let model = &config.model;
    let limits = (model.log_std_min, model.log_std_max);
    GaussianHead::new(actions.width(), model.log_std_init, limits, &device.device)
        .with_temperature(model.temperature)
}

/// DQN: action values in place of a policy, ε-greedy play in place of rollouts.
fn with_q_network<J: EnvJob>(
    config: &RunConfig,
    dqn: &DqnConfig,
    device: ChosenDevice,
    make_env: fn() -> AnyEnv<usize>,
    job: J,
) -> J::Output {
    let envs = VecEnv::new((0..config.task.envs).map(|_| make_env()).collect(), config.seed);
    let (shape, obs_dim, actions) =
        (config.model.mlp(device.kernels), envs.obs_dim(), envs.action_space().width());
    let (mut weights, rng) = (streams::weights(config.seed), streams::actions(config.seed));
    let model = QNetwork::new(&shape, obs_dim, actions, &mut weights, &device.device);
    let collector =
        EpsilonGreedy::new(envs, dqn.rollout_steps, dqn.epsilon, config.total_steps, &device.device)
            .with_random_start(dqn.learning_starts);
    let learner = Learner::new(model, Dqn::new(dqn.clone(), config.updates()), rng, device);
    job.run(Parts { learner, collector, make_env })
}

/// Picks algorithm and collector.
fn with_head<J, A, H>(
    config: &RunConfig,
    device: ChosenDevice,
    make_env: fn() -> AnyEnv<A>,
    head: H,
    job: J,
) -> J::Output
where
    J: EnvJob,
    A: ?Sized + 'static,
    H: Head,
    <H::Dist as Distribution>::Elem: ActionOf<A>,
{
    let envs = VecEnv::new((0..config.task.envs).map(|_| make_env()).collect(), config.seed);
    let place = &device.device;
    match &config.algo {
        AlgoConfig::Ppo(ppo) => {
            let collector = EnvCollector::new(envs, ppo.rollout_steps, ppo.gamma, ppo.gae_lambda, place);
            let algorithm = Ppo::new(ppo.clone(), config.updates()).with_team(device.team.clone());
            with_algorithm(config, device, make_env, head, collector, algorithm, job)
        }
        AlgoConfig::Trpo(trpo) | AlgoConfig::Npg(trpo) => {
            let collector = EnvCollector::new(envs, trpo.rollout_steps, trpo.gamma, trpo.gae_lambda, place);
            let algorithm = Trpo::new(trpo.clone(), config.updates());
            with_separate(config, device, make_env, head, collector, algorithm, job)
        }
        AlgoConfig::A2c(a2c) => {
            let collector = EnvCollector::new(envs, a2c.rollout_steps, a2c.gamma, a2c.gae_lambda, place);
            let algorithm = A2c::new(a2c.clone(), config.updates());
            with_algorithm(config, device, make_env, head, collector, algorithm, job)
        }
        AlgoConfig::Reinforce(reinforce) => {
            let collector = EnvCollector::of_whole_episodes(envs, reinforce.gamma, reinforce.credit, place);
            let algorithm = Reinforce::new(reinforce.clone(), config.total_steps);
            with_algorithm(config, device, make_env, head, collector, algorithm, job)
        }
        AlgoConfig::Dqn(_) => unreachable!("a run of DQN is put together by `with_q_network`"),
        // Refused by `RunConfig::validate`, or done by `rlhf::assemble`.
        AlgoConfig::RlhfPpo(_) | AlgoConfig::Rloo(_) | AlgoConfig::Grpo(_) => {
            unreachable!("an RLHF run is not a run in an environment")
        }
        AlgoConfig::RewardModel(_) | AlgoConfig::Dpo(_) | AlgoConfig::Sft(_) => {
            unreachable!("texts are no environment")
        }
    }
}

/// Picks the layout of the networks.
fn with_algorithm<J, A, H, U>(
    config: &RunConfig,
    device: ChosenDevice,
    make_env: fn() -> AnyEnv<A>,
    head: H,
    collector: EnvCollector<AnyEnv<A>>,
    algorithm: U,
    job: J,
) -> J::Output
where
    J: EnvJob,
    A: ?Sized + 'static,
    H: Head,
    <H::Dist as Distribution>::Elem: ActionOf<A>,
    U: Persist
        + Update<Separate<MlpPolicy<H>, MlpValue>, Data = Rollout<Tensor<2>, H::Dist>>
        + Update<Shared<H>, Data = Rollout<Tensor<2>, H::Dist>>,
{
    match config.model.layout {
        Layout::Separate => with_separate(config, device, make_env, head, collector, algorithm, job),
        Layout::Shared => {
            let shape = config.model.mlp(device.kernels);
            let (mut weights, rng) = (streams::weights(config.seed), streams::actions(config.seed));
            let model = Shared::new(&shape, make_env().obs_dim(), head, &mut weights, &device.device);
            let collector = normalised(config, collector);
            let learner = Learner::new(model, algorithm, rng, device);
            job.run(Parts { learner, collector, make_env })
        }
    }
}

/// Two networks of one shape, the only layout of TRPO and NPG; the policy draws its weights first.
fn with_separate<J, A, H, U>(
    config: &RunConfig,
    device: ChosenDevice,
    make_env: fn() -> AnyEnv<A>,
    head: H,
    collector: EnvCollector<AnyEnv<A>>,
    algorithm: U,
    job: J,
) -> J::Output
where
    J: EnvJob,
    A: ?Sized + 'static,
    H: Head,
    <H::Dist as Distribution>::Elem: ActionOf<A>,
    U: Persist + Update<Separate<MlpPolicy<H>, MlpValue>, Data = Rollout<Tensor<2>, H::Dist>>,
{
    let (shape, obs_dim) = (config.model.mlp(device.kernels), make_env().obs_dim());
    let (mut weights, rng) = (streams::weights(config.seed), streams::actions(config.seed));
    let policy = MlpPolicy::new(&shape, obs_dim, head, &mut weights, &device.device);
    let value = MlpValue::new(&shape, obs_dim, &mut weights, &device.device);
    let collector = normalised(config, collector);
    let learner = Learner::new(Separate { policy, value }, algorithm, rng, device);
    job.run(Parts { learner, collector, make_env })
}

/// The collector with the normalisers and the noise that `config` asks for.
fn normalised<E: Env>(config: &RunConfig, mut collector: EnvCollector<E>) -> EnvCollector<E> {
    collector = collector.with_noise_correlation(config.model.noise_correlation);
    if let Some(clip) = config.normalize.obs_clip {
        collector = collector.with_obs_norm(clip);
    }
    if let Some(clip) = config.normalize.reward_clip {
        collector = collector.with_reward_scale(clip);
    }
    collector
}
