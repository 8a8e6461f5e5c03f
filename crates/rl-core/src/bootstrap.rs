//! How sure a handful of runs makes us: percentile bootstrap intervals, the interquartile mean, the probability of
//! improvement.
//!
//! Runs differ by their seeds, so a score is a sample and not a number. A claim about runs is one about an interval:
//! "A beats B" holds if the interval of the difference lies above 0, or that of the probability of improvement above ½.
//!
//! Efron 1979; Agarwal et al. 2021, *Deep reinforcement learning at the edge of the statistical precipice* (rliable)

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

/// A number computed from samples, and where it lies if the samples are drawn again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The statistic of the samples themselves.
    pub estimate: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether the whole interval lies above `value`.
    pub fn above(&self, value: f64) -> bool {
        self.low > value
    }

    /// Whether the whole interval lies below `value`.
    pub fn below(&self, value: f64) -> bool {
        self.high < value
    }
}

/// How often to resample, and how much of what comes out an interval covers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Resamples: 2,000 fix the ends of a 95% interval to about a tenth of its width.
    pub resamples: usize,
    /// The share of resampled statistics inside the interval, in (0, 1).
    pub confidence: f64,
}

impl Default for Bootstrap {
    /// 2,000 resamples, 95%: rliable's.
    fn default() -> Self {
        Self { resamples: 2000, confidence: 0.95 }
    }
}

impl Bootstrap {
    /// The percentile interval of a statistic of independent samples.
    ///
    /// Resamples `n` of the `n` samples with replacement, and keeps the middle `confidence` of the statistics.   Efron
    /// 1979
    ///
    /// # Shapes
    /// `samples: [n]`; none at all panics, and so do settings outside their ranges
    ///
    /// ```
    /// use rand::SeedableRng;
    /// use rl_core::bootstrap::{Bootstrap, mean};
    /// let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    /// let returns = [480.0, 500.0, 500.0, 462.0, 500.0];
    /// let interval = Bootstrap::default().interval(&returns, mean, &mut rng);
    /// assert!(interval.low < 488.4 && interval.estimate == 488.4 && interval.high > 488.4);
    /// ```
    pub fn interval<R: Rng + ?Sized>(
        &self,
        samples: &[f64],
        statistic: impl Fn(&[f64]) -> f64,
        rng: &mut R,
    ) -> Interval {
        self.stratified(&[samples], statistic, rng)
    }

    /// The same where samples come in strata, such as the runs on each of several tasks: each is resampled by itself, and
    /// the statistic sees them one after another.   Agarwal 2021, §4.1
    ///
    /// # Shapes
    /// `strata: [tasks][runs]`; no samples at all panic
    pub fn stratified<R: Rng + ?Sized>(
        &self,
        strata: &[&[f64]],
        statistic: impl Fn(&[f64]) -> f64,
        rng: &mut R,
    ) -> Interval {
        let whole = strata.concat();
        assert!(!whole.is_empty(), "a statistic needs samples");
        let mut drawn = Vec::with_capacity(whole.len());
        let again = (0..self.resamples).map(|_| {
            drawn.clear();
            strata.iter().for_each(|stratum| resample(stratum, &mut drawn, rng));
            statistic(&drawn)
        });
        let again = again.collect();
        self.middle(statistic(&whole), again)
    }

    /// The interval of the [`probability_of_improvement`] of X over Y, averaged over tasks.   Agarwal 2021, §4.3
    ///
    /// # Shapes
    /// `tasks: [tasks]`, X's runs and Y's on each; a task without runs panics
    pub fn improvement<R: Rng + ?Sized>(&self, tasks: &[(&[f64], &[f64])], rng: &mut R) -> Interval {
        assert!(!tasks.is_empty(), "a comparison needs tasks");
        let n = tasks.len() as f64;
        let estimate = tasks.iter().map(|(x, y)| probability_of_improvement(x, y)).sum::<f64>() / n;
        let (mut x_again, mut y_again) = (Vec::new(), Vec::new());
        let again = (0..self.resamples).map(|_| {
            let each = tasks.iter().map(|(x, y)| {
                x_again.clear();
                y_again.clear();
                resample(x, &mut x_again, rng);
                resample(y, &mut y_again, rng);
                probability_of_improvement(&x_again, &y_again)
            });
            each.sum::<f64>() / n
        });
        let again = again.collect();
        self.middle(estimate, again)
    }

    fn middle(&self, estimate: f64, mut again: Vec<f64>) -> Interval {
        assert!(self.resamples > 0, "an interval needs resamples");
        assert!(0.0 < self.confidence && self.confidence < 1.0, "a confidence of {}", self.confidence);
        again.sort_by(f64::total_cmp);
        let tail = 0.5 * (1.0 - self.confidence);
        Interval { estimate, low: quantile(&again, tail), high: quantile(&again, 1.0 - tail) }
    }
}

fn resample<R: Rng + ?Sized>(samples: &[f64], into: &mut Vec<f64>, rng: &mut R) {
    into.extend((0..samples.len()).map(|_| samples[rng.random_range(0..samples.len())]));
}

/// The number below which a share `q` of `sorted` lies, interpolated linearly between neighbours (type 7 of Hyndman and
/// Fan 1996, numpy's default).
///
/// # Shapes
/// `sorted: [n]`, ascending; none panics, as does a `q` outside [0, 1]
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    assert!(!sorted.is_empty() && (0.0..=1.0).contains(&q), "a quantile {q} of {} numbers", sorted.len());
    let place = q * (sorted.len() - 1) as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(sorted.len() - 1);
    // Neighbours that agree need no weights, infinities included.
    if sorted[below] == sorted[above] {
        sorted[below]
    } else {
        sorted[below] * (1.0 - part) + sorted[above] * part
    }
}

/// `Σ x / n`
///
/// # Shapes
/// `samples: [n]`; none is NaN
pub fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

/// The mean of the middle half: the lowest and the highest ⌊n/4⌋ samples are left out. Nearly as robust as the median,
/// and steadier on few runs.   Agarwal 2021, §4.3 (`scipy.stats.trim_mean(x, 0.25)`)
///
/// # Shapes
/// `samples: [n]`; none is NaN
pub fn interquartile_mean(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted.len() / 4;
    mean(&sorted[cut..sorted.len() - cut])
}

/// `P(X > Y) + ½·P(X = Y)` of one run of each: 1 if every run of X beats every run of Y, ½ if they are alike.   Agarwal
/// 2021, §4.3; Mann and Whitney 1947
///
/// # Shapes
/// `x: [n]`, `y: [m]`; none of either panics
pub fn probability_of_improvement(x: &[f64], y: &[f64]) -> f64 {
    assert!(!x.is_empty() && !y.is_empty(), "a comparison needs runs of both");
    let wins = |x: &f64| -> f64 {
        let win = |y: &f64| {
            if x > y {
                1.0
            } else if x == y {
                0.5
            } else {
                0.0
            }
        };
        y.iter().map(win).sum()
    };
    x.iter().map(wins).sum::<f64>() / (x.len() * y.len()) as f64
}
