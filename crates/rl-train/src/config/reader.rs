//! A TOML value as serde reads it, with errors that know their place.
//!
//! The `toml` crate tells what is wrong as a sentence; a sentence that names the key, its table, the
//! value and the cure needs the parts. So this is a small [`Deserializer`] over [`toml::Value`]
//! whose error keeps them: the path, and which kind of mistake it is.
//!
//! It adds one word to TOML, which has no null: the string `"off"` where a setting is optional.

use std::fmt::{self, Display};

use serde::de::value::StrDeserializer;
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use toml::Value;

/// What switches an optional setting off.
pub const OFF: &str = "off";

/// A value of type `T` from TOML.
///
/// # Errors
/// [`Misread`] says where and what.
pub fn read<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, Misread> {
    T::deserialize(Reader(value))
}

/// TOML has no null: an optional setting that is off says so.
pub fn without_null(value: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::String(OFF.into()),
        Json::Bool(truth) => Value::Boolean(truth),
        Json::String(text) => Value::String(text),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Integer(whole),
            None => Value::Float(number.as_f64().expect("a JSON number is an f64")),
        },
        Json::Array(items) => Value::Array(items.into_iter().map(without_null).collect()),
        Json::Object(map) => {
            Value::Table(map.into_iter().map(|(key, value)| (key, without_null(value))).collect())
        }
    }
}

/// A mistake in a run file, and the keys that lead to it.
#[derive(Debug, PartialEq)]
pub struct Misread {
    /// From the outermost key to the innermost.
    pub path: Vec<String>,
    /// The mistake.
    pub mistake: Mistake,
}

/// The kinds of mistake.
#[derive(Debug, PartialEq)]
pub enum Mistake {
    /// A key that the table at `path` does not have.
    UnknownKey {
        /// The key.
        key: String,
        /// The keys it has.
        known: &'static [&'static str],
    },
    /// A name that is not one of the choices.
    UnknownChoice {
        /// The choices.
        known: &'static [&'static str],
    },
    /// A key that the table at `path` must have.
    MissingKey(&'static str),
    /// A value of another type.
    WrongType {
        /// What would do, in words.
        expected: String,
    },
    /// Anything else, in serde's words.
    Other(String),
}

impl Misread {
    fn new(mistake: Mistake) -> Self {
        Self { path: Vec::new(), mistake }
    }

    fn under(mut self, key: impl Into<String>) -> Self {
        self.path.insert(0, key.into());
        self
    }
}

impl Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.path.join("."), self.mistake)
    }
}

impl std::error::Error for Misread {}

impl de::Error for Misread {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(Mistake::Other(message.to_string()))
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(Mistake::WrongType { expected: in_words(&expected.to_string()) })
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(Mistake::WrongType { expected: in_words(&expected.to_string()) })
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Self::new(Mistake::UnknownKey { key: key.to_owned(), known })
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Self {
        Self::new(Mistake::UnknownChoice { known })
    }

    fn missing_field(key: &'static str) -> Self {
        Self::new(Mistake::MissingKey(key))
    }
}

/// Rust's type names as a writer of run files knows them.
fn in_words(expected: &str) -> String {
    match expected {
        "f32" | "f64" => "a number".into(),
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more".into(),
        "a sequence" => "a list in brackets".into(),
        "a string" => "a name in quotes".into(),
        "a map" => "a table".into(),
        other if other.starts_with("struct ") => "a table".into(),
        other if other.contains("tagged enum") => "a table with a `kind`".into(),
        other => other.into(),
    }
}

#[derive(Clone, Copy)]
struct Reader<'de>(&'de Value);

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Misread;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misread> {
        match self.0 {
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Boolean(truth) => visitor.visit_bool(*truth),
            Value::Datetime(time) => visitor.visit_string(time.to_string()),
            Value::Array(items) => visitor.visit_seq(Items(items.iter().enumerate())),
            Value::Table(table) => visitor.visit_map(Entries { rest: table.iter(), value: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misread> {
        if self.0.as_str() == Some(OFF) { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misread> {
        // A list would do for serde; a run file means a table.
        if self.0.is_table() { self.deserialize_any(visitor) } else { Err(wrong_type("a table")) }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misread> {
        match self.0 {
            Value::String(name) => {
                let name: StrDeserializer<'de, Misread> = name.as_str().into_deserializer();
                visitor.visit_enum(name)
            }
            _ => Err(wrong_type("a name in quotes")),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misread> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

fn wrong_type(expected: &str) -> Misread {
    Misread::new(Mistake::WrongType { expected: expected.to_owned() })
}

struct Items<'de>(std::iter::Enumerate<std::slice::Iter<'de, Value>>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Misread;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Misread> {
        let Some((i, item)) = self.0.next() else { return Ok(None) };
        seed.deserialize(Reader(item)).map(Some).map_err(|error| error.under(i.to_string()))
    }
}

struct Entries<'de> {
    rest: toml::map::Iter<'de, String, Value>,
    value: Option<(&'de String, &'de Value)>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Misread;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Misread> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some((key, value));
        let key: StrDeserializer<'_, Misread> = key.as_str().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misread> {
        let (key, value) = self.value.take().expect("serde asks for the key first");
        seed.deserialize(Reader(value)).map_err(|error| error.under(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rl_algos::PpoConfig;

    fn read_ppo(text: &str) -> Result<PpoConfig, Misread> {
        read(&Value::Table(text.parse().unwrap()))
    }

    #[track_caller]
    fn refused(text: &str, path: &[&str], mistake: Mistake) {
        let error = read_ppo(text).unwrap_err();
        assert_eq!(error.path, path);
        assert_eq!(error.mistake, mistake);
    }

    #[test]
    fn off_is_none_where_a_setting_is_optional() {
        let config = read_ppo("clip = \"off\"\nmax_grad_norm = \"off\"\nadvantage_norm = \"off\"").unwrap();
        assert_eq!((config.clip, config.max_grad_norm), (None, None));
        let number = Mistake::WrongType { expected: "a number".into() };
        refused("gamma = \"off\"", &["gamma"], number);
    }

    #[test]
    fn a_mistake_knows_its_path() {
        let whole = || Mistake::WrongType { expected: "a whole number, 0 or more".into() };
        refused("epochs = 4.0", &["epochs"], whole());
        refused("epochs = -1", &["epochs"], whole());
        let error = read_ppo("[optimizer]\nbeta3 = 0.9").unwrap_err();
        assert_eq!(error.path, ["optimizer"]);
        assert!(
            matches!(error.mistake, Mistake::UnknownKey { key, known } if key == "beta3" && known.contains(&"beta1"))
        );
        refused("[kl]\nbeta = 0.1", &["kl"], Mistake::MissingKey("kind"));
        let error = read_ppo("[kl]\nkind = \"fixd\"\nbeta = 0.1").unwrap_err();
        assert!(matches!(error.mistake, Mistake::UnknownChoice { known } if known.contains(&"fixed")));
        refused("optimizer = [1]", &["optimizer"], Mistake::WrongType { expected: "a table".into() });
    }
}
