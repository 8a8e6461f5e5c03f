//! The vector files as data: numbers that JSON cannot write, cases, and what a formula asks its inputs for.

use std::collections::BTreeMap;

use rl_core::real::Real;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A nested list of numbers, row after row.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Numbers {
    /// The lengths, outermost first; of the first list where lists differ in length.
    pub shape: Vec<usize>,
    /// All of them.
    pub values: Vec<f64>,
}

impl TryFrom<Value> for Numbers {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let mut values = Vec::new();
        flatten(&value, &mut values)?;
        Ok(Self { shape: shape(&value), values })
    }
}

impl Numbers {
    /// Where number `i` stands: `[2][0]`.
    pub fn place(&self, i: usize) -> String {
        if self.shape.iter().product::<usize>() != self.values.len() {
            return format!("[number {i}]"); // lists of unequal lengths
        }
        let mut rest = i;
        let mut places: Vec<String> = Vec::new();
        for length in self.shape.iter().rev() {
            places.push(format!("[{}]", rest % length));
            rest /= length;
        }
        places.reverse();
        places.concat()
    }
}

fn shape(value: &Value) -> Vec<usize> {
    let Some(list) = value.as_array() else { return Vec::new() };
    let inner = list.first().map(shape).unwrap_or_default();
    [vec![list.len()], inner].concat()
}

fn flatten(value: &Value, into: &mut Vec<f64>) -> Result<(), String> {
    match value {
        Value::Array(list) => return list.iter().try_for_each(|value| flatten(value, into)),
        Value::Bool(flag) => into.push(f64::from(u8::from(*flag))),
        Value::String(text) => into.push(match text.as_str() {
            "inf" => f64::INFINITY,
            "-inf" => f64::NEG_INFINITY,
            "nan" => f64::NAN,
            _ => return Err(format!("`{text}` is not a number")),
        }),
        _ => into.push(value.as_f64().ok_or_else(|| format!("`{value}` is not a number"))?),
    }
    Ok(())
}

/// One case of a file in the common schema.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    /// What the case is about.
    pub name: String,
    /// What the formula is given.
    pub inputs: Inputs,
    /// What it must answer, by key.
    pub expected: BTreeMap<String, Numbers>,
    /// Relative tolerance in double precision.
    pub rtol: f64,
    /// Absolute tolerance in double precision.
    pub atol: f64,
    /// Absolute tolerance in single precision, by key.
    pub atol_f32: BTreeMap<String, f64>,
    /// Whether single precision can hold the answer at all.
    pub f32_representable: bool,
}

/// The inputs of a case. A missing or malformed one panics with its name: the runner reports it with the case's.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct Inputs(Map<String, Value>);

impl Inputs {
    fn value(&self, key: &str) -> &Value {
        self.0.get(key).unwrap_or_else(|| panic!("the case has no input `{key}`"))
    }

    /// Whether the input is there and not null.
    pub fn has(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|value| !value.is_null())
    }

    /// A nested list with its shape.
    pub fn list(&self, key: &str) -> Numbers {
        self.value(key).clone().try_into().unwrap_or_else(|error| panic!("input `{key}`: {error}"))
    }

    /// One number.
    pub fn number(&self, key: &str) -> f64 {
        match self.list(key) {
            Numbers { shape, values } if shape.is_empty() => values[0],
            _ => panic!("input `{key}` is a list, not a number"),
        }
    }

    /// One number in the precision under test.
    pub fn real<F: Real>(&self, key: &str) -> F {
        F::from_f64(self.number(key))
    }

    /// One count or index.
    pub fn whole(&self, key: &str) -> usize {
        self.number(key) as usize
    }

    /// A boolean.
    pub fn flag(&self, key: &str) -> bool {
        self.number(key) != 0.0
    }

    /// A word.
    pub fn word(&self, key: &str) -> &str {
        self.value(key).as_str().unwrap_or_else(|| panic!("input `{key}` is not a word"))
    }

    /// All numbers of a list of any depth, row after row.
    pub fn numbers<F: Real>(&self, key: &str) -> Vec<F> {
        self.list(key).values.into_iter().map(F::from_f64).collect()
    }

    /// All numbers as booleans.
    pub fn flags(&self, key: &str) -> Vec<bool> {
        self.list(key).values.into_iter().map(|flag| flag != 0.0).collect()
    }

    /// The outermost lists, each flattened: `[B][T]` → B rows.
    pub fn rows<F: Real>(&self, key: &str) -> Vec<Vec<F>> {
        let list = self.value(key).as_array().unwrap_or_else(|| panic!("input `{key}` is not a list"));
        let row = |value: &Value| match Numbers::try_from(value.clone()) {
            Ok(row) => row.values.into_iter().map(F::from_f64).collect(),
            Err(error) => panic!("input `{key}`: {error}"),
        };
        list.iter().map(row).collect()
    }

    /// The columns of a table: `[T][N]` → N streams of T.
    pub fn columns<F: Real>(&self, key: &str) -> Vec<Vec<F>> {
        transposed(&self.rows(key))
    }
}

/// `[T][N]` → `[N][T]`, and back.
pub fn transposed<T: Copy>(table: &[Vec<T>]) -> Vec<Vec<T>> {
    let width = table.first().map_or(0, Vec::len);
    (0..width).map(|n| table.iter().map(|row| row[n]).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn infinities_and_nan_are_words_anywhere() {
        let got = Numbers::try_from(json!([[1, "inf"], ["-inf", true]])).unwrap();
        assert_eq!(got.shape, [2, 2]);
        assert_eq!(got.values, [1.0, f64::INFINITY, f64::NEG_INFINITY, 1.0]);
        assert!(Numbers::try_from(json!("nan")).unwrap().values[0].is_nan());
        assert_eq!(Numbers::try_from(json!(["big"])).unwrap_err(), "`big` is not a number");
        assert_eq!(Numbers::try_from(json!([null])).unwrap_err(), "`null` is not a number");
    }

    #[test]
    fn a_place_is_written_as_indices() {
        let table = Numbers::try_from(json!([[1, 2, 3], [4, 5, 6]])).unwrap();
        assert_eq!(table.place(4), "[1][1]");
        assert_eq!(Numbers::try_from(json!(3)).unwrap().place(0), "");
        assert_eq!(Numbers::try_from(json!([[1], [2, 3]])).unwrap().place(2), "[number 2]");
    }

    #[test]
    fn columns_are_streams_of_time() {
        let inputs: Inputs = serde_json::from_value(json!({"rewards": [[1, 2], [3, 4], [5, 6]]})).unwrap();
        let columns = inputs.columns::<f32>("rewards");
        assert_eq!(columns, [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]);
        assert_eq!(transposed(&columns), inputs.rows::<f32>("rewards"));
    }

    #[test]
    #[should_panic(expected = "the case has no input `gamma`")]
    fn a_missing_input_is_named() {
        serde_json::from_value::<Inputs>(json!({})).unwrap().number("gamma");
    }
}
