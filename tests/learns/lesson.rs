//! A run from a shipped config, through the library: what `rl-train` does, without files and without a screen.

use burn::tensor::{Device, Tensor, TensorData};
use rl_algos::collect_env::ActionOf;
use rl_algos::{
    EnvCollector, Evaluation, Ppo, PpoConfig, Rollout, Trpo, TrpoConfig, Update, evaluate, streams,
};
use rl_core::dist::Distribution;
use rl_envs::{ActionSpace, Env, VecEnv};
use rl_models::{
    Activation, ActorCritic, CategoricalHead, GaussianHead, Head, Kernels, MlpConfig, MlpPolicy, MlpValue,
    Separate,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The settings of an algorithm, and the algorithm they are of.
pub trait Course: DeserializeOwned + Clone {
    /// What learns.
    type Algorithm;
    /// Its names in a run file.
    const KINDS: &[&str];
    /// The optional settings, for which a run file says `"off"`.
    const OPTIONAL: &[&str];

    /// Steps of each environment per rollout, γ and λ, of settings that can work with so many environments.
    fn rollout(&self, envs: usize) -> (usize, f64, f64);

    /// The algorithm for so many updates.
    fn algorithm(&self, updates: u64) -> Self::Algorithm;
}

impl Course for PpoConfig {
    type Algorithm = Ppo;
    const KINDS: &[&str] = &["ppo"];
    const OPTIONAL: &[&str] = &["clip", "kl", "target_kl", "value_clip", "max_grad_norm"];

    fn rollout(&self, envs: usize) -> (usize, f64, f64) {
        self.validate(envs).expect("the settings can work");
        (self.rollout_steps, self.gamma, self.gae_lambda)
    }

    fn algorithm(&self, updates: u64) -> Ppo {
        Ppo::new(self.clone(), updates)
    }
}

impl Course for TrpoConfig {
    type Algorithm = Trpo;
    const KINDS: &[&str] = &["trpo", "npg"];
    const OPTIONAL: &[&str] = &["line_search"];

    fn rollout(&self, envs: usize) -> (usize, f64, f64) {
        self.validate(envs).expect("the settings can work");
        (self.rollout_steps, self.gamma, self.gae_lambda)
    }

    fn algorithm(&self, updates: u64) -> Trpo {
        Trpo::new(self.clone(), updates)
    }
}

/// The networks of a run.
pub type Networks<H> = Separate<MlpPolicy<H>, MlpValue>;
/// What they are taught from.
pub type Sample<H> = Rollout<Tensor<2>, <H as Head>::Dist>;
/// What an update of theirs says.
pub type ReportOf<C, H> = <<C as Course>::Algorithm as Update<Networks<H>>>::Report;

/// What a run file says, as far as these tests follow it.
#[derive(Clone, Debug)]
pub struct Lesson<C> {
    /// Environments side by side.
    pub envs: usize,
    /// Environment steps in all.
    pub total_steps: usize,
    /// The shape of both networks.
    pub shape: MlpConfig,
    /// First log σ of a continuous policy.
    pub log_std_init: f64,
    /// The algorithm's settings.
    pub algo: C,
    /// Bound of the scaled rewards, where they are scaled.
    pub reward_clip: Option<f64>,
    /// Bound of the normalised observations, where they are normalised.
    pub obs_clip: Option<f64>,
}

/// What a run came to.
pub struct Learnt<H: Head, R> {
    /// The networks after the last update.
    pub model: Networks<H>,
    /// One report per update.
    pub reports: Vec<R>,
    /// Where the networks are.
    pub device: Device,
}

impl<C: Course> Lesson<C> {
    /// The numbers of `configs/<name>.toml`.
    pub fn shipped(name: &str) -> Self {
        let path = format!("{}/../configs/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let file: toml::Table = text.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
        let file = serde_json::to_value(file).expect("TOML fits into JSON");

        let mut algo = file["algo"].as_object().expect("a run file has [algo]").clone();
        let kind = algo.remove("kind").expect("[algo] has a kind");
        assert!(C::KINDS.iter().any(|known| kind == *known), "{path}: {kind}");
        if kind == "npg" {
            algo.insert("line_search".into(), Value::Null);
        }
        for &key in C::OPTIONAL {
            if algo.get(key).is_some_and(|value| value == "off") {
                algo.insert(key.to_owned(), Value::Null);
            }
        }
        let algo = C::deserialize(Value::Object(algo)).unwrap_or_else(|error| panic!("{path}: {error}"));
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
            algo,
            reward_clip: read(&file["normalize"]["reward_clip"], None),
            obs_clip: read(&file["normalize"]["obs_clip"], None),
        }
    }

    /// Updates in the whole run.
    pub fn updates(&self) -> usize {
        self.total_steps / (self.envs * self.algo.rollout(self.envs).0)
    }

    /// Learns to act in a discrete world.
    pub fn learn<E: Env<Action = usize>>(
        &self,
        make: impl Fn() -> E,
        seed: u64,
    ) -> Learnt<CategoricalHead, ReportOf<C, CategoricalHead>>
    where
        C::Algorithm: Update<Networks<CategoricalHead>, Data = Sample<CategoricalHead>>,
    {
        let actions = make().action_space().width();
        self.run(make, CategoricalHead::new(actions), seed)
    }

    /// Learns to act in a continuous world.
    pub fn learn_continuous<E: Env<Action = [f32]>>(
        &self,
        make: impl Fn() -> E,
        seed: u64,
    ) -> Learnt<GaussianHead, ReportOf<C, GaussianHead>>
    where
        C::Algorithm: Update<Networks<GaussianHead>, Data = Sample<GaussianHead>>,
    {
        let ActionSpace::Continuous { low, .. } = make().action_space() else { panic!("a continuous world") };
        self.run(make, GaussianHead::new(low.len(), self.log_std_init, (-5.0, 2.0), &Device::flex()), seed)
    }

    fn run<E: Env, H: Head>(&self, make: impl Fn() -> E, head: H, seed: u64) -> Learnt<H, ReportOf<C, H>>
    where
        C::Algorithm: Update<Networks<H>, Data = Sample<H>>,
        <H::Dist as Distribution>::Elem: ActionOf<E::Action>,
    {
        let device = Device::flex();
        let (steps, gamma, gae_lambda) = self.algo.rollout(self.envs);
        let envs = VecEnv::new((0..self.envs).map(|_| make()).collect(), seed);
        let (mut weights, mut rng) = (streams::weights(seed), streams::actions(seed));
        let mut model = Separate {
            policy: MlpPolicy::new(&self.shape, envs.obs_dim(), head, &mut weights, &device),
            value: MlpValue::new(&self.shape, envs.obs_dim(), &mut weights, &device),
        };
        let mut collector = EnvCollector::new(envs, steps, gamma, gae_lambda, &device);
        if let Some(clip) = self.obs_clip {
            collector = collector.with_obs_norm(clip);
        }
        if let Some(clip) = self.reward_clip {
            collector = collector.with_reward_scale(clip);
        }
        let mut algorithm = self.algo.algorithm(self.updates() as u64);
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

impl<H: Head, R> Learnt<H, R> {
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
