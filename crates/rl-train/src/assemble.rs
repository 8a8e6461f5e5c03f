//! The composition root: one exhaustive match from a config to concrete types.
//!
//! No registry and no `dyn Algorithm`: a [`Job`] is a generic function, and [`assemble`] calls it
//! with the types that task and algorithm ask for. A new algorithm is a new arm here.

use burn::tensor::Tensor;
use rand_chacha::ChaCha8Rng;
use rl_algos::collect_env::ActionOf;
use rl_algos::{EnvCollector, Persist, Ppo, PpoConfig, Rollout, Trpo, TrpoConfig, Update, streams};
use rl_core::dist::Distribution;
use rl_envs::{ActionSpace, Env, VecEnv};
use rl_models::{
    ActorCritic, CategoricalHead, GaussianHead, Head, MlpConfig, MlpPolicy, MlpValue, Separate, Shared,
};

use crate::config::{AlgoConfig, Layout, RunConfig};
use crate::device::ChosenDevice;
use crate::world::{AnyEnv, World};

/// What a run is made of, before its first update.
pub struct Parts<E: Env, M, U> {
    /// Policy and value.
    pub model: M,
    /// What learns.
    pub algorithm: U,
    /// What samples.
    pub collector: EnvCollector<E>,
    /// Draws actions, minibatches and dropout masks.
    pub rng: ChaCha8Rng,
    /// Makes one more environment.
    pub make_env: fn() -> E,
    /// Where tensors live.
    pub device: ChosenDevice,
}

/// Something to do with a run, whatever its types are.
pub trait Job {
    /// What comes of it.
    type Output;

    /// Does it.
    fn run<E, M, U>(self, parts: Parts<E, M, U>) -> Self::Output
    where
        E: Env,
        M: ActorCritic<Obs = Tensor<2>>,
        <M::Dist as Distribution>::Elem: ActionOf<E::Action>,
        U: Update<M, Data = Rollout<Tensor<2>, M::Dist>> + Persist;
}

/// Calls `job` with what `config` asks for.
pub fn assemble<J: Job>(config: &RunConfig, device: ChosenDevice, job: J) -> J::Output {
    match config.task.kind.world() {
        World::Discrete(make) => {
            let head = CategoricalHead::new(make().action_space().width());
            with_head(config, device, make, head, job)
        }
        World::Continuous(make) => {
            let head = gaussian(config, &make().action_space(), &device);
            with_head(config, device, make, head, job)
        }
        // Refused by `RunConfig::validate`, or done by `rlhf::assemble`.
        World::Tokens => unreachable!("an RLHF run is not a run in an environment"),
    }
}

fn with_head<J, A, H>(
    config: &RunConfig,
    device: ChosenDevice,
    make_env: fn() -> AnyEnv<A>,
    head: H,
    job: J,
) -> J::Output
where
    J: Job,
    A: ?Sized + 'static,
    H: Head,
    <H::Dist as Distribution>::Elem: ActionOf<A>,
{
    match &config.algo {
        AlgoConfig::Ppo(ppo) => with_ppo(config, ppo, device, make_env, head, job),
        AlgoConfig::Trpo(trpo) | AlgoConfig::Npg(trpo) => {
            with_trpo(config, trpo, device, make_env, head, job)
        }
        // Refused by `RunConfig::validate`, or done by `rlhf::assemble`.
        AlgoConfig::RlhfPpo(_) | AlgoConfig::Rloo(_) | AlgoConfig::Grpo(_) => {
            unreachable!("an RLHF run is not a run in an environment")
        }
    }
}

fn gaussian(config: &RunConfig, actions: &ActionSpace, device: &ChosenDevice) -> GaussianHead {
    let model = &config.model;
    let limits = (model.log_std_min, model.log_std_max);
    GaussianHead::new(actions.width(), model.log_std_init, limits, &device.device)
}

fn with_ppo<J, A, H>(
    config: &RunConfig,
    ppo: &PpoConfig,
    device: ChosenDevice,
    make_env: fn() -> AnyEnv<A>,
    head: H,
    job: J,
) -> J::Output
where
    J: Job,
    A: ?Sized + 'static,
    H: Head,
    <H::Dist as Distribution>::Elem: ActionOf<A>,
{
    let algorithm = Ppo::new(ppo.clone(), config.updates());
    let (collector, obs_dim) = collector(config, make_env, ppo.gamma, ppo.gae_lambda, &device);
    let (mut weights, rng) = (streams::weights(config.seed), streams::actions(config.seed));
    let shape = config.model.mlp(device.kernels);
    match config.model.layout {
        Layout::Separate => {
            let model = separate(&shape, obs_dim, head, &mut weights, &device);
            job.run(Parts { model, algorithm, collector, rng, make_env, device })
        }
        Layout::Shared => {
            let model = Shared::new(&shape, obs_dim, head, &mut weights, &device.device);
            job.run(Parts { model, algorithm, collector, rng, make_env, device })
        }
    }
}

fn with_trpo<J, A, H>(
    config: &RunConfig,
    trpo: &TrpoConfig,
    device: ChosenDevice,
    make_env: fn() -> AnyEnv<A>,
    head: H,
    job: J,
) -> J::Output
where
    J: Job,
    A: ?Sized + 'static,
    H: Head,
    <H::Dist as Distribution>::Elem: ActionOf<A>,
{
    let algorithm = Trpo::new(trpo.clone(), config.updates());
    let (collector, obs_dim) = collector(config, make_env, trpo.gamma, trpo.gae_lambda, &device);
    let (mut weights, rng) = (streams::weights(config.seed), streams::actions(config.seed));
    // A shared layout has been refused with the run file.
    let model = separate(&config.model.mlp(device.kernels), obs_dim, head, &mut weights, &device);
    job.run(Parts { model, algorithm, collector, rng, make_env, device })
}

/// The collector that `config` asks for, and the size of its observations.
fn collector<A: ?Sized + 'static>(
    config: &RunConfig,
    make_env: fn() -> AnyEnv<A>,
    gamma: f64,
    gae_lambda: f64,
    device: &ChosenDevice,
) -> (EnvCollector<AnyEnv<A>>, usize) {
    let envs = VecEnv::new((0..config.task.envs).map(|_| make_env()).collect(), config.seed);
    let obs_dim = envs.obs_dim();
    let steps = config.algo.rollout_steps();
    let mut collector = EnvCollector::new(envs, steps, gamma, gae_lambda, &device.device);
    if let Some(clip) = config.normalize.obs_clip {
        collector = collector.with_obs_norm(clip);
    }
    if let Some(clip) = config.normalize.reward_clip {
        collector = collector.with_reward_scale(clip);
    }
    (collector, obs_dim)
}

/// Two networks of one shape; the policy draws its weights first.
fn separate<H: Head>(
    shape: &MlpConfig,
    obs_dim: usize,
    head: H,
    weights: &mut ChaCha8Rng,
    device: &ChosenDevice,
) -> Separate<MlpPolicy<H>, MlpValue> {
    let policy = MlpPolicy::new(shape, obs_dim, head, weights, &device.device);
    Separate { policy, value: MlpValue::new(shape, obs_dim, weights, &device.device) }
}
