//! Raw JSON: a slice of received bytes that is known to be one valid value, parsed when needed.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::raw_ref::{RawRef, Walk};
use super::scan::{self, JsonKind, ScanError};

/// One JSON value as bytes, without white space around it. Cloning is cheap.
///
/// Bytes that pass [`Raw::parse`] are valid JSON in UTF-8, nested no deeper than
/// [`MAX_DEPTH`](crate::limits::MAX_DEPTH) and without duplicate members, so every parser reads them
/// the same way. Two values are equal when their bytes are.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Raw(Bytes);

impl Raw {
    /// `{}`
    pub const EMPTY_OBJECT: Self = Self(Bytes::from_static(b"{}"));

    /// `[]`
    pub const EMPTY_ARRAY: Self = Self(Bytes::from_static(b"[]"));

    /// `null`
    pub const NULL: Self = Self(Bytes::from_static(b"null"));

    /// Checks that `bytes` are one JSON value and keeps them, without surrounding white space.
    ///
    /// # Errors
    /// What is wrong with the bytes, and where.
    pub fn parse(bytes: impl Into<Bytes>) -> Result<Self, ScanError> {
        let bytes = bytes.into();
        let span = scan::scan(&bytes, |scanner| scanner.value(1))?;
        Ok(Self::slice(&bytes, span))
    }

    /// Keeps `bytes` unchecked: the caller knows that they are one value without surrounding white space, for example
    /// because a JSON encoder just wrote them.
    ///
    /// A false claim breaks no memory safety, but invalid bytes reach the peer.
    pub fn from_trusted(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        debug_assert!(
            scan::check(&bytes)
                .map_or_else(|error| error.problem == scan::Problem::Depth, |()| true),
            "from_trusted was given invalid JSON"
        );
        Self(bytes)
    }

    /// Writes `value` as JSON.
    ///
    /// # Errors
    /// When `value` has no JSON form, for example a map whose keys are not strings, or one that names
    /// a member twice.
    pub fn from_serialize(value: &(impl Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        Self::written(serde_json::to_vec(value)?)
    }

    fn written(json: Vec<u8>) -> Result<Self, serde_json::Error> {
        Self::parse(json).map_err(serde::ser::Error::custom)
    }

    /// The JSON string for `text`.
    pub fn string(text: &str) -> Self {
        let mut out = Vec::new();
        super::text::json_string(&mut out, text);
        Self(out.into())
    }

    /// A part of scanned bytes.
    pub(crate) fn slice(bytes: &Bytes, span: scan::Span) -> Self {
        Self(bytes.slice(span.range()))
    }

    /// A value within this one, which shares its buffer.
    pub(crate) fn part(&self, within: RawRef<'_>) -> Self {
        Self(self.0.slice_ref(within.as_bytes()))
    }

    /// The same value in a buffer of its own. A `Raw` of a received message is a slice that keeps the whole message in
    /// memory; use this for what is kept longer than the message.
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// The buffer itself, to slice.
    pub(crate) fn shared(&self) -> &Bytes {
        &self.0
    }

    /// The JSON text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The JSON text.
    ///
    /// # Panics
    /// When unchecked bytes of [`from_trusted`](Self::from_trusted) are not UTF-8: every other way to create a `Raw`
    /// checks that.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a Raw is UTF-8")
    }

    /// The JSON text, without copying.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// What kind of value this is.
    pub fn kind(&self) -> JsonKind {
        self.borrowed().kind()
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// Decodes the value.
    ///
    /// # Errors
    /// When the value does not have the shape of `T`.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        self.borrowed().decode()
    }

    /// The text, when this is a string.
    pub fn string_value(&self) -> Option<Cow<'_, str>> {
        self.borrowed().string_value()
    }

    /// The members in the order they were written, when this is an object.
    pub fn members(&self) -> Option<Members<'_>> {
        (self.kind() == JsonKind::Object).then(|| Members {
            raw: self,
            walk: Walk::after_bracket(&self.0),
        })
    }

    /// The object without the members of this name; the others keep their bytes.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut out = String::from("{");
        for (key, value) in self.members().into_iter().flatten() {
            if key != name {
                if out.len() > 1 {
                    out.push(',');
                }
                out.push_str(Self::string(&key).as_str());
                out.push(':');
                out.push_str(value.as_str());
            }
        }
        out.push('}');
        Self::from_trusted(out)
    }

    /// The object with this value as the first member, instead of others of this name; the rest keeps its bytes. For a value
    /// that is no object, an object with this member alone.
    #[must_use]
    pub fn with(&self, name: &str, value: &Self) -> Self {
        let mut out = Vec::with_capacity(self.0.len() + value.0.len() + name.len() + 8);
        out.push(b'{');
        super::text::json_string(&mut out, name);
        out.push(b':');
        out.extend_from_slice(&value.0);
        for (key, value) in self.members().into_iter().flatten() {
            if key != name {
                out.push(b',');
                super::text::json_string(&mut out, &key);
                out.push(b':');
                out.extend_from_slice(&value.0);
            }
        }
        out.push(b'}');
        Self::from_trusted(out)
    }

    /// The elements, when this is an array.
    pub fn elements(&self) -> Option<Elements<'_>> {
        (self.kind() == JsonKind::Array).then(|| Elements {
            raw: self,
            walk: Walk::after_bracket(&self.0),
        })
    }

    /// The member of that name, when this is an object that has it.
    pub fn member(&self, name: &str) -> Option<Self> {
        if self.kind() != JsonKind::Object {
            return None;
        }
        let (start, end) = Walk::after_bracket(&self.0).find(name)?;
        Some(Self(self.0.slice(start..end)))
    }

    /// The value without shared ownership of its buffer.
    pub fn borrowed(&self) -> RawRef<'_> {
        RawRef::checked(&self.0)
    }
}

