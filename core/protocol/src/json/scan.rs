//! The strict scanner: validates received bytes in one pass as JSON text that every parser reads in the same way, and
//! finds the slices that the caller wants.
//!
//! It rejects what RFC 8259 leaves open and parsers therefore disagree about: duplicate members (by decoded key, at any
//! level), lone surrogate escapes, nesting beyond [`MAX_DEPTH`]. It also rejects members whose name marks internal
//! values of `serde_json`, because its decoder treats such an object differently from every other reader. It allocates
//! nothing unless objects are large or their keys are escaped.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::text::{self, hex4, unescape};
use crate::limits::{MAX_DEPTH, MAX_MEMBERS};

/// Why bytes are not an acceptable JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {at}")]
pub struct ScanError {
    /// What is wrong.
    pub problem: Problem,
    /// Where, counted in bytes from the start.
    pub at: usize,
}

/// The kind of a [`ScanError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Unexpected character.
    #[error("unexpected byte")]
    Unexpected,
    /// The text ends too early.
    #[error("unexpected end")]
    End,
    /// More follows after the value.
    #[error("trailing bytes")]
    Trailing,
    /// A string is not UTF-8.
    #[error("invalid UTF-8")]
    Utf8,
    /// A control character stands unescaped in a string.
    #[error("control character in a string")]
    Control,
    /// Invalid escape, or half of a surrogate pair.
    #[error("invalid escape")]
    Escape,
    /// Not a JSON number.
    #[error("invalid number")]
    Number,
    /// Deeper than [`MAX_DEPTH`].
    #[error("more than {MAX_DEPTH} levels deep")]
    Depth,
    /// An object has two members of the same name.
    #[error("duplicate member")]
    Duplicate,
    /// A member has a name that `serde_json` reserves for itself.
    #[error("reserved member name")]
    Reserved,
    /// An object has more than [`MAX_MEMBERS`] members.
    #[error("object with more than {MAX_MEMBERS} members")]
    Members,
    /// The text is longer than 4 GiB.
    #[error("longer than 4 GiB")]
    Long,
}

/// The six kinds of JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl JsonKind {
    /// The kind of the value that starts with `byte`.
    pub(crate) fn of(byte: u8) -> Self {
        match byte {
            b'{' => Self::Object,
            b'[' => Self::Array,
            b'"' => Self::String,
            b't' | b'f' => Self::Bool,
            b'n' => Self::Null,
            _ => Self::Number,
        }
    }
}

/// Checks that `bytes` are one JSON text, possibly surrounded by white space.
///
/// # Errors
/// The first [`Problem`] and its place.
pub fn check(bytes: &[u8]) -> Result<(), ScanError> {
    scan(bytes, |scanner| scanner.value(1).map(drop))
}

/// A range of bytes in the scanned text. 32 bits keep the records of a message small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    // `Scanner::new` has rejected texts with offsets that don't fit.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the length was checked to fit 32 bits"
    )]
    fn new(start: usize, end: usize) -> Self {
        Self {
            start: start as u32,
            end: end as u32,
        }
    }

    /// The span of all `bytes`, which come from a scanner.
    pub(crate) fn all(bytes: &[u8]) -> Self {
        Self::new(0, bytes.len())
    }

    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The same span relative to `origin`.
    pub(crate) fn relative_to(self, origin: Self) -> Self {
        Self {
            start: self.start - origin.start,
            end: self.end - origin.start,
        }
    }
}

/// A scanned string: the bytes between its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) span: Span,
    /// Whether the bytes contain an escape.
    pub(crate) escaped: bool,
    /// The first eight bytes, as [`head`] returns them. It identifies shorter strings completely, because no string
    /// contains a zero byte.
    pub(crate) head: u64,
}

/// The first eight bytes of a text as a number, padded with zeros.
pub(crate) const fn head(text: &[u8]) -> u64 {
    if let Some(chunk) = text.first_chunk::<8>() {
        return u64::from_le_bytes(*chunk);
    }
    let mut head = 0;
    let mut at = text.len();
    while at > 0 {
        at -= 1;
        head = (head << 8) | text[at] as u64;
    }
    head
}

/// One member of a scanned object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) key: Span,
    escaped: bool,
    pub(crate) value: Span,
}

impl Member {
    pub(crate) fn new(key: Key, value: Span) -> Self {
        Self {
            key: key.span,
            escaped: key.escaped,
            value,
        }
    }

