//! Pictures of a study: curves with their intervals, on a light ground, as SVG.

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use plotters::style::RGBColor;
use rl_core::bootstrap::Interval;

/// Colours that keep apart for the colour-blind.   Okabe and Ito 2008
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 120, 120),
    RGBColor(0, 0, 0),
];

/// How an axis counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// In powers of ten; what is not positive is left out.
    Log,
}

/// An axis.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    /// What it shows, with its unit.
    pub label: &'static str,
    /// How it counts.
    pub scale: Scale,
}

impl Axis {
    /// An axis that counts evenly.
    pub fn linear(label: &'static str) -> Self {
        Self { label, scale: Scale::Linear }
    }

    /// An axis in powers of ten.
    pub fn log(label: &'static str) -> Self {
        Self { label, scale: Scale::Log }
    }

    /// Where on the paper a number lies.
    fn place(self, x: f64) -> f64 {
        match self.scale {
            Scale::Linear => x,
            Scale::Log => x.log10(),
        }
    }

    /// The number at a place: in powers of ten to two digits, which is as exact as such an axis is read.
    fn number_at(self, place: f64) -> String {
        let (x, digits) = match self.scale {
            Scale::Linear => (place, 3),
            Scale::Log => (10f64.powf(place), (1.0 - place.floor()).max(0.0) as usize),
        };
        let size = x.abs();
        if size > 0.0 && !(1e-3..1e5).contains(&size) {
            return format!("{x:.0e}");
        }
        let text = format!("{x:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }
}

/// How a curve is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// A line with a band.
    Line,
    /// Points with bars.
    Points,
    /// A thin grey line to compare with.
    Bound,
}

/// A named row of points.
#[derive(Debug, Clone)]
pub struct Curve {
    /// What it is.
    pub name: String,
    /// How it is drawn.
    pub stroke: Stroke,
    /// Where it is, and how sure.
    pub points: Vec<(f64, Interval)>,
}

impl Curve {
    /// A curve without doubt.
    pub fn exact(
        name: impl Into<String>,
        stroke: Stroke,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let sure = |(x, y)| (x, Interval { estimate: y, low: y, high: y });
        Self { name: name.into(), stroke, points: points.into_iter().map(sure).collect() }
    }

    /// A curve with intervals.
    pub fn with_intervals(name: impl Into<String>, stroke: Stroke, points: Vec<(f64, Interval)>) -> Self {
        Self { name: name.into(), stroke, points }
    }
}

/// A picture.
#[derive(Debug, Clone)]
pub struct Picture {
    /// Its file, without ending.
    pub name: String,
    /// What stands above it.
    pub title: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// What is in it.
    pub curves: Vec<Curve>,
}

impl Picture {
    /// The picture as a file.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn svg(&self) -> Result<String> {
        let mut text = String::new();
        self.draw(&mut text).map_err(|error| anyhow!("picture `{}`: {error}", self.name))?;
        Ok(text)
    }

    /// The curves on paper: points that have a place on both axes.
    fn placed(&self) -> Vec<(&Curve, Vec<(f64, Interval)>)> {
        let place = |&(x, y): &(f64, Interval)| {
            let low = if self.y.scale == Scale::Log { y.low.max(y.estimate * 1e-3) } else { y.low };
            let y = Interval {
                estimate: self.y.place(y.estimate),
                low: self.y.place(low),
                high: self.y.place(y.high),
            };
            (self.x.place(x), y)
        };
        let on_paper = |(x, y): &(f64, Interval)| x.is_finite() && y.low.is_finite() && y.high.is_finite();
        self.curves.iter().map(|c| (c, c.points.iter().map(place).filter(on_paper).collect())).collect()
    }

