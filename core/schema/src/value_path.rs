//! Paths into a value, written as JSON pointers (RFC 6901).

use crate::limits::MAX_REPORTED_POINTER_BYTES;

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathSegment<'a> {
    /// No step: the value itself.
    Here,
    Name(&'a str),
    Index(usize),
}

/// Writes a path as a JSON pointer, truncated at [`MAX_REPORTED_POINTER_BYTES`].
pub(crate) fn value_path(path: &[PathSegment<'_>]) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            PathSegment::Here => {}
            PathSegment::Name(name) => {
                pointer.push('/');
                for letter in name.chars() {
                    if pointer.len() >= MAX_REPORTED_POINTER_BYTES {
                        pointer.push('…');
                        return pointer;
                    }
                    match letter {
                        '~' => pointer.push_str("~0"),
                        '/' => pointer.push_str("~1"),
                        letter => pointer.push(letter),
                    }
                }
            }
            PathSegment::Index(index) => {
                pointer.push('/');
                pointer.push_str(&index.to_string());
            }
        }
    }
    pointer
}
