//! Parses an expression: alternatives, groups and quantifiers. Escapes and classes are in separate files.

use std::collections::{HashMap, HashSet};

use crate::limits::{MAX_PATTERN_BYTES, MAX_PATTERN_DEPTH};

use super::PatternError;
use super::escape::Escape;
use super::flags::Flags;
use super::folding::{case_variants, fold_case};
use super::set::{LINE_ENDS, Set, SetBuilder};
use super::tree::{LookAround, Node, Repeat, Tree, UNBOUNDED};

/// An expression that is being parsed.
pub(super) struct Parser {
    chars: Vec<char>,
    at: usize,
    /// The flags at the current position.
    pub(super) flags: Flags,
    sets: Vec<Set>,
    /// The sets of equal characters, by their folding.
    alike: HashMap<u32, usize>,
    look_arounds: usize,
    /// The names of groups.
    names: HashSet<String>,
}

/// Parses an expression.
pub(super) fn parse(source: &str) -> Result<Tree, PatternError> {
    if source.len() > MAX_PATTERN_BYTES {
        return Err(PatternError {
            message: "the expression is too long",
            position: 0,
        });
    }
    let mut parser = Parser {
        chars: source.chars().collect(),
        at: 0,
        flags: Flags::default(),
        sets: Vec::new(),
        alike: HashMap::new(),
        look_arounds: 0,
        names: HashSet::new(),
    };
    parser.leading_flags()?;
    let root = parser.choice(0)?;
    if parser.peek().is_some() {
        return Err(parser.error("a ')' that closes nothing"));
    }
    Ok(Tree {
        root,
        sets: parser.sets,
        look_arounds: parser.look_arounds,
    })
}

impl Parser {
    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn peek_beyond(&self, count: usize) -> Option<char> {
        self.chars.get(self.at + count).copied()
    }

    /// Consumes the next character.
    pub(super) fn take(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at += 1;
        Some(char)
    }

    fn begins(&self, position: usize, expected: &str) -> bool {
        expected
            .chars()
            .enumerate()
            .all(|(count, char)| self.chars.get(position + count) == Some(&char))
    }

