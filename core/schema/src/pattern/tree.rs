//! A regular expression as it is written: what the parser makes and the compiler reads.

use super::set::Set;

/// A whole expression.
pub(super) struct Tree {
    pub(super) root: Node,
    /// The sets of characters that [`Node::Set`] names.
    pub(super) sets: Vec<Set>,
    /// How many look-arounds there are.
    pub(super) look_arounds: usize,
}

/// A part of an expression.
pub(super) enum Node {
    /// Nothing, which is always found.
    Empty,
    /// One character.
    Char(u32),
    /// One character of a set, by its index.
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
    /// Which of the expression's look-arounds this is.
    pub(super) index: usize,
    pub(super) behind: bool,
    pub(super) negated: bool,
    pub(super) inner: Node,
}

/// Something with a quantifier.
pub(super) struct Repeat {
    pub(super) inner: Node,
    pub(super) min: u32,
    /// [`UNBOUNDED`] is no bound.
    pub(super) max: u32,
}

/// As the most rounds: any number of them. No text is longer (see `simulation`).
pub(super) const UNBOUNDED: u32 = u32::MAX;

impl Node {
    /// Whether it can be found at the start of a text only.
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

    /// Whether it is a question about a position, other than a look-around.
    pub(super) fn is_assertion(&self) -> bool {
        matches!(
            self,
            Self::Start | Self::End | Self::LineStart | Self::LineEnd | Self::Boundary { .. }
        )
    }

    /// Whether it is anything but a question about a position.
    fn may_consume(&self) -> bool {
        !self.is_assertion() && !matches!(self, Self::Empty | Self::LookAround(_))
    }
}