    /// The member with spans relative to `origin`.
    pub(crate) fn relative_to(self, origin: Span) -> Self {
        Self {
            key: self.key.relative_to(origin),
            value: self.value.relative_to(origin),
            ..self
        }
    }

    /// Whether the member of the object in `text` has this name.
    #[inline]
    pub(crate) fn is_named(&self, text: &[u8], name: &str) -> bool {
        let range = self.key.range();
        if self.escaped {
            return unescape(&text[range]) == name;
        }
        // Most names differ in length, which can be compared without reading them.
        range.len() == name.len() && text[range] == *name.as_bytes()
    }
}

/// The prefix of the names with which `serde_json` marks numbers and texts to pass on unchanged. Its decoder trusts
/// them from any source: it would return the text inside the member as the value of the object, so that validation and
/// handler would see different values.
const RESERVED: &str = "$serde_json::private::";

/// Up to this many members are compared pairwise; for more, the keys are sorted.
const PAIRWISE: usize = 16;

/// Walks over a text once. Each method consumes what its name says.
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The keys of all open objects, the innermost last.
    keys: SmallVec<[Key; 24]>,
    /// Why the text was rejected.
    refusal: Option<ScanError>,
}

/// Reports that the text is rejected; the scanner holds the reason. Its size of zero keeps the results of the many
/// small steps in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused;

/// The result of a step of the scanner.
pub(crate) type ScanResult<T> = Result<T, Refused>;

/// Scans `bytes`: `walk` consumes one value, which only white space may surround.
pub(crate) fn scan<'a, T>(
    bytes: &'a [u8],
    walk: impl FnOnce(&mut Scanner<'a>) -> ScanResult<T>,
) -> Result<T, ScanError> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(ScanError {
            problem: Problem::Long,
            at: 0,
        });
    }
    let mut scanner = Scanner {
        bytes,
        at: 0,
        keys: SmallVec::new(),
        refusal: None,
    };
    scanner.space();
    match walk(&mut scanner) {
        Ok(found) if scanner.is_at_end() => Ok(found),
        _ => Err(scanner.refusal.unwrap_or(ScanError {
            problem: Problem::Trailing,
            at: scanner.at,
        })),
    }
}

impl<'a> Scanner<'a> {
    /// The kind of the next value, judged by its first byte.
    pub(crate) fn kind(&self) -> Option<JsonKind> {
        self.peek().map(JsonKind::of)
    }

