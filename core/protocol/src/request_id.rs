//! Request ids: strings and 64-bit integers, echoed byte for byte.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use bytes::Bytes;
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::{JsonKind, Raw, Span, json_string, unescape};
use crate::limits::MAX_ID;

/// The `id` of a request: a string, or an integer of 64 bits, signed or unsigned.
///
/// Ids are compared by value (`1` and `"1"` differ, `"a"` and `"\u0061"`, `1` and `1.0` do not) and echoed as they were
/// written. `1.0` is an integer (JSON Schema, section 6.1.1 of 2020-12), because languages in which all numbers are
/// floating point write it so; up to 2^53 every parser reads the same value. `null`, fractions and exponents are
/// rejected: the protocol forbids the first two, and parsers disagree about the last (2026-07-28, "Base protocol",
/// Requests).
#[derive(Clone)]
pub struct RequestId(Repr);

/// The JSON text of an id. Short ones, including UUIDs, keep no buffer alive and cost no allocation.
#[derive(Clone)]
enum Repr {
    /// Digits only, which can be compared without decoding: the usual case.
    Digits {
        length: u8,
        text: [u8; SHORT],
    },
    Short {
        length: u8,
        text: [u8; SHORT],
    },
    Long(Bytes),
}

const SHORT: usize = 38;

impl Repr {
    fn short(text: &[u8]) -> Option<Self> {
        let mut short = [0; SHORT];
        short.get_mut(..text.len())?.copy_from_slice(text);
        let length = u8::try_from(text.len()).ok()?;
        let text = short;
        Some(Self::Short { length, text })
    }

    /// Stores `text`, which is digits only, few enough to fit into 64 bits.
    fn digits(text: &[u8]) -> Self {
        let mut short = [0; SHORT];
        short[..text.len()].copy_from_slice(text);
        // At most `SAFE_DIGITS`.
        let length = text.len() as u8;
        let text = short;
        Self::Digits { length, text }
    }
}

/// The error for a value that is not a valid request id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("a request id must be a string or a 64-bit integer")]
pub struct InvalidId;

impl RequestId {
    /// An integer id.
    pub fn number(id: i64) -> Self {
        Self::from_text(itoa::Buffer::new().format(id).as_bytes())
    }

    /// A string id.
    pub fn string(id: &str) -> Self {
        let mut text = Vec::new();
        json_string(&mut text, id);
        Self::from_text(&text)
    }

    /// The id written as `raw`.
    ///
    /// # Errors
    /// When `raw` is neither a string nor an integer of 64 bits, or is longer than
    /// [`MAX_ID`] bytes.
    pub fn from_raw(raw: &Raw) -> Result<Self, InvalidId> {
        let shared = raw.shared();
        Self::from_slice(shared, Span::all(shared))
    }

    /// The id written at `span` of scanned bytes.
    pub(crate) fn from_slice(bytes: &Bytes, span: Span) -> Result<Self, InvalidId> {
        let text = &bytes[span.range()];
        if are_digits(text) {
            return Ok(Self(Repr::digits(text)));
        }
        let valid = match text.first().map(|&byte| JsonKind::of(byte)) {
            Some(JsonKind::String) => text.len() <= MAX_ID,
            Some(JsonKind::Number) => is_integer(text),
            _ => false,
        };
        if !valid {
            return Err(InvalidId);
        }
        Ok(Self(
            Repr::short(text).unwrap_or_else(|| Repr::Long(bytes.slice(span.range()))),
        ))
    }

    fn from_text(text: &[u8]) -> Self {
        if are_digits(text) {
            return Self(Repr::digits(text));
        }
        Self(Repr::short(text).unwrap_or_else(|| Repr::Long(Bytes::copy_from_slice(text))))
    }

    /// The id as JSON, as it was written.
    pub fn raw(&self) -> &[u8] {
        match &self.0 {
            Repr::Digits { length, text } | Repr::Short { length, text } => {
                &text[..usize::from(*length)]
            }
            Repr::Long(text) => text,
        }
    }

    /// The text of a string id.
    pub fn as_string(&self) -> Option<Cow<'_, str>> {
        let inner = self.raw().strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        Some(unescape(inner))
    }

    /// The value of an integer id.
    pub fn as_integer(&self) -> Option<i128> {
        integer(self.raw())
    }

    /// The value for comparisons: the text itself if it needs no decoding.
    fn value(&self) -> IdValue<'_> {
        let raw = self.raw();
        if let Repr::Digits { .. } = self.0 {
            IdValue::Number(raw)
        } else if raw.first() == Some(&b'"') {
            let inner = raw.get(1..raw.len() - 1).unwrap_or_default();
            IdValue::Text(if memchr::memchr(b'\\', inner).is_some() {
                Cow::Owned(unescape(inner).into_owned().into_bytes())
            } else {
                Cow::Borrowed(inner)
            })
        } else {
            // Each integer has one spelling, apart from the sign of zero and a zero fraction.
            let raw = exact_float(raw).unwrap_or(raw);
            IdValue::Number(if raw == b"-0" { b"0" } else { raw })
        }
    }
}

