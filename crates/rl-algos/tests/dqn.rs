//! Laws of the replay, and DQN's gradient and targets against plain arithmetic.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Bool, DType, Device, FloatDType, Int, Tensor, TensorData};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rl_algos::dqn::{QTarget, TdLoss};
use rl_algos::replay::TransitionBatch;
use rl_algos::{Collector, Dqn, DqnConfig, EpsilonGreedy, Persist, Replay, Transitions, Update};
use rl_envs::{CartPole, TimeLimit, VecEnv};
use rl_models::flat_params::{flatten, unflatten};
use rl_models::{MlpConfig, QNetwork};

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

fn numbers(t: Tensor<1>) -> Vec<f64> {
    t.into_data().try_into_vec_as().unwrap()
}

/// Transitions numbered from `first`: the number is in every column.
fn numbered(first: usize, n: usize) -> Transitions {
    let ids: Vec<f32> = (first..first + n).map(|i| i as f32).collect();
    Transitions {
        obs: ids.iter().flat_map(|&i| [i, -i]).collect(),
        actions: (first..first + n).collect(),
        rewards: ids.clone(),
        next_obs: ids.iter().flat_map(|&i| [i + 0.5, -i]).collect(),
        terminated: (first..first + n).map(|i| i % 3 == 0).collect(),
    }
}

/// The numbers of a batch's transitions, each column having been found to tell the same.
fn ids(batch: TransitionBatch) -> Vec<usize> {
    let floats = |t: Tensor<2>| -> Vec<f32> { t.into_data().try_into_vec_as().unwrap() };
    let actions: Vec<i64> = batch.actions.into_data().try_into_vec_as().unwrap();
    let ended: Vec<bool> = batch.terminated.into_data().try_into_vec_as().unwrap();
    let (obs, next, rewards) = (floats(batch.obs), floats(batch.next_obs), numbers(batch.rewards));
    for (row, &id) in actions.iter().enumerate() {
        assert_eq!([obs[2 * row], -obs[2 * row + 1], next[2 * row] - 0.5], [id as f32; 3]);
        assert_eq!((rewards[row], ended[row]), (id as f64, id % 3 == 0));
    }
    actions.into_iter().map(|id| id as usize).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_replay_holds_the_last_transitions_and_draws_each_as_often(
        capacity in 1_usize..20, sizes in prop::collection::vec(1_usize..9, 1..8), seed: u64,
    ) {
        let mut replay = Replay::new(capacity);
        let mut pushed = 0;
        for n in sizes {
            replay.push(&numbered(pushed, n));
            pushed += n;
        }
        let held = pushed.min(capacity);
        prop_assert_eq!(replay.len(), held);
        let draws = 400 * held;
        let mut seen = BTreeMap::new();
        for id in ids(replay.sample(draws, &mut rng(seed), &Device::flex())) {
            *seen.entry(id).or_insert(0_usize) += 1;
        }
        prop_assert_eq!(seen.keys().copied().collect::<Vec<_>>(), (pushed - held..pushed).collect::<Vec<_>>());
        // 400 expected of each: 8 standard deviations.
        prop_assert!(seen.values().all(|&n| n.abs_diff(400) < 160), "{seen:?}");
    }

    #[test]
    fn a_replay_comes_back_from_a_checkpoint_and_goes_on_as_if_it_had_not_been_away(
        capacity in 1_usize..20, before in 1_usize..40, after in 1_usize..40, seed: u64,
    ) {
        let mut replay = Replay::new(capacity);
        replay.push(&numbered(0, before));
        let mut tensors = BTreeMap::new();
        let state = replay.save(&mut tensors);
        let mut again = Replay::new(capacity);
        again.load(state, &tensors).unwrap();
        replay.push(&numbered(before, after));
        again.push(&numbered(before, after));
        prop_assert_eq!(&again, &replay);
        let draw = |replay: &Replay| ids(replay.sample(50, &mut rng(seed), &Device::flex()));
        prop_assert_eq!(draw(&replay), draw(&again));
    }
}

#[test]
fn a_replay_with_a_column_missing_or_cut_short_is_refused_by_name() {
    let mut replay = Replay::new(9);
    replay.push(&numbered(0, 5));
    let mut whole = BTreeMap::new();
    let state = replay.save(&mut whole);
    for name in whole.keys() {
        let mut missing = whole.clone();
        missing.remove(name);
        let mut short = whole.clone();
        short.get_mut(name).unwrap().pop();
        for tensors in [missing, short] {
            let error = Replay::new(9).load(state, &tensors).unwrap_err().to_string();
            assert!(error.contains("replay."), "{name}: {error}");
        }
    }
    let error = Replay::new(4).load(state, &whole).unwrap_err().to_string();
    assert_eq!(error, "state: a replay of 5 transitions, but this run's holds 4");
}

