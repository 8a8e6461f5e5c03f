//! A metric as a few means: what a curve says once its noise is averaged away.

use super::{Column, Columns};

/// Points of a trend that is judged.
pub const POINTS: usize = 32;

/// The values of some neighbouring rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The last step of the rows.
    pub step: f64,
    /// The last update of the rows.
    pub update: u64,
    /// The mean of the finite values.
    pub mean: f64,
    /// The least of them.
    pub min: f64,
    /// The greatest of them.
    pub max: f64,
}

/// A metric as points over a run, each of as many rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trend {
    /// The points, in time.
    pub points: Vec<Point>,
}

impl Trend {
    /// The metric `name` in at most [`POINTS`] points; without any value, no trend.
    pub fn of(columns: &Columns, name: &str) -> Option<Self> {
        let trend = Self::reduced(columns, columns.get(name)?, POINTS);
        (!trend.points.is_empty()).then_some(trend)
    }

    /// `column` in at most `most` points, each of as many rows of the run. Values that are not finite are left out.
    pub fn reduced(columns: &Columns, column: &Column, most: usize) -> Self {
        let (rows, mut points) = (columns.len(), Vec::<Point>::with_capacity(most.min(column.rows.len())));
        let most = most.clamp(1, rows.max(1));
        let (mut bucket, mut n) = (usize::MAX, 0.0);
        for (&row, &value) in column.rows.iter().zip(&column.values) {
            if !value.is_finite() {
                continue;
            }
            let row = row as usize;
            let this = row * most / rows;
            let (step, update) = (columns.steps[row] as f64, columns.updates[row]);
            if this != bucket {
                (bucket, n) = (this, 1.0);
                points.push(Point { step, update, mean: value, min: value, max: value });
            } else if let Some(point) = points.last_mut() {
                n += 1.0;
                (point.step, point.update) = (step, update);
                point.mean += (value - point.mean) / n;
                (point.min, point.max) = (point.min.min(value), point.max.max(value));
            }
        }
        Self { points }
    }

    /// The mean of the first eighth, at least one point.
    pub fn first(&self) -> f64 {
        mean(&self.points[..self.points.len().div_ceil(8)])
    }

    /// The mean of the last quarter, at least one point.
    pub fn last(&self) -> f64 {
        mean(self.quarter(3))
    }

    /// The points of quarter 0, 1, 2 or 3; of a short trend the nearest point.
    pub fn quarter(&self, which: usize) -> &[Point] {
        let n = self.points.len();
        let from = (which * n / 4).min(n - 1);
        &self.points[from..((which + 1) * n / 4).max(from + 1)]
    }

    /// The highest point.
    pub fn best(&self) -> Point {
        let better = |best: Point, point: &Point| if point.mean > best.mean { *point } else { best };
        self.points.iter().fold(self.points[0], better)
    }

    /// The lowest point.
    pub fn worst(&self) -> Point {
        let worse = |worst: Point, point: &Point| if point.mean < worst.mean { *point } else { worst };
        self.points.iter().fold(self.points[0], worse)
    }

    /// How far neighbouring points are apart without a reason: the median of their distances.
    pub fn scatter(&self) -> f64 {
        let mut steps: Vec<f64> =
            self.points.windows(2).map(|pair| (pair[1].mean - pair[0].mean).abs()).collect();
        steps.sort_by(f64::total_cmp);
        steps.get(steps.len() / 2).copied().unwrap_or(0.0)
    }

    /// The update since which `holds` holds without a break until the end, and the share of the run that this is.
    pub fn since(&self, holds: impl Fn(f64) -> bool) -> Option<(u64, f64)> {
        let n = self.points.len();
        let kept = self.points.iter().rev().take_while(|point| holds(point.mean)).count();
        (kept > 0).then(|| (self.points[n - kept].update, kept as f64 / n as f64))
    }

    /// The share of points for which `holds` holds, and the update of the first.
    pub fn share(&self, holds: impl Fn(f64) -> bool) -> (f64, Option<u64>) {
        let mut found = self.points.iter().filter(|point| holds(point.mean)).map(|point| point.update);
        let first = found.next();
        (found.count().saturating_add(first.iter().count()) as f64 / self.points.len() as f64, first)
    }
}

/// The mean of some points; of none, NaN.
pub fn mean(points: &[Point]) -> f64 {
    points.iter().map(|point| point.mean).sum::<f64>() / points.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(values: &[f64]) -> Columns {
        let mut columns = Columns::default();
        for (i, value) in values.iter().enumerate() {
            let line = format!("{{\"step\":{},\"update\":{},\"a\":{value:?}}}", 10 * (i + 1), i + 1);
            assert!(columns.push(line.replace("NaN", "\"NaN\"").as_bytes()));
        }
        columns
    }

    #[test]
    fn a_trend_keeps_the_mean_and_the_range_of_each_stretch() {
        let columns = columns(&[1.0, 3.0, f64::NAN, 5.0, 2.0, 2.0]);
        let trend = Trend::reduced(&columns, columns.get("a").unwrap(), 3);
        let means: Vec<f64> = trend.points.iter().map(|point| point.mean).collect();
        assert_eq!(means, [2.0, 5.0, 2.0]);
        assert_eq!((trend.points[0].min, trend.points[0].max, trend.points[0].update), (1.0, 3.0, 2));
        assert_eq!((trend.best().mean, trend.first(), trend.last()), (5.0, 2.0, 2.0));
        assert_eq!(trend.worst(), trend.points[0]);
        assert_eq!(trend.since(|mean| mean < 4.0), Some((6, 1.0 / 3.0)));
        assert_eq!(trend.share(|mean| mean < 4.0), (2.0 / 3.0, Some(2)));
    }

    #[test]
    fn a_short_run_has_a_trend_of_as_many_points_as_rows() {
        let columns = columns(&[1.0]);
        let trend = Trend::of(&columns, "a").unwrap();
        assert_eq!((trend.points.len(), trend.first(), trend.last(), trend.scatter()), (1, 1.0, 1.0, 0.0));
        assert!(Trend::of(&columns, "b").is_none());
        assert!((0..4).all(|which| trend.quarter(which).len() == 1));
    }
}