impl Default for Raw {
    fn default() -> Self {
        Self::NULL
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Raw({})", String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_slice::<&RawValue>(&self.0)
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // `serde_json` accepts duplicate members; the scan upholds the guarantee of the type.
        let text: Box<str> = Box::<RawValue>::deserialize(deserializer)?.into();
        Self::parse(text.into_boxed_bytes()).map_err(D::Error::custom)
    }
}

impl TryFrom<&serde_json::Value> for Raw {
    type Error = serde_json::Error;

    fn try_from(value: &serde_json::Value) -> Result<Self, Self::Error> {
        Self::from_serialize(value)
    }
}

/// The members of an object: decoded key, and value. Made by [`Raw::members`].
#[derive(Clone, Debug)]
pub struct Members<'a> {
    raw: &'a Raw,
    walk: Walk<'a>,
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, Raw);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.walk.next_member()?;
        let bytes = &self.raw.0;
        Some((name.text(bytes), Raw(bytes.slice(value.0..value.1))))
    }
}

/// The elements of an array. Made by [`Raw::elements`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    raw: &'a Raw,
    walk: Walk<'a>,
}

impl Iterator for Elements<'_> {
    type Item = Raw;

    fn next(&mut self) -> Option<Self::Item> {
        let (start, end) = self.walk.value()?;
        self.walk.pass(b',');
        Some(Raw(self.raw.0.slice(start..end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &'static str) -> Raw {
        Raw::parse(text).expect("valid JSON")
    }

    #[test]
    fn white_space_around_the_value_is_not_part_of_it() {
        assert_eq!(raw(" \n[1, 2]\t").as_bytes(), b"[1, 2]");
    }

    #[test]
    fn members_come_in_order_with_decoded_keys() {
        let object =
            raw(r#" { "a" : 1 , "\u0062" : "x\"}" , "c":[{"d":"]"}] ,"e":{} , "f" : null }"#);
        let members: Vec<_> = object.members().expect("an object").collect();
        let keys: Vec<_> = members.iter().map(|(key, _)| key.as_ref()).collect();
        assert_eq!(keys, ["a", "b", "c", "e", "f"]);
        let values: Vec<_> = members.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["1", r#""x\"}""#, r#"[{"d":"]"}]"#, "{}", "null"]);
        assert_eq!(
            object
                .member("b")
                .and_then(|b| Some(b.string_value()?.into_owned())),
            Some("x\"}".into())
        );
        assert_eq!(object.member("d"), None);
        assert!(object.elements().is_none());
    }

    #[test]
    fn elements_come_in_order() {
        let array = raw(r#"[ 1,"a,b" ,[],{"a":[1]}, -2.5e3 , true ]"#);
        let elements: Vec<_> = array
            .elements()
            .expect("an array")
            .map(|e| e.to_string())
            .collect();
        assert_eq!(
            elements,
            ["1", "\"a,b\"", "[]", "{\"a\":[1]}", "-2.5e3", "true"]
        );
        assert_eq!(raw("[]").elements().expect("an array").count(), 0);
        assert_eq!(raw("{ }").members().expect("an object").count(), 0);
        assert!(array.members().is_none() && array.member("a").is_none());
    }

    #[test]
    fn slices_share_the_buffer() {
        let object = raw(r#"{"big":"payload"}"#);
        let part = object.member("big").expect("member");
        let whole = object.as_bytes().as_ptr_range();
        assert!(whole.contains(&part.as_bytes().as_ptr()));
    }

    #[test]
    fn travels_through_serde_unchanged() {
        #[derive(Serialize, Deserialize)]
        struct Holder {
            value: Raw,
        }
        let text = r#"{"value":{"b": 1.0,"a":[ ]}}"#;
        let holder: Holder = serde_json::from_str(text).expect("valid");
        assert_eq!(holder.value.as_str(), r#"{"b": 1.0,"a":[ ]}"#);
        assert_eq!(serde_json::to_string(&holder).expect("valid"), text);
    }

    #[test]
    fn every_constructor_rejects_duplicates() {
        assert!(Raw::parse(r#"{"a":1,"a":2}"#).is_err());
        assert!(serde_json::from_str::<Raw>(r#"{"a":1,"a":2}"#).is_err());
    }
}
