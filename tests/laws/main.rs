//! Laws: what must hold for every input, each named as the sentence it checks.

mod bootstrap;
mod conjugate_gradient;
mod distributions;
mod gradients;
mod group;
mod kl;
mod kl_control;
mod line_search;
mod listing;
mod masked;
mod natural_gradient;
mod preference;
mod q_learning;
mod returns;
mod running;
mod schedule;
mod surrogate;
mod tilt;
mod token_reward;
mod value_loss;
mod whitening;

/// Equal within `tolerance`, relative to the larger of 1 and the two numbers.
#[track_caller]
fn assert_near(got: f64, want: f64, tolerance: f64) {
    let scale = got.abs().max(want.abs()).max(1.0);
    assert!(
        (got - want).abs() <= tolerance * scale,
        "{got} is not {want} (±{tolerance}, relative to {scale})"
    );
}

/// [`assert_near`] for every element.
#[track_caller]
fn assert_all_near(got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{got:?} and {want:?}");
    for (&got, &want) in got.iter().zip(want) {
        assert_near(got, want, tolerance);
    }
}
