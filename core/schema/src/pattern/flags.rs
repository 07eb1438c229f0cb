//! Parses flags: those of the whole expression at its start, as in other languages (`(?i)…`), and those of a group,
//! which ECMA-262 has since 2025 (`(?i-s:…)`).

use super::PatternError;
use super::parser::Parser;

/// The flags that apply to a part of an expression.
#[derive(Clone, Copy, Default)]
pub(super) struct Flags {
    /// `i`: characters that differ only in case are equal.
    pub(super) ignore_case: bool,
    /// `m`: `^` and `$` match at line starts and ends.
    pub(super) multiline: bool,
    /// `s`: `.` matches any character.
    pub(super) dot_all: bool,
}

impl Parser {
    /// Whether flags follow a `(`.
    pub(super) fn begins_flags(&self) -> bool {
        self.peek() == Some('?')
            && self
                .peek_beyond(1)
                .is_some_and(|next| next.is_ascii_alphabetic() || next == '-')
    }

    /// Parses the flags at the start of the expression.
    pub(super) fn leading_flags(&mut self) -> Result<(), PatternError> {
        loop {
            let start = self.position();
            if !self.eat("(") || !self.begins_flags() || self.begins_name() {
                self.rewind_to(start);
                return Ok(());
            }
            let flags = self.parse_flag_changes()?;
            if !self.eat(")") {
                // They belong to a group.
                self.rewind_to(start);
                return Ok(());
            }
            self.flags = flags;
        }
    }

    /// Parses the flags of a group that begins here.
    pub(super) fn group_flags(&mut self) -> Result<Flags, PatternError> {
        let start = self.position();
        let flags = self.parse_flag_changes()?;
        if self.peek() == Some(')') {
            self.rewind_to(start);
            return Err(self.error("flags of the whole expression stand at its start only"));
        }
        if !self.eat(":") {
            return Err(self.error("flags that neither ')' nor ':' follows"));
        }
        Ok(flags)
    }

    /// Whether what looks like flags is a named group, or a reference to one.
    fn begins_name(&self) -> bool {
        self.peek_beyond(1) == Some('P') && matches!(self.peek_beyond(2), Some('<' | '='))
    }

    /// Applies changes such as `?i-s` to the current flags. `u` always applies.
    fn parse_flag_changes(&mut self) -> Result<Flags, PatternError> {
        let start = self.position();
        self.take();
        let mut flags = self.flags;
        let mut seen = Vec::with_capacity(4);
        let mut on = true;
        loop {
            let held = match self.peek() {
                Some('-') if on => {
                    on = false;
                    self.take();
                    continue;
                }
                Some('i') => &mut flags.ignore_case,
                Some('m') => &mut flags.multiline,
                Some('s') => &mut flags.dot_all,
                Some('u') if on => &mut true,
                Some(')' | ':') if !seen.is_empty() => return Ok(flags),
                Some(')' | ':') => {
                    self.rewind_to(start);
                    return Err(self.error("a '-' without a flag"));
                }
                _ => return Err(self.error("a flag that is none of i, m, s and u")),
            };
            *held = on;
            let flag = self.peek();
            if seen.contains(&flag) {
                return Err(self.error("a flag that is given twice"));
            }
            seen.push(flag);
            self.take();
        }
    }
}
