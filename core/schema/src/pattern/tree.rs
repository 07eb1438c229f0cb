//! The syntax tree of a regular expression, between parser and compiler.

use super::set::Set;

/// A complete expression.
pub(super) struct Tree {
    pub(super) root: Node,
    /// The sets that [`Node::Set`] refers to.
    pub(super) sets: Vec<Set>,
    /// The number of look-arounds.
    pub(super) look_arounds: usize,
}

/// A part of an expression.
pub(super) enum Node {
    /// Matches the empty text.
    Empty,
    /// One character.
    Char(u32),
    /// A character of the set with this index.
    Set(usize),
    /// `^`, or `\A`.
    Start,
    /// `$`, or `\z`.
    End,
    /// `^` with the flag `m`.
    LineStart,
    /// `$` with the flag `m`.
    LineEnd,
    /// `\b`, or `\B`.
    Boundary {
        negated: bool,
        ignore_case: bool,
    },
    Sequence(Vec<Node>),
    Choice(Vec<Node>),
    LookAround(Box<LookAround>),
    Repeat(Box<Repeat>),
}

/// A lookahead or lookbehind.
pub(super) struct LookAround {
    /// The number of this look-around in the expression.
    pub(super) index: usize,
    pub(super) behind: bool,
    pub(super) negated: bool,
    pub(super) inner: Node,
}

/// An item with a quantifier.
pub(super) struct Repeat {
    pub(super) inner: Node,
    pub(super) min: u32,
    /// [`UNBOUNDED`] means no bound.
    pub(super) max: u32,
}

/// The maximum of an unbounded repetition. No text is longer (see `simulation`).
pub(super) const UNBOUNDED: u32 = u32::MAX;

impl Node {
    /// Whether it can only match at the start of a text.
    pub(super) fn is_anchored(&self) -> bool {
        match self {
            Self::Start => true,
            Self::Repeat(repeat) => repeat.min > 0 && repeat.inner.is_anchored(),
            Self::LookAround(look) => !look.behind && !look.negated && look.inner.is_anchored(),
            Self::Choice(nodes) => nodes.iter().all(Self::is_anchored),
            Self::Sequence(nodes) => nodes
                .iter()
                .find(|node| node.is_anchored() || node.may_consume())
                .is_some_and(Self::is_anchored),
            Self::Empty
            | Self::Char(_)
            | Self::Set(_)
            | Self::End
            | Self::LineStart
            | Self::LineEnd
            | Self::Boundary { .. } => false,
        }
    }

    /// Whether it is a condition on a position, other than a look-around.
    pub(super) fn is_assertion(&self) -> bool {
        matches!(
            self,
            Self::Start | Self::End | Self::LineStart | Self::LineEnd | Self::Boundary { .. }
        )
    }

    /// Whether it may consume characters.
    fn may_consume(&self) -> bool {
        !self.is_assertion() && !matches!(self, Self::Empty | Self::LookAround(_))
    }
}
