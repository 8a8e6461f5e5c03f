//! Laws of the line search.

use proptest::collection::vec;
use proptest::prelude::*;
use rl_core::line_search::{Backtracking, Search, Trial};

proptest! {
    #[test]
    fn an_accepted_step_improves_and_stays_within_its_distance(
        outcomes in vec((prop_oneof![-1.0..1.0, Just(f64::NAN)], prop_oneof![0.0..1.0, Just(f64::NAN)]), 10),
        shrink in 0.1..0.9,
        max_distance in 0.0..1.0,
    ) {
        let search = Backtracking { shrink, max_tries: 10 };
        let mut scales = Vec::new();
        let verdict = search.search(max_distance, |scale| {
            let (improvement, distance) = outcomes[scales.len()];
            scales.push(scale);
            Trial { improvement, distance }
        });
        let good = |&(improvement, distance): &(f64, f64)| improvement > 0.0 && distance <= max_distance;
        match (verdict, outcomes.iter().position(good)) {
            (Search::Accepted { scale, tries, trial }, Some(first)) => {
                prop_assert_eq!((tries, scale), (first + 1, scales[first]));
                prop_assert!(trial.improvement > 0.0 && trial.distance <= max_distance);
            }
            (Search::Rejected { tries }, None) => prop_assert_eq!(tries, 10),
            (verdict, first) => prop_assert!(false, "{verdict:?}, but the first good step is {first:?}"),
        }
        prop_assert!(scales[0] == 1.0 && scales.windows(2).all(|two| two[1] == two[0] * shrink));
    }

    #[test]
    fn on_a_parabola_the_search_stops_before_twice_the_peak(peak in 0.001..1.0) {
        // Improvement s·(2·peak − s) is positive up to twice the peak; there is no distance limit.
        let parabola = |scale: f64| Trial { improvement: scale * (2.0 * peak - scale), distance: 0.0 };
        match (Backtracking { shrink: 0.5, max_tries: 20 }).search(0.0, parabola) {
            Search::Accepted { scale, .. } => prop_assert!(scale < 2.0 * peak && (scale == 1.0 || scale >= peak)),
            Search::Rejected { .. } => prop_assert!(false, "20 halvings reach below {peak}"),
        }
    }
}
