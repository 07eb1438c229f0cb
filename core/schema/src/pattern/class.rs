//! Parses a class: the text between brackets.

use crate::limits::MAX_CLASS_PROPERTIES;

use super::PatternError;
use super::escape::{ClassEscape, Escape};
use super::parser::Parser;
use super::set::SetBuilder;
use super::tree::Node;

/// A member of a class, before it is known whether a range begins with it.
enum Member {
    Char(u32),
    Class(ClassEscape),
}

impl Member {
    fn add_to(&self, builder: &mut SetBuilder) {
        match self {
            Self::Char(char) => builder.add(*char, *char),
            Self::Class(class) => class.add_to(builder),
        }
    }
}

impl Parser {
    /// Parses a class after its `[`.
    pub(super) fn class(&mut self) -> Result<Node, PatternError> {
        let start = self.position();
        let negated = self.eat("^");
        let mut builder = SetBuilder::default();
        while !self.eat("]") {
            if self.peek().is_none() {
                self.rewind_to(start.saturating_sub(1));
                return Err(self.error("a class that is not closed"));
            }
            let first = self.member()?;
            let ranges =
                self.peek() == Some('-') && !matches!(self.peek_beyond(1), None | Some(']'));
            if !ranges {
                first.add_to(&mut builder);
                continue;
            }
            self.take();
            let last = self.member()?;
            match (&first, &last) {
                (Member::Char(first), Member::Char(last)) if first <= last => {
                    builder.add(*first, *last);
                }
                (Member::Char(_), Member::Char(_)) => {
                    return Err(self.error("a range that is out of order"));
                }
                // A class can't be an end of a range, so the hyphen stands for itself.
                _ => {
                    builder.add(u32::from('-'), u32::from('-'));
                    first.add_to(&mut builder);
                    last.add_to(&mut builder);
                }
            }
        }
        // If case is ignored, most letters are looked up twice.
        let times = if self.flags.ignore_case { 2 } else { 1 };
        if builder.property_count() * times > MAX_CLASS_PROPERTIES {
            return Err(self.error("a class of too many properties"));
        }
        let set = builder.finish(negated, self.flags.ignore_case);
        Ok(self.set(set))
    }

    fn member(&mut self) -> Result<Member, PatternError> {
        match self.take() {
            Some('\\') if self.eat("b") => Ok(Member::Char(0x08)),
            Some('\\') => match self.character_or_class()? {
                Escape::Char(char) => Ok(Member::Char(char)),
                Escape::Class(class) => Ok(Member::Class(class)),
                Escape::Node(_) => Err(self.error("an escape that means nothing in a class")),
            },
            Some(char) => Ok(Member::Char(u32::from(char))),
            None => Err(self.error("a class that is not closed")),
        }
    }
}