#[derive(PartialEq, Eq, Hash)]
enum IdValue<'a> {
    Text(Cow<'a, [u8]>),
    Number(&'a [u8]),
}

fn integer(text: &[u8]) -> Option<i128> {
    let text = exact_float(text).unwrap_or(text);
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The integer before a fraction of zeros, if a double represents it exactly.
fn exact_float(text: &[u8]) -> Option<&[u8]> {
    let point = text.iter().position(|&byte| byte == b'.')?;
    let (whole, fraction) = (&text[..point], &text[point + 1..]);
    let value: i64 = std::str::from_utf8(whole).ok()?.parse().ok()?;
    let is_exact = value.unsigned_abs() <= 1 << 53 && fraction.iter().all(|&byte| byte == b'0');
    // Ids are kept; more zeros than fit into a short one do not occur in practice.
    (is_exact && text.len() <= SHORT).then_some(whole)
}

/// This many digits always fit into 64 bits.
const SAFE_DIGITS: usize = 18;

/// Whether a JSON value is an integer of 64 bits that consists of digits only.
fn are_digits(text: &[u8]) -> bool {
    (1..=SAFE_DIGITS).contains(&text.len()) && text.iter().all(u8::is_ascii_digit)
}

/// Whether a JSON number is an integer of 64 bits.
fn is_integer(text: &[u8]) -> bool {
    integer(text).is_some_and(|value| (i64::MIN.into()..=u64::MAX.into()).contains(&value))
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.raw() == other.raw() || self.value() == other.value()
    }
}

impl Eq for RequestId {}

impl Hash for RequestId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value().hash(state);
    }
}

impl From<i64> for RequestId {
    fn from(id: i64) -> Self {
        Self::number(id)
    }
}

impl From<&str> for RequestId {
    fn from(id: &str) -> Self {
        Self::string(id)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({self})")
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.raw()))
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.as_string(), self.as_integer()) {
            (Some(text), _) => serializer.serialize_str(&text),
            (_, Some(value)) => match (i64::try_from(value), u64::try_from(value)) {
                (Ok(signed), _) => serializer.serialize_i64(signed),
                (_, Ok(unsigned)) => serializer.serialize_u64(unsigned),
                _ => Err(serde::ser::Error::custom(InvalidId)),
            },
            _ => Err(serde::ser::Error::custom(InvalidId)),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let id = deserializer.deserialize_any(AnyId);
        id.map_err(|_| D::Error::custom(InvalidId))
    }
}

struct AnyId;

impl Visitor<'_> for AnyId {
    type Value = RequestId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an integer")
    }

    fn visit_i64<E>(self, id: i64) -> Result<RequestId, E> {
        Ok(RequestId::number(id))
    }

    fn visit_u64<E>(self, id: u64) -> Result<RequestId, E> {
        Ok(RequestId::from_text(
            itoa::Buffer::new().format(id).as_bytes(),
        ))
    }

    fn visit_str<E>(self, id: &str) -> Result<RequestId, E> {
        Ok(RequestId::string(id))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn id(text: &str) -> Result<RequestId, InvalidId> {
        RequestId::from_raw(&Raw::parse(text.to_owned()).expect("valid JSON"))
    }

    #[test]
    fn strings_and_64_bit_integers_are_echoed_byte_for_byte() {
        let long = format!("\"{}\"", "x".repeat(500));
        for text in [
            "0",
            "-0",
            "1",
            "-9223372036854775808",
            "18446744073709551615",
            r#""""#,
            r#""a""#,
            r#""\u0061\n""#,
            "\"123e4567-e89b-12d3-a456-426614174000\"",
            &long,
        ] {
            assert_eq!(id(text).expect("an id").raw(), text.as_bytes());
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let long = format!("\"{}\"", "x".repeat(MAX_ID));
        for text in [
            "null",
            "true",
            "1e3",
            "1.0e3",
            "1.5",
            "1.01",
            "9007199254740993.0",
            "1.0000000000000000000000000000000000000000",
            "18446744073709551616.0",
            "18446744073709551616",
            "-9223372036854775809",
            "[]",
            "{}",
            "[1]",
            "123456789012345678901234567890123456789012345678901234567890",
            &long,
        ] {
            assert_eq!(id(text), Err(InvalidId), "{text}");
        }
    }

    #[test]
    fn ids_compare_by_type_and_value() {
        assert_ne!(id("1"), id("\"1\""));
        assert_eq!(id("\"a\""), id(r#""\u0061""#));
        assert_eq!(id("0"), id("-0"));
        assert_eq!(id("0"), id("-0.0"));
        assert_eq!(id("7.00"), Ok(RequestId::number(7)));
        assert_eq!(id("-7.0").expect("an id").as_integer(), Some(-7));
        assert_eq!(id("-7.0").expect("an id").raw(), b"-7.0");
        let set: HashSet<_> = [id("\"a\""), id(r#""\u0061""#), id("1"), id("\"1\"")]
            .into_iter()
            .collect();
        assert_eq!(set.len(), 3);
        assert_eq!(id("7"), Ok(RequestId::number(7)));
        assert_eq!(id(r#""q\"""#), Ok(RequestId::string("q\"")));
    }

    #[test]
    fn serde_keeps_the_value() {
        for text in ["18446744073709551615", "-5", r#""a\"b""#] {
            let id: RequestId = serde_json::from_str(text).expect("an id");
            assert_eq!(serde_json::to_string(&id).expect("serializes"), text);
        }
        assert!(serde_json::from_str::<RequestId>("null").is_err());
        assert!(serde_json::from_str::<RequestId>("1.5").is_err());
    }
}
