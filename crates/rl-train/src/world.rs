//! From a task's name to its environment.

use rl_envs::{
    Acrobot, Bandit, CartPole, Env, GridWorld, Kakade, KlToy, Lqr, MountainCar, MountainCarContinuous,
    Pendulum, TimeLimit,
};
use serde::{Deserialize, Serialize};

/// The environments of `task.kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// Gymnasium's `CartPole-v1`.
    CartPole,
    /// Gymnasium's `MountainCar-v0`.
    MountainCar,
    /// Gymnasium's `MountainCarContinuous-v0`.
    MountainCarContinuous,
    /// Gymnasium's `Acrobot-v1`.
    Acrobot,
    /// Gymnasium's `Pendulum-v1`.
    Pendulum,
    /// The ten-armed testbed.
    Bandit,
    /// Kakade's two-state chain.
    Kakade,
    /// The 4 × 3 world of Russell and Norvig.
    Gridworld,
    /// A scalar linear-quadratic regulator.
    Lqr,
    /// The toy of the KL-control lecture.
    KlToy,
    /// The enumerable language; see `[token_world]`.
    TokenWorld,
    /// Texts and a language model; see `[lm]` and `[data]`.
    Text,
    /// Texts to be learnt as they are; see `[start]` and `[corpus]`.
    Corpus,
}

/// An environment whose actions are `A`, chosen at run time.
pub type AnyEnv<A> = Box<dyn Env<Action = A>>;

/// A constructor, by the kind of action that the environment takes.
pub enum World {
    /// One of `n` numbered actions.
    Discrete(fn() -> AnyEnv<usize>),
    /// A vector of real numbers.
    Continuous(fn() -> AnyEnv<[f32]>),
    /// Responses instead of steps: [`crate::rlhf`].
    Tokens,
    /// A language model and what it reads: [`crate::preference`].
    Texts,
    /// A language model and the texts it imitates: [`crate::lm`].
    Corpus,
}

/// Steps after which the chain of Kakade and the regulator, endless by themselves, are cut.
const ENDLESS: usize = 100;

impl TaskKind {
    /// Every kind, with what it is.
    pub const ALL: [(Self, &'static str); 13] = [
        (Self::CartPole, "balance a pole on a cart; Gymnasium's CartPole-v1, solved at 475"),
        (Self::MountainCar, "swing a car out of a valley; MountainCar-v0, solved at −110"),
        (Self::MountainCarContinuous, "the same with a throttle; MountainCarContinuous-v0, solved at 90"),
        (Self::Acrobot, "swing a double pendulum over the bar; Acrobot-v1, solved at −100"),
        (Self::Pendulum, "swing a pendulum up with too little torque; Pendulum-v1, good at −150"),
        (Self::Bandit, "ten arms with normal rewards; Sutton and Barto 2018, §2.3"),
        (Self::Kakade, "two states whose plain gradient stalls; Kakade 2001, cut at 100 steps"),
        (Self::Gridworld, "the 4 × 3 world of Russell and Norvig, slip 0.2, cut at 100 steps"),
        (Self::Lqr, "a scalar linear regulator with a known best gain; Kakade 2001, cut at 100 steps"),
        (Self::KlToy, "reward is the action's number plus noise, observations say nothing; 200 steps"),
        (Self::TokenWorld, "a language of 8⁶ sentences in which RLHF is exact; rlhf_ppo, rloo and grpo"),
        (Self::Corpus, "texts to be imitated: the built-in stories, files, or prompts with responses; sft"),
        (
            Self::Text,
            "a language model of a folder, and preferences; reward_model, dpo, rlhf_ppo, rloo and grpo",
        ),
    ];

    /// The name in a run file.
    pub fn name(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|name| name.as_str().map(str::to_owned))
            .expect("a unit variant is a name")
    }

    /// Its constructor.
    pub fn world(self) -> World {
        match self {
            Self::CartPole => World::Discrete(|| Box::new(CartPole::v1())),
            Self::MountainCar => World::Discrete(|| Box::new(MountainCar::v0())),
            Self::MountainCarContinuous => World::Continuous(|| Box::new(MountainCarContinuous::v0())),
            Self::Acrobot => World::Discrete(|| Box::new(Acrobot::v1())),
            Self::Pendulum => World::Continuous(|| Box::new(Pendulum::v1())),
            Self::Bandit => World::Discrete(|| Box::new(Bandit::ten_armed(0))),
            Self::Kakade => World::Discrete(|| Box::new(TimeLimit::new(Kakade::new(), ENDLESS))),
            Self::Gridworld => {
                World::Discrete(|| Box::new(TimeLimit::new(GridWorld::russell_norvig(), ENDLESS)))
            }
            Self::Lqr => World::Continuous(|| Box::new(TimeLimit::new(Lqr::kakade(), ENDLESS))),
            Self::KlToy => World::Discrete(|| Box::new(KlToy::episodic())),
            Self::TokenWorld => World::Tokens,
            Self::Text => World::Texts,
            Self::Corpus => World::Corpus,
        }
    }
}
