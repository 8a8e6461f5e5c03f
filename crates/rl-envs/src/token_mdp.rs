//! Writing a sentence as a Markov decision process: the state is the prefix, the action the next token.
//!
//! ```text
//! r(s, a) = −β·(log π_old(a|s) − log p_ref(a|s)) + 1[sentence complete]·score
//! ```
//!
//! An episode is one sentence of a [`TokenWorld`] and *terminates* at its end: the reward model has judged all of it,
//! there is no future. π_old is the policy that samples, frozen for the length of a rollout, so that its
//! log-probabilities are plain numbers of the process.
//!
//! This is the oracle for the production path, which samples whole sentences and never steps an environment: on equal
//! random numbers both give equal rewards, log-probabilities and advantages.

use std::sync::Arc;

use crate::env::{ActionSpace, Env, EnvRng, Step, StepEnd};
use crate::token_world::TokenWorld;

/// The token MDP of one world, one score and one behaviour policy.
///
/// The observation is L numbers, the tokens so far and −1 for those to come.
#[derive(Clone)]
pub struct TokenMdp {
    world: Arc<TokenWorld>,
    /// `[K]`.
    score: Arc<[f64]>,
    /// `log π_old(a | prefix)`, `[prefixes, V]`.
    behaviour: Arc<[f64]>,
    beta: f64,
    prefix: Vec<usize>,
}

impl TokenMdp {
    /// The MDP whose last token earns `score` and whose every token pays β per nat.
    ///
    /// # Shapes
    /// `score: [K]`; `behaviour: [prefixes·V]`, next-token log-probabilities in the order of
    /// [`TokenWorld::prefix_index`]. Other lengths panic.
    pub fn new(world: Arc<TokenWorld>, score: Arc<[f64]>, behaviour: Arc<[f64]>, beta: f64) -> Self {
        assert_eq!(score.len(), world.sentences(), "one score per sentence");
        assert_eq!(behaviour.len(), world.prefixes() * world.vocabulary(), "one law per prefix");
        Self { world, score, behaviour, beta, prefix: vec![] }
    }
}

impl Env for TokenMdp {
    type Action = usize;

    fn obs_dim(&self) -> usize {
        self.world.length()
    }

    fn action_space(&self) -> ActionSpace {
        ActionSpace::Discrete { n: self.world.vocabulary() }
    }

    fn reset(&mut self, _: &mut EnvRng, obs: &mut [f32]) {
        self.prefix.clear();
        self.observe(obs);
    }

    fn step(&mut self, &action: &usize, _: &mut EnvRng, obs: &mut [f32]) -> Step {
        let v = self.world.vocabulary();
        assert!(action < v, "TokenMdp has {v} tokens, but token {action} was written");
        let log_prob = self.behaviour[self.world.prefix_index(&self.prefix) * v + action];
        let reference = self.world.next_log_probs(&self.prefix)[action];
        let mut reward = if self.beta == 0.0 { 0.0 } else { -self.beta * (log_prob - reference) };
        self.prefix.push(action);
        self.observe(obs);
        let complete = self.prefix.len() == self.world.length();
        if complete {
            reward += self.score[self.world.index(&self.prefix)];
        }
        Step { reward: reward as f32, end: StepEnd::terminated_if(complete) }
    }

    fn state(&self) -> Vec<f64> {
        let mut state = vec![-1.0; self.world.length()];
        state.iter_mut().zip(&self.prefix).for_each(|(entry, &token)| *entry = token as f64);
        state
    }

    fn set_state(&mut self, state: &[f64]) {
        assert_eq!(state.len(), self.world.length(), "a TokenMdp state has one number per token");
        self.prefix = state.iter().take_while(|&&token| token >= 0.0).map(|&token| token as usize).collect();
    }

    fn observe(&self, obs: &mut [f32]) {
        assert_eq!(obs.len(), self.world.length(), "a TokenMdp observation has one number per token");
        obs.fill(-1.0);
        obs.iter_mut().zip(&self.prefix).for_each(|(entry, &token)| *entry = token as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::env_rng;
    use crate::token_world::{exact, fixed};

    /// Writes `sentence` and returns its rewards.
    fn rewards(mdp: &mut TokenMdp, sentence: &[usize]) -> Vec<f64> {
        let (mut rng, mut obs) = (env_rng(1, 0), vec![0.0; mdp.obs_dim()]);
        mdp.reset(&mut rng, &mut obs);
        let steps: Vec<Step> = sentence.iter().map(|token| mdp.step(token, &mut rng, &mut obs)).collect();
        let ends = steps.iter().map(|step| step.end == StepEnd::Terminated).collect::<Vec<_>>();
        assert_eq!(ends.iter().position(|&end| end), Some(sentence.len() - 1));
        steps.into_iter().map(|step| f64::from(step.reward)).collect()
    }

    #[test]
    fn under_the_reference_only_the_score_is_left() {
        let world = Arc::new(fixed::small());
        let behaviour: Arc<[f64]> = exact::next_token_laws(world.reference(), 4).into();
        let gold = world.gold().into();
        let got = rewards(&mut TokenMdp::new(world.clone(), gold, behaviour, 0.5), &[2, 0, 3, 3]);
        assert!(got[..3].iter().all(|r| r.abs() < 1e-6));
        assert!((got[3] - world.gold()[world.index(&[2, 0, 3, 3])]).abs() < 1e-6);
    }

    /// β·log π*/p_ref = r − β·log Z: the optimal policy's return is the same for every sentence.
    #[test]
    fn under_the_optimal_policy_every_sentence_returns_beta_log_z() {
        let (world, beta) = (Arc::new(fixed::small()), 0.5);
        let optimum = exact::tilt(world.reference(), world.gold(), beta).objective();
        let law = exact::tilted(world.reference(), world.gold(), beta);
        let behaviour: Arc<[f64]> = exact::next_token_laws(&law, 4).into();
        let mut mdp = TokenMdp::new(world.clone(), world.gold().into(), behaviour, beta);
        for sentence in 0..world.sentences() {
            let total: f64 = rewards(&mut mdp, &world.tokens(sentence)).iter().sum();
            assert!((total - optimum).abs() < 1e-5, "sentence {sentence} returns {total}, not {optimum}");
        }
    }
}
