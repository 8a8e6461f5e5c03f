//! DQN against value iteration: the values it learns and the policy it reads off them, in a world where both are known.

use burn::tensor::{Device, Tensor, TensorData};
use rl_algos::{Collector, Dqn, DqnConfig, EpsilonGreedy, Update, streams};
use rl_envs::{GridWorld, TimeLimit, VecEnv};
use rl_models::{Kernels, MlpConfig, QNetwork};
use serde::Deserialize;
use serde_json::Value;

/// `configs/dqn-gridworld.toml`.
fn shipped() -> Value {
    let path = format!("{}/../configs/dqn-gridworld.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::to_value(text.parse::<toml::Table>().expect("TOML")).expect("TOML fits into JSON")
}

/// Q of every state in `obs` after the whole run.
fn learnt(world: &GridWorld, seed: u64, obs: Vec<f32>) -> Vec<Vec<f64>> {
    let (file, device) = (shipped(), Device::flex());
    let mut algo = file["algo"].as_object().expect("a run file has [algo]").clone();
    assert_eq!(algo.remove("kind").expect("[algo] has a kind"), "dqn");
    let config = DqnConfig::deserialize(Value::Object(algo)).expect("DQN's settings");
    config.validate().expect("the settings can work");
    let number = |value: &Value| value.as_u64().expect("a whole number");
    let (n_envs, total) = (number(&file["task"]["envs"]), number(&file["total_steps"]));
    assert_eq!(file["model"]["hidden"], Value::Array(vec![]), "a table needs no hidden layer");
    let shape = MlpConfig { hidden: vec![], kernels: Kernels::Host, ..MlpConfig::default() };

    let envs = VecEnv::new((0..n_envs).map(|_| TimeLimit::new(world.clone(), 100)).collect(), seed);
    let (dims, states) = (envs.obs_dim(), obs.len() / envs.obs_dim());
    let (mut weights, mut rng) = (streams::weights(seed), streams::actions(seed));
    let mut model = QNetwork::new(&shape, dims, GridWorld::ACTIONS, &mut weights, &device);
    let mut play = EpsilonGreedy::new(envs, config.rollout_steps, config.epsilon, total, &device)
        .with_random_start(config.learning_starts);
    let updates = total / (n_envs * config.rollout_steps as u64);
    let mut dqn = Dqn::new(config, updates);
    for _ in 0..updates {
        let (seen, _) = play.collect(&model, &mut rng);
        model = dqn.update(model, &seen, &mut rng).expect("numbers stay finite").0;
    }
    let q = model.values(&Tensor::from_data(TensorData::new(obs, [states, dims]), &device));
    let flat: Vec<f64> = q.into_data().try_into_vec_as().expect("values are floats");
    flat.chunks_exact(GridWorld::ACTIONS).map(<[f64]>::to_vec).collect()
}

#[test]
fn dqn_knows_what_the_start_of_the_gridworld_is_worth_and_plays_it_as_dynamic_programming_would() {
    let world = GridWorld::russell_norvig();
    let cells = world.cells().len();
    let one_hot = |cell: usize| (0..cells).map(move |i| f32::from(u8::from(i == cell)));
    let all: Vec<f32> = (0..cells).flat_map(one_hot).collect();
    let model = world.model(0.99).expect("a discount factor");
    let start = world.agent();
    let best = model.value_iteration(1e-10).expect("it converges").values[start];
    for seed in [1, 2, 3] {
        let q = learnt(&world, seed, all.clone());
        let greedy = |row: &Vec<f64>| (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]));
        let policy: Vec<usize> = q.iter().map(|row| greedy(row).expect("four actions")).collect();
        let value = model.evaluate_actions(&policy).expect("γ < 1")[start];
        let believed = q[start][policy[start]];
        println!("seed {seed}: worth {value:.4} at the start, believed {believed:.4}, the best {best:.4}");
        assert!(value > best - 0.02, "seed {seed}: worth {value} at the start, the best {best}");
        assert!((believed - best).abs() < 0.1, "seed {seed}: believed {believed}, the best {best}");
    }
}
