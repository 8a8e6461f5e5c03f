//! Runs that differ in their seed alone are one experiment: one line with a band.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_core::bootstrap::{Bootstrap, mean};

use super::plot::{COLOURS, Line, Stroke};
use crate::recording::{Recording, Trend};

/// Points of a line: as many as a screen can show.
const POINTS: usize = 240;
/// Points of a line over several seeds.
const GRID: usize = 120;

/// The runs of one experiment.
pub struct Group<'a> {
    /// Its name: the run's, or what sets it apart from the others.
    pub name: String,
    /// Its runs.
    pub runs: Vec<&'a Recording>,
}

/// Settings in which runs of one experiment may differ.
const SEEDS: [&str; 3] = ["seed", "eval.seed", "device"];

/// The settings in which the runs differ, with one value per run; a setting that a run has not is `–`.
pub fn differences(runs: &[&Recording]) -> Vec<(String, Vec<String>)> {
    let all: Vec<BTreeMap<String, String>> =
        runs.iter().map(|run| run.settings().into_iter().collect()).collect();
    let mut keys: Vec<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    keys.sort();
    keys.dedup();
    let values = |key: &str| -> Vec<String> {
        all.iter().map(|settings| settings.get(key).cloned().unwrap_or_else(|| "–".into())).collect()
    };
    let differing = keys.into_iter().map(|key| (key.clone(), values(key)));
    differing.filter(|(_, values)| values.iter().any(|value| value != &values[0])).collect()
}

/// The runs by experiment, in the order given.
pub fn groups<'a>(runs: &[&'a Recording]) -> Vec<Group<'a>> {
    let telling: Vec<_> =
        differences(runs).into_iter().filter(|(key, _)| !SEEDS.contains(&key.as_str())).collect();
    let mut found: Vec<(Vec<&String>, Group)> = vec![];
    for (i, run) in runs.iter().enumerate() {
        let key: Vec<&String> = telling.iter().map(|(_, values)| &values[i]).collect();
        match found.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.runs.push(run),
            None => {
                let name = run.name.clone();
                found.push((key, Group { name, runs: vec![run] }));
            }
        }
    }
    for (key, group) in &mut found {
        if group.runs.len() > 1 {
            let settings: Vec<String> = telling
                .iter()
                .zip(key)
                .take(3)
                .map(|((name, _), value)| format!("{name} = {value}"))
                .collect();
            let what = if settings.is_empty() { group.name.clone() } else { settings.join(", ") };
            group.name = format!("{what} ({} seeds)", group.runs.len());
        }
    }
    found.into_iter().map(|(_, group)| group).collect()
}

impl Group<'_> {
    /// The metric `name` over steps. Of one run: means, with the range of what was averaged as a band. Of several: the
    /// mean over seeds with its 95 % bootstrap interval.
    pub fn line(&self, metric: &str, colour: usize) -> Option<Line> {
        let trends: Vec<Trend> = self
            .runs
            .iter()
            .filter_map(|run| Some(Trend::reduced(&run.columns, run.columns.get(metric)?, POINTS)))
            .filter(|trend| !trend.points.is_empty())
            .collect();
        let stroke = if colour < COLOURS { Stroke::Solid } else { Stroke::Dashed };
        let (points, band) = match trends.as_slice() {
            [] => return None,
            [trend] => {
                let wide = trend.points.iter().any(|point| point.max > point.min);
                let band =
                    trend.points.iter().filter(|_| wide).map(|point| (point.step, point.min, point.max));
                (trend.points.iter().map(|point| (point.step, point.mean)).collect(), band.collect())
            }
            trends => over_seeds(trends),
        };
        Some(Line { name: self.name.clone(), points, band, colour, stroke })
    }
}

type Points = Vec<(f64, f64)>;
type Band = Vec<(f64, f64, f64)>;

fn over_seeds(trends: &[Trend]) -> (Points, Band) {
    let ends = |trend: &Trend| (trend.points[0].step, trend.points[trend.points.len() - 1].step);
    let from = trends.iter().map(|trend| ends(trend).0).fold(f64::INFINITY, f64::min);
    let to = trends.iter().map(|trend| ends(trend).1).fold(0.0, f64::max);
    let (mut points, mut band) = (vec![], vec![]);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let bootstrap = Bootstrap { resamples: 400, ..Bootstrap::default() };
    for i in 0..GRID {
        let x = from + (to - from) * i as f64 / (GRID - 1) as f64;
        let values: Vec<f64> = trends.iter().filter_map(|trend| at(trend, x)).collect();
        if values.is_empty() {
            continue;
        }
        let interval = bootstrap.interval(&values, mean, &mut rng);
        points.push((x, interval.estimate));
        band.push((x, interval.low, interval.high));
    }
    (points, band)
}

/// The trend at step `x`, between its points; `None` outside them.
fn at(trend: &Trend, x: f64) -> Option<f64> {
    let after = trend.points.iter().position(|point| point.step >= x)?;
    let right = &trend.points[after];
    if right.step == x || after == 0 {
        return (right.step == x).then_some(right.mean);
    }
    let left = &trend.points[after - 1];
    let part = (x - left.step) / (right.step - left.step);
    Some(left.mean + part * (right.mean - left.mean))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::recording::Columns;

    /// A run of `rows` updates of 10 steps whose metric `a` is `a(update)`.
    pub fn run(name: &str, config: &str, rows: u64, a: impl Fn(u64) -> f64) -> Recording {
        let mut columns = Columns::default();
        for update in 1..=rows {
            let line = format!(r#"{{"step":{},"update":{update},"a":{}}}"#, 10 * update, a(update));
            assert!(columns.push(line.as_bytes()));
        }
        Recording {
            path: name.into(),
            name: name.into(),
            config: config.parse().unwrap(),
            record: Default::default(),
            summary: None,
            columns,
            timing: None,
            damage: vec![],
        }
    }

    #[test]
    fn seeds_of_one_config_are_one_group_and_other_settings_are_another() {
        let runs = [
            run("x", "seed = 1\n[algo]\nclip = 0.2", 9, |_| 1.0),
            run("y", "seed = 2\n[algo]\nclip = 0.2", 9, |_| 3.0),
            run("z", "seed = 1\n[algo]\nclip = 0.1", 9, |_| 1.0),
        ];
        let runs: Vec<&Recording> = runs.iter().collect();
        let names: Vec<String> = groups(&runs).into_iter().map(|group| group.name).collect();
        assert_eq!(names, ["algo.clip = 0.2 (2 seeds)", "z"]);
        let differing = differences(&runs);
        assert_eq!(differing[0], ("algo.clip".into(), vec!["0.2".into(), "0.2".into(), "0.1".into()]));
        assert_eq!(differing[1].0, "seed");
    }

    #[test]
    fn a_line_over_seeds_is_their_mean_within_its_interval() {
        let runs = [run("x", "seed = 1", 50, |u| u as f64), run("y", "seed = 2", 100, |u| u as f64 + 2.0)];
        let all: Vec<&Recording> = runs.iter().collect();
        let line = groups(&all)[0].line("a", 0).unwrap();
        let (x, y) = line.points[10];
        assert!((y - (x / 10.0 + 1.0)).abs() < 1e-9);
        let (_, low, high) = line.band[10];
        assert!(low < y && y < high && high - low <= 2.0 + 1e-9);
        let (x, y) = *line.points.last().unwrap();
        assert_eq!((x, y), (1000.0, 102.0), "where one run has ended the other goes on");
        assert!(groups(&all)[0].line("b", 0).is_none());
    }
}
