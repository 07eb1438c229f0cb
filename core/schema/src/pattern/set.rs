//! Sets of characters: the meaning of a class, `.`, `\d` or `\p{…}`.

use super::folding::case_variants;
use super::property::Property;

/// Characters from the first to the second, inclusive.
pub(super) type Span = (u32, u32);

/// `\d`.
pub(super) const DIGITS: &[Span] = &[(0x30, 0x39)];

/// `\w`.
pub(super) const WORD_CHARS: &[Span] = &[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];

/// `\w` if case is ignored: includes the characters that are equal to one of these.
pub(super) const WORD_CHARS_IGNORING_CASE: &[Span] = &[
    (0x30, 0x39),
    (0x41, 0x5A),
    (0x5F, 0x5F),
    (0x61, 0x7A),
    (0x17F, 0x17F),
    (0x212A, 0x212A),
];

/// `\s`: WhiteSpace and LineTerminator of ECMA-262.
pub(super) const SPACE_CHARS: &[Span] = &[
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
];

/// LineTerminator of ECMA-262, which `.` excludes.
pub(super) const LINE_ENDS: &[Span] = &[(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)];

const MAX_CODE_POINT: u32 = 0x10_FFFF;

/// A set of characters. ASCII, which is looked up most, has a bitmap.
#[derive(Debug)]
pub(super) struct Set {
    /// One bit per ASCII character, which includes everything below.
    ascii: [u64; 2],
    /// Sorted and disjoint.
    spans: Box<[Span]>,
    /// Properties, with whether a character must lack them.
    properties: Box<[(Property, bool)]>,
    negated: bool,
    /// Whether a character also belongs to the set if an equal one is listed or has such a property.
    folds: bool,
}

/// Builds a [`Set`].
#[derive(Default)]
pub(super) struct SetBuilder {
    spans: Vec<Span>,
    properties: Vec<(Property, bool)>,
}

impl SetBuilder {
    pub(super) fn add(&mut self, first: u32, last: u32) {
        self.spans.push((first, last));
    }

    /// Adds a class, or everything except it. Its spans must be sorted.
    pub(super) fn add_spans(&mut self, spans: &[Span], negated: bool) {
        if !negated {
            self.spans.extend_from_slice(spans);
            return;
        }
        let mut next = 0;
        for &(first, last) in spans {
            if first > next {
                self.spans.push((next, first - 1));
            }
            next = last + 1;
        }
        self.spans.push((next, MAX_CODE_POINT));
    }

    /// Adds the characters that have a property, or lack it.
    pub(super) fn add_property(&mut self, property: Property, negated: bool) {
        let Property::Category(categories) = property else {
            if !self.properties.contains(&(property, !negated)) {
                self.properties.push((property, !negated));
            }
            return;
        };
        // Each character has exactly one category.
        let categories = if negated { !categories } else { categories };
        for (known, _) in &mut self.properties {
            if let Property::Category(known) = known {
                *known |= categories;
                return;
            }
        }
        self.properties.push((Property::Category(categories), true));
    }

    /// The number of properties to test per character.
    pub(super) fn property_count(&self) -> usize {
        self.properties.len()
    }

    /// Builds the set, or its complement. If case is ignored, it includes all equal characters.
    pub(super) fn finish(self, negated: bool, ignore_case: bool) -> Set {
        let mut spans = merge_spans(self.spans);
        let mut folds = ignore_case;
        // For pure ASCII, all equal characters can be listed, so that texts need not be folded.
        if folds && self.properties.is_empty() && spans.iter().all(|span| span.1 < 0x80) {
            let listed = spans.iter().flat_map(|&(first, last)| first..=last);
            spans = merge_spans(
                listed
                    .flat_map(case_variants)
                    .map(|char| (char, char))
                    .collect(),
            );
            folds = false;
        }
        let mut set = Set {
            ascii: [0; 2],
            spans: spans.into_boxed_slice(),
            properties: self.properties.into_boxed_slice(),
            negated,
            folds,
        };
        let word = |base: u32| {
            (0..64).fold(0, |word, bit| {
                word | u64::from(set.find_char(base + bit)) << bit
            })
        };
        set.ascii = [word(0), word(64)];
        set
    }
}

/// Sorts spans and merges adjacent ones.
fn merge_spans(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut apart: Vec<Span> = Vec::with_capacity(spans.len());
    for (first, last) in spans {
        match apart.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => {
                before.1 = before.1.max(last);
            }
            _ => apart.push((first, last)),
        }
    }
    apart
}

impl Set {
    /// A set of one character.
    pub(super) fn of(char: u32) -> Self {
        let mut builder = SetBuilder::default();
        builder.add(char, char);
        builder.finish(false, false)
    }

    /// Whether a byte is an ASCII character of the set.
    #[inline]
    pub(super) fn contains_ascii(&self, byte: u8) -> bool {
        let word = self.ascii.get(usize::from(byte / 64));
        word.is_some_and(|word| word >> (byte % 64) & 1 != 0)
    }

    #[inline]
    pub(super) fn contains(&self, char: u32) -> bool {
        match char {
            0..64 => self.ascii[0] >> char & 1 != 0,
            64..128 => self.ascii[1] >> (char - 64) & 1 != 0,
            _ => self.find_char(char),
        }
    }

    fn find_char(&self, char: u32) -> bool {
        let found = if self.folds {
            case_variants(char).any(|char| self.lists_char(char))
        } else {
            self.lists_char(char)
        };
        found != self.negated
    }

    /// Whether a character itself is listed or has a listed property.
    fn lists_char(&self, char: u32) -> bool {
        let after = self.spans.partition_point(|span| span.1 < char);
        let listed = self.spans.get(after).is_some_and(|span| span.0 <= char);
        listed
            || self
                .properties
                .iter()
                .any(|&(property, wanted)| property.holds(char) == wanted)
    }
}
