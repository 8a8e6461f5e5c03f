//! Laws of padding: what a mask hides can do no harm, whatever it is.

use burn::tensor::{Bool, Device, Tensor};
use proptest::prelude::*;
use rl_core::grpo::{TokenLogProbs, TokenLoss, mean_over_budget, mean_over_sequences, mean_over_tokens};
use rl_core::masked::{
    keep, masked_mean, masked_standardise, masked_sum, masked_var, row_means, row_sums, standardise,
};
use rl_core::surrogate::ratio_of;
use rl_core::token_log_prob::sequence_log_prob;
use rl_tests::{devices, gradient, numbers, tensor};

const N: usize = 6;

fn values() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-3.0..3.0, N)
}

fn mask() -> impl Strategy<Value = Vec<bool>> {
    prop::collection::vec(any::<bool>(), N)
}

/// What may lie in a padded slot.
fn garbage() -> impl Strategy<Value = f64> {
    prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(1e300), -9.0..9.0]
}

fn bools(mask: &[bool], device: &Device) -> Tensor<1, Bool> {
    Tensor::from_data(mask, device)
}

/// The values with something else behind the mask.
fn spoiled(values: &[f64], mask: &[bool], garbage: f64) -> Vec<f64> {
    values.iter().zip(mask).map(|(&x, &real)| if real { x } else { garbage }).collect()
}

type Reduction = fn(Tensor<1>, &Tensor<1, Bool>) -> Tensor<1>;

/// Every masked reduction of this crate over flat decisions, by name.
const REDUCTIONS: [(&str, Reduction); 7] = [
    ("sum", masked_sum),
    ("mean", masked_mean),
    ("variance", masked_var),
    ("mean of exp, inputs kept first", |x, m| masked_mean(ratio_of(keep(x, m)), m)),
    ("mean over sequences", |x, m| mean_over_sequences(x, m, 2)),
    ("mean over tokens", mean_over_tokens),
    ("mean over budget", |x, m| mean_over_budget(x, m, 2, 4)),
];

proptest! {
    #[test]
    fn a_masked_slot_may_hold_anything(x in values(), m in mask(), junk in garbage()) {
        for (_, device) in devices() {
            let mask = bools(&m, &device);
            let (clean, spoiled) = (tensor(&x, [N], &device), tensor(&spoiled(&x, &m, junk), [N], &device));
            for (name, reduce) in REDUCTIONS {
                let value = |x: &Tensor<1>| numbers(reduce(x.clone(), &mask));
                prop_assert_eq!(value(&clean), value(&spoiled), "{}", name);
                let slope = |x: &Tensor<1>| gradient(|x| reduce(x, &mask), x);
                let slopes = slope(&spoiled);
                prop_assert!(slopes.iter().zip(&m).all(|(g, &real)| real || *g == 0.0), "{}: {:?}", name, slopes);
                prop_assert_eq!(slope(&clean), slopes, "{}", name);
            }
            prop_assert_eq!(numbers(masked_standardise(clean, &mask)), numbers(masked_standardise(spoiled, &mask)));
        }
    }

    #[test]
    fn padding_changes_nothing(x in values(), m in mask(), junk in garbage(), pads in 1..4_usize) {
        for (_, device) in devices() {
            let padded: Vec<f64> = x.iter().copied().chain(std::iter::repeat_n(junk, pads)).collect();
            let padded_mask: Vec<bool> = m.iter().copied().chain(std::iter::repeat_n(false, pads)).collect();
            let (short, long) = (tensor(&x, [N], &device), tensor(&padded, [N + pads], &device));
            for (name, reduce) in REDUCTIONS.into_iter().filter(|(name, _)| !name.contains("sequences") && !name.contains("budget")) {
                let (a, b) = (reduce(short.clone(), &bools(&m, &device)), reduce(long.clone(), &bools(&padded_mask, &device)));
                prop_assert!((numbers(a)[0] - numbers(b)[0]).abs() < 1e-13, "{}", name);
            }
        }
    }

    #[test]
    fn a_mask_that_keeps_everything_is_no_mask(x in values()) {
        for (_, device) in devices() {
            let (x, all) = (tensor(&x, [N], &device), bools(&[true; N], &device));
            prop_assert!((numbers(masked_mean(x.clone(), &all))[0] - numbers(x.clone().mean())[0]).abs() < 1e-14);
            prop_assert!((numbers(masked_var(x.clone(), &all))[0] - numbers(x.clone().var_bias(0))[0]).abs() < 1e-13);
            let (masked, plain) = (numbers(masked_standardise(x.clone(), &all)), numbers(standardise(x)));
            prop_assert!(masked.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-12));
        }
    }

    #[test]
    fn standard_advantages_have_mean_zero_and_deviation_one(x in values()) {
        for (_, device) in devices() {
            let z = numbers(standardise(tensor(&x, [N], &device)));
            let (sum, squares) = (z.iter().sum::<f64>(), z.iter().map(|z| z * z).sum::<f64>());
            prop_assert!(sum.abs() < 1e-10 && (squares / (N - 1) as f64 - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn the_grpo_loss_never_looks_behind_the_mask(current in values(), old in values(), reference in values(),
        advantage in values(), m in mask(), junk in garbage())
    {
        let settings = TokenLoss { clip_low: 0.2, clip_high: 0.28, beta: 0.04 };
        for (_, device) in devices() {
            let mask = bools(&m, &device);
            let run = |junk: Option<f64>| {
                let flat = |x: &[f64]| tensor(&junk.map_or_else(|| x.to_vec(), |junk| spoiled(x, &m, junk)), [N], &device);
                let loss = |current| {
                    let log_probs = TokenLogProbs { current, old: flat(&old), reference: flat(&reference) };
                    settings.per_token(log_probs, flat(&advantage), &mask)
                };
                (numbers(loss(flat(&current))), gradient(loss, &flat(&current)))
            };
            prop_assert_eq!(run(None), run(Some(junk)));
        }
    }

    #[test]
    fn sequences_are_summed_over_their_own_tokens(x in values(), m in mask(), junk in garbage()) {
        for (_, device) in devices() {
            let mask = bools(&m, &device).reshape([2, N / 2]);
            let rows = tensor(&spoiled(&x, &m, junk), [2, N / 2], &device);
            let real = |row: usize| (row * N / 2..(row + 1) * N / 2).filter(|&i| m[i]);
            let sums = numbers(row_sums(rows.clone(), &mask));
            prop_assert_eq!(&sums, &numbers(sequence_log_prob(rows.clone(), &mask)));
            let means = numbers(row_means(rows, &mask));
            for row in 0..2 {
                let want: f64 = real(row).map(|i| x[i]).sum();
                prop_assert!((sums[row] - want).abs() < 1e-13);
                prop_assert!((means[row] - want / real(row).count().max(1) as f64).abs() < 1e-13);
            }
        }
    }
}
