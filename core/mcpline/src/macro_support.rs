//! What the code that `#[mcpline::tools]` generates refers to.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};

pub use {schemars, serde};

/// Parses a text: the value of a variable or of an argument of a prompt.
///
/// # Errors
///
/// If the value is not a text, or does not parse.
pub fn text<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(D::Error::custom)
}

/// Parses a text that may be missing.
///
/// # Errors
///
/// If the value is not a text, or does not parse.
pub fn optional_text<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| text.parse().map_err(D::Error::custom))
        .transpose()
}
