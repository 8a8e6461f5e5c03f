//! A run from a shipped config, through the library: what `rl-train` does, without files and without a screen.

use burn::tensor::{Device, Tensor, TensorData};
use rl_algos::collect_env::ActionOf;
use rl_algos::{EnvCollector, Evaluation, Ppo, PpoConfig, PpoReport, Update, evaluate, streams};
use rl_core::dist::Distribution;
use rl_envs::{ActionSpace, Env, VecEnv};
use rl_models::{
    Activation, ActorCritic, CategoricalHead, GaussianHead, Head, Kernels, MlpConfig, MlpPolicy, MlpValue,
    Separate,
};
use serde::Deserialize;
use serde_json::Value;

/// The optional settings of PPO, for which a run file says `"off"`.
const OPTIONAL: [&str; 5] = ["clip", "kl", "target_kl", "value_clip", "max_grad_norm"];

/// What a run file says, as far as these tests follow it.
#[derive(Clone, Debug)]
pub struct Lesson {
    /// Environments side by side.
    pub envs: usize,
    /// Environment steps in all.
    pub total_steps: usize,
    /// The shape of both networks.
    pub shape: MlpConfig,
    /// First log σ of a continuous policy.
    pub log_std_init: f64,
    /// PPO's settings.
    pub ppo: PpoConfig,
    /// Bound of the scaled rewards, where they are scaled.
    pub reward_clip: Option<f64>,
    /// Bound of the normalised observations, where they are normalised.
    pub obs_clip: Option<f64>,
}

/// What a run came to.
pub struct Learnt<H: Head> {
    /// The networks after the last update.
    pub model: Separate<MlpPolicy<H>, MlpValue>,
    /// One report per update.
    pub reports: Vec<PpoReport>,
    /// Where the networks are.
    pub device: Device,
}

impl Lesson {
    /// The numbers of `configs/<name>.toml`.
    pub fn shipped(name: &str) -> Self {
        let path = format!("{}/../configs/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let file: toml::Table = text.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
        let file = serde_json::to_value(file).expect("TOML fits into JSON");

        let mut algo = file["algo"].as_object().expect("a run file has [algo]").clone();
        assert_eq!(algo.remove("kind"), Some("ppo".into()), "{path}");
        for key in OPTIONAL {
            if algo.get(key).is_some_and(|value| value == "off") {
                algo.insert(key.to_owned(), Value::Null);
            }
        }
        let ppo =
            PpoConfig::deserialize(Value::Object(algo)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let model = &file["model"];
        assert!(model["layout"].as_str().is_none_or(|layout| layout == "separate"), "{path}");
        let plain = MlpConfig::default();
        let shape = MlpConfig {
            hidden: read(&model["hidden"], plain.hidden),
            activation: read(&model["activation"], Activation::default()),
            kernels: Kernels::Host,
            ..MlpConfig::default()
        };
        Self {
            envs: read(&file["task"]["envs"], 8),
            total_steps: read(&file["total_steps"], 0),
            shape,
            log_std_init: read(&model["log_std_init"], 0.0),
            ppo,
            reward_clip: read(&file["normalize"]["reward_clip"], None),
            obs_clip: read(&file["normalize"]["obs_clip"], None),
        }
    }

    /// Updates in the whole run.
    pub fn updates(&self) -> usize {
        self.total_steps / (self.envs * self.ppo.rollout_steps)
    }

    /// Learns to act in a discrete world.
    pub fn learn<E: Env<Action = usize>>(&self, make: impl Fn() -> E, seed: u64) -> Learnt<CategoricalHead> {
        let actions = make().action_space().width();
        self.run(make, CategoricalHead::new(actions), seed)
    }

    /// Learns to act in a continuous world.
    pub fn learn_continuous<E: Env<Action = [f32]>>(
        &self,
        make: impl Fn() -> E,
        seed: u64,
    ) -> Learnt<GaussianHead> {
        let ActionSpace::Continuous { low, .. } = make().action_space() else { panic!("a continuous world") };
        self.run(make, GaussianHead::new(low.len(), self.log_std_init, (-5.0, 2.0), &Device::flex()), seed)
    }

    fn run<E: Env, H: Head>(&self, make: impl Fn() -> E, head: H, seed: u64) -> Learnt<H>
    where
        <H::Dist as Distribution>::Elem: ActionOf<E::Action>,
    {
        let device = Device::flex();
        self.ppo.validate(self.envs).expect("the settings can work");
        let envs = VecEnv::new((0..self.envs).map(|_| make()).collect(), seed);
        let (mut weights, mut rng) = (streams::weights(seed), streams::actions(seed));
        let mut model = Separate {
            policy: MlpPolicy::new(&self.shape, envs.obs_dim(), head, &mut weights, &device),
            value: MlpValue::new(&self.shape, envs.obs_dim(), &mut weights, &device),
        };
        let ppo = &self.ppo;
        let mut collector = EnvCollector::new(envs, ppo.rollout_steps, ppo.gamma, ppo.gae_lambda, &device);
        if let Some(clip) = self.obs_clip {
            collector = collector.with_obs_norm(clip);
        }
        if let Some(clip) = self.reward_clip {
            collector = collector.with_reward_scale(clip);
        }
        let mut algorithm = Ppo::new(ppo.clone(), self.updates() as u64);
        let mut reports = vec![];
        for _ in 0..self.updates() {
            let (rollout, _) = collector.collect(&model, &mut rng);
            let (updated, report) = algorithm.update(model, &rollout, &mut rng).expect("numbers stay finite");
            model = updated;
            reports.push(report);
        }
        Learnt { model, reports, device }
    }
}

impl<H: Head> Learnt<H> {
    /// The policy's laws for these observations.
    pub fn law(&self, obs: &[Vec<f32>]) -> H::Dist {
        let shape = [obs.len(), obs[0].len()];
        self.model.policy(&Tensor::from_data(TensorData::new(obs.concat(), shape), &self.device))
    }

    /// One greedy episode in each of `episodes` fresh environments.
    pub fn evaluate<E: Env>(&self, make: impl Fn() -> E, episodes: usize) -> Evaluation
    where
        <H::Dist as Distribution>::Elem: ActionOf<E::Action>,
    {
        let envs = VecEnv::new((0..episodes).map(|_| make()).collect(), 1_000_000);
        evaluate(|obs| self.model.policy(obs), envs, None, &self.device)
    }
}

fn read<T: for<'de> Deserialize<'de>>(value: &Value, default: T) -> T {
    match value {
        Value::Null => default,
        _ => T::deserialize(value).unwrap_or_else(|error| panic!("{value}: {error}")),
    }
}
