//! Positions in a text: the next character in both directions, word boundaries and line ends.

use super::set::{LINE_ENDS, Span, WORD_CHARS_IGNORING_CASE};

/// The direction of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// The next character in a direction, and the position beyond it. Positions are offsets in bytes.
#[inline]
pub(super) fn next(text: &str, at: usize, direction: Direction) -> Option<(u32, usize)> {
    let bytes = text.as_bytes();
    match direction {
        Direction::Forward => match bytes.get(at) {
            Some(&byte) if byte < 0x80 => Some((u32::from(byte), at + 1)),
            _ => {
                let char = text.get(at..)?.chars().next()?;
                Some((u32::from(char), at + char.len_utf8()))
            }
        },
        Direction::Backward => match bytes.get(at.checked_sub(1)?) {
            Some(&byte) if byte < 0x80 => Some((u32::from(byte), at - 1)),
            _ => {
                let char = text.get(..at)?.chars().next_back()?;
                Some((u32::from(char), at - char.len_utf8()))
            }
        },
    }
}

/// Whether a word (`\w`) begins or ends at a position.
pub(super) fn is_boundary(text: &str, at: usize, ignore_case: bool) -> bool {
    if ignore_case {
        let is_word = |direction| {
            next(text, at, direction).is_some_and(|(char, _)| {
                let is_within = |span: &Span| (span.0..=span.1).contains(&char);
                WORD_CHARS_IGNORING_CASE.iter().any(is_within)
            })
        };
        return is_word(Direction::Backward) != is_word(Direction::Forward);
    }
    // Characters that are not ASCII are not in words, so bytes are enough.
    let is_word = |at: Option<usize>| {
        at.and_then(|at| text.as_bytes().get(at))
            .is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    is_word(at.checked_sub(1)) != is_word(Some(at))
}

/// Whether a line starts at a position, for reading backward, or ends there, for reading forward.
pub(super) fn is_line_end(text: &str, at: usize, direction: Direction) -> bool {
    let is_within = |&(first, last): &Span, char| (first..=last).contains(&char);
    next(text, at, direction)
        .is_none_or(|(char, _)| LINE_ENDS.iter().any(|span| is_within(span, char)))
}
