//! Common parts of the vocabulary types: open sets, tagged unions, setters, numbers.

use serde::Serializer;

/// An enum for a set of words that is closed on the wire and open in our types: unknown words are kept.
macro_rules! open_words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$word_doc])* $variant,)+
            /// A word that no known revision defines.
            Other(String),
        }

        impl $name {
            /// Returns the protocol's name.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $($word => Self::$variant,)+
                    _ => Self::Other(word),
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                Self::from(word.to_owned())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(deserializer).map(Self::from)
            }
        }
    };
}

/// A union that a member such as `type` distinguishes; objects with an unknown tag are kept whole.
macro_rules! tagged_union {
    ($(#[$doc:meta])* $name:ident by $tag:literal {
        $($(#[$variant_doc:meta])* $variant:ident($inner:ty) = $word:literal),+ $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[allow(clippy::large_enum_variant, reason = "boxes would be in the way of every match")]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant($inner),)+
            /// An object with a tag that no known revision defines.
            Other($crate::vocabulary::JsonObject),
        }

        $(impl From<$inner> for $name {
            fn from(inner: $inner) -> Self {
                Self::$variant(inner)
            }
        })+

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                #[derive(serde::Serialize)]
                #[serde(tag = $tag)]
                enum Tagged<'a> {
                    $(#[serde(rename = $word)] $variant(&'a $inner),)+
                }
                match self {
                    $(Self::$variant(inner) => Tagged::$variant(inner).serialize(serializer),)+
                    Self::Other(object) => object.serialize(serializer),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::Error as _;
                let mut object = $crate::vocabulary::JsonObject::deserialize(deserializer)?;
                match object.get($tag).and_then(serde_json::Value::as_str) {
                    $(Some($word) => {
                        object.shift_remove($tag);
                        let value = serde_json::Value::Object(object);
                        serde_json::from_value(value).map(Self::$variant).map_err(D::Error::custom)
                    })+
                    Some(_) => Ok(Self::Other(object)),
                    None => Err(D::Error::missing_field($tag)),
                }
            }
        }
    };
}

/// Methods that set an optional field and return the value.
macro_rules! setters {
    ($name:ident { $($setter:ident => $field:ident: $type:ty),+ $(,)? }) => {
        impl $name {
            $(
                #[doc = concat!("The same with [`", stringify!($field), "`](Self::", stringify!($field), ").")]
                #[must_use]
                pub fn $setter(mut self, $field: impl Into<$type>) -> Self {
                    self.$field = Some($field.into());
                    self
                }
            )+
        }
    };
}

pub(super) use {open_words, setters, tagged_union};

/// Writes integral numbers without a fraction, as nearly every peer does.
pub(super) fn number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "whole and within the exact range"
        )]
        return serializer.serialize_i64(*value as i64);
    }
    serializer.serialize_f64(*value)
}

/// As [`number`], for an optional field.
pub(super) fn optional_number<S: Serializer>(
    value: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => number(value, serializer),
        None => serializer.serialize_none(),
    }
}
