//! REINFORCE and A2C reach the computed optimum of bandit, gridworld and regulator, with the shipped configs' numbers.

use burn::tensor::{Device, Tensor, TensorData};
use rl_algos::collect_env::ActionOf;
use rl_algos::{A2c, A2cConfig, EnvCollector, Reinforce, ReinforceConfig, Rollout, Update, streams};
use rl_core::dist::{Categorical, DiagGaussian, Distribution};
use rl_envs::{Bandit, Env, GridWorld, Lqr, TimeLimit, VecEnv};
use rl_models::{
    ActorCritic, CategoricalHead, GaussianHead, Head, Kernels, MlpConfig, MlpPolicy, MlpValue, Separate,
};
use rl_tests::numbers;
use serde::Deserialize;
use serde_json::Value;

const SEEDS: [u64; 3] = [1, 2, 3];
const ALGORITHMS: [&str; 2] = ["reinforce", "a2c"];

type Model<H> = Separate<MlpPolicy<H>, MlpValue>;

/// `configs/<name>.toml`.
fn shipped(name: &str) -> Value {
    let path = format!("{}/../configs/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::to_value(text.parse::<toml::Table>().expect("TOML")).expect("TOML fits into JSON")
}

/// The laws of the policy that the config `name` learns in `make`'s world, for these observations.
fn learnt<E: Env, H: Head>(name: &str, make: impl Fn() -> E, head: H, seed: u64, obs: &[Vec<f32>]) -> H::Dist
where
    <H::Dist as Distribution>::Elem: ActionOf<E::Action>,
{
    let (file, device) = (shipped(name), Device::flex());
    let mut algo = file["algo"].as_object().expect("a run file has [algo]").clone();
    let kind = algo.remove("kind").expect("[algo] has a kind");
    let algo = Value::Object(algo);
    let number = |value: &Value| value.as_u64().expect("a whole number");
    let (n_envs, total) = (number(&file["task"]["envs"]), number(&file["total_steps"]));
    let envs = VecEnv::new((0..n_envs).map(|_| make()).collect(), seed);
    let shape = MlpConfig { hidden: vec![], kernels: Kernels::Host, ..MlpConfig::default() };
    assert_eq!(file["model"]["hidden"], Value::Array(vec![]), "{name}: these worlds need no hidden layer");
    let mut weights = streams::weights(seed);
    let model = Separate {
        policy: MlpPolicy::new(&shape, envs.obs_dim(), head, &mut weights, &device),
        value: MlpValue::new(&shape, envs.obs_dim(), &mut weights, &device),
    };
    let scaled = |collector: EnvCollector<E>| match file["normalize"]["reward_clip"].as_f64() {
        Some(clip) => collector.with_reward_scale(clip),
        None => collector,
    };
    let model = match kind.as_str() {
        Some("a2c") => {
            let config = A2cConfig::deserialize(algo).unwrap_or_else(|error| panic!("{name}: {error}"));
            config.validate().expect("the settings can work");
            let collector =
                EnvCollector::new(envs, config.rollout_steps, config.gamma, config.gae_lambda, &device);
            let updates = total / (n_envs * config.rollout_steps as u64);
            run(A2c::new(config, updates), scaled(collector), model, total, seed)
        }
        Some("reinforce") => {
            let config = ReinforceConfig::deserialize(algo).unwrap_or_else(|error| panic!("{name}: {error}"));
            config.validate().expect("the settings can work");
            let collector = EnvCollector::of_whole_episodes(envs, config.gamma, config.credit, &device);
            run(Reinforce::new(config, total), scaled(collector), model, total, seed)
        }
        other => panic!("{name}: {other:?} is taught elsewhere"),
    };
    let shape = [obs.len(), obs[0].len()];
    model.policy(&Tensor::from_data(TensorData::new(obs.concat(), shape), &device))
}

fn run<E: Env, H: Head, U>(
    mut algorithm: U,
    mut collector: EnvCollector<E>,
    mut model: Model<H>,
    total: u64,
    seed: u64,
) -> Model<H>
where
    <H::Dist as Distribution>::Elem: ActionOf<E::Action>,
    U: Update<Model<H>, Data = Rollout<Tensor<2>, H::Dist>>,
{
    let (mut rng, mut steps) = (streams::actions(seed), 0);
    while steps < total {
        let (rollout, _) = collector.collect(&model, &mut rng);
        steps += rollout.decisions() as u64;
        model = algorithm.update(model, &rollout, &mut rng).expect("numbers stay finite").0;
    }
    model
}

#[test]
fn both_play_a_bandit_almost_as_well_as_its_best_arm() {
    let world = Bandit::ten_armed(0);
    for (name, seed) in ALGORITHMS.into_iter().flat_map(|name| SEEDS.map(|seed| (name, seed))) {
        let head = CategoricalHead::new(10);
        let law: Categorical = learnt(&format!("{name}-bandit"), || world.clone(), head, seed, &[vec![1.0]]);
        let regret = world.regret(&[numbers(law.probs())]);
        println!("{name} on the bandit, seed {seed}: regret {regret:.4} per pull");
        assert!(regret < 0.1, "{name}, seed {seed}: regret {regret} per pull");
    }
}

#[test]
fn both_walk_the_gridworld_as_dynamic_programming_would() {
    let world = GridWorld::russell_norvig();
    let cells = world.cells().len();
    let one_hot = |cell: usize| (0..cells).map(|i| f32::from(u8::from(i == cell))).collect();
    let all: Vec<Vec<f32>> = (0..cells).map(one_hot).collect();
    let model = world.model(0.99).expect("a discount factor");
    let best = model.value_iteration(1e-10).expect("it converges").values[world.agent()];
    for (name, seed) in ALGORITHMS.into_iter().flat_map(|name| SEEDS.map(|seed| (name, seed))) {
        let make = || TimeLimit::new(world.clone(), 100);
        let head = CategoricalHead::new(GridWorld::ACTIONS);
        let law: Categorical = learnt(&format!("{name}-gridworld"), make, head, seed, &all);
        let value = model.policy_evaluation(&numbers(law.probs())).expect("γ < 1")[world.agent()];
        println!("{name} on the gridworld, seed {seed}: worth {value:.4} at the start, the best {best:.4}");
        assert!(value > best - 0.05, "{name}, seed {seed}: worth {value} at the start, the best {best}");
    }
}

#[test]
fn both_steer_the_regulator_near_the_riccati_cost() {
    let world = Lqr::kakade();
    let gamma = 0.95;
    let cost = |gain: f64| world.cost_of_gain(gain, gamma, 1.0).expect("a discount factor");
    let best = cost(world.optimum(gamma).expect("a discount factor").gain);
    for (name, seed) in ALGORITHMS.into_iter().flat_map(|name| SEEDS.map(|seed| (name, seed))) {
        let head = GaussianHead::new(1, -0.5, (-5.0, 2.0), &Device::flex());
        let make = || TimeLimit::new(world.clone(), 100);
        let law: DiagGaussian = learnt(&format!("{name}-lqr"), make, head, seed, &[vec![1.0], vec![-1.0]]);
        let actions = numbers(law.mean());
        let gain = (actions[1] - actions[0]) / 2.0;
        println!(
            "{name} on the regulator, seed {seed}: gain {gain:.4} costs {:.4}, the best {best:.4}",
            cost(gain)
        );
        assert!(
            cost(gain) < 1.02 * best,
            "{name}, seed {seed}: gain {gain} costs {}, the best {best}",
            cost(gain)
        );
    }
}