    /// Consumes these characters, if they come next.
    pub(super) fn eat(&mut self, expected: &str) -> bool {
        let found = self.begins(self.at, expected);
        if found {
            self.at += expected.chars().count();
        }
        found
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Returns to an earlier position.
    pub(super) fn rewind_to(&mut self, position: usize) {
        self.at = position;
    }

    /// An error at the current position.
    pub(super) fn error(&self, message: &'static str) -> PatternError {
        PatternError {
            message,
            position: self.at,
        }
    }

    pub(super) fn set(&mut self, set: Set) -> Node {
        self.sets.push(set);
        Node::Set(self.sets.len() - 1)
    }

    /// A character, with those that are equal to it.
    fn char(&mut self, char: u32) -> Node {
        if !self.flags.ignore_case {
            return Node::Char(char);
        }
        if case_variants(char).nth(1).is_none() {
            return Node::Char(char);
        }
        let fold_case = fold_case(char);
        if let Some(known) = self.alike.get(&fold_case) {
            return Node::Set(*known);
        }
        self.alike.insert(fold_case, self.sets.len());
        let mut builder = SetBuilder::default();
        case_variants(char).for_each(|char| builder.add(char, char));
        self.set(builder.finish(false, false))
    }

    /// Parses alternatives, up to the end or to a `)`.
    fn choice(&mut self, depth: usize) -> Result<Node, PatternError> {
        if depth > MAX_PATTERN_DEPTH {
            return Err(self.error("groups are nested too deeply"));
        }
        let first = self.sequence(depth)?;
        if self.peek() != Some('|') {
            return Ok(first);
        }
        let mut branches = vec![first];
        while self.eat("|") {
            branches.push(self.sequence(depth)?);
        }
        Ok(Node::Choice(branches))
    }

    fn sequence(&mut self, depth: usize) -> Result<Node, PatternError> {
        let mut terms = Vec::new();
        while !matches!(self.peek(), None | Some('|' | ')')) {
            terms.push(self.term(depth)?);
        }
        Ok(match terms.len() {
            0 => Node::Empty,
            1 => terms.pop().unwrap_or(Node::Empty),
            _ => Node::Sequence(terms),
        })
    }

    /// Parses an item with its quantifier.
    fn term(&mut self, depth: usize) -> Result<Node, PatternError> {
        let start = self.at;
        if self.quantifier()?.is_some() {
            self.at = start;
            return Err(self.error("a quantifier with nothing to repeat"));
        }
        let inner = self.atom(depth)?;
        let end = self.at;
        let Some((min, max)) = self.quantifier()? else {
            return Ok(inner);
        };
        // Inside a group of its own, anything may be repeated.
        let repeatable = match (self.chars.get(start), &inner) {
            (Some('('), Node::LookAround(_)) => {
                !(self.begins(start, "(?<=") || self.begins(start, "(?<!"))
            }
            (Some('^' | '$' | '\\'), node) => !node.is_assertion(),
            _ => true,
        };
        if !repeatable {
            self.at = end;
            return Err(self.error("a quantifier with nothing to repeat"));
        }
        // Whether few repetitions are preferred makes no difference to whether there is a match.
        self.eat("?");
        Ok(Node::Repeat(Box::new(Repeat { inner, min, max })))
    }

    /// Parses the minimum and the maximum number of repetitions, if a quantifier comes next.
    fn quantifier(&mut self) -> Result<Option<(u32, u32)>, PatternError> {
        let start = self.at;
        let bounds = match self.take() {
            Some('*') => Some((0, UNBOUNDED)),
            Some('+') => Some((1, UNBOUNDED)),
            Some('?') => Some((0, 1)),
            Some('{') => self.bounds(),
            _ => None,
        };
        if bounds.is_none() {
            self.at = start;
        }
        if bounds.is_some_and(|(min, max)| min > max) {
            return Err(self.error("the numbers in the braces are out of order"));
        }
        Ok(bounds)
    }

    /// Parses bounds after a `{`. If they are not a quantifier, the brace is a plain character.
    fn bounds(&mut self) -> Option<(u32, u32)> {
        let min = self.number()?;
        let max = if self.eat(",") {
            if self.peek() == Some('}') {
                UNBOUNDED
            } else {
                self.number()?
            }
        } else {
            min
        };
        self.eat("}").then_some((min, max))
    }

    /// Parses digits; a number that is too large for any text becomes the largest.
    fn number(&mut self) -> Option<u32> {
        let digit = |parser: &Self| parser.peek().and_then(|char| char.to_digit(10));
        let mut number = digit(self)?;
        self.at += 1;
        while let Some(next) = digit(self) {
            number = number.saturating_mul(10).saturating_add(next);
            self.at += 1;
        }
        Some(number)
    }

    fn atom(&mut self, depth: usize) -> Result<Node, PatternError> {
        let Some(char) = self.take() else {
            return Ok(Node::Empty);
        };
        Ok(match char {
            '^' if self.flags.multiline => Node::LineStart,
            '^' => Node::Start,
            '$' if self.flags.multiline => Node::LineEnd,
            '$' => Node::End,
            '.' => {
                let mut any = SetBuilder::default();
                let left_out = if self.flags.dot_all { &[] } else { LINE_ENDS };
                any.add_spans(left_out, true);
                self.set(any.finish(false, false))
            }
            '[' => self.class()?,
            '(' => self.group(depth)?,
            '\\' => match self.escape()? {
                Escape::Char(char) => self.char(char),
                Escape::Class(class) => {
                    let mut builder = SetBuilder::default();
                    class.add_to(&mut builder);
                    self.set(builder.finish(false, self.flags.ignore_case))
                }
                Escape::Node(node) => node,
            },
            char => self.char(u32::from(char)),
        })
    }

    /// Parses a group after its `(`.
    fn group(&mut self, depth: usize) -> Result<Node, PatternError> {
        let start = self.at;
        let node = if self.eat("?:") {
            self.choice(depth + 1)?
        } else if self.eat("?=") {
            self.look_around(depth, false, false)?
        } else if self.eat("?!") {
            self.look_around(depth, false, true)?
        } else if self.eat("?<=") {
            self.look_around(depth, true, false)?
        } else if self.eat("?<!") {
            self.look_around(depth, true, true)?
        } else if self.eat("?P=") {
            return Err(self.back_reference_error());
        } else if self.eat("?<") || self.eat("?P<") {
            let name = self.name()?;
            if !self.names.insert(name) {
                return Err(self.error("two groups have this name"));
            }
            self.choice(depth + 1)?
        } else if self.begins_flags() {
            let outside = self.flags;
            self.flags = self.group_flags()?;
            let inner = self.choice(depth + 1)?;
            self.flags = outside;
            inner
        } else if self.peek() == Some('?') {
            return Err(self.error("no group begins so"));
        } else {
            self.choice(depth + 1)?
        };
        if !self.eat(")") {
            self.at = start.saturating_sub(1);
            return Err(self.error("a group that is not closed"));
        }
        Ok(node)
    }

    fn look_around(
        &mut self,
        depth: usize,
        behind: bool,
        negated: bool,
    ) -> Result<Node, PatternError> {
        let index = self.look_arounds;
        self.look_arounds += 1;
        Ok(Node::LookAround(Box::new(LookAround {
            index,
            behind,
            negated,
            inner: self.choice(depth + 1)?,
        })))
    }

    /// Parses a group's name, and the `>` that ends it.
    fn name(&mut self) -> Result<String, PatternError> {
        let mut name = String::new();
        loop {
            match self.peek() {
                Some('>') if !name.is_empty() => break,
                Some(char @ ('$' | '_')) => name.push(char),
                Some(char) if char.is_alphabetic() => name.push(char),
                Some(char) if char.is_alphanumeric() && !name.is_empty() => name.push(char),
                _ => return Err(self.error("not a name of a group")),
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(name)
    }

    pub(super) fn back_reference_error(&self) -> PatternError {
        self.error("back references are not supported")
    }
}
