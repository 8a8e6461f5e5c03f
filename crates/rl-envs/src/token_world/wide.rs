//! Exponentials and logarithms of whole slices, as wide as the processor's vectors are.
//!
//! The C library takes one number per call. These have no branch, so that a loop over them vectorises, and use no fused
//! multiply-add, so that every processor computes the same bits. Sums keep eight parts, [`LANES`], which are added in one
//! order.

/// Numbers worked on together.
pub(super) const LANES: usize = 8;

/// Runs `f` compiled for the widest vectors that this processor has. What it calls must be `#[inline(always)]`.
#[inline(always)]
pub(super) fn wide<R>(f: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(f)
}

/// `eˣ` to 1e-15, relative; `x` is taken to lie in [−708, 709], so that what is rarer than `e^−708` counts as that.
///
/// `x = k·ln 2 + r`, `|r| ≤ ½·ln 2`; `eʳ` is its Taylor polynomial of degree 12, whose rest is below 1e-16.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    // Adding this leaves the nearest whole number in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const FACTORIALS: [f64; 11] = [
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
    ];
    let x = x.clamp(-708.0, 709.0);
    let rounded = x * std::f64::consts::LOG2_E + ROUND;
    let k = rounded - ROUND;
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
    let mut tail = 1.0 / 479_001_600.0;
    for c in FACTORIALS {
        tail = tail * r + c;
    }
    let power_of_two = f64::from_bits(rounded.to_bits().wrapping_add(1023) << 52);
    (tail * r + 1.0) * power_of_two
}

/// `ln x` to 1e-15, relative, of a positive normal `x`.
///
/// `x = 2ᵏ·m`, `m` in `[√½, √2)`, and `ln m = 2·artanh((m − 1)/(m + 1))` by a minimax polynomial.   fdlibm, `e_log.c`
#[inline(always)]
pub(super) fn ln(x: f64) -> f64 {
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    /// 2⁵², in whose last place ones are counted.
    const COUNT: u64 = 0x4330_0000_0000_0000;
    const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const L: [f64; 7] = [
        0.666_666_666_666_673_5,
        0.399_999_999_994_094_2,
        0.285_714_287_436_623_9,
        0.222_221_984_321_497_84,
        0.181_835_721_616_180_5,
        0.153_138_376_992_093_73,
        0.147_981_986_051_165_86,
    ];
    let bits = x.to_bits().wrapping_add(ONE - ROOT_HALF);
    let k = f64::from_bits((bits >> 52) | COUNT) - (4_503_599_627_370_496.0 + 1023.0);
    let m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff).wrapping_add(ROOT_HALF));
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let rest = z * (L[0] + z * (L[1] + z * (L[2] + z * (L[3] + z * (L[4] + z * (L[5] + z * L[6]))))));
    let half_square = 0.5 * f * f;
    k * LN_2_HIGH - ((half_square - (s * (half_square + rest) + k * LN_2_LOW)) - f)
}

/// `xⁿ` by squaring.
#[inline(always)]
pub(super) fn power(mut x: [f64; LANES], mut n: usize) -> [f64; LANES] {
    let mut product = [1.0; LANES];
    while n > 0 {
        if n & 1 == 1 {
            (0..LANES).for_each(|i| product[i] *= x[i]);
        }
        (0..LANES).for_each(|i| x[i] *= x[i]);
        n >>= 1;
    }
    product
}

/// Calls `f` with [`LANES`] numbers of each slice at a time; the last ones are followed by `nothing` and 0.
///
/// There is one call in here, so that `f` is compiled into the loop, and with its instructions.
#[inline(always)]
fn blocks(a: &[f64], b: &[f64], nothing: f64, mut f: impl FnMut(&[f64; LANES], &[f64; LANES])) {
    assert_eq!(a.len(), b.len(), "two numbers per outcome");
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks(), b.as_chunks());
    let (mut a_last, mut b_last) = ([nothing; LANES], [0.0; LANES]);
    a_last[..a_rest.len()].copy_from_slice(a_rest);
    b_last[..b_rest.len()].copy_from_slice(b_rest);
    for i in 0..=a.len() {
        let (a, b) = if i < a.len() { (&a[i], &b[i]) } else { (&a_last, &b_last) };
        f(a, b);
    }
}

/// `Σ term(a, b)`, N sums at once; `term(nothing, 0)` must be 0.
///
/// # Shapes
/// `a, b: [K]`
#[inline(always)]
pub(super) fn sums<const N: usize>(
    a: &[f64],
    b: &[f64],
    nothing: f64,
    term: impl Fn(f64, f64) -> [f64; N],
) -> [f64; N] {
    let mut parts = [[0.0; LANES]; N];
    blocks(a, b, nothing, |a, b| {
        let terms: [[f64; N]; LANES] = std::array::from_fn(|lane| term(a[lane], b[lane]));
        for (k, part) in parts.iter_mut().enumerate() {
            part.iter_mut().zip(&terms).for_each(|(sum, terms)| *sum += terms[k]);
        }
    });
    parts.map(|lanes| lanes.iter().sum())
}

/// The largest `a + slope·b`.
///
/// # Shapes
/// `a, b: [K]`
#[inline(always)]
pub(super) fn highest(a: &[f64], b: &[f64], slope: f64) -> f64 {
    let mut most = [f64::NEG_INFINITY; LANES];
    blocks(a, b, f64::NEG_INFINITY, |a, b| {
        for ((most, a), b) in most.iter_mut().zip(a).zip(b) {
            let x = a + slope * b;
            *most = if x > *most { x } else { *most };
        }
    });
    most.into_iter().fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_those_of_the_library() {
        for i in -700_000..=700_000 {
            let x = f64::from(i) * 1e-3 + 1e-5;
            assert!((exp(x) / x.exp() - 1.0).abs() < 2e-15, "e^{x}: {} and {}", exp(x), x.exp());
        }
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f64::NEG_INFINITY) < 1e-300 && exp(f64::NAN).is_nan());
    }

    #[test]
    fn logarithms_are_those_of_the_library() {
        for i in -290_000..=290_000 {
            let x = 10f64.powf(f64::from(i) * 1e-3);
            assert!(
                (ln(x) - x.ln()).abs() <= 1e-15 * x.ln().abs().max(1.0),
                "ln {x}: {} and {}",
                ln(x),
                x.ln()
            );
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn powers_sums_and_maxima_are_those_of_the_library() {
        let x: [f64; LANES] = std::array::from_fn(|i| 0.3 + 0.1 * i as f64);
        for n in [1, 2, 7, 64, 1000] {
            let got = power(x, n);
            (0..LANES).for_each(|i| assert!((got[i] / x[i].powi(n as i32) - 1.0).abs() < 1e-12));
        }
        let (a, b) = ([0.5; 19], std::array::from_fn::<f64, 19, _>(|i| i as f64));
        assert_eq!(sums(&a, &b, 0.0, |a, b| [a * b, a]), [85.5, 9.5]);
        assert_eq!(highest(&a, &b, 2.0), 36.5);
        assert_eq!(highest(&[f64::NEG_INFINITY], &[3.0], 1.0), f64::NEG_INFINITY);
    }
}
