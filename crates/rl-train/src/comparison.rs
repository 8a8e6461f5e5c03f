//! Which of several experiments is better, and how sure a handful of seeds makes us.
//!
//! Agarwal et al. 2021, *Deep reinforcement learning at the edge of the statistical precipice* (rliable): interquartile
//! means and probabilities of improvement with bootstrap intervals, because means of few runs say little.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_core::bootstrap::{Bootstrap, Interval, interquartile_mean, mean};

use crate::recording::{Recording, Trend};

/// An experiment and how its runs did.
#[derive(Debug, Clone, PartialEq)]
pub struct Contender {
    /// Its name.
    pub name: String,
    /// Tasks with the score of each run, in the order of the tasks of the comparison.
    pub scores: Vec<Vec<f64>>,
}

/// An experiment against the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Improvement {
    /// Its name.
    pub name: String,
    /// `P(a run of it beats a run of the first)`, averaged over tasks.
    pub probability: Interval,
}

/// What the scores say.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Of each experiment and task: mean, interquartile mean.
    pub scores: Vec<(String, String, usize, Interval, Interval)>,
    /// Of each experiment but the first.
    pub improvements: Vec<Improvement>,
}

/// Compares experiments on tasks called `tasks`. An experiment without runs on one of them has no improvement.
pub fn compare(contenders: &[Contender], tasks: &[String]) -> Comparison {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let bootstrap = Bootstrap::default();
    let mut scores = vec![];
    for contender in contenders {
        for (task, runs) in tasks.iter().zip(&contender.scores).filter(|(_, runs)| !runs.is_empty()) {
            let mean = bootstrap.interval(runs, mean, &mut rng);
            let middle = bootstrap.interval(runs, interquartile_mean, &mut rng);
            scores.push((contender.name.clone(), task.clone(), runs.len(), mean, middle));
        }
    }
    let improvements = contenders.iter().skip(1).filter_map(|contender| {
        let pairs = contender.scores.iter().zip(&contenders[0].scores);
        let pairs: Vec<(&[f64], &[f64])> = pairs.map(|(x, y)| (x.as_slice(), y.as_slice())).collect();
        let whole = pairs.iter().all(|(x, y)| !x.is_empty() && !y.is_empty());
        whole.then(|| Improvement {
            name: contender.name.clone(),
            probability: bootstrap.improvement(&pairs, &mut rng),
        })
    });
    let improvements = improvements.collect();
    Comparison { scores, improvements }
}

impl Improvement {
    /// Whether seeds show a difference, in words.
    pub fn verdict(&self, first: &str) -> String {
        let name = &self.name;
        if self.probability.above(0.5) {
            format!("{name} is better than {first}")
        } else if self.probability.below(0.5) {
            format!("{name} is worse than {first}")
        } else {
            format!("these runs show no difference between {name} and {first}")
        }
    }
}

/// What runs are compared by: a metric's mean over the last quarter, or what the run was found to be worth at its end.
pub fn score(run: &Recording, metric: Option<&str>) -> Option<(String, f64)> {
    if let Some(name) = metric {
        return Some((format!("{name}, last quarter"), Trend::of(&run.columns, name)?.last()));
    }
    if let Some((name, value)) = crate::report::result(run) {
        return Some((name.to_owned(), value));
    }
    let names = ["charts/episodic_return", "objective/rlhf_reward", "rewards/accuracies"];
    names.into_iter().find_map(|name| score(run, Some(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contender(name: &str, scores: &[&[f64]]) -> Contender {
        Contender { name: name.into(), scores: scores.iter().map(|runs| runs.to_vec()).collect() }
    }

    #[test]
    fn runs_that_are_all_better_are_better_and_mixed_ones_show_nothing() {
        let tasks = ["pole".to_owned()];
        let base = contender("a", &[&[1.0, 2.0, 3.0, 4.0, 5.0]]);
        let better = contender("b", &[&[6.0, 7.0, 8.0, 9.0, 10.0]]);
        let alike = contender("c", &[&[1.5, 2.5, 3.5, 2.0, 4.0]]);
        let found = compare(&[base, better, alike], &tasks);
        assert_eq!(found.improvements[0].probability.estimate, 1.0);
        assert_eq!(found.improvements[0].verdict("a"), "b is better than a");
        assert_eq!(found.improvements[1].verdict("a"), "these runs show no difference between c and a");
        let (_, task, runs, mean, middle) = &found.scores[0];
        assert_eq!((task.as_str(), *runs, mean.estimate, middle.estimate), ("pole", 5, 3.0, 3.0));
        assert!(mean.low < 3.0 && mean.high > 3.0);
    }

    #[test]
    fn improvement_over_several_tasks_is_their_mean_and_needs_runs_on_all() {
        let tasks = ["pole".to_owned(), "car".to_owned()];
        let base = contender("a", &[&[1.0, 2.0], &[-100.0, -200.0]]);
        let half = contender("b", &[&[3.0, 4.0], &[-300.0, -400.0]]);
        let gap = contender("c", &[&[3.0], &[]]);
        let found = compare(&[base, half, gap], &tasks);
        assert_eq!(found.improvements.len(), 1);
        assert_eq!(found.improvements[0].probability.estimate, 0.5);
        assert_eq!(found.scores.len(), 5);
    }
}