#[test]
fn a_cut_episode_is_stored_with_the_state_it_was_cut_in_and_as_no_end() {
    let envs = VecEnv::new(vec![TimeLimit::new(CartPole::new(), 7); 2], 3);
    let mut play = EpsilonGreedy::new(envs, 7, 1.0.into(), 1000, &Device::flex());
    let model = QNetwork::new(&MlpConfig::default(), 4, 2, &mut rng(1), &Device::flex());
    let (seen, episodes) = play.collect(&model, &mut rng(2));
    assert_eq!(episodes.0.len(), 2, "seven random steps do not topple the pole");
    let Transitions { obs, next_obs, terminated, actions, .. } = seen.transitions;
    assert_eq!((actions.len(), terminated), (14, vec![false; 14]));
    assert!(actions.contains(&0) && actions.contains(&1));
    // Two environments: the state after step t is the state before step t + 1, and the last is nobody's start.
    assert_eq!(next_obs[..6 * 8], obs[8..]);
    let moved = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f32>();
    assert!(moved(&next_obs[6 * 8..], &obs[6 * 8..]) > 0.01);
    assert!(next_obs[6 * 8..].iter().any(|x| x.abs() > 0.05), "an episode starts within 0.05");
}

#[test]
fn play_without_exploration_is_greedy_and_the_start_is_random() {
    let envs = || VecEnv::new(vec![CartPole::v1(); 4], 3);
    let model = QNetwork::new(&MlpConfig::default(), 4, 2, &mut rng(1), &Device::flex());
    let mut greedy = EpsilonGreedy::new(envs(), 20, 0.0.into(), 1000, &Device::flex());
    let (seen, _) = greedy.collect(&model, &mut rng(2));
    let obs = Tensor::from_data(TensorData::new(seen.transitions.obs, [80, 4]), &Device::flex());
    let best: Vec<i64> = model.values(&obs).argmax(1).into_data().try_into_vec_as().unwrap();
    assert!(best.iter().zip(&seen.transitions.actions).all(|(&best, &action)| best as usize == action));
    let mut random = EpsilonGreedy::new(envs(), 20, 0.0.into(), 1000, &Device::flex()).with_random_start(80);
    assert_eq!(random.epsilon(), 1.0);
    let (seen, _) = random.collect(&model, &mut rng(2));
    let ones = seen.transitions.actions.iter().sum::<usize>();
    assert!((20..60).contains(&ones), "{ones} of 80 random actions are 1");
    assert_eq!(random.epsilon(), 0.0);
}

/// The same network in double precision.
fn double<M: Module>(module: M) -> M {
    struct Cast;
    impl ModuleMapper for Cast {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let (id, value, mapper) = param.consume();
            Param::from_mapped_value(id, value.cast(FloatDType::F64), mapper)
        }
    }
    module.map(&mut Cast)
}

/// `n` random transitions of three numbers and four actions, in double precision, and the same on the host.
fn random_batch(n: usize, seed: u64) -> (TransitionBatch, Vec<usize>, Vec<f64>, Vec<bool>) {
    let (mut rng, device) = (rng(seed), Device::flex());
    let mut matrix = |scale: f64| {
        let x: Vec<f64> = (0..n * 3).map(|_| rng.random_range(-scale..scale)).collect();
        Tensor::<2>::from_data(TensorData::new(x, [n, 3]), (&device, DType::F64))
    };
    let (obs, next_obs) = (matrix(2.0), matrix(2.0));
    let actions: Vec<usize> = (0..n).map(|_| rng.random_range(0..4)).collect();
    let rewards: Vec<f64> = (0..n).map(|_| rng.random_range(-3.0..3.0)).collect();
    let terminated: Vec<bool> = (0..n).map(|_| rng.random_bool(0.4)).collect();
    let ints: Vec<i64> = actions.iter().map(|&a| a as i64).collect();
    let batch = TransitionBatch {
        obs,
        actions: Tensor::<1, Int>::from_data(TensorData::new(ints, [n]), &device),
        rewards: Tensor::from_data(TensorData::new(rewards.clone(), [n]), (&device, DType::F64)),
        next_obs,
        terminated: Tensor::<1, Bool>::from_data(TensorData::new(terminated.clone(), [n]), &device),
    };
    (batch, actions, rewards, terminated)
}

/// Rows of action values on the host.
fn table(q: Tensor<2>) -> Vec<Vec<f64>> {
    let [_, actions] = q.dims();
    let flat: Vec<f64> = q.into_data().try_into_vec_as().unwrap();
    flat.chunks_exact(actions).map(<[f64]>::to_vec).collect()
}

