//! Which pictures a report shows, and of which metrics.

use anyhow::Result;

use super::group::Group;
use super::html::{details, escaped, table};
use super::plot::{self, COLOURS, Line, Panel, Scale, Stroke};
use super::verdict::{Facts, number};

/// Rows of the table behind a picture.
const ROWS: usize = 12;

/// A picture, its legend, and the numbers behind it.
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// What to look for.
    pub caption: String,
    /// What the horizontal axis counts.
    pub axis: &'static str,
    /// The panels, one above the other.
    pub panels: Vec<Panel>,
}

/// A horizontal line that is meant: a target.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meant {
    Nothing,
    KlTarget,
}

struct PanelOf {
    label: &'static str,
    scale: Scale,
    metrics: &'static [(&'static str, &'static str)],
    meant: Meant,
}

struct FigureOf {
    title: &'static str,
    caption: &'static str,
    panels: &'static [PanelOf],
}

const fn panel(label: &'static str, metrics: &'static [(&'static str, &'static str)]) -> PanelOf {
    PanelOf { label, scale: Scale::Linear, metrics, meant: Meant::Nothing }
}

const fn log(label: &'static str, metrics: &'static [(&'static str, &'static str)]) -> PanelOf {
    PanelOf { label, scale: Scale::Log, metrics, meant: Meant::Nothing }
}

const fn held(label: &'static str, metrics: &'static [(&'static str, &'static str)]) -> PanelOf {
    PanelOf { label, scale: Scale::Linear, metrics, meant: Meant::KlTarget }
}

/// The pictures of a report, in order. A picture without any of its metrics is left out.
const FIGURES: &[FigureOf] = &[
    FigureOf {
        title: "Return",
        caption: "Mean undiscounted return of the episodes that ended in each rollout, and of greedy evaluations. It should rise.",
        panels: &[panel("return", &[("charts/episodic_return", ""), ("eval/return_mean", "evaluated")])],
    },
    FigureOf {
        title: "Score and gold",
        caption: "The score is what is optimised, gold what it stands for. A score that rises while gold falls is a reward model being cheated.",
        panels: &[panel(
            "reward",
            &[
                ("objective/scores", "score"),
                ("objective/gold", "gold"),
                ("objective/rlhf_reward", "score − β·KL"),
            ],
        )],
    },
    FigureOf {
        title: "KL against its target, and β",
        caption: "KL(π ‖ π_ref) in nats per response, with its target dashed; below it β, the price of a nat, by which the controller holds it.",
        panels: &[held("KL, nats", &[("objective/kl", "")]), log("β", &[("objective/ref_coef", "")])],
    },
    FigureOf {
        title: "KL of an update against its target, and β",
        caption: "KL(π_old ‖ π) of the whole law after each update, with its target dashed where there is one; below it β.",
        panels: &[held("KL, nats", &[("losses/kl", "")]), log("β", &[("objective/kl_coef", "")])],
    },
    FigureOf {
        title: "Distance of an update",
        caption: "The k3 estimate of KL(π_old ‖ π) per decision. 0.001 to 0.03 is usual; above 0.1 steps are too long; below 1e-8 nothing moves.",
        panels: &[log("KL, nats", &[("losses/approx_kl", "")])],
    },
    FigureOf {
        title: "Entropy",
        caption: "How open the policy's choices are. It falls slowly as the policy learns; early at zero, it has stopped trying.",
        panels: &[panel("nats", &[("losses/entropy", "")])],
    },
    FigureOf {
        title: "Variety of responses",
        caption: "Distinct-2: different token pairs over all; repetition: pairs that a response has had before. Both should stay near the reference's, at the left.",
        panels: &[panel(
            "share",
            &[
                ("responses/distinct_2", "distinct-2"),
                ("responses/repetition", "repetition"),
                ("responses/cut", "cut"),
            ],
        )],
    },
    FigureOf {
        title: "Length of responses",
        caption: "Mean tokens per response. A drift means that the reward model likes, or fines, length.",
        panels: &[panel("tokens", &[("responses/length", "")])],
    },
    FigureOf {
        title: "Clip fraction",
        caption: "The share of ratios outside the clip. 0.02 to 0.3 is usual; above 0.5 steps are too long.",
        panels: &[panel("share", &[("losses/clipfrac", "")])],
    },
    FigureOf {
        title: "Explained variance",
        caption: "How much of the variance of the returns values predict: 1 is all. At 0 the critic learns nothing; far below 0 with a tiny value loss, returns are constant.",
        panels: &[panel("share", &[("losses/explained_variance", "")])],
    },
    FigureOf {
        title: "Gradient norm",
        caption: "Before it is clipped. Without end upwards, the run is about to diverge.",
        panels: &[log("norm", &[("losses/grad_norm", "")])],
    },
    FigureOf {
        title: "Losses",
        caption: "The policy's loss is no measure of learning: look at the return. The value loss follows the scale of the returns.",
        panels: &[panel("policy", &[("losses/policy_loss", "")]), log("value", &[("losses/value_loss", "")])],
    },
    FigureOf {
        title: "Chosen and rejected answers",
        caption: "Rewards of both, and the share of pairs in the right order. Both falling fast: the policy forgets both answers.",
        panels: &[
            panel(
                "reward",
                &[
                    ("rewards/chosen", "chosen"),
                    ("rewards/rejected", "rejected"),
                    ("rewards/margins", "margin"),
                ],
            ),
            panel("share", &[("rewards/accuracies", "in the right order")]),
        ],
    },
    FigureOf {
        title: "Exact objective",
        caption: "By enumeration: score − β·KL of the policy and the highest that any policy has at this β; below it the distance to the best policy.",
        panels: &[
            panel("objective", &[("exact/objective", "policy"), ("exact/optimum", "optimum")]),
            log("KL(π ‖ π*)", &[("exact/kl_to_optimum", "")]),
        ],
    },
    FigureOf {
        title: "Learning rate",
        caption: "As scheduled.",
        panels: &[panel("learning rate", &[("charts/learning_rate", "")])],
    },
];

