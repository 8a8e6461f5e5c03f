//! Experience replay: the last transitions, drawn from at random, so that one update does not see one episode only.
//!
//! Lin 1992; Mnih et al. 2015, *Human-level control through deep reinforcement learning*, algorithm 1.

use std::collections::BTreeMap;

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use crate::update::PersistError;

/// `N` transitions `(s, a, r, s′)` on the host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transitions {
    /// The states `[N·D]`.
    pub obs: Vec<f32>,
    /// The actions `[N]`.
    pub actions: Vec<usize>,
    /// The rewards `[N]`.
    pub rewards: Vec<f32>,
    /// The states after `[N·D]`; where an episode was cut, the one it was cut in, never the next episode's first.
    pub next_obs: Vec<f32>,
    /// Whether the process itself ended `[N]`; a cut is no end.
    pub terminated: Vec<bool>,
}

impl Transitions {
    /// How many there are, `N`.
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }
}

/// `N` transitions on a device.
#[derive(Debug, Clone)]
pub struct TransitionBatch {
    /// `[N, D]`
    pub obs: Tensor<2>,
    /// `[N]`
    pub actions: Tensor<1, Int>,
    /// `[N]`
    pub rewards: Tensor<1>,
    /// `[N, D]`
    pub next_obs: Tensor<2>,
    /// `[N]`
    pub terminated: Tensor<1, Bool>,
}

/// The last `capacity` transitions.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    capacity: usize,
    held: Transitions,
    /// Where the next transition goes once all places are taken: the oldest's.
    next: usize,
}

/// What a checkpoint says of a replay beside its numbers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ReplayState {
    len: usize,
    next: usize,
}

/// The names of a replay's tensors in a checkpoint.
const TENSORS: [&str; 5] =
    ["replay.obs", "replay.actions", "replay.rewards", "replay.next_obs", "replay.terminated"];

impl Replay {
    /// An empty replay.
    ///
    /// # Panics
    /// If `capacity` is 0.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a replay holds at least one transition");
        Self { capacity, held: Transitions::default(), next: 0 }
    }

    /// How many transitions it holds.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Adds transitions in their order, each in place of the oldest once `capacity` are held.
    pub fn push(&mut self, new: &Transitions) {
        let dims = new.obs.len() / new.len().max(1);
        for i in 0..new.len() {
            let (obs, next_obs) = (&new.obs[i * dims..][..dims], &new.next_obs[i * dims..][..dims]);
            let held = &mut self.held;
            if held.len() < self.capacity {
                held.obs.extend_from_slice(obs);
                held.actions.push(new.actions[i]);
                held.rewards.push(new.rewards[i]);
                held.next_obs.extend_from_slice(next_obs);
                held.terminated.push(new.terminated[i]);
                continue;
            }
            let at = self.next;
            held.obs[at * dims..][..dims].copy_from_slice(obs);
            held.actions[at] = new.actions[i];
            held.rewards[at] = new.rewards[i];
            held.next_obs[at * dims..][..dims].copy_from_slice(next_obs);
            held.terminated[at] = new.terminated[i];
            self.next = (at + 1) % self.capacity;
        }
    }

    /// `n` transitions, each drawn uniformly from all that are held, with replacement.
    ///
    /// # Panics
    /// If it holds none.
    pub fn sample<R: Rng + ?Sized>(&self, n: usize, rng: &mut R, device: &Device) -> TransitionBatch {
        assert!(!self.is_empty(), "nothing to draw from an empty replay");
        let held = &self.held;
        let dims = held.obs.len() / held.len();
        let drawn: Vec<usize> = (0..n).map(|_| rng.random_range(0..held.len())).collect();
        let rows = |all: &[f32]| {
            let mut rows = Vec::with_capacity(n * dims);
            drawn.iter().for_each(|&i| rows.extend_from_slice(&all[i * dims..][..dims]));
            Tensor::from_data(TensorData::new(rows, [n, dims]), device)
        };
        let actions: Vec<i64> = drawn.iter().map(|&i| held.actions[i] as i64).collect();
        let rewards: Vec<f32> = drawn.iter().map(|&i| held.rewards[i]).collect();
        let terminated: Vec<bool> = drawn.iter().map(|&i| held.terminated[i]).collect();
        TransitionBatch {
            obs: rows(&held.obs),
            actions: Tensor::from_data(TensorData::new(actions, [n]), device),
            rewards: Tensor::from_data(TensorData::new(rewards, [n]), device),
            next_obs: rows(&held.next_obs),
            terminated: Tensor::from_data(TensorData::new(terminated, [n]), device),
        }
    }

    /// Adds its transitions to a checkpoint, and returns the rest of its state.
    pub fn save(&self, tensors: &mut BTreeMap<String, Vec<f32>>) -> ReplayState {
        let held = &self.held;
        let columns = [
            held.obs.clone(),
            held.actions.iter().map(|&action| action as f32).collect(), // exact below 2²⁴
            held.rewards.clone(),
            held.next_obs.clone(),
            held.terminated.iter().map(|&ended| f32::from(u8::from(ended))).collect(),
        ];
        tensors.extend(TENSORS.map(str::to_owned).into_iter().zip(columns));
        ReplayState { len: self.len(), next: self.next }
    }

    /// Takes back what [`Replay::save`] saved.
    ///
    /// # Errors
    /// Names the column that is missing or of another length.
    pub fn load(
        &mut self,
        state: ReplayState,
        tensors: &BTreeMap<String, Vec<f32>>,
    ) -> Result<(), PersistError> {
        let ReplayState { len, next } = state;
        if len > self.capacity || next >= self.capacity {
            let what = format!("a replay of {len} transitions, but this run's holds {}", self.capacity);
            return Err(PersistError::State(what));
        }
        let column = |name: &str| {
            let error = |what: String| PersistError::Tensor { name: name.to_owned(), what };
            tensors.get(name).cloned().ok_or_else(|| error("is missing".into()))
        };
        let [obs, actions, rewards, next_obs, terminated] = TENSORS.map(column);
        let (obs, next_obs) = (obs?, next_obs?);
        let (actions, rewards, terminated) = (actions?, rewards?, terminated?);
        let dims = obs.len() / len.max(1);
        for (name, found, wanted) in [
            (TENSORS[0], obs.len(), dims * len),
            (TENSORS[1], actions.len(), len),
            (TENSORS[2], rewards.len(), len),
            (TENSORS[3], next_obs.len(), dims * len),
            (TENSORS[4], terminated.len(), len),
        ] {
            if found != wanted {
                let what = format!("has {found} numbers, but {len} transitions have {wanted}");
                return Err(PersistError::Tensor { name: name.to_owned(), what });
            }
        }
        let actions = actions.into_iter().map(|action| action as usize).collect();
        let terminated = terminated.into_iter().map(|ended| ended != 0.0).collect();
        self.held = Transitions { obs, actions, rewards, next_obs, terminated };
        self.next = next;
        Ok(())
    }
}
