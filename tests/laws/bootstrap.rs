//! Laws of intervals that come from resampling.

use proptest::collection::vec;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rl_core::bootstrap::{
    Bootstrap, Interval, interquartile_mean, mean, probability_of_improvement, quantile,
};

use crate::assert_near;

/// Few resamples: the laws hold for any number.
const FEW: Bootstrap = Bootstrap { resamples: 100, confidence: 0.9 };

fn runs() -> impl Strategy<Value = Vec<f64>> {
    vec(-1e3..1e3, 1..20)
}

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

proptest! {
    #[test]
    fn an_interval_lies_within_the_samples(x in runs(), seed: u64) {
        let (low, high) = x.iter().fold((f64::MAX, f64::MIN), |(low, high), &x| (low.min(x), high.max(x)));
        for statistic in [mean, interquartile_mean] {
            let got = FEW.interval(&x, statistic, &mut rng(seed));
            prop_assert!(low - 1e-9 <= got.low && got.low <= got.high && got.high <= high + 1e-9, "{got:?}");
            prop_assert_eq!(got.estimate, statistic(&x));
        }
    }

    #[test]
    fn a_seed_gives_one_interval(x in runs(), y in runs(), seed: u64) {
        let once = FEW.interval(&x, mean, &mut rng(seed));
        prop_assert_eq!(once, FEW.interval(&x, mean, &mut rng(seed)));
        let once = FEW.improvement(&[(&x, &y)], &mut rng(seed));
        prop_assert_eq!(once, FEW.improvement(&[(&x, &y)], &mut rng(seed)));
    }

    #[test]
    fn samples_that_agree_leave_no_doubt(x in -1e3..1e3, n in 1..20_usize, seed: u64) {
        let got = FEW.interval(&vec![x; n], |x| x[0], &mut rng(seed));
        prop_assert_eq!(got, Interval { estimate: x, low: x, high: x });
    }

    #[test]
    fn an_interval_moves_and_stretches_with_its_samples(x in runs(), seed: u64, a in 0.1..10.0, b in -50.0..50.0) {
        let moved: Vec<f64> = x.iter().map(|x| a * x + b).collect();
        let (was, is) = (FEW.interval(&x, mean, &mut rng(seed)), FEW.interval(&moved, mean, &mut rng(seed)));
        assert_near(is.low, a * was.low + b, 1e-9);
        assert_near(is.high, a * was.high + b, 1e-9);
    }

    #[test]
    fn more_confidence_is_a_wider_interval(x in runs(), seed: u64) {
        let at = |confidence| Bootstrap { confidence, ..FEW }.interval(&x, mean, &mut rng(seed));
        let (narrow, wide) = (at(0.5), at(0.95));
        prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
    }

    #[test]
    fn strata_are_resampled_one_by_one(x in runs(), level in 1e4..1e5, seed: u64) {
        // A second task far above the first: mixing the two would move the mean by thousands.
        let high = vec![level; x.len()];
        let got = FEW.stratified(&[&x, &high], mean, &mut rng(seed));
        prop_assert!((got.low - 0.5 * level).abs() <= 500.0 + 1e-6 && (got.high - 0.5 * level).abs() <= 500.0 + 1e-6);
    }

    #[test]
    fn improvement_one_way_is_its_complement_the_other_way(x in runs(), y in runs()) {
        assert_near(probability_of_improvement(&x, &y) + probability_of_improvement(&y, &x), 1.0, 1e-12);
        prop_assert_eq!(probability_of_improvement(&x, &x), 0.5);
        let higher: Vec<f64> = y.iter().map(|y| y + 2001.0).collect();
        prop_assert_eq!(probability_of_improvement(&higher, &x), 1.0);
    }

    #[test]
    fn the_interquartile_mean_forgets_a_quarter_on_each_side(mut x in vec(-1e3..1e3, 4..20)) {
        x.sort_by(f64::total_cmp);
        let was = interquartile_mean(&x);
        let last = x.len() - 1;
        (x[0], x[last]) = (f64::NEG_INFINITY, f64::INFINITY);
        prop_assert_eq!(interquartile_mean(&x), was);
    }
}

#[test]
fn quantiles_and_trimmed_means_are_those_of_numpy_and_scipy() {
    // numpy.quantile([1, 2, 4, 8, 16], [.1, .5, .9]); scipy.stats.trim_mean(…, .25)
    let x = [1.0, 2.0, 4.0, 8.0, 16.0];
    let got = [0.1, 0.5, 0.9].map(|q| quantile(&x, q));
    got.iter().zip([1.4, 4.0, 12.8]).for_each(|(&got, want)| assert_near(got, want, 1e-12));
    assert_near(interquartile_mean(&x), 14.0 / 3.0, 1e-12);
    assert_eq!(interquartile_mean(&[3.0]), 3.0);
}

#[test]
fn a_ninety_five_percent_interval_holds_the_truth_about_so_often() {
    // The percentile bootstrap of a mean of 20 covers a little less than it says: 93% here.
    let mut rng = rng(1);
    let covered = (0..400).filter(|_| {
        let x: Vec<f64> = (0..20).map(|_| rng.random::<f64>()).collect();
        let got = Bootstrap { resamples: 400, confidence: 0.95 }.interval(&x, mean, &mut rng);
        got.low <= 0.5 && 0.5 <= got.high
    });
    let share = covered.count() as f64 / 400.0;
    assert!((0.88..=0.98).contains(&share), "{share}");
}
