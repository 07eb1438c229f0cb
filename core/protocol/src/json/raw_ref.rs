//! Raw JSON in borrowed memory, read in place without a shared buffer.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use super::scan::{self, JsonKind, ScanError};
use super::text::{plain, unescape};

/// One JSON value as borrowed bytes, without surrounding white space: a [`Raw`](super::Raw) that need not be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRef<'a>(&'a [u8]);

impl<'a> RawRef<'a> {
    /// Checks that `bytes` are one JSON value, as [`Raw::parse`](super::Raw::parse) does.
    ///
    /// # Errors
    /// What is wrong with the bytes, and where.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ScanError> {
        let span = scan::scan(bytes, |scanner| scanner.value(1))?;
        Ok(Self(&bytes[span.range()]))
    }

    /// Keeps bytes that have been checked before.
    pub(crate) fn checked(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The JSON text.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// What kind of value this is.
    pub fn kind(self) -> JsonKind {
        self.0
            .first()
            .map_or(JsonKind::Null, |&byte| JsonKind::of(byte))
    }

    /// Decodes the value.
    ///
    /// # Errors
    /// When the value does not have the shape of `T`.
    pub fn decode<T: DeserializeOwned>(self) -> Result<T, serde_json::Error> {
        // The text is checked once, and not each of its strings.
        let text = simdutf8::basic::from_utf8(self.0).map_err(serde::de::Error::custom)?;
        serde_json::from_str(text)
    }

    /// The text, when this is a string.
    pub fn string_value(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        Some(unescape(inner))
    }

    /// The member of that name, when this is an object that has it.
    pub fn member(self, name: &str) -> Option<Self> {
        let (start, end) = self.walk(JsonKind::Object)?.find(name)?;
        Some(Self(&self.0[start..end]))
    }

    /// The members in the order they were written, with their names, when this is an object.
    pub fn members(self) -> Option<impl Iterator<Item = (Cow<'a, str>, Self)>> {
        let mut walk = self.walk(JsonKind::Object)?;
        Some(std::iter::from_fn(move || {
            let (name, value) = walk.next_member()?;
            Some((name.text(self.0), Self(&self.0[value.0..value.1])))
        }))
    }

    /// Like [`Self::members`], with names that are compared without being decoded.
    pub(crate) fn named_members(self) -> Option<impl Iterator<Item = (MemberName<'a>, Self)>> {
        let mut walk = self.walk(JsonKind::Object)?;
        Some(std::iter::from_fn(move || {
            let (name, value) = walk.next_member()?;
            let name = MemberName {
                name,
                object: self.0,
            };
            Some((name, Self(&self.0[value.0..value.1])))
        }))
    }

    /// The elements, when this is an array.
    pub fn elements(self) -> Option<impl Iterator<Item = Self>> {
        let mut walk = self.walk(JsonKind::Array)?;
        Some(std::iter::from_fn(move || {
            let (start, end) = walk.value()?;
            walk.pass(b',');
            Some(Self(&self.0[start..end]))
        }))
    }

    fn walk(self, kind: JsonKind) -> Option<Walk<'a>> {
        (self.kind() == kind).then(|| Walk::after_bracket(self.0))
    }
}

/// The name of a member, as its position between the quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    start: usize,
    end: usize,
    escaped: bool,
}

impl Name {
    /// The name, decoded.
    pub(super) fn text(self, bytes: &[u8]) -> Cow<'_, str> {
        let inner = &bytes[self.start..self.end];
        match self.escaped {
            true => unescape(inner),
            false => plain(inner),
        }
    }

    /// Whether the decoded name is this one.
    fn is(self, bytes: &[u8], name: &str) -> bool {
        match self.escaped {
            true => self.text(bytes) == name,
            false => bytes[self.start..self.end] == *name.as_bytes(),
        }
    }
}

/// The name of a member of this object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberName<'a> {
    name: Name,
    object: &'a [u8],
}

impl PartialEq<str> for MemberName<'_> {
    fn eq(&self, other: &str) -> bool {
        self.name.is(self.object, other)
    }
}

/// Steps over values that have been scanned before, only looking for their ends.
#[derive(Clone, Debug)]
pub(super) struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    /// Starts after the opening bracket of an array or object.
    pub(super) fn after_bracket(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 1 }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Skips this byte, if it comes next.
    pub(super) fn pass(&mut self, byte: u8) {
        self.space();
        if self.peek() == Some(byte) {
            self.at += 1;
        }
    }

    /// The next value; `None` at a closing bracket.
    pub(super) fn value(&mut self) -> Option<(usize, usize)> {
        self.space();
        let start = self.at;
        match self.peek()? {
            b']' | b'}' => return None,
            b'"' => {
                self.string();
            }
            b'{' | b'[' => self.nested(),
            _ => {
                while !matches!(
                    self.peek()?,
                    b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r'
                ) {
                    self.at += 1;
                }
            }
        }
        Some((start, self.at))
    }

    /// A string; returns whether it has escapes.
    fn string(&mut self) -> bool {
        let mut escaped = false;
        self.at += 1;
        while let Some(found) = memchr::memchr2(b'"', b'\\', &self.bytes[self.at..]) {
            self.at += found + 1;
            if self.bytes[self.at - 1] == b'"' {
                return escaped;
            }
            escaped = true;
            self.at = (self.at + 1).min(self.bytes.len());
        }
        self.at = self.bytes.len();
        escaped
    }

    fn nested(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// The next member of an object: its name, and its value.
    pub(super) fn next_member(&mut self) -> Option<(Name, (usize, usize))> {
        self.space();
        if self.peek()? != b'"' {
            return None;
        }
        let start = self.at + 1;
        let escaped = self.string();
        let end = self.at - 1;
        if end < start {
            return None;
        }
        self.pass(b':');
        let value = self.value()?;
        self.pass(b',');
        let name = Name {
            start,
            end,
            escaped,
        };
        Some((name, value))
    }

    /// The value of the member of that name.
    pub(super) fn find(mut self, name: &str) -> Option<(usize, usize)> {
        while let Some((key, value)) = self.next_member() {
            if key.is(self.bytes, name) {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_where_they_lie() {
        let text = br#" {"a": [1, "x\u0041"], "\u0062": {"c": null}} "#;
        let whole = RawRef::parse(text).expect("JSON");
        assert_eq!(whole.kind(), JsonKind::Object);
        let elements: Vec<_> = whole
            .member("a")
            .and_then(RawRef::elements)
            .expect("an array")
            .collect();
        assert_eq!(elements[0].decode::<u8>().expect("a number"), 1);
        assert_eq!(elements[1].string_value().as_deref(), Some("xA"));
        assert!(
            text.as_ptr_range()
                .contains(&elements[1].as_bytes().as_ptr())
        );
        let inner = whole.member("b").expect("by its decoded name");
        let names: Vec<_> = inner.members().expect("an object").collect();
        assert_eq!(names, [("c".into(), RawRef(b"null"))]);
        assert!(inner.elements().is_none() && inner.member("d").is_none());
        assert!(RawRef::parse(br#"{"a":1,"a":2}"#).is_err());
    }
}