/// The pictures of these experiments over steps.
pub fn over_time(groups: &[Group]) -> Vec<Figure> {
    let made = FIGURES.iter().map(|of| Figure {
        title: of.title.into(),
        caption: of.caption.into(),
        axis: "steps",
        panels: of
            .panels
            .iter()
            .map(|panel| panel_of(panel, groups))
            .filter(|panel| !panel.lines.is_empty())
            .collect(),
    });
    made.filter(|figure| !figure.panels.is_empty()).collect()
}

/// The pictures of metrics that no other picture shows.
pub fn further(groups: &[Group]) -> Vec<Figure> {
    let shown = |name: &str| {
        let metrics = || FIGURES.iter().flat_map(|of| of.panels).flat_map(|panel| panel.metrics);
        metrics().any(|(metric, _)| *metric == name)
    };
    let mut names: Vec<&str> = vec![];
    for (name, _) in groups.iter().flat_map(|group| &group.runs).flat_map(|run| run.columns.each()) {
        if !shown(name) && !names.contains(&name) {
            names.push(name);
        }
    }
    let lines = |name: &str| groups.iter().enumerate().filter_map(|(i, group)| group.line(name, i)).collect();
    let made = names.into_iter().map(|name| Figure {
        title: name.into(),
        caption: "See docs/metrics.md.".into(),
        axis: "steps",
        panels: vec![Panel { label: String::new(), scale: Scale::Linear, lines: lines(name) }],
    });
    made.collect()
}

fn panel_of(of: &PanelOf, groups: &[Group]) -> Panel {
    let mut lines: Vec<Line> = vec![];
    for (i, group) in groups.iter().enumerate() {
        for (j, (metric, what)) in of.metrics.iter().enumerate() {
            // One experiment: a colour for each metric. Several: a colour for each experiment, and only the first two metrics,
            // one of them dashed.
            let colour = if groups.len() == 1 { j } else { i };
            if groups.len() > 1 && j > 1 {
                continue;
            }
            let Some(mut line) = group.line(metric, colour) else { continue };
            if groups.len() == 1 {
                line.name = if what.is_empty() { of.label.into() } else { (*what).into() };
            } else if !what.is_empty() {
                line.name = format!("{}: {what}", group.name);
                line.stroke = if j > 0 { Stroke::Dashed } else { line.stroke };
            }
            lines.push(line);
        }
    }
    if of.meant == Meant::KlTarget && !lines.is_empty() {
        lines.extend(targets(groups, &lines));
    }
    // A scale of factors shows nothing of numbers that are all 0.
    let positive = lines.iter().flat_map(|line| &line.points).any(|point| point.1 > 0.0);
    Panel { label: of.label.into(), scale: if positive { of.scale } else { Scale::Linear }, lines }
}

/// The KL targets of the experiments, each once.
fn targets(groups: &[Group], lines: &[Line]) -> Vec<Line> {
    let xs = || lines.iter().flat_map(|line| &line.points).map(|point| point.0);
    let (from, to) = (xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max));
    let mut found: Vec<Line> = vec![];
    for (i, group) in groups.iter().enumerate() {
        let target = group.runs.first().and_then(|run| Facts::intended(&run.config).kl?.target);
        let Some(target) = target else { continue };
        if found.iter().all(|line| line.points[0].1 != target) {
            let colour = if groups.len() == 1 { 1 } else { i % COLOURS };
            found.push(Line {
                name: format!("target {}", number(target)),
                points: vec![(from, target), (to, target)],
                band: vec![],
                colour,
                stroke: Stroke::Dashed,
            });
        }
    }
    found
}

