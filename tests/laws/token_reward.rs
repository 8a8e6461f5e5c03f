//! Laws of the shaped token rewards.

use proptest::collection::vec;
use proptest::prelude::*;
use rl_core::kl::KlEstimator;
use rl_core::returns::{End, discounted_returns};
use rl_core::tilt::kl;
use rl_core::token_reward::{ShapedRewards, shaped_rewards, token_kl};

use crate::assert_near;

#[derive(Debug, Clone)]
struct Response {
    log_probs: Vec<f64>,
    reference: Vec<f64>,
    mask: Vec<bool>,
    score: f64,
    beta: f64,
    estimator: KlEstimator,
}

impl Response {
    fn shaped(&self) -> ShapedRewards<f64> {
        shaped_rewards(&self.log_probs, &self.reference, &self.mask, self.score, self.beta, self.estimator)
    }

    fn last(&self) -> Option<usize> {
        self.mask.iter().rposition(|&real| real)
    }
}

fn estimator() -> impl Strategy<Value = KlEstimator> {
    prop::sample::select(vec![KlEstimator::K1, KlEstimator::K2, KlEstimator::K3])
}

fn response() -> impl Strategy<Value = Response> {
    let tokens = vec((-5.0..0.0, -5.0..0.0, any::<bool>()), 0..30);
    (tokens, -5.0..5.0, 0.0..1.0, estimator()).prop_map(|(tokens, score, beta, estimator)| Response {
        log_probs: tokens.iter().map(|token| token.0).collect(),
        reference: tokens.iter().map(|token| token.1).collect(),
        mask: tokens.iter().map(|token| token.2).collect(),
        score,
        beta,
        estimator,
    })
}

/// Two distributions over up to eight tokens.
fn two_policies() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    vec((0.01..1.0, 0.01..1.0), 1..8).prop_map(|pairs| {
        let share = |weights: Vec<f64>| {
            let sum: f64 = weights.iter().sum();
            weights.iter().map(|w| w / sum).collect::<Vec<f64>>()
        };
        let (p, q) = pairs.into_iter().unzip();
        (share(p), share(q))
    })
}

proptest! {
    #[test]
    fn the_rewards_of_a_response_sum_to_its_score_minus_beta_kl(response in response()) {
        let shaped = response.shaped();
        let score = response.last().map_or(0.0, |_| response.score);
        assert_near(shaped.rewards.iter().sum(), score - response.beta * shaped.kl, 1e-12);
        assert_near(shaped.total, score + shaped.penalty, 1e-12);
    }

    #[test]
    fn what_padding_holds_does_not_matter(
        response in response(),
        junk in prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 7.0]),
    ) {
        let mut padded = response.clone();
        for t in (0..padded.mask.len()).filter(|&t| !response.mask[t]) {
            padded.log_probs[t] = junk;
            padded.reference[t] = -junk;
        }
        prop_assert_eq!(padded.shaped(), response.shaped());
    }

    #[test]
    fn the_score_is_paid_once_and_on_the_last_real_token(response in response()) {
        let paid = response.shaped().rewards;
        let unpaid = Response { score: 0.0, ..response.clone() }.shaped().rewards;
        for (t, (paid, unpaid)) in paid.into_iter().zip(unpaid).enumerate() {
            let score = if Some(t) == response.last() { response.score } else { 0.0 };
            assert_near(paid - unpaid, score, 1e-12);
        }
    }

    #[test]
    fn more_padding_changes_nothing(response in response(), pads in 1usize..5) {
        let mut longer = response.clone();
        for _ in 0..pads {
            longer.log_probs.push(f64::NAN);
            longer.reference.push(0.0);
            longer.mask.push(false);
        }
        let (longer, shaped) = (longer.shaped(), response.shaped());
        prop_assert_eq!(&longer.rewards[..shaped.rewards.len()], &shaped.rewards[..]);
        prop_assert_eq!((longer.kl, longer.total), (shaped.kl, shaped.total));
    }

    #[test]
    fn a_policy_equal_to_its_reference_pays_nothing(response in response()) {
        let response = Response { reference: response.log_probs.clone(), ..response };
        let shaped = response.shaped();
        prop_assert_eq!((shaped.kl, shaped.penalty), (0.0, 0.0));
    }

    #[test]
    fn without_discount_the_first_return_is_the_whole_objective(response in response()) {
        prop_assume!(!response.mask.is_empty());
        let shaped = response.shaped();
        let mut ends = vec![End::Continues; shaped.rewards.len()];
        ends[shaped.rewards.len() - 1] = End::Terminated;
        assert_near(discounted_returns(&shaped.rewards, &ends, 9.0, 1.0)[0], shaped.total, 1e-12);
    }

    #[test]
    fn k1_and_k3_are_unbiased_estimates_of_kl_to_the_reference((policy, reference) in two_policies()) {
        for estimator in [KlEstimator::K1, KlEstimator::K3] {
            let term = |(p, q): (&f64, &f64)| p * token_kl(p.ln() - q.ln(), estimator);
            let expected: f64 = policy.iter().zip(&reference).map(term).sum();
            assert_near(expected, kl(&policy, &reference), 1e-10);
        }
    }

    #[test]
    fn k2_and_k3_are_never_negative(x in -50.0..50.0_f64) {
        prop_assert!(token_kl(x, KlEstimator::K2) >= 0.0);
        prop_assert!(token_kl(x, KlEstimator::K3) >= 0.0);
    }
}
