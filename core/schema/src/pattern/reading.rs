//! Reading a text character by character, in both directions, and what can be asked about a position in it.

/// Which way a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

impl Direction {
    pub(super) fn opposite(self) -> Self {
        match self {
            Self::Forward => Self::Backward,
            Self::Backward => Self::Forward,
        }
    }
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

/// Whether a word (`\w`) begins or ends at a position. What is not ASCII is in no word, so bytes are enough.
pub(super) fn is_boundary(text: &str, at: usize) -> bool {
    let is_word = |at: Option<usize>| {
        at.and_then(|at| text.as_bytes().get(at))
            .is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    is_word(at.checked_sub(1)) != is_word(Some(at))
}