impl Figure {
    /// The figure with its legend, and its numbers on demand.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn html(&self) -> Result<String> {
        let svg = plot::svg(&self.panels, self.axis, &self.title)?;
        let mut legend = String::new();
        let mut seen: Vec<&str> = vec![];
        for line in self.panels.iter().filter(|panel| panel.lines.len() > 1).flat_map(|panel| &panel.lines) {
            if seen.contains(&line.name.as_str()) {
                continue;
            }
            seen.push(&line.name);
            let class = if line.stroke == Stroke::Dashed { " class=\"dashed\"" } else { "" };
            let (colour, name) = (line.colour % COLOURS, escaped(&line.name));
            legend += &format!("<li><span{class} style=\"color:var(--line{colour})\"></span>{name}</li>");
        }
        let legend =
            if !seen.is_empty() { format!("<ul class=\"legend\">{legend}</ul>") } else { String::new() };
        let tables: String = self.panels.iter().map(|panel| self.numbers(panel)).collect();
        let (title, caption) = (escaped(&self.title), escaped(&self.caption));
        Ok(format!(
            "<figure><h3>{title}</h3>{svg}{legend}<figcaption>{caption}</figcaption>{}</figure>",
            details(&format!("Numbers: {}", self.title), &tables)
        ))
    }

    /// Some of a panel's numbers, of each line at its own places if the lines do not share them.
    fn numbers(&self, panel: &Panel) -> String {
        let caption = if panel.label.is_empty() {
            self.title.clone()
        } else {
            format!("{}: {}", self.title, panel.label)
        };
        let chosen = |line: &Line| -> Vec<(f64, f64)> {
            let n = line.points.len();
            let places = n.min(ROWS);
            (0..places)
                .map(|i| line.points[if places == 1 { 0 } else { i * (n - 1) / (places - 1) }])
                .collect()
        };
        let columns: Vec<Vec<(f64, f64)>> = panel.lines.iter().map(chosen).collect();
        let xs = |column: &[(f64, f64)]| column.iter().map(|point| point.0).collect::<Vec<_>>();
        let shared = columns.iter().all(|column| xs(column) == xs(&columns[0]));
        if shared {
            let head: Vec<String> = std::iter::once(self.axis.into())
                .chain(panel.lines.iter().map(|line| line.name.clone()))
                .collect();
            let rows: Vec<Vec<String>> = (0..columns[0].len())
                .map(|i| {
                    let values = columns.iter().map(|column| number(column[i].1));
                    std::iter::once(number(columns[0][i].0)).chain(values).collect()
                })
                .collect();
            return table(&caption, &head, &rows);
        }
        let each = panel.lines.iter().zip(&columns).map(|(line, column)| {
            let rows: Vec<Vec<String>> = column.iter().map(|(x, y)| vec![number(*x), number(*y)]).collect();
            table(&format!("{caption}, {}", line.name), &[self.axis.into(), line.name.clone()], &rows)
        });
        each.collect()
    }
}

/// Rewards against √KL, along the way of each run: where gold turns down, the score is being cheated.
///
/// Gao 2022, *Scaling laws for reward model overoptimization*, fig. 1
pub fn against_kl(groups: &[Group]) -> Option<Figure> {
    let mut lines = vec![];
    for (i, group) in groups.iter().enumerate() {
        let run = group.runs[0];
        let exact = run.columns.get("exact/kl").is_some_and(|kl| kl.rows.len() >= 8);
        let (kl, rewards): (_, &[(&str, &str)]) = if exact {
            (
                "exact/kl",
                &[
                    ("exact/score", "score"),
                    ("exact/gold", "gold"),
                    ("exact/frontier", "the highest gold at this KL"),
                ],
            )
        } else {
            ("objective/kl", &[("objective/scores", "score"), ("objective/gold", "gold")])
        };
        let Some(kl) = group.runs[0].columns.get(kl) else { continue };
        let kl = crate::recording::Trend::reduced(&run.columns, kl, 60);
        for (j, (metric, what)) in rewards.iter().enumerate() {
            let Some(reward) = run.columns.get(metric) else { continue };
            let reward = crate::recording::Trend::reduced(&run.columns, reward, 60);
            let joined = kl.points.iter().filter_map(|kl| {
                let reward = reward.points.iter().find(|reward| reward.update == kl.update)?;
                Some((kl.mean.max(0.0).sqrt(), reward.mean))
            });
            let points: Vec<(f64, f64)> = joined.collect();
            if points.is_empty() {
                continue;
            }
            let colour = if groups.len() == 1 { j } else { i };
            let name = if groups.len() == 1 { (*what).to_owned() } else { format!("{}: {what}", run.name) };
            let stroke = if j > 1 || groups.len() > 1 && j > 0 { Stroke::Dashed } else { Stroke::Solid };
            lines.push(Line { name, points, band: vec![], colour, stroke });
        }
    }
    (!lines.is_empty()).then(|| Figure {
        title: "Reward against √KL".into(),
        caption: "How far the policy is from its reference, and what it earns there. Where gold turns down while the score rises, the reward model is cheated: hold KL left of that point.".into(),
        axis: "√KL(π ‖ π_ref), √nats",
        panels: vec![Panel { label: "reward".into(), scale: Scale::Linear, lines }],
    })
}
