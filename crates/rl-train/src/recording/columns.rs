//! `metrics.jsonl` by columns: a metric is one list of numbers, however many rows there are.

use std::fmt;
use std::io::{self, BufRead};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

/// A metric over a run: its values, and the row that each stands in. A row need not have every metric.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Column {
    /// Rows, ascending, counted from 0.
    pub rows: Vec<u32>,
    /// One value per row; it may be infinite or NaN.
    pub values: Vec<f64>,
}

/// All metrics of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Columns {
    /// `step` of each row.
    pub steps: Vec<u64>,
    /// `update` of each row.
    pub updates: Vec<u64>,
    named: Vec<(String, Column)>,
}

impl Columns {
    /// Reads rows until the end, and says which lines are none (counted from 1). A last line without its end is being
    /// written at the moment and is left out.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn read(mut lines: impl BufRead) -> io::Result<(Self, Vec<usize>)> {
        let (mut columns, mut damaged, mut line) = (Self::default(), vec![], vec![]);
        for number in 1.. {
            line.clear();
            if lines.read_until(b'\n', &mut line)? == 0 || line.last() != Some(&b'\n') {
                break;
            }
            if !columns.push(&line) {
                damaged.push(number);
            }
        }
        Ok((columns, damaged))
    }

    /// Adds one row of JSON; false, with nothing added, if it is none.
    pub fn push(&mut self, line: &[u8]) -> bool {
        let row = self.len() as u32;
        let read =
            RowSeed { columns: self, row }.deserialize(&mut serde_json::Deserializer::from_slice(line));
        let Ok((step, update)) = read else {
            for (_, column) in &mut self.named {
                if column.rows.last() == Some(&row) {
                    column.rows.pop();
                    column.values.pop();
                }
            }
            return false;
        };
        self.steps.push(step);
        self.updates.push(update);
        true
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// The metric `name`, if any row has it.
    pub fn get(&self, name: &str) -> Option<&Column> {
        self.named.iter().find(|(known, _)| known == name).map(|(_, column)| column)
    }

    /// All metrics, in the order of their first appearance.
    pub fn each(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.named
            .iter()
            .filter(|(_, column)| !column.rows.is_empty())
            .map(|(name, column)| (name.as_str(), column))
    }

    /// The place of `name`, which is most often the one after the last.
    fn place(&mut self, name: &str, guess: usize) -> usize {
        if self.named.get(guess).is_some_and(|(known, _)| known == name) {
            return guess;
        }
        self.named.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.named.push((name.to_owned(), Column::default()));
            self.named.len() - 1
        })
    }
}

/// Reads one row into its columns, and returns `(step, update)`.
struct RowSeed<'a> {
    columns: &'a mut Columns,
    row: u32,
}

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = (u64, u64);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = (u64, u64);

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object of metrics")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut step, mut update, mut next) = (None, None, 0);
        while let Some(key) = map.next_key_seed(KeySeed { columns: self.columns, next })? {
            match key {
                Key::Step => step = Some(map.next_value()?),
                Key::Update => update = Some(map.next_value()?),
                Key::Metric(place) => {
                    next = place + 1;
                    if let Some(value) = map.next_value::<Number>()?.0 {
                        let column = &mut self.columns.named[place].1;
                        column.rows.push(self.row);
                        column.values.push(value);
                    }
                }
            }
        }
        let missing = |key| serde::de::Error::missing_field(key);
        Ok((step.ok_or_else(|| missing("step"))?, update.ok_or_else(|| missing("update"))?))
    }
}

enum Key {
    Step,
    Update,
    Metric(usize),
}

struct KeySeed<'a> {
    columns: &'a mut Columns,
    next: usize,
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the name of a metric")
    }

    fn visit_str<E>(self, name: &str) -> Result<Key, E> {
        Ok(match name {
            "step" => Key::Step,
            "update" => Key::Update,
            name => Key::Metric(self.columns.place(name, self.next)),
        })
    }
}

/// A metric's value: a number, or the name of one that JSON has not. Anything else is none.
struct Number(Option<f64>);

impl<'de> serde::Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
        Ok(Number(Some(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
        Ok(Number(Some(value as f64)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
        Ok(Number(Some(value as f64)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Number, E> {
        Ok(Number(value.parse().ok()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Number, E> {
        Ok(Number(None))
    }

    fn visit_unit<E>(self) -> Result<Number, E> {
        Ok(Number(None))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Number, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Number(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Number, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Number(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns_and_what_is_no_row_is_named() {
        let text = "{\"step\":8,\"update\":1,\"a\":1,\"b\":\"NaN\"}\nno row\n{\"step\":16,\"update\":2,\"c\":[1],\"b\":\"-inf\"}\n\
                    {\"a\":5}\n{\"step\":24,\"update\":3,\"a\":-2.5e-3}\n{\"step\":32,\"upd";
        let (columns, damaged) = Columns::read(text.as_bytes()).unwrap();
        assert_eq!((columns.steps.clone(), columns.updates.clone()), (vec![8, 16, 24], vec![1, 2, 3]));
        assert_eq!(damaged, [2, 4]);
        assert_eq!(columns.get("a"), Some(&Column { rows: vec![0, 2], values: vec![1.0, -2.5e-3] }));
        let b = columns.get("b").unwrap();
        assert!(b.rows == [0, 1] && b.values[0].is_nan() && b.values[1] == f64::NEG_INFINITY);
        assert_eq!(columns.each().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
    }
}
