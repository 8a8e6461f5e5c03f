//! A small world of cells with walls, pits and slippery ground, and its exact model.
//!
//! ```text
//! . . . G      the agent starts at S, earns +1 at G and −1 at X (both end the episode),
//! . # . X      pays 0.04 for every step, and cannot enter #
//! S . . .
//! ```
//!
//! An action goes where it should with probability `1 − slip`, and to either side with `slip/2`
//! each; a move into a wall or off the map stays where it is. [`GridWorld::model`] gives the same
//! world as a [`TabularMdp`], so [value iteration](crate::value_iteration) says what the best
//! learner can reach.
//!
//! Source: the map above with `slip = 0.2` is Russell and Norvig, *Artificial Intelligence*, 2010,
//! §17.1, whose utilities (figure 17.3) are a test.

use rand::RngExt;

use crate::bandit::one_hot;
use crate::env::{ActionSpace, Env, EnvRng, Step, StepEnd, exactly};
use crate::error::EnvError;
use crate::value_iteration::TabularMdp;

/// Reward of every step.
const STEP_REWARD: f64 = -0.04;

/// What a cell of the map is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Free ground, `.`.
    Free,
    /// Free ground where episodes start, `S`; with several, each is as likely.
    Start,
    /// The goal, `G`: +1 and the end.
    Goal,
    /// A pit, `X`: −1 and the end.
    Pit,
    /// A wall, `#`.
    Wall,
}

impl Cell {
    fn prize(self) -> f64 {
        match self {
            Self::Goal => 1.0,
            Self::Pit => -1.0,
            _ => 0.0,
        }
    }

    fn ends(self) -> bool {
        matches!(self, Self::Goal | Self::Pit)
    }
}

/// The gridworld. Cells are numbered row by row from 0; the observation is the one-hot of the
/// agent's cell; actions 0, 1, 2, 3 go up, right, down and left.
#[derive(Clone, Debug, PartialEq)]
pub struct GridWorld {
    cells: Vec<Cell>,
    width: usize,
    slip: f64,
    agent: usize,
}

impl GridWorld {
    /// Number of actions.
    pub const ACTIONS: usize = 4;

    /// Reads a map, one line per row; blanks between cells and empty lines are ignored.
    ///
    /// ```
    /// let world = rl_envs::GridWorld::parse("S . G", 0.0).unwrap();
    /// assert_eq!(world.cells().len(), 3);
    /// let error = rl_envs::GridWorld::parse("S ? G", 0.0).unwrap_err();
    /// assert!(error.to_string().starts_with("unknown cell `?` in line 1, column 2"));
    /// ```
    ///
    /// # Errors
    /// [`EnvError::UnknownCell`], [`EnvError::RaggedMap`], [`EnvError::MissingCell`] (no `S`, no
    /// `G`) for the map; [`EnvError::OutOfRange`] for `slip` outside `[0, 1]`.
    pub fn parse(map: &str, slip: f64) -> Result<Self, EnvError> {
        if !(0.0..=1.0).contains(&slip) {
            return Err(EnvError::OutOfRange { key: "slip", range: "[0, 1]", got: slip });
        }
        let (mut cells, mut width) = (Vec::new(), 0);
        let lines = map.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        for (row, line) in lines {
            let before = cells.len();
            for (column, got) in line.chars().filter(|c| !c.is_whitespace()).enumerate() {
                cells.push(match got {
                    '.' => Cell::Free,
                    'S' => Cell::Start,
                    'G' => Cell::Goal,
                    'X' => Cell::Pit,
                    '#' => Cell::Wall,
                    _ => return Err(EnvError::UnknownCell { got, line: row + 1, column: column + 1 }),
                });
            }
            let got = cells.len() - before;
            width = if before == 0 { got } else { width };
            if got != width {
                return Err(EnvError::RaggedMap { line: row + 1, got, want: width });
            }
        }
        let start = cells.iter().position(|&cell| cell == Cell::Start);
        let agent = start.ok_or(EnvError::MissingCell { cell: 'S', meaning: "start" })?;
        if !cells.contains(&Cell::Goal) {
            return Err(EnvError::MissingCell { cell: 'G', meaning: "goal" });
        }
        Ok(Self { cells, width, slip, agent })
    }

    /// The 4 × 3 world of Russell and Norvig, with `slip = 0.2`.
    pub fn russell_norvig() -> Self {
        Self::parse("...G\n.#.X\nS...", 0.2).expect("the map is well formed")
    }

    /// The cells, row by row.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Cells per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The agent's cell.
    pub fn agent(&self) -> usize {
        self.agent
    }

