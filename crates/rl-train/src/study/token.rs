//! What the studies in the token world share: changes to its configs, points of a path, and DPO.

use anyhow::Result;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rl_algos::adam::AdamConfig;
use rl_algos::{Dpo, DpoConfig, PairBatch, TokenPair, Update};
use rl_core::schedule::Schedule;
use rl_envs::TokenWorld;
use rl_envs::token_world::best_of_n::BestOfN;
use rl_envs::token_world::proxy::Comparison;
use rl_models::TablePolicy;

use super::Plan;
use super::runs::Trace;
use crate::rlhf::TokenTask;

/// A policy on its way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// KL(π ‖ π_ref), nats.
    pub kl: f64,
    /// `E_π[gold]`.
    pub gold: f64,
    /// `E_π[score]`, of what is optimised.
    pub score: f64,
}

/// Where a run in the token world has been, from its reference on.
pub fn path(trace: &Trace) -> Vec<Point> {
    let points = trace.rows.iter().filter_map(|row| {
        let [kl, gold, score] = ["exact/kl", "exact/gold", "exact/score"].map(|name| row.get(name));
        Some(Point { kl: kl?, gold: gold?, score: score? })
    });
    points.collect()
}

/// The point of the highest gold.
pub fn peak(path: &[Point]) -> Point {
    path.iter().copied().max_by(|a, b| a.gold.total_cmp(&b.gold)).expect("a path begins at its reference")
}

/// Gold where a path first costs `kl` nats, between its neighbours; `None` if it never gets there.
pub fn gold_at(path: &[Point], kl: f64) -> Option<f64> {
    let reached = path.iter().position(|point| point.kl >= kl)?;
    let (before, after) = (path[reached.saturating_sub(1)], path[reached]);
    let part = if after.kl > before.kl { (kl - before.kl) / (after.kl - before.kl) } else { 1.0 };
    Some(before.gold + part * (after.gold - before.gold))
}

/// A run of so many updates of the token world's configs, measured so often; short and small where the plan is quick.
pub fn updates(plan: &Plan, full: u64, evaluations: u64) -> Vec<String> {
    let (updates, responses) = (plan.pick(full, 12), plan.pick(256, 64));
    let every = (updates / plan.pick(evaluations, 4)).max(1);
    let mut changes = vec![
        format!("total_steps={}", updates * responses),
        format!("eval.every_steps={}", every * responses),
    ];
    if plan.pick(false, true) {
        changes.push("token_world.world=small".into());
    }
    changes
}

/// The size of a PPO update for this plan.
pub fn ppo_size(plan: &Plan) -> [String; 2] {
    let responses = plan.pick(256, 64);
    [format!("algo.rollout.prompts={responses}"), format!("algo.minibatch_rows={responses}")]
}

/// β that stays.
pub fn fixed(beta: f64) -> String {
    format!("algo.rollout.kl={{ kind = \"fixed\", beta = {beta:?} }}")
}

/// β that Ziegler's rule moves, by at most 6% per update.
pub fn adaptive(beta: f64, target: f64) -> String {
    format!("algo.rollout.kl={{ kind = \"proportional\", beta = {beta:?}, target = {target:?}, gain = 0.3 }}")
}

/// Best-of-n by a score, for n = 1, 2, 4, …, up to 2^`doublings`.
pub fn best_of_n(world: &TokenWorld, score: &[f64], doublings: u32) -> Vec<Point> {
    let best = BestOfN::new(world.reference(), score);
    let at = |n: usize| Point {
        kl: best.kl(n),
        gold: best.expectation(n, world.gold()),
        score: best.expectation(n, score),
    };
    (0..=doublings).map(|k| at(1 << k)).collect()
}

/// DPO on comparisons of sentences.
pub struct DpoRun<'a> {
    /// Whose reference it starts from.
    pub task: &'a TokenTask,
    /// What it learns from.
    pub comparisons: &'a [Comparison],
    /// β.
    pub beta: f64,
    /// Steps.
    pub steps: u64,
    /// Pairs per step.
    pub batch: usize,
    /// Adam's step size.
    pub learning_rate: Schedule,
    /// Draws the minibatches.
    pub seed: u64,
}

