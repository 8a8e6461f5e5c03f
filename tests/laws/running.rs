//! Laws of running statistics.

use proptest::collection::vec;
use proptest::prelude::*;
use rl_core::running::RunningMeanStd;
use rl_core::whiten::{Variance, moments};

use crate::{assert_all_near, assert_near};

const DIMS: usize = 3;

/// One to six batches of up to eight rows.
fn batches() -> impl Strategy<Value = Vec<Vec<f64>>> {
    vec((0usize..8).prop_flat_map(|rows| vec(-10.0..10.0, rows * DIMS)), 1..6)
}

fn after(batches: &[Vec<f64>]) -> RunningMeanStd {
    let mut stats = RunningMeanStd::new(DIMS);
    batches.iter().for_each(|batch| stats.update(batch));
    stats
}

#[track_caller]
fn assert_same(one: &RunningMeanStd, two: &RunningMeanStd) {
    assert_all_near(one.mean(), two.mean(), 1e-10);
    assert_all_near(one.variance(), two.variance(), 1e-10);
    assert_near(one.count(), two.count(), 1e-12);
}

proptest! {
    #[test]
    fn many_batches_are_one_batch(batches in batches()) {
        assert_same(&after(&batches), &after(&[batches.concat()]));
    }

    #[test]
    fn the_order_of_batches_does_not_matter(batches in batches()) {
        let reversed: Vec<_> = batches.iter().rev().cloned().collect();
        assert_same(&after(&batches), &after(&reversed));
    }

    #[test]
    fn the_statistics_are_those_of_all_rows(batches in batches()) {
        let all = batches.concat();
        let mut stats = RunningMeanStd::with_prior_count(DIMS, 1e-12);
        batches.iter().for_each(|batch| stats.update(batch));
        for d in 0..DIMS {
            let column: Vec<f64> = all.iter().skip(d).step_by(DIMS).copied().collect();
            if let Some(of) = moments(&column, None, Variance::Biased) {
                assert_near(stats.mean()[d], of.mean, 1e-9);
                assert_near(stats.variance()[d], of.variance, 1e-9);
            }
        }
    }

    #[test]
    fn a_large_offset_costs_no_digits_of_the_variance(rows in vec(-1.0..1.0, 20)) {
        let mut plain = RunningMeanStd::with_prior_count(1, 1e-300);
        let mut offset = plain.clone();
        for row in rows.chunks(4) {
            plain.update(row);
            offset.update(&row.iter().map(|x| x + 1e6).collect::<Vec<_>>());
        }
        assert_near(offset.variance()[0], plain.variance()[0], 1e-8);
    }

    #[test]
    fn normalised_numbers_stay_within_the_clip(
        batches in batches(),
        row in vec(-1e9..1e9_f64, DIMS),
        clip in 0.1..20.0,
    ) {
        let mut normal = row.clone();
        after(&batches).normalize(&mut normal, clip);
        prop_assert!(normal.iter().all(|x| x.abs() <= clip), "{normal:?}");
    }

    #[test]
    fn what_was_normalised_has_mean_zero_and_deviation_one(rows in vec(-10.0..10.0, 10 * DIMS)) {
        let mut stats = RunningMeanStd::with_prior_count(DIMS, 1e-12);
        stats.update(&rows);
        let mut normal = rows.clone();
        normal.chunks_mut(DIMS).for_each(|row| stats.normalize(row, 1e9));
        let mut check = RunningMeanStd::with_prior_count(DIMS, 1e-12);
        check.update(&normal);
        assert_all_near(check.mean(), &[0.0; DIMS], 1e-9);
        assert_all_near(check.variance(), &[1.0; DIMS], 1e-6);
    }

    #[test]
    fn statistics_read_back_from_a_checkpoint_go_on_to_the_bit(batches in batches(), row in vec(-10.0..10.0, DIMS)) {
        let stats = after(&batches);
        let mut again: RunningMeanStd = serde_json::from_str(&serde_json::to_string(&stats).unwrap()).unwrap();
        prop_assert_eq!(&again, &stats);
        let mut stats = stats;
        stats.update(&row);
        again.update(&row);
        prop_assert_eq!(again, stats);
    }
}
