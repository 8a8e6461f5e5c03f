//! Pictures: lines over one horizontal axis, as SVG that takes its colours from the page around it.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::*;

use super::verdict::number;

/// The size of a panel in user units. The page scales it: on a phone to half, so letters are large.
const WIDTH: u32 = 460;
const HEIGHT: u32 = 230;
const LETTERS: u32 = 16;

/// How many colours lines have before they come again, dashed.
pub const COLOURS: usize = 8;

/// Stand-ins for colours of the page: `currentColor`, the grid, and the lines'.
const INK: RGBColor = RGBColor(1, 2, 3);
const GRID: RGBColor = RGBColor(1, 2, 4);

fn stand_in(line: usize) -> RGBColor {
    RGBColor(2, 2, (line % COLOURS) as u8)
}

/// Whether a line is measured or meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// Measured.
    Solid,
    /// A target, a bound, or a line whose colour has been used already.
    Dashed,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What it shows.
    pub name: String,
    /// `(x, y)`, in the order of x unless it is a path.
    pub points: Vec<(f64, f64)>,
    /// `(x, low, high)` around it; empty for none.
    pub band: Vec<(f64, f64, f64)>,
    /// Its colour, by number.
    pub colour: usize,
    /// How it is drawn.
    pub stroke: Stroke,
}

/// How an axis counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// By differences.
    Linear,
    /// By factors; only for positive numbers.
    Log,
}

/// Lines with one vertical axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// What the vertical axis measures.
    pub label: String,
    /// How it counts.
    pub scale: Scale,
    /// The lines.
    pub lines: Vec<Line>,
}

/// The panels, one above the other over one horizontal axis called `axis`, as an `<svg>` element.
///
/// # Errors
/// If the library cannot draw.
pub fn svg(panels: &[Panel], axis: &str, name: &str) -> Result<String> {
    let xs =
        || panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points).map(|point| point.0);
    let (left, right) = range(xs(), 0.0);
    let height = HEIGHT * panels.len() as u32;
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        for (area, panel) in root.split_evenly((panels.len(), 1)).iter().zip(panels) {
            draw(area, panel, (left, right), axis).map_err(|error| anyhow!("cannot draw {name}: {error}"))?;
        }
        root.present().map_err(|error| anyhow!("cannot draw {name}: {error}"))?;
    }
    Ok(dressed(&text, name))
}

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

fn draw(area: &DrawingArea<SVGBackend, Shift>, panel: &Panel, x: (f64, f64), axis: &str) -> Drawn {
    let log = panel.scale == Scale::Log;
    let usable = |y: &f64| y.is_finite() && (!log || *y > 0.0);
    let ends = |line: &Line| -> Vec<f64> {
        let band = line.band.iter().flat_map(|&(_, low, high)| [low, high]);
        line.points.iter().map(|point| point.1).chain(band).filter(usable).collect()
    };
    let all: Vec<f64> = panel.lines.iter().flat_map(ends).collect();
    let mut chart = ChartBuilder::on(area);
    chart.margin(8).margin_right(16).x_label_area_size(38).y_label_area_size(64);
    if log {
        let (low, high) = factors(&all);
        let mut chart = chart.build_cartesian_2d(x.0..x.1, (low..high).log_scale())?;
        furnish(&mut chart, panel, axis)?;
    } else {
        let (low, high) = range(all.into_iter(), 0.06);
        let mut chart = chart.build_cartesian_2d(x.0..x.1, low..high)?;
        furnish(&mut chart, panel, axis)?;
    }
    Ok(())
}

type Chart<'a, 'b, Y> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<plotters::coord::types::RangedCoordf64, Y>>;

/// Grid, axes and lines.
fn furnish<Y>(chart: &mut Chart<Y>, panel: &Panel, axis: &str) -> Drawn
where
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let log = panel.scale == Scale::Log;
    let letters = ("sans-serif", LETTERS).into_font().color(&INK);
    chart
        .configure_mesh()
        .x_labels(5)
        .y_labels(5)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID.stroke_width(1))
        .axis_style(GRID.stroke_width(1))
        .x_desc(axis)
        .y_desc(&panel.label)
        .label_style(letters.clone())
        .axis_desc_style(letters)
        .x_label_formatter(&|x| short(*x))
        .y_label_formatter(&|y| if log && *y < 1e-3 { powered(*y) } else { short(*y) })
        .draw()?;
    for line in &panel.lines {
        let colour = stand_in(line.colour);
        let usable = |y: f64| y.is_finite() && (!log || y > 0.0);
        let band: Vec<_> = line.band.iter().filter(|(_, low, high)| usable(*low) && usable(*high)).collect();
        if band.len() > 1 {
            let upper = band.iter().map(|(x, _, high)| (*x, *high));
            let lower = band.iter().rev().map(|(x, low, _)| (*x, *low));
            chart.draw_series([Polygon::new(upper.chain(lower).collect::<Vec<_>>(), colour.mix(0.18))])?;
        }
        let points: Vec<_> = line.points.iter().copied().filter(|point| usable(point.1)).collect();
        match line.stroke {
            // A line of one point cannot be seen.
            Stroke::Solid | Stroke::Dashed if points.len() == 1 => {
                chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, colour.filled())))?;
            }
            Stroke::Solid => {
                chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
            }
            Stroke::Dashed => {
                chart.draw_series(DashedLineSeries::new(points, 7, 5, colour.stroke_width(2)))?;
            }
        }
    }
    Ok(())
}