impl DpoRun<'_> {
    /// Trains, and lets `see` look at the table every so many steps; returns the table.
    ///
    /// # Errors
    /// If a number is not finite.
    pub fn train(&self, every: u64, mut see: impl FnMut(&TablePolicy)) -> Result<TablePolicy> {
        let mut model = self.task.reference();
        let device = model.logits.val().device();
        let words = |sentence: usize| -> Vec<u32> {
            self.task.world.tokens(sentence).into_iter().map(|token| token as u32).collect()
        };
        let written: Vec<[Vec<u32>; 2]> =
            self.comparisons.iter().map(|pair| [words(pair.chosen), words(pair.rejected)]).collect();
        let pairs: Vec<TokenPair> =
            written.iter().map(|[chosen, rejected]| TokenPair { prompt: &[], chosen, rejected }).collect();
        let all = PairBatch::new(&pairs, 0, &device)?.with_reference(&model, 4096);
        let optimizer = AdamConfig { learning_rate: self.learning_rate, eps: 1e-8, ..AdamConfig::default() };
        let config = DpoConfig { beta: self.beta, max_grad_norm: None, optimizer, ..DpoConfig::default() };
        let mut dpo = Dpo::new(config, self.steps);
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let (batch, mut order) = (self.batch.min(pairs.len()), (0..pairs.len()).collect::<Vec<_>>());
        let mut next = order.len();
        for step in 1..=self.steps {
            if next + batch > order.len() {
                order.shuffle(&mut rng);
                next = 0;
            }
            let chosen =
                if batch == order.len() { None } else { Some(all.select(&order[next..next + batch])) };
            next += batch;
            (model, _) = dpo.update(model, chosen.as_ref().unwrap_or(&all), &mut rng)?;
            if step.is_multiple_of(every) {
                see(&model);
            }
        }
        Ok(model)
    }

    /// The path from the reference on, as exact numbers.
    ///
    /// # Errors
    /// As [`train`](Self::train).
    pub fn path(&self, every: u64) -> Result<Vec<Point>> {
        let mut path = vec![self.point(&self.task.reference())];
        self.train(every, |table| path.push(self.point(table)))?;
        Ok(path)
    }

    fn point(&self, table: &TablePolicy) -> Point {
        let (world, law) = (&self.task.world, self.task.law(table, 1.0));
        let score = rl_envs::token_world::exact::expectation(&law, &self.task.reward);
        Point { kl: world.kl_of(&law), gold: world.gold_of(&law), score }
    }
}

/// Pairs of reference samples whose labels are drawn: the first is the better one with probability
/// `σ(reward₁ − reward₂)`.   Bradley and Terry 1952
pub fn drawn_comparisons(task: &TokenTask, pairs: usize, rng: &mut ChaCha8Rng) -> Vec<Comparison> {
    let one = |_| {
        let (a, b) = (task.world.sample(rng), task.world.sample(rng));
        let a_wins = 1.0 / (1.0 + (task.reward[b] - task.reward[a]).exp());
        let (chosen, rejected) = if rng.random::<f64>() < a_wins { (a, b) } else { (b, a) };
        Comparison { chosen, rejected }
    };
    (0..pairs).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gold_between_two_points_lies_on_the_line_between_them() {
        let at = |kl, gold| Point { kl, gold, score: 0.0 };
        let path = [at(0.0, 0.0), at(1.0, 1.0), at(3.0, 0.0), at(2.0, 5.0)];
        assert_eq!(gold_at(&path, 0.0), Some(0.0));
        assert_eq!(gold_at(&path, 2.0), Some(0.5));
        assert_eq!(gold_at(&path, 3.5), None);
        assert_eq!(peak(&path), at(2.0, 5.0));
    }
}
