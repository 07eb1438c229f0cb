//! Places within a value, and JSON pointers (RFC 6901) to them.

use crate::limits::MAX_TOLD_POINTER;

/// Where something stands within a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    Here,
    Name(&'a str),
    Index(usize),
}

/// A JSON pointer of these places, cut where it becomes long.
pub(crate) fn pointer(places: &[Place<'_>]) -> String {
    let mut pointer = String::new();
    for place in places {
        match place {
            Place::Here => {}
            Place::Name(name) => {
                pointer.push('/');
                for letter in name.chars() {
                    if pointer.len() >= MAX_TOLD_POINTER {
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
            Place::Index(index) => {
                pointer.push('/');
                pointer.push_str(&index.to_string());
            }
        }
    }
    pointer
}
