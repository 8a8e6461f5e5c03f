//! The composition root: one exhaustive match from a config to concrete types.
//!
//! No registry and no `dyn Algorithm`: a [`Job`] is a generic function, and [`assemble`] calls it
//! with the types that task and algorithm ask for. A new algorithm is a new arm here.

use burn::tensor::Tensor;
use rand_chacha::ChaCha8Rng;
use rl_algos::collect_env::ActionOf;
use rl_algos::{EnvCollector, Persist, Ppo, PpoConfig, Rollout, Update, streams};
use rl_core::dist::Distribution;
use rl_envs::{ActionSpace, Env, VecEnv};
use rl_models::{ActorCritic, CategoricalHead, GaussianHead, Head, MlpPolicy, MlpValue, Separate, Shared};

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
    match (config.task.kind.world(), &config.algo) {
        (World::Discrete(make), AlgoConfig::Ppo(ppo)) => {
            let head = CategoricalHead::new(make().action_space().width());
            with_ppo(config, ppo, device, make, head, job)
        }
        (World::Continuous(make), AlgoConfig::Ppo(ppo)) => {
            let head = gaussian(config, &make().action_space(), &device);
            with_ppo(config, ppo, device, make, head, job)
        }
        // Refused by `RunConfig::validate`, or done by `rlhf::assemble`.
        (World::Tokens, _) | (_, AlgoConfig::RlhfPpo(_) | AlgoConfig::Rloo(_) | AlgoConfig::Grpo(_)) => {
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
    let envs = VecEnv::new((0..config.task.envs).map(|_| make_env()).collect(), config.seed);
    let obs_dim = envs.obs_dim();
    let mut collector = EnvCollector::new(envs, ppo.rollout_steps, ppo.gamma, ppo.gae_lambda, &device.device);
    if let Some(clip) = config.normalize.obs_clip {
        collector = collector.with_obs_norm(clip);
    }
    if let Some(clip) = config.normalize.reward_clip {
        collector = collector.with_reward_scale(clip);
    }
    let (mut weights, rng) = (streams::weights(config.seed), streams::actions(config.seed));
    let shape = config.model.mlp(device.kernels);
    match config.model.layout {
        Layout::Separate => {
            let policy = MlpPolicy::new(&shape, obs_dim, head, &mut weights, &device.device);
            let value = MlpValue::new(&shape, obs_dim, &mut weights, &device.device);
            job.run(Parts { model: Separate { policy, value }, algorithm, collector, rng, make_env, device })
        }
        Layout::Shared => {
            let model = Shared::new(&shape, obs_dim, head, &mut weights, &device.device);
            job.run(Parts { model, algorithm, collector, rng, make_env, device })
        }
    }
}
