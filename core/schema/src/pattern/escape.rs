//! Parses escapes after their backslash.

use super::PatternError;
use super::parser::Parser;
use super::property::Property;
use super::set::{DIGITS, SPACE_CHARS, SetBuilder, Span, WORD_CHARS, WORD_CHARS_IGNORING_CASE};
use super::tree::Node;

/// The meaning of an escape.
pub(super) enum Escape {
    Char(u32),
    Class(ClassEscape),
    /// Something other than characters, which is not allowed in a class.
    Node(Node),
}

/// The characters of an escape such as `\d` or `\P{…}`.
pub(super) struct ClassEscape {
    members: ClassEscapeMembers,
    negated: bool,
}

enum ClassEscapeMembers {
    Spans(&'static [Span]),
    Property(Property),
}

impl ClassEscape {
    pub(super) fn add_to(&self, builder: &mut SetBuilder) {
        match self.members {
            ClassEscapeMembers::Spans(spans) => builder.add_spans(spans, self.negated),
            ClassEscapeMembers::Property(property) => builder.add_property(property, self.negated),
        }
    }
}

impl Parser {
    /// Parses an escape outside of a class.
    pub(super) fn escape(&mut self) -> Result<Escape, PatternError> {
        let node = match self.peek() {
            Some(char @ ('b' | 'B')) => Node::Boundary {
                negated: char == 'B',
                ignore_case: self.flags.ignore_case,
            },
            Some('A') => Node::Start,
            Some('z') => Node::End,
            Some('k' | '1'..='9') => return Err(self.back_reference_error()),
            _ => return self.character_or_class(),
        };
        self.take();
        Ok(Escape::Node(node))
    }

    /// Parses an escape with the same meaning inside and outside of classes.
    pub(super) fn character_or_class(&mut self) -> Result<Escape, PatternError> {
        let Some(char) = self.take() else {
            return Err(self.error("a backslash with nothing to escape"));
        };
        let spans = |spans, negated| {
            Ok(Escape::Class(ClassEscape {
                members: ClassEscapeMembers::Spans(spans),
                negated,
            }))
        };
        let char = match char {
            'd' => return spans(DIGITS, false),
            'D' => return spans(DIGITS, true),
            'w' | 'W' if self.flags.ignore_case => {
                return spans(WORD_CHARS_IGNORING_CASE, char == 'W');
            }
            'w' => return spans(WORD_CHARS, false),
            'W' => return spans(WORD_CHARS, true),
            's' => return spans(SPACE_CHARS, false),
            'S' => return spans(SPACE_CHARS, true),
            'p' => return self.property(false),
            'P' => return self.property(true),
            't' => 0x09,
            'n' => 0x0A,
            'v' => 0x0B,
            'f' => 0x0C,
            'r' => 0x0D,
            'c' => match self.take() {
                Some(letter) if letter.is_ascii_alphabetic() => u32::from(letter) % 32,
                _ => return Err(self.error("\\c without a letter")),
            },
            'x' => match self.hexadecimal(2) {
                Some(number) => number,
                None => return Err(self.error("\\x without two hexadecimal digits")),
            },
            'u' => match self.code_point() {
                Some(number) => number,
                None => return Err(self.error("\\u without a code point")),
            },
            '0' if !self.peek().is_some_and(|next| next.is_ascii_digit()) => 0,
            char if char.is_ascii_alphanumeric() => {
                self.rewind_to(self.position() - 1);
                return Err(self.error("an escape that means nothing in ECMA-262"));
            }
            char => u32::from(char),
        };
        Ok(Escape::Char(char))
    }

    /// Parses a property after `\p` or `\P`.
    fn property(&mut self, negated: bool) -> Result<Escape, PatternError> {
        if !self.eat("{") {
            return Err(self.error("\\p without a property in braces"));
        }
        let start = self.position();
        let mut text = String::new();
        loop {
            match self.take() {
                Some('}') => break,
                Some(char) if char.is_ascii_alphanumeric() || matches!(char, '_' | '=') => {
                    text.push(char);
                }
                _ => return Err(self.error("\\p without a property in braces")),
            }
        }
        let Some(property) = Property::from_name(&text) else {
            self.rewind_to(start);
            return Err(self.error("a property of characters that is not known"));
        };
        Ok(Escape::Class(ClassEscape {
            members: ClassEscapeMembers::Property(property),
            negated,
        }))
    }

    /// Parses a code point after `\u`: `{…}`, four digits, or four digits and the second half of a surrogate pair.
    fn code_point(&mut self) -> Option<u32> {
        if self.eat("{") {
            let mut number = self.hexadecimal(1)?;
            while !self.eat("}") {
                number = number * 16 + self.hexadecimal(1)?;
                if number > 0x10_FFFF {
                    return None;
                }
            }
            return Some(number);
        }
        let lead = self.hexadecimal(4)?;
        if matches!(lead, 0xD800..=0xDBFF) {
            let start = self.position();
            if self.eat("\\u")
                && let Some(trail @ 0xDC00..=0xDFFF) = self.hexadecimal(4)
            {
                return Some(0x1_0000 + ((lead - 0xD800) << 10) + (trail - 0xDC00));
            }
            self.rewind_to(start);
        }
        Some(lead)
    }

    fn hexadecimal(&mut self, digits: usize) -> Option<u32> {
        let mut number = 0;
        for _ in 0..digits {
            number = number * 16 + self.peek()?.to_digit(16)?;
            self.take();
        }
        Some(number)
    }
}