    /// The bytes of a key.
    pub(crate) fn text(&self, key: Key) -> &'a [u8] {
        &self.bytes[key.span.range()]
    }

    /// Scans any value at this depth and returns its span.
    pub(crate) fn value(&mut self, depth: usize) -> ScanResult<Span> {
        let start = self.at;
        #[cfg(fuzzing)]
        crate::fuzz_step_count::count(1);
        match self.peek() {
            Some(b'"') => {
                self.string()?;
            }
            Some(b'{') => {
                self.object(depth, |scanner, _| scanner.value(depth + 1).map(drop))?;
            }
            Some(b'[') => {
                self.array(depth, |scanner| scanner.value(depth + 1).map(drop))?;
            }
            Some(b't') => self.literal(b"true")?,
            Some(b'f') => self.literal(b"false")?,
            Some(b'n') => self.literal(b"null")?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => return Err(self.unexpected()),
        }
        Ok(Span::new(start, self.at))
    }

    /// Scans an object; `member` must consume the value of the key that it is given.
    pub(crate) fn object(
        &mut self,
        depth: usize,
        mut member: impl FnMut(&mut Self, Key) -> ScanResult<()>,
    ) -> ScanResult<Span> {
        let start = self.at;
        let outer = self.keys.len();
        self.open(depth, b'{')?;
        if self.peek() != Some(b'}') {
            let mut escaped = false;
            loop {
                let key = self.string()?;
                escaped |= key.escaped;
                if (key.escaped || key.head == const { head(RESERVED.as_bytes()) })
                    && self.is_reserved(key)
                {
                    return Err(self.refuse(Problem::Reserved));
                }
                if self.keys.len() - outer == MAX_MEMBERS {
                    return Err(self.refuse(Problem::Members));
                }
                self.keys.push(key);
                self.space();
                self.expect(b':')?;
                self.space();
                member(self, key)?;
                self.space();
                if self.peek() != Some(b',') {
                    break;
                }
                self.at += 1;
                self.space();
            }
            if self.keys.len() - outer > 1 {
                self.distinct(outer, escaped)?;
            }
            self.keys.truncate(outer);
        }
        self.expect(b'}')?;
        Ok(Span::new(start, self.at))
    }

    /// Scans an array; `element` must consume one value.
    pub(crate) fn array(
        &mut self,
        depth: usize,
        mut element: impl FnMut(&mut Self) -> ScanResult<()>,
    ) -> ScanResult<Span> {
        let start = self.at;
        self.open(depth, b'[')?;
        if self.peek() != Some(b']') {
            loop {
                element(self)?;
                self.space();
                if self.peek() != Some(b',') {
                    break;
                }
                self.at += 1;
                self.space();
            }
        }
        self.expect(b']')?;
        Ok(Span::new(start, self.at))
    }

    #[cold]
    fn is_reserved(&self, key: Key) -> bool {
        let text = self.text(key);
        match key.escaped {
            true => unescape(text).starts_with(RESERVED),
            false => text.starts_with(RESERVED.as_bytes()),
        }
    }

    /// Whether only white space is left.
    fn is_at_end(&mut self) -> bool {
        self.space();
        self.at == self.bytes.len()
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn space(&mut self) {
        if self.peek().is_some_and(|byte| byte <= b' ') {
            self.skip_space();
        }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn open(&mut self, depth: usize, bracket: u8) -> ScanResult<()> {
        if depth > MAX_DEPTH {
            return Err(self.refuse(Problem::Depth));
        }
        self.expect(bracket)?;
        self.space();
        Ok(())
    }

    fn expect(&mut self, byte: u8) -> ScanResult<()> {
        if self.peek() != Some(byte) {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    fn literal(&mut self, literal: &[u8]) -> ScanResult<()> {
        if !self.bytes[self.at..].starts_with(literal) {
            return Err(self.unexpected());
        }
        self.at += literal.len();
        Ok(())
    }

    fn number(&mut self) -> ScanResult<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> ScanResult<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            Err(self.refuse(Problem::Number))
        } else {
            Ok(())
        }
    }

    /// Scans a string and returns what is between its quotes.
    #[inline(always)]
    fn string(&mut self) -> ScanResult<Key> {
        self.expect(b'"')?;
        // Most keys and many values end within one word.
        if let Some(chunk) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
            let word = u64::from_le_bytes(*chunk);
            let stop = stops(word);
            let length = stop.trailing_zeros() as usize / 8;
            let before = (stop & stop.wrapping_neg()).wrapping_sub(1);
            if stop != 0 && chunk[length] == b'"' && word & before & HIGH_BITS == 0 {
                let span = Span::new(self.at, self.at + length);
                self.at += length + 1;
                return Ok(Key {
                    span,
                    escaped: false,
                    head: word & (before >> 7),
                });
            }
        }
        self.rest_of_string()
    }

    #[inline(never)]
    fn rest_of_string(&mut self) -> ScanResult<Key> {
        let start = self.at;
        let mut escaped = false;
        let mut ascii = true;
        loop {
            let (length, plain) = plain_run(&self.bytes[self.at..]);
            self.at += length;
            ascii &= plain;
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.refuse(Problem::Control)),
                None => return Err(self.refuse(Problem::End)),
            }
        }
        if !ascii && let Some(valid) = text::invalid_utf8(&self.bytes[start..self.at]) {
            self.at = start + valid;
            return Err(self.refuse(Problem::Utf8));
        }
        let span = Span::new(start, self.at);
        self.at += 1;
        Ok(Key {
            span,
            escaped,
            head: head(&self.bytes[span.range()]),
        })
    }

    fn escape(&mut self) -> ScanResult<()> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let unit = self.utf16_unit()?;
                if (0xdc00..0xe000).contains(&unit) {
                    return Err(self.refuse(Problem::Escape));
                }
                self.at += 6;
                if (0xd800..0xdc00).contains(&unit) {
                    if !(0xdc00..0xe000).contains(&self.utf16_unit()?) {
                        return Err(self.refuse(Problem::Escape));
                    }
                    self.at += 6;
                }
            }
            _ => return Err(self.refuse(Problem::Escape)),
        }
        Ok(())
    }

    /// The value of the next `\uXXXX`.
    fn utf16_unit(&mut self) -> ScanResult<u32> {
        let escape = self.bytes[self.at..].strip_prefix(b"\\u");
        escape
            .and_then(hex4)
            .ok_or_else(|| self.refuse(Problem::Escape))
    }

    /// Checks that the keys from `outer` on differ from each other. `escaped` says whether any of them has escapes.
    fn distinct(&mut self, outer: usize, escaped: bool) -> ScanResult<()> {
        let keys = &self.keys[outer..];
        #[cfg(fuzzing)]
        crate::fuzz_step_count::count(keys.len() * (1 + keys.len().min(PAIRWISE)));
        if escaped || keys.len() > PAIRWISE {
            return match self.duplicate_sorted(outer) {
                Some(at) => Err(self.duplicate(at)),
                None => Ok(()),
            };
        }
        for (at, key) in keys.iter().enumerate() {
            let twice = keys[..at]
                .iter()
                .any(|earlier| earlier.head == key.head && self.is_same(*earlier, *key));
            if twice {
                return Err(self.duplicate(key.span.start));
            }
        }
        Ok(())
    }

    fn is_same(&self, one: Key, other: Key) -> bool {
        self.bytes[one.span.range()] == self.bytes[other.span.range()]
    }

    /// The position of a key that occurred before.
    #[cold]
    fn duplicate_sorted(&self, outer: usize) -> Option<u32> {
        let text = |key: &Key| {
            let text = &self.bytes[key.span.range()];
            if key.escaped {
                Cow::Owned(unescape(text).into_owned().into_bytes())
            } else {
                Cow::Borrowed(text)
            }
        };
        let mut sorted: Vec<_> = self.keys[outer..]
            .iter()
            .map(|key| (text(key), key.span.start))
            .collect();
        sorted.sort_unstable();
        sorted
            .windows(2)
            .find(|pair| pair[0].0 == pair[1].0)
            .map(|pair| pair[1].1)
    }

    #[cold]
    fn unexpected(&mut self) -> Refused {
        let ended = self.at >= self.bytes.len();
        self.refuse(if ended {
            Problem::End
        } else {
            Problem::Unexpected
        })
    }

    #[cold]
    fn duplicate(&mut self, at: u32) -> Refused {
        self.at = at as usize;
        self.refuse(Problem::Duplicate)
    }

    /// Records the problem with the current position.
    #[cold]
    fn refuse(&mut self, problem: Problem) -> Refused {
        self.refusal = Some(ScanError {
            problem,
            at: self.at,
        });
        Refused
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Counts the leading bytes that need no attention in a string (no quote, backslash or control character), and returns
/// whether they are all ASCII. The latter may be `false` by mistake.
#[inline]
fn plain_run(bytes: &[u8]) -> (usize, bool) {
    let mut at = 0;
    let mut seen = 0;
    // Most strings are short: eight bytes at a time, exactly.
    while let Some(chunk) = bytes[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        seen |= word;
        let stop = stops(word);
        if stop != 0 {
            return (
                at + stop.trailing_zeros() as usize / 8,
                seen & HIGH_BITS == 0,
            );
        }
        at += 8;
        if at >= 32 {
            return long_run(bytes, at, seen);
        }
    }
    for &byte in &bytes[at..] {
        if byte == b'"' || byte == b'\\' || byte < 0x20 {
            break;
        }
        seen |= u64::from(byte);
        at += 1;
    }
    (at, seen & HIGH_BITS == 0)
}

/// Does the same for long strings, from `at` on: `memchr` finds the end faster than a search that also looks for
/// control characters. The bytes in between are checked eight at a time, which is fast even if the compiler optimizes
/// for size and does not vectorize the loop.
fn long_run(bytes: &[u8], at: usize, seen: u64) -> (usize, bool) {
    let rest = &bytes[at..];
    let run = &rest[..memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len())];
    let (words, last) = run.as_chunks::<8>();
    let (mut low, mut any) = (0, seen);
    for word in words {
        let word = u64::from_le_bytes(*word);
        low |= word.wrapping_sub(ONES * 0x20) & !word & HIGH_BITS;
        any |= word;
    }
    for &byte in last {
        low |= u64::from(byte < 0x20);
        any |= u64::from(byte);
    }
    let length = if low == 0 {
        run.len()
    } else {
        run.iter()
            .position(|&byte| byte < 0x20)
            .unwrap_or(run.len())
    };
    (at + length, any & HIGH_BITS == 0)
}

/// Marks the bytes of `word` that are a quote, a backslash or a control character in their highest bit. Only the lowest
/// mark is exact (a borrow may run into the next byte), and only it is used.
#[inline]
pub(super) fn stops(word: u64) -> u64 {
    // Flipping one bit of a quote makes it the byte above the control characters.
    let control_or_quote = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (control_or_quote | backslash) & !word & HIGH_BITS
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
