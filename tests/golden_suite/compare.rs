//! What a formula answered, against what the file expects, number by number.

use burn::tensor::Tensor;
use rl_core::real::Real;

use crate::vectors::Case;

/// The precision of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Inputs rounded to `f32`, compared by the file's `atol_f32`.
    Single,
    /// Compared by `atol + rtol·|want|`.
    Double,
}

impl Precision {
    /// As a type is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "f32",
            Self::Double => "f64",
        }
    }
}

/// The answers of a formula to one case, by the file's keys.
#[derive(Default)]
pub struct Answers(Vec<Answer>);

struct Answer {
    key: &'static str,
    values: Vec<f64>,
    /// Which numbers mean something; `None` is all.
    mask: Option<Vec<bool>>,
}

/// No answers yet.
pub fn answers() -> Answers {
    Answers::default()
}

impl Answers {
    /// Adds the answer for `key`.
    pub fn with(self, key: &'static str, values: impl AnswerNumbers) -> Self {
        self.push(key, values.numbers(), None)
    }

    /// Adds the answer for `key`, of which only the numbers under the mask mean something.
    pub fn with_masked(self, key: &'static str, values: impl AnswerNumbers, mask: Vec<bool>) -> Self {
        self.push(key, values.numbers(), Some(mask))
    }

    fn push(mut self, key: &'static str, values: Vec<f64>, mask: Option<Vec<bool>>) -> Self {
        self.0.push(Answer { key, values, mask });
        self
    }
}

/// Whatever formulas return: numbers, lists, lists of lists, tensors.
pub trait AnswerNumbers {
    /// All of them in double precision, row after row.
    fn numbers(self) -> Vec<f64>;
}

macro_rules! one_number {
    ($($type:ty),*) => {$(
        impl AnswerNumbers for $type {
            fn numbers(self) -> Vec<f64> {
                vec![self as f64]
            }
        }
    )*};
}
one_number!(f32, f64, usize);

/// `f32` or `f64`: the precision of a host function under test.
pub trait Scalar: Real + AnswerNumbers {}
impl Scalar for f32 {}
impl Scalar for f64 {}

impl<T: AnswerNumbers> AnswerNumbers for Vec<T> {
    fn numbers(self) -> Vec<f64> {
        self.into_iter().flat_map(AnswerNumbers::numbers).collect()
    }
}

impl<const D: usize> AnswerNumbers for Tensor<D> {
    fn numbers(self) -> Vec<f64> {
        rl_tests::numbers(self)
    }
}

/// How many numbers of a case were compared, and what is wrong with them.
#[derive(Debug, Default, PartialEq)]
pub struct Comparison {
    /// Numbers held against the file.
    pub compared: usize,
    /// One sentence per fault.
    pub faults: Vec<String>,
}

/// Holds every expected key of a case against the answers.
///
/// A key that nothing answers is a fault, and so is an answer that nothing asked for: a vector that no code reads
/// proves nothing.
pub fn compare(case: &Case, answers: &Answers, precision: Precision) -> Comparison {
    let mut result = Comparison::default();
    for answer in answers.0.iter().filter(|answer| !case.expected.contains_key(answer.key)) {
        result.faults.push(format!("`{}` is answered, but not expected", answer.key));
    }
    for (key, want) in &case.expected {
        let Some(Answer { values, mask, .. }) = answers.0.iter().find(|answer| answer.key == key) else {
            result.faults.push(format!("`{key}` is expected, but no code compares it"));
            continue;
        };
        if values.len() != want.values.len() {
            let (got, want) = (values.len(), want.values.len());
            result.faults.push(format!("`{key}`: got {got} numbers, want {want}"));
            continue;
        }
        for (i, (&got, &want_i)) in values.iter().zip(&want.values).enumerate() {
            if mask.as_ref().is_some_and(|mask| !mask[i]) {
                continue;
            }
            result.compared += 1;
            let allowed = match precision {
                Precision::Double => Ok(case.atol + case.rtol * want_i.abs()),
                Precision::Single => case.atol_f32.get(key).copied().ok_or("`atol_f32` has no such key"),
            };
            let fault = match allowed {
                Ok(allowed) => disagreement(got, want_i, allowed),
                Err(error) => Some(error.to_owned()),
            };
            if let Some(fault) = fault {
                result.faults.push(format!("`{key}`{}: {fault}", want.place(i)));
            }
        }
    }
    result
}