/// What an axis can count to: beyond, differences of its ends are infinite, and the library looks for ticks for ever.
const MOST: f64 = 1e290;

/// From the least to the greatest of positive numbers, with a margin of a factor; never empty. The quotient of the ends is
/// finite for the same reason.
fn factors(values: &[f64]) -> (f64, f64) {
    let most = MOST.sqrt();
    let within = || values.iter().map(|value| value.clamp(1.0 / most, most));
    let (low, high) = (within().fold(f64::INFINITY, f64::min), within().fold(0.0, f64::max));
    if low > high {
        return (1.0, 10.0);
    }
    if high > 1.5 * low { (low / 1.2, high * 1.2) } else { (low / 2.0, high * 2.0) }
}

/// From the least to the greatest, with a margin of a share of their distance; never empty.
fn range(values: impl Iterator<Item = f64>, margin: f64) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite()).map(|value| value.clamp(-MOST, MOST));
    let (low, high) = finite
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low > high {
        return (0.0, 1.0);
    }
    let distance = high - low;
    if distance <= 1e-9 * high.abs().max(low.abs()).max(1e-9) {
        let around = if high == 0.0 { 1.0 } else { 0.5 * high.abs() };
        return (low - around, high + around);
    }
    (low - margin * distance, high + margin * distance)
}

/// A number beside an axis: `1500000` as `1.5M`.
fn short(x: f64) -> String {
    let (size, unit) = match x.abs() {
        size if size >= 1e9 => (1e9, "G"),
        size if size >= 1e6 => (1e6, "M"),
        size if size >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    // What a sum of floats leaves instead of 0 is 0.
    if x.abs() < 1e-12 {
        "0".into()
    } else if x.abs() < 1e-3 {
        powered(x)
    } else {
        number(x / size) + unit
    }
}

/// `0.00025` as `2.5e-4`: beside a log axis, powers of ten must fit.
fn powered(x: f64) -> String {
    let text = format!("{x:.2e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}e{power}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// The picture in the page's colours, with a name for those who do not see it.
fn dressed(svg: &str, name: &str) -> String {
    let mut text = svg.to_owned();
    for (colour, css) in [(INK, "currentColor".to_owned()), (GRID, "var(--grid)".to_owned())]
        .into_iter()
        .chain((0..COLOURS).map(|line| (stand_in(line), format!("var(--line{line})"))))
    {
        text = text.replace(&format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2), &css);
    }
    let inner = text.split_once('>').map_or("", |(_, inner)| inner);
    let height = svg.split("height=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("0");
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">{inner}",
        super::html::escaped(name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: &[(f64, f64)]) -> Line {
        Line { name: "a".into(), points: points.to_vec(), band: vec![], colour: 0, stroke: Stroke::Solid }
    }

    #[test]
    fn a_picture_takes_its_colours_from_the_page_and_has_a_name() {
        let mut kl = line(&[(0.0, 1.0), (1e6, 2.0)]);
        kl.band = vec![(0.0, 0.5, 1.5), (1e6, 1.5, 2.5)];
        let panel = Panel { label: "KL <nats>".into(), scale: Scale::Linear, lines: vec![kl] };
        let text = svg(&[panel], "steps", "KL & target").unwrap();
        assert!(
            text.starts_with("<svg viewBox=\"0 0 460 230\" role=\"img\" aria-label=\"KL &amp; target\">"),
            "{text}"
        );
        assert!(text.contains("var(--line0)") && text.contains("currentColor") && text.contains("<polygon"));
        assert!(
            text.contains("KL &lt;nats&gt;")
                && !text.contains("#0202")
                && text.trim_end().ends_with("</svg>")
        );
    }

    #[test]
    fn nothing_to_draw_constants_and_numbers_that_are_none_are_drawn_without_harm() {
        for scale in [Scale::Linear, Scale::Log] {
            for points in [
                &[][..],
                &[(1.0, 0.0)],
                &[(1.0, 3.0), (2.0, 3.0)],
                &[(1.0, f64::NAN), (2.0, f64::INFINITY)],
                &[(1.0, -1.0), (2.0, 1e-300), (3.0, 1e300)],
                &[(1.0, f64::MAX), (f64::MAX, -f64::MAX), (3.0, f64::MIN_POSITIVE)],
            ] {
                let panel = Panel { label: "x".into(), scale, lines: vec![line(points)] };
                assert!(
                    svg(&[panel.clone(), panel], "steps", "x").unwrap().contains("viewBox=\"0 0 460 460\"")
                );
            }
        }
    }

    #[test]
    fn numbers_beside_an_axis_are_short() {
        assert_eq!(
            [0.0, 0.25, 9000.0, 20_000.0, 1.5e6, -2e9, 1e-5, -2.5e-4].map(short),
            ["0", "0.25", "9000", "20k", "1.5M", "-2G", "1e-5", "-2.5e-4"]
        );
    }
}
