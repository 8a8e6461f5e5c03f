//! Laws of schedules.

use proptest::prelude::*;
use rl_core::Schedule;

use crate::assert_near;

/// A schedule from one number to another, without warm-up.
fn monotone() -> impl Strategy<Value = (Schedule, f64, f64)> {
    (0..3, 0.0..10.0, 0.0..10.0).prop_map(|(kind, from, to)| match kind {
        0 => (Schedule::Constant(from), from, from),
        1 => (Schedule::Linear { from, to }, from, to),
        _ => (Schedule::Cosine { from, to }, from, to),
    })
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    let warm = (0..2, 0.0..1.0, 0.0..10.0, 0.0..10.0).prop_map(|(kind, warmup, peak, to)| match kind {
        0 => Schedule::WarmupLinear { warmup, peak, to },
        _ => Schedule::WarmupCosine { warmup, peak, to },
    });
    prop_oneof![monotone().prop_map(|(schedule, ..)| schedule), warm]
}

proptest! {
    #[test]
    fn a_schedule_begins_and_ends_where_it_says((schedule, from, to) in monotone()) {
        assert_near(schedule.at(0.0), from, 1e-12);
        assert_near(schedule.at(1.0), to, 1e-12);
    }

    #[test]
    fn a_schedule_without_warm_up_never_turns((schedule, from, to) in monotone(), p in 0.0..1.0, q in 0.0..1.0) {
        let (early, late) = (schedule.at(f64::min(p, q)), schedule.at(f64::max(p, q)));
        prop_assert!((late - early) * (to - from) >= -1e-12);
        prop_assert!(early >= from.min(to) - 1e-12 && early <= from.max(to) + 1e-12);
    }

    #[test]
    fn a_warm_up_peaks_where_it_ends(warmup in 0.01..0.99, peak in 0.0..10.0, share in 0.0..1.0, p in 0.0..1.0) {
        let to = share * peak;
        for schedule in [Schedule::WarmupLinear { warmup, peak, to }, Schedule::WarmupCosine { warmup, peak, to }] {
            assert_near(schedule.at(warmup), peak, 1e-12);
            assert_near(schedule.at(warmup / 2.0), peak / 2.0, 1e-12);
            assert_near(schedule.at((1.0 + warmup) / 2.0), (peak + to) / 2.0, 1e-12);
            assert_near(schedule.at(1.0), to, 1e-12);
            prop_assert!(schedule.at(p) <= peak + 1e-12 && schedule.at(p) >= 0.0);
        }
    }

    #[test]
    fn outside_the_run_the_nearest_end_counts(schedule in any_schedule(), beyond in 0.0..1e9_f64) {
        prop_assert_eq!(schedule.at(-beyond), schedule.at(0.0));
        prop_assert_eq!(schedule.at(1.0 + beyond), schedule.at(1.0));
        prop_assert_eq!(schedule.at(f64::NAN), schedule.at(0.0));
    }

    #[test]
    fn a_schedule_read_back_from_its_file_is_the_same(schedule in any_schedule()) {
        let text = serde_json::to_string(&schedule).unwrap();
        prop_assert_eq!(serde_json::from_str::<Schedule>(&text).unwrap(), schedule);
        prop_assert_eq!(schedule.validate("rate"), Ok(()));
    }
}