#[test]
fn the_gradient_is_the_slope_of_the_loss_written_out_on_the_host() {
    let shape = MlpConfig { hidden: vec![5, 4], ..MlpConfig::default() };
    let device = Device::flex();
    let network = |seed| double(QNetwork::new(&shape, 3, 4, &mut rng(seed), &device));
    let (model, lagging) = (network(1), network(2));
    let (batch, actions, rewards, terminated) = random_batch(16, 3);
    let best = |row: &[f64]| (0..4).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
    for (target, loss) in
        [(QTarget::Max, TdLoss::Huber), (QTarget::Double, TdLoss::Huber), (QTarget::Double, TdLoss::Squared)]
    {
        let gamma = 0.9;
        let config = DqnConfig { target, loss, gamma, max_grad_norm: None, ..DqnConfig::default() };
        let (grad, [said, q_value, _]) = Dqn::new(config, 10).gradient(&model, &lagging, &batch, &mut rng(0));
        let (next, judged) = (table(model.values(&batch.next_obs)), table(lagging.values(&batch.next_obs)));
        let y: Vec<f64> = (0..16)
            .map(|i| {
                let pick = if target == QTarget::Max { best(&judged[i]) } else { best(&next[i]) };
                rewards[i] + if terminated[i] { 0.0 } else { gamma * judged[i][pick] }
            })
            .collect();
        let loss_of = |m: &QNetwork| {
            let q = table(m.values(&batch.obs));
            let errors = (0..16).map(|i| q[i][actions[i]] - y[i]);
            let charge = |e: f64| match loss {
                TdLoss::Huber if e.abs() > 1.0 => e.abs() - 0.5,
                _ => 0.5 * e * e,
            };
            errors.map(charge).sum::<f64>() / 16.0
        };
        assert!((said.into_scalar::<f64>() - loss_of(&model)).abs() < 1e-12);
        let q = table(model.values(&batch.obs));
        let mean = (0..16).map(|i| q[i][actions[i]]).sum::<f64>() / 16.0;
        assert!((q_value.into_scalar::<f64>() - mean).abs() < 1e-12);
        let (theta, h) = (numbers(flatten(&model)), 1e-5);
        for (i, got) in numbers(grad).into_iter().enumerate() {
            let at = |step: f64| {
                let mut moved = theta.clone();
                moved[i] += step;
                let n = moved.len();
                let moved = Tensor::from_data(TensorData::new(moved, [n]), (&device, DType::F64));
                loss_of(&unflatten(model.clone(), &moved))
            };
            let slope = (at(h) - at(-h)) / (2.0 * h);
            assert!((got - slope).abs() < 1e-6, "{target:?} {loss:?}, parameter {i}: {got}, not {slope}");
        }
    }
}

#[test]
fn state_comes_back_from_a_checkpoint_target_network_and_replay_included() {
    let device = Device::flex();
    let config = DqnConfig {
        learning_starts: 40,
        gradient_steps: 5,
        target_every: 3,
        target_mix: 0.5,
        ..DqnConfig::default()
    };
    let mut model = QNetwork::new(&MlpConfig::default(), 4, 2, &mut rng(1), &device);
    let envs = VecEnv::new(vec![CartPole::v1(); 2], 3);
    let mut play = EpsilonGreedy::new(envs, 10, 0.5.into(), 1000, &device).with_random_start(40);
    let (mut dqn, mut generator) = (Dqn::new(config.clone(), 50), rng(5));
    let mut reports = vec![];
    for _ in 0..4 {
        let (seen, _) = play.collect(&model, &mut generator);
        let (next, report) = dqn.update(model, &seen, &mut generator).unwrap();
        (model, _) = (next, reports.push(report));
    }
    assert_eq!(reports.iter().map(|r| r.learnt.is_some()).collect::<Vec<_>>(), [false, true, true, true]);
    assert_eq!(reports[3].replay, 80.0);

    let mut tensors = BTreeMap::new();
    let state = dqn.save(&mut tensors);
    let mut again = Dqn::new(config, 50);
    again.load(&state, &tensors, flatten(&model).dims()[0], &device).unwrap();
    let (seen, _) = play.collect(&model, &mut generator);
    let [a, b] = [&mut dqn, &mut again].map(|dqn| {
        let (model, report) = dqn.update(model.clone(), &seen, &mut generator.clone()).unwrap();
        (numbers(flatten(&model)), report)
    });
    assert_eq!(a, b);
    tensors.remove("target");
    let parameters = flatten(&model).dims()[0];
    let error = again.load(&state, &tensors, parameters, &device).unwrap_err().to_string();
    assert_eq!(error, "tensor `target` is missing");
}