/// Why `got` is not `want`, or `None` if it is: infinities must be equal, NaN answers NaN only.
fn disagreement(got: f64, want: f64, allowed: f64) -> Option<String> {
    let agrees = match want.is_finite() {
        true => (got - want).abs() <= allowed, // false for NaN
        false => got == want || (got.is_nan() && want.is_nan()),
    };
    let off = (got - want).abs();
    (!agrees).then(|| format!("got {got}, want {want} (off by {off:.1e}, allowed {allowed:.1e})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A case that expects `x` (two numbers) and `y` (one).
    fn case(x: serde_json::Value) -> Case {
        serde_json::from_value(json!({
            "name": "made_up", "inputs": {}, "expected": {"x": x, "y": 2.0}, "rtol": 1e-9, "atol": 1e-12,
            "atol_f32": {"x": 1e-3, "y": 1e-3}, "f32_representable": true,
        }))
        .unwrap()
    }

    #[track_caller]
    fn check(x: serde_json::Value, got: [f64; 2], precision: Precision, faults: &[&str]) {
        let comparison = compare(&case(x), &answers().with("x", got.to_vec()).with("y", 2.0), precision);
        assert_eq!(comparison.faults, faults);
        assert_eq!(comparison.compared, 3);
    }

    #[test]
    fn a_wrong_number_is_named_with_its_place_and_both_values() {
        let fault = "`x`[1]: got 4.1, want 4 (off by 1.0e-1, allowed 4.0e-9)";
        check(json!([1, 4]), [1.0, 4.1], Precision::Double, &[fault]);
        check(json!([1, 4]), [1.0, 4.0], Precision::Double, &[]);
    }

    #[test]
    fn each_precision_has_its_own_tolerance() {
        check(json!([1, 4]), [1.0, 4.0005], Precision::Single, &[]);
        let fault = "`x`[1]: got 4.0005, want 4 (off by 5.0e-4, allowed 4.0e-9)";
        check(json!([1, 4]), [1.0, 4.0005], Precision::Double, &[fault]);
    }

    #[test]
    fn nan_is_never_near_a_number() {
        let fault = "`x`[0]: got NaN, want 1 (off by NaN, allowed 1.0e-3)";
        check(json!([1, 4]), [f64::NAN, 4.0], Precision::Single, &[fault]);
        check(json!(["nan", 4]), [f64::NAN, 4.0], Precision::Single, &[]);
    }

    #[test]
    fn infinities_compare_exactly_sign_included() {
        check(json!(["inf", "-inf"]), [f64::INFINITY, f64::NEG_INFINITY], Precision::Double, &[]);
        let fault = "`x`[0]: got 1e300, want inf (off by inf, allowed inf)";
        let got = [1e300, f64::NEG_INFINITY];
        assert_eq!(compared(json!(["inf", "-inf"]), got), [fault.replace("1e300", &1e300.to_string())]);
        assert_eq!(compared(json!(["inf", "-inf"]), [f64::NEG_INFINITY; 2]).len(), 1);
        assert_eq!(compared(json!([1, 2]), [f64::INFINITY, 2.0]).len(), 1);
    }

    fn compared(x: serde_json::Value, got: [f64; 2]) -> Vec<String> {
        compare(&case(x), &answers().with("x", got.to_vec()).with("y", 2.0), Precision::Double).faults
    }

    #[test]
    fn a_key_that_no_code_compares_is_a_fault() {
        let comparison = compare(&case(json!([1, 4])), &answers().with("y", 2.0), Precision::Double);
        assert_eq!(comparison.faults, ["`x` is expected, but no code compares it"]);
    }

    #[test]
    fn an_answer_that_nothing_asked_for_is_a_fault() {
        let more = answers().with("x", vec![1.0, 4.0]).with("y", 2.0).with("z", 0.0);
        let comparison = compare(&case(json!([1, 4])), &more, Precision::Double);
        assert_eq!(comparison.faults, ["`z` is answered, but not expected"]);
    }

    #[test]
    fn a_missing_number_is_a_fault() {
        let short = answers().with("x", 1.0).with("y", 2.0);
        let comparison = compare(&case(json!([1, 4])), &short, Precision::Double);
        assert_eq!(comparison.faults, ["`x`: got 1 numbers, want 2"]);
    }

    #[test]
    fn a_masked_number_is_not_compared() {
        let masked = answers().with_masked("x", vec![1.0, f64::NAN], vec![true, false]).with("y", 2.0);
        let comparison = compare(&case(json!([1, 4])), &masked, Precision::Double);
        assert_eq!(comparison, Comparison { compared: 2, faults: vec![] });
    }
}
