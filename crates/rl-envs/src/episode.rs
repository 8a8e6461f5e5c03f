//! Finished episodes and a window of statistics over the last of them.
//!
//! The number that learning curves show is the *undiscounted* return of whole episodes,
//! `G = Σ_t r_t`, averaged over the last 100 or so: [`EpisodeWindow`]. It must be fed by
//! [`Episode`]s of the raw environment; returns of normalised or shaped rewards mean something else.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// One finished episode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// Which environment of the vector it ran in.
    pub env: usize,
    /// The undiscounted return `Σ_t r_t`, summed in double precision.
    pub return_sum: f64,
    /// The number of steps.
    pub length: usize,
}

/// The last `capacity` episodes and their means.
///
/// ```
/// use rl_envs::{Episode, EpisodeWindow};
/// let mut window = EpisodeWindow::new(2);
/// for return_sum in [10.0, 20.0, 40.0] {
///     window.push(Episode { env: 0, return_sum, length: 5 });
/// }
/// assert_eq!(window.mean_return(), Some(30.0)); // the first has left the window
/// assert_eq!(window.seen(), 3);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeWindow {
    capacity: usize,
    seen: u64,
    last: VecDeque<Episode>,
}

impl EpisodeWindow {
    /// An empty window of the given size.
    ///
    /// # Panics
    /// If `capacity` is 0.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "an episode window must hold at least one episode");
        Self { capacity, seen: 0, last: VecDeque::with_capacity(capacity) }
    }

    /// Adds one episode, dropping the oldest if the window is full.
    pub fn push(&mut self, episode: Episode) {
        if self.last.len() == self.capacity {
            self.last.pop_front();
        }
        self.last.push_back(episode);
        self.seen += 1;
    }

    /// Mean return of the window; `None` before the first episode has ended (never a made-up zero).
    pub fn mean_return(&self) -> Option<f64> {
        self.mean(|episode| episode.return_sum)
    }

    /// Mean length of the window in steps; `None` before the first episode has ended.
    pub fn mean_length(&self) -> Option<f64> {
        self.mean(|episode| episode.length as f64)
    }

    /// Population standard deviation of the returns in the window, `√(mean (G − mean G)²)`.
    pub fn std_return(&self) -> Option<f64> {
        let mean = self.mean_return()?;
        self.mean(|episode| (episode.return_sum - mean).powi(2)).map(f64::sqrt)
    }

    /// The highest return in the window.
    pub fn max_return(&self) -> Option<f64> {
        self.last.iter().map(|episode| episode.return_sum).reduce(f64::max)
    }

    /// The lowest return in the window.
    pub fn min_return(&self) -> Option<f64> {
        self.last.iter().map(|episode| episode.return_sum).reduce(f64::min)
    }

    /// How many episodes the window holds now.
    pub fn len(&self) -> usize {
        self.last.len()
    }

    /// Whether no episode has ended yet.
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// How many episodes were ever pushed.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    fn mean(&self, of: impl Fn(&Episode) -> f64) -> Option<f64> {
        (!self.last.is_empty()).then(|| self.last.iter().map(of).sum::<f64>() / self.last.len() as f64)
    }
}

/// Takes the episodes of one [`VecStep`](crate::VecStep): `window.extend(step.episodes.iter().copied())`.
impl Extend<Episode> for EpisodeWindow {
    fn extend<I: IntoIterator<Item = Episode>>(&mut self, episodes: I) {
        for episode in episodes {
            self.push(episode);
        }
    }
}
