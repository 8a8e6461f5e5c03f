//! RLHF in a token world, through the library: what the suites and nothing else needs of a run.

use std::sync::Arc;

use burn::tensor::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_algos::{LmCollector, LmRolloutConfig, Responses, RlhfPpo, RlhfPpoConfig, Rloo, RlooConfig, Update};
use rl_core::dist::Categorical;
use rl_envs::TokenWorld;
use rl_envs::token_world::exact::{expectation, kl, objective, sentence_law, tilt, tilted};
use rl_models::{
    ActorCritic, Contexts, Policy, Response, Sampler, Sampling, Separate, TablePolicy, TableValue, Tempered,
    Tokens,
};

/// A token world with a reward, and the models that live in it.
#[derive(Clone)]
pub struct TokenLesson {
    /// The world.
    pub world: Arc<TokenWorld>,
    /// What is optimised, per sentence.
    pub reward: Arc<[f64]>,
    /// Which pasts the policy tells apart.
    pub contexts: Contexts,
}

/// An actor-critic of tables.
pub type Tables = Tempered<Separate<TablePolicy, TableValue>>;

/// What a run passed through: one entry per measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Updates made.
    pub update: u64,
    /// Exact KL(π ‖ π_ref), nats.
    pub kl: f64,
    /// Exact `E_π[reward]`.
    pub reward: f64,
    /// Exact `E_π[gold]`.
    pub gold: f64,
    /// β after the update.
    pub beta: f64,
}

impl TokenLesson {
    /// The gold reward and a full prefix table.
    #[must_use]
    pub fn exact(world: TokenWorld) -> Self {
        let contexts = Contexts::prefix(world.vocabulary(), world.length());
        let reward = world.gold().into();
        Self { world: Arc::new(world), reward, contexts }
    }

    /// The reference as a table.
    #[must_use]
    pub fn reference(&self) -> TablePolicy {
        TablePolicy::new(self.contexts, &Device::flex(), |past| {
            let past: Vec<usize> = past.iter().map(|&token| token as usize).collect();
            self.world.next_log_probs(&past).iter().map(|&l| l as f32).collect()
        })
    }

    /// A policy that starts as the reference, with a critic that knows nothing.
    #[must_use]
    pub fn tables(&self, temperature: f64) -> Tables {
        let value = TableValue::new(self.contexts, &Device::flex());
        Tempered::new(Separate { policy: self.reference(), value }, temperature)
    }

    /// The collector of this world: no prompt, no end but the last token.
    #[must_use]
    pub fn collector(&self, config: &LmRolloutConfig) -> LmCollector {
        let how = Sampling { temperature: 1.0, max_tokens: self.world.length(), stop: vec![] };
        LmCollector::new(config.clone(), vec![vec![]], how, 0, &Device::flex())
    }

    /// The reward of each response.
    #[must_use]
    pub fn score(&self, written: &[Response]) -> Vec<f64> {
        let index =
            |y: &Response| self.world.index(&y.tokens.iter().map(|&t| t as usize).collect::<Vec<_>>());
        written.iter().map(|y| self.reward[index(y)]).collect()
    }

    /// The exact law of a table over sentences, at a temperature of 1.
    #[must_use]
    pub fn law(&self, policy: &TablePolicy) -> Vec<f64> {
        sentence_law(&policy.next_token_laws(1.0), self.world.vocabulary())
    }

    fn point(&self, update: u64, policy: &TablePolicy, beta: f64) -> Point {
        let law = self.law(policy);
        Point {
            update,
            kl: kl(&law, self.world.reference()),
            reward: expectation(&law, &self.reward),
            gold: expectation(&law, self.world.gold()),
            beta,
        }
    }

    /// Trains with RLHF-PPO from the reference, and measures every `every` updates.
    ///
    /// # Panics
    /// If the settings cannot work, or a number stops being finite.
    #[must_use]
    pub fn ppo(
        &self,
        config: &RlhfPpoConfig,
        updates: u64,
        every: u64,
        seed: u64,
    ) -> (TablePolicy, Vec<Point>) {
        config.validate().expect("the settings can work");
        let mut algorithm = RlhfPpo::new(config, updates);
        let laws = |model: &Tables, tokens: &Tokens| ActorCritic::policy(model, tokens);
        let collector = self.collector(&config.rollout);
        let start = self.tables(1.0);
        let (model, path) = self.run(
            &mut algorithm,
            collector,
            start,
            laws,
            |model| &model.model.policy,
            [updates, every, seed],
        );
        (model.model.policy, path)
    }

    /// The same with RLOO.
    ///
    /// # Panics
    /// As [`ppo`](Self::ppo).
    #[must_use]
    pub fn rloo(
        &self,
        config: &RlooConfig,
        updates: u64,
        every: u64,
        seed: u64,
    ) -> (TablePolicy, Vec<Point>) {
        config.validate().expect("the settings can work");
        let mut algorithm = Rloo::new(config, updates);
        let laws = |model: &TablePolicy, tokens: &Tokens| Policy::policy(model, tokens);
        let collector = self.collector(&config.rollout);
        self.run(&mut algorithm, collector, self.reference(), laws, |model| model, [updates, every, seed])
    }

    fn run<M: Sampler, U: Update<M, Data = Responses>>(
        &self,
        algorithm: &mut U,
        mut collector: LmCollector,
        mut model: M,
        laws: impl Fn(&M, &Tokens) -> Categorical,
        policy: impl Fn(&M) -> &TablePolicy,
        [updates, every, seed]: [u64; 3],
    ) -> (M, Vec<Point>) {
        let (reference, mut rng) = (self.reference(), ChaCha8Rng::seed_from_u64(seed));
        let mut path = vec![];
        for update in 1..=updates {
            let score = |_: &[&[u32]], written: &[Response]| self.score(written);
            let responses = collector.collect(&model, &laws, |t| reference.policy(t), score, &mut rng);
            collector.move_beta(responses.mean_kl());
            (model, _) = algorithm.update(model, &responses, &mut rng).expect("numbers stay finite");
            if update.is_multiple_of(every) || update == updates {
                path.push(self.point(update, policy(&model), collector.state().controller.beta()));
            }
        }
        (model, path)
    }

    /// `KL(π ‖ π*)` in nats, and the share of the best objective `β·log Z` that the policy reaches.
    #[must_use]
    pub fn distance_to_optimum(&self, policy: &TablePolicy, beta: f64) -> (f64, f64) {
        let (law, reference) = (self.law(policy), self.world.reference());
        let best = tilt(reference, &self.reward, beta).objective();
        let to_best = kl(&law, &tilted(reference, &self.reward, beta));
        (to_best, objective(&law, reference, &self.reward, beta) / best)
    }
}
