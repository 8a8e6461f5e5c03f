//! Laws of the enumeration, on worlds drawn by proptest.

use proptest::prelude::*;
use rl_envs::token_world::best_of_n::{BestOfN, kl_bound};
use rl_envs::token_world::exact::{
    expectation, frontier, kl, next_token_laws, objective, sentence_law, tilt, tilted,
};
use rl_envs::{TokenWorld, TokenWorldParameters, env_rng};
use rl_tests::close;

fn worlds() -> impl Strategy<Value = TokenWorld> {
    (2_usize..5, 1_usize..5, any::<u64>()).prop_map(|(vocabulary, length, seed)| {
        TokenWorld::new(TokenWorldParameters::from_seed(vocabulary, length, seed)).expect("a small world")
    })
}

fn probabilities(law: &[f64]) -> Vec<f64> {
    law.iter().map(|l| l.exp()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_tilt_is_that_of_rl_core(world in worlds(), beta in 0.05_f64..5.0) {
        let want = rl_core::tilt::tilt(&probabilities(world.reference()), world.gold(), beta);
        let got = tilt(world.reference(), world.gold(), beta);
        for (got, want) in [
            (got.log_z, want.log_z),
            (got.objective(), want.value),
            (got.reward, want.expected_reward),
            (got.kl, want.kl),
        ] {
            prop_assert!(close(got, want, 1e-9), "{got} is not {want}");
        }
        let law = tilted(world.reference(), world.gold(), beta);
        prop_assert!(law.iter().zip(&want.policy).all(|(l, p)| close(l.exp(), *p, 1e-9)));
    }

    #[test]
    fn what_a_policy_misses_of_the_optimum_is_beta_times_its_kl_to_it(
        world in worlds(),
        beta in 0.1_f64..5.0,
        other in 0.1_f64..5.0,
    ) {
        // max − J(π) = β·KL(π ‖ π*)
        let best = tilted(world.reference(), world.gold(), beta);
        let law = tilted(world.reference(), world.gold(), other);
        let gap = tilt(world.reference(), world.gold(), beta).objective()
            - objective(&law, world.reference(), world.gold(), beta);
        prop_assert!(close(gap, beta * kl(&law, &best), 1e-8), "{gap} is not {}", beta * kl(&law, &best));
    }

    #[test]
    fn nothing_lies_above_the_frontier(world in worlds(), n in 1_usize..200, mix in 0.0_f64..1.0) {
        let (reference, gold) = (world.reference(), world.gold());
        let best_of_n = BestOfN::new(reference, gold).law(n);
        let sharp = tilted(reference, gold, 0.3);
        let mixed: Vec<f64> =
            reference.iter().zip(&sharp).map(|(a, b)| (mix * a.exp() + (1.0 - mix) * b.exp()).ln()).collect();
        for law in [best_of_n, mixed] {
            let (reached, cost) = (expectation(&law, gold), kl(&law, reference));
            let highest = frontier(reference, gold, cost);
            prop_assert!(reached <= highest + 1e-6, "{reached} at {cost} nats, but the frontier is {highest}");
        }
    }

    #[test]
    fn best_of_n_is_a_law_within_its_bound(world in worlds(), n in 1_usize..2000) {
        let best = BestOfN::new(world.reference(), world.gold());
        let law = best.law(n);
        prop_assert!(close(probabilities(&law).iter().sum(), 1.0, 1e-9));
        prop_assert!(close(best.kl(n), kl(&law, world.reference()), 1e-8));
        prop_assert!(best.kl(n) <= kl_bound(n) + 1e-12);
    }

    #[test]
    fn a_law_is_its_next_token_laws(world in worlds()) {
        let next = next_token_laws(world.reference(), world.vocabulary());
        prop_assert_eq!(next.len(), world.prefixes() * world.vocabulary());
        for index in 0..world.sentences() {
            let sentence = world.tokens(index);
            let prefix = &sentence[..world.length() - 1];
            let row = world.prefix_index(prefix) * world.vocabulary();
            let law = world.next_log_probs(prefix);
            prop_assert!(law.iter().enumerate().all(|(v, l)| close(next[row + v], *l, 1e-9)));
        }
        let again = sentence_law(&next, world.vocabulary());
        prop_assert!(again.iter().zip(world.reference()).all(|(a, b)| close(*a, *b, 1e-9)));
    }
}

#[test]
fn sentences_are_drawn_as_often_as_the_reference_says() {
    let world = TokenWorld::new(TokenWorldParameters::from_seed(3, 2, 7)).expect("a small world");
    let (mut rng, n) = (env_rng(11, 0), 100_000);
    let mut counts = vec![0.0; world.sentences()];
    (0..n).for_each(|_| counts[world.sample(&mut rng)] += 1.0);
    for (count, log_p) in counts.iter().zip(world.reference()) {
        let (p, n) = (log_p.exp(), n as f64);
        let deviation = (n * p * (1.0 - p)).sqrt();
        assert!((count - n * p).abs() < 5.0 * deviation, "{count} draws of an expected {}", n * p);
    }
}
