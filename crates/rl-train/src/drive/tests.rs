//! The loop with numbers that go bad and environments that fail.

use std::collections::BTreeMap;

use anyhow::Result;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use rl_algos::checkpoint::Checkpoint;
use rl_algos::{
    AdvantageNorm, EnvCollector, OnAlarm, Persist, Ppo, PpoConfig, Rollout, Update, UpdateError, streams,
};
use rl_core::dist::Categorical;
use rl_envs::flaky::{Failure, Flaky};
use rl_envs::{CartPole, VecEnv};
use rl_models::flat_params::{flatten, unflatten};
use rl_models::{CategoricalHead, Kernels, MlpConfig, MlpPolicy, MlpValue, Separate};

use super::*;
use crate::assemble::Parts;
use crate::device::ChosenDevice;
use crate::env_session::EnvSession;
use crate::learner::Learner;

type Model = Separate<MlpPolicy<CategoricalHead>, MlpValue>;
type Batch = Rollout<Tensor<2>, Categorical>;

/// Where something goes wrong, once.
#[derive(Debug, Clone, Copy)]
enum Bad {
    /// In the environment.
    Env(Failure),
    /// Every advantage becomes this number: the loss goes bad, or only its gradient.
    Advantage(f32),
    /// The first parameter, after the step.
    Weight(f32),
    /// Every logit, through weights that are still numbers.
    Logit,
}

/// PPO, sabotaged in update 6.
struct Sabotaged {
    ppo: Ppo,
    bad: Bad,
    calls: u64,
}

impl Update<Model> for Sabotaged {
    type Data = Batch;
    type Report = rl_algos::PpoReport;

    fn update(
        &mut self,
        model: Model,
        data: &Batch,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Model, Self::Report), UpdateError> {
        self.calls += 1;
        let mut data = data.clone();
        if let (6, Bad::Advantage(value)) = (self.calls, self.bad) {
            data.advantage = data.advantage.full_like(value);
        }
        let (model, report) = self.ppo.update(model, &data, rng)?;
        let theta = flatten(&model);
        let model = match (self.calls, self.bad) {
            (6, Bad::Weight(value)) => {
                let rest = theta.clone().narrow(0, 1, theta.dims()[0] - 1);
                let first = Tensor::full([1], value, &theta.device());
                unflatten(model, &Tensor::cat(vec![first, rest], 0))
            }
            (6, Bad::Logit) => unflatten(model, &theta.full_like(3e38)),
            _ => model,
        };
        Ok((model, report))
    }
}

impl Persist for Sabotaged {
    fn save(&self, tensors: &mut BTreeMap<String, Vec<f32>>) -> Value {
        self.ppo.save(tensors)
    }

    fn load(
        &mut self,
        state: &Value,
        tensors: &BTreeMap<String, Vec<f32>>,
        parameters: usize,
        device: &Device,
    ) -> Result<(), rl_algos::update::PersistError> {
        self.ppo.load(state, tensors, parameters, device)
    }
}