    /// Where one undisturbed move from `cell` leads.
    fn neighbour(&self, cell: usize, action: usize) -> usize {
        let (row, column) = (cell / self.width, cell % self.width);
        let height = self.cells.len() / self.width;
        let target = match action {
            0 if row > 0 => cell - self.width,
            1 if column + 1 < self.width => cell + 1,
            2 if row + 1 < height => cell + self.width,
            3 if column > 0 => cell - 1,
            _ => cell,
        };
        if self.cells[target] == Cell::Wall { cell } else { target }
    }

    /// The exact process: what [`Env::step`] draws from, as probabilities.
    ///
    /// States are all cells; entering a goal or a pit ends the episode, so those cells (and walls)
    /// have value 0: nothing is earned *from* them.
    ///
    /// # Errors
    /// [`EnvError::OutOfRange`] for `gamma` outside `[0, 1]`.
    pub fn model(&self, gamma: f64) -> Result<TabularMdp, EnvError> {
        let states = self.cells.len();
        let mut transitions = vec![0.0; states * Self::ACTIONS * states];
        let mut rewards = vec![0.0; states * Self::ACTIONS];
        for s in (0..states).filter(|&s| self.cells[s] != Cell::Wall && !self.cells[s].ends()) {
            for a in 0..Self::ACTIONS {
                let row = s * Self::ACTIONS + a;
                rewards[row] = STEP_REWARD;
                for (turn, chance) in [(0, 1.0 - self.slip), (1, self.slip / 2.0), (3, self.slip / 2.0)] {
                    let next = self.neighbour(s, (a + turn) % Self::ACTIONS);
                    rewards[row] += chance * self.cells[next].prize();
                    if !self.cells[next].ends() {
                        transitions[row * states + next] += chance;
                    }
                }
            }
        }
        TabularMdp::new(states, Self::ACTIONS, transitions, rewards, gamma)
    }
}

impl Env for GridWorld {
    type Action = usize;

    fn obs_dim(&self) -> usize {
        self.cells.len()
    }

    fn action_space(&self) -> ActionSpace {
        ActionSpace::Discrete { n: Self::ACTIONS }
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]) {
        let starts = || (0..self.cells.len()).filter(|&cell| self.cells[cell] == Cell::Start);
        let pick = rng.random_range(0..starts().count());
        self.agent = starts().nth(pick).expect("the pick is below the count");
        self.observe(obs);
    }

    fn step(&mut self, &action: &usize, rng: &mut EnvRng, obs: &mut [f32]) -> Step {
        assert!(action < Self::ACTIONS, "GridWorld has actions 0 to 3, but got {action}");
        let u: f64 = rng.random();
        let turn = match u {
            _ if u < self.slip / 2.0 => 1,
            _ if u < self.slip => 3,
            _ => 0,
        };
        self.agent = self.neighbour(self.agent, (action + turn) % Self::ACTIONS);
        self.observe(obs);
        let cell = self.cells[self.agent];
        Step { reward: (STEP_REWARD + cell.prize()) as f32, end: StepEnd::terminated_if(cell.ends()) }
    }

    fn state(&self) -> Vec<f64> {
        vec![self.agent as f64]
    }

    fn set_state(&mut self, state: &[f64]) {
        let [agent] = exactly("GridWorld", state);
        assert!((agent as usize) < self.cells.len(), "GridWorld has {} cells, not {agent}", self.cells.len());
        self.agent = agent as usize;
    }

    fn observe(&self, obs: &mut [f32]) {
        one_hot(self.agent, obs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_utilities_of_russell_and_norvig_are_reproduced() {
        let mdp = GridWorld::russell_norvig().model(1.0).unwrap();
        let values = mdp.value_iteration(1e-12).unwrap().values;
        // Figure 17.3; the goal, the pit and the wall hold nothing of their own.
        let want = [0.812, 0.868, 0.918, 0.0, 0.762, 0.0, 0.660, 0.0, 0.705, 0.655, 0.611, 0.388];
        for (got, want) in values.iter().zip(want) {
            assert!((got - want).abs() < 1e-3, "{values:?}");
        }
    }

    #[test]
    fn a_map_that_cannot_be_played_says_what_is_missing() {
        let text = |map| GridWorld::parse(map, 0.0).unwrap_err().to_string();
        assert_eq!(text("..G"), "the map has no `S` (start); draw at least one");
        assert_eq!(text("S.."), "the map has no `G` (goal); draw at least one");
        assert_eq!(
            text("S.G\n.."),
            "line 2 of the map has 2 cells, but the first line has 3; pad it with `#`"
        );
    }
}
