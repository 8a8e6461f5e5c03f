//! The JSON of one column: borrowed from the row where it can be, and never deeper than serde_json allows.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A JSON value that borrows its text from the row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    Number(f64),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl Json<'_> {
    /// What this is, for an error: "null", "the number 6", "an object".
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(it) => it.to_string(),
            Self::Number(it) => format!("the number {it}"),
            Self::Text(it) => format!("the text {}", excerpt(it)),
            Self::List(items) if items.is_empty() => "an empty list".to_owned(),
            Self::List(items) => format!("a list of {}", items.len()),
            Self::Object(_) => "an object".to_owned(),
        }
    }

    /// The value of a key, if this is an object that has it.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(entries) => entries.iter().find(|(it, _)| it == key).map(|(_, value)| value),
            _ => None,
        }
    }
}

/// The beginning of a text, quoted, short enough for an error message.
pub(super) fn excerpt(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// A key or a text, borrowed where it has no escapes.
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowing;
        impl<'de> Visitor<'de> for Borrowing {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrowing)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Json<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Json::Null)
            }
            fn visit_bool<E>(self, it: bool) -> Result<Self::Value, E> {
                Ok(Json::Bool(it))
            }
            fn visit_i64<E>(self, it: i64) -> Result<Self::Value, E> {
                Ok(Json::Number(it as f64))
            }
            fn visit_u64<E>(self, it: u64) -> Result<Self::Value, E> {
                Ok(Json::Number(it as f64))
            }
            fn visit_f64<E>(self, it: f64) -> Result<Self::Value, E> {
                Ok(Json::Number(it))
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Json::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Json::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Json::List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
                let mut object = Vec::new();
                while let Some(Text(key)) = entries.next_key()? {
                    object.push((key, entries.next_value()?));
                }
                Ok(Json::Object(object))
            }
        }
        deserializer.deserialize_any(Any)
    }
}