/// A run of 20 updates in a new folder, in which `bad` happens in update 6, and what came of it.
fn run(bad: Bad, on_alarm: OnAlarm) -> (tempfile::TempDir, Result<Outcome>) {
    let text = "total_steps = 320\n[task]\nkind = \"cart_pole\"\nenvs = 2\n[algo]\nkind = \"ppo\"\nrollout_steps = 8\n\
                minibatch_rows = 16\n[checkpoint]\nevery_updates = 2\nkeep = 99\n";
    let config = RunConfig::from_tree(text.parse().unwrap()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (folder, lock) = RunFolder::create(Some(&dir.path().join("run")), "test", &config).unwrap();

    let device = Device::flex();
    let (failure, at) = if let Bad::Env(failure) = bad { (failure, 5 * 8 + 3) } else { (Failure::Panic, 0) };
    let env = |i| Flaky::new(CartPole::v1(), failure, if i == 1 { at } else { 0 });
    let envs = VecEnv::new((0..2).map(env).collect(), 1);
    let shape = MlpConfig { hidden: vec![8], kernels: Kernels::Host, ..MlpConfig::default() };
    let mut weights = streams::weights(1);
    let policy = MlpPolicy::new(&shape, 4, CategoricalHead::new(2), &mut weights, &device);
    let value = MlpValue::new(&shape, 4, &mut weights, &device);
    let settings = PpoConfig {
        rollout_steps: 8,
        minibatch_rows: 16,
        epochs: 1,
        advantage_norm: AdvantageNorm::Off,
        ..PpoConfig::default()
    };
    let algorithm = Sabotaged { ppo: Ppo::new(settings, 20), bad, calls: 0 };
    let learner = Learner::new(
        Separate { policy, value },
        algorithm,
        streams::actions(1),
        ChosenDevice { device: device.clone(), kernels: Kernels::Host, team: rl_algos::Team::default() },
    );
    let collector = EnvCollector::new(envs, 8, 0.99, 0.95, &device);
    let make_env = || Flaky::new(CartPole::v1(), Failure::Panic, 0);
    let session = EnvSession::new(Parts { learner, collector, make_env }, config.eval.clone());
    let session = session.with_on_alarm(on_alarm);
    let text = config.resolved();
    let drive = Drive {
        folder,
        lock,
        team: rl_algos::Team::default(),
        config: &config,
        text,
        from: None,
        outlets: Outlets::default(),
    };
    let outcome = drive.run(session);
    (dir, outcome)
}

/// Everything that goes bad, and the words of the error that names it.
const CASES: [(Bad, &str); 10] = [
    (Bad::Env(Failure::Reward(f32::NAN)), "environment 1 (Flaky), episode 3, step 13: its reward is NaN"),
    (Bad::Env(Failure::Reward(f32::INFINITY)), "its reward is inf"),
    (
        Bad::Env(Failure::Observation(f32::NAN)),
        "environment 1 (Flaky), episode 3, step 13: entry 3 of its observation is NaN",
    ),
    (
        Bad::Env(Failure::Panic),
        "environment 1 (Flaky), episode 3, step 13: it panicked: the simulator has crashed",
    ),
    (Bad::Env(Failure::Shape), "environment 1 (Flaky), episode 3, step 13: it panicked: "),
    (Bad::Advantage(f32::NAN), "`losses/policy_loss` is NaN in update 6"),
    (Bad::Advantage(1e30), "`losses/grad_norm` is inf in update 6"),
    (Bad::Weight(f32::NAN), "parameter 0 of 107 is NaN after update 6"),
    (Bad::Weight(f32::NEG_INFINITY), "parameter 0 of 107 is -inf after update 6"),
    (Bad::Logit, "`logits` is "),
];

#[test]
fn whatever_goes_bad_stops_the_run_at_once_with_its_name_and_a_healthy_checkpoint() {
    for (bad, words) in CASES {
        let (dir, outcome) = run(bad, OnAlarm::Warn);
        let error = format!("{:#}", outcome.expect_err("it goes on with bad numbers"));
        assert!(error.contains(words), "{bad:?}: {error}");
        assert!(error.contains("its last healthy checkpoint is `"), "{error}");
        let text = std::fs::read_to_string(dir.path().join("run/metrics.jsonl")).unwrap();
        // A logit is not wanted before the next rollout.
        let rows = if matches!(bad, Bad::Logit) { 6 } else { 5 };
        assert_eq!(text.lines().count(), rows, "{bad:?}");
        let healthy = dir.path().join("run/checkpoint/00000004.safetensors");
        assert!(error.contains(&format!("`{}`", healthy.display())), "{error}");
        let weights = Checkpoint::load(&healthy).unwrap().tensors.remove("model").unwrap();
        assert!(weights.iter().all(|x| x.abs() < 10.0), "{bad:?}");
    }
}

#[test]
fn a_run_that_may_roll_back_recovers_and_finishes() {
    for (bad, _) in CASES {
        let (dir, outcome) = run(bad, OnAlarm::Rollback);
        assert_eq!(outcome.unwrap(), Outcome::Done, "{bad:?}");
        let text = std::fs::read_to_string(dir.path().join("run/metrics.jsonl")).unwrap();
        assert_eq!(text.lines().count(), 20, "{bad:?}");
        let summary = std::fs::read_to_string(dir.path().join("run/summary.json")).unwrap();
        assert!(summary.contains("\"updates\": 20"), "{summary}");
    }
}