    fn draw(&self, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let curves = self.placed();
        let points = || curves.iter().flat_map(|(_, points)| points);
        let (x_low, x_high) = around(points().map(|(x, _)| (*x, *x)));
        let (y_low, y_high) = around(points().map(|(_, y)| (y.low, y.high)));

        let area = SVGBackend::with_string(text, (900, 560)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(14)
            .x_label_area_size(46)
            .y_label_area_size(66)
            .build_cartesian_2d(x_low..x_high, y_low..y_high)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(228, 228, 228))
            .x_desc(self.x.label)
            .y_desc(self.y.label)
            .x_label_formatter(&|place| self.x.number_at(*place))
            .y_label_formatter(&|place| self.y.number_at(*place))
            .label_style(("sans-serif", 14))
            .axis_desc_style(("sans-serif", 15))
            .draw()?;
        for (i, (curve, points)) in curves.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            let line = points.iter().map(|(x, y)| (*x, y.estimate));
            let drawn = match curve.stroke {
                Stroke::Line => {
                    let above = points.iter().map(|(x, y)| (*x, y.high));
                    let below = points.iter().rev().map(|(x, y)| (*x, y.low));
                    let band: Vec<(f64, f64)> = above.chain(below).collect();
                    chart.draw_series([Polygon::new(band, colour.mix(0.16))])?;
                    chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?
                }
                Stroke::Points => {
                    let bars = points.iter().map(|(x, y)| {
                        PathElement::new(vec![(*x, y.low), (*x, y.high)], colour.stroke_width(1))
                    });
                    chart.draw_series(bars)?;
                    chart.draw_series(line.map(|at| Circle::new(at, 4, colour.filled())))?
                }
                Stroke::Bound => {
                    chart.draw_series(LineSeries::new(line, RGBColor(150, 150, 150).stroke_width(2)))?
                }
            };
            let colour = if curve.stroke == Stroke::Bound { RGBColor(150, 150, 150) } else { colour };
            drawn
                .label(&curve.name)
                .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(3)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(200, 200, 200))
            .label_font(("sans-serif", 14))
            .draw()?;
        area.present()?;
        Ok(())
    }
}

/// The range that holds all of `spans`, and a little more; something around 0 of nothing.
fn around(spans: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    let whole =
        spans.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (l, h)| (low.min(l), high.max(h)));
    match whole {
        (low, high) if low > high => (-1.0, 1.0),
        (low, high) if high - low < 1e-12 => (low - 0.5, high + 0.5),
        (low, high) => (low - 0.03 * (high - low), high + 0.05 * (high - low)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(x: Axis, points: Vec<(f64, f64)>) -> Picture {
        let curves = vec![
            Curve::exact("PPO", Stroke::Line, points.clone()),
            Curve::exact("best-of-n", Stroke::Points, points.clone()),
            Curve::exact("frontier", Stroke::Bound, points),
        ];
        Picture { name: "a".into(), title: "Gold < proxy".into(), x, y: Axis::linear("gold"), curves }
    }

    #[test]
    fn a_picture_has_its_title_its_axes_and_its_legend() {
        let svg = picture(Axis::linear("√KL, √nats"), vec![(0.0, 1.0), (1.0, 2.0)]).svg().unwrap();
        for word in ["<svg", "Gold &lt; proxy", "√KL, √nats", "gold", "PPO", "best-of-n", "frontier"] {
            assert!(svg.contains(word), "without {word:?}");
        }
    }

    #[test]
    fn ticks_are_numbers_that_people_read() {
        let (even, powers) = (Axis::linear("x"), Axis::log("x"));
        assert_eq!(
            [0.0, 0.25, -3.0, 1200.0, 2e5].map(|x| even.number_at(x)),
            ["0", "0.25", "-3", "1200", "2e5"]
        );
        assert_eq!(
            [-2.0, -0.5, 0.5, 2.0, 2.5].map(|x| powers.number_at(x)),
            ["0.01", "0.32", "3.2", "100", "316"]
        );
    }

    #[test]
    fn points_that_have_no_place_are_left_out() {
        let nowhere = vec![(0.0, 1.0), (-1.0, 2.0), (f64::NAN, 3.0), (10.0, f64::INFINITY)];
        assert!(picture(Axis::log("steps"), nowhere).svg().is_ok());
        assert!(picture(Axis::log("steps"), vec![]).svg().is_ok());
    }
}
