//! Follows the cursors of a list, without looping forever.

use crate::client_error::ClientError;

/// Maximum number of pages of a list: a server with more has endless cursors.
const MAX_PAGES: usize = 10_000;

/// Follows the cursors of a list and detects cycles.
///
/// Pass the cursor of each page to [`follow`](Self::follow). It stores a single cursor: the one after 1, 2, 4, 8, …
/// pages, to which a cycle returns.
#[derive(Debug)]
pub struct Cursors {
    method: String,
    pages: usize,
    kept: Option<String>,
}

impl Cursors {
    /// Starts a list, before its first page. `method` is the method that returns it.
    pub fn new(method: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            pages: 0,
            kept: None,
        }
    }

    /// Returns whether there is another page, given the `nextCursor` of a page. Any string is a cursor, including the
    /// empty one.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidResponse`]: the list never ends.
    pub fn follow(&mut self, next: Option<&str>) -> Result<bool, ClientError> {
        let Some(next) = next else {
            return Ok(false);
        };
        self.pages += 1;
        if self.pages >= MAX_PAGES || self.kept.as_deref() == Some(next) {
            return Err(ClientError::InvalidResponse {
                reason: format!(
                    "the pages of {} never end: `nextCursor` repeats, or there are more than {MAX_PAGES} pages",
                    self.method
                ),
            });
        }
        if self.pages.is_power_of_two() {
            self.kept = Some(next.to_owned());
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows the cursors. Returns how many were accepted before an error (0 without one), and whether the list ended
    /// by itself.
    fn followed<'c>(cursors: impl IntoIterator<Item = &'c str>) -> (usize, bool) {
        let mut list = Cursors::new("tools/list");
        for (count, cursor) in cursors.into_iter().enumerate() {
            if list.follow(Some(cursor)).is_err() {
                return (count, false);
            }
        }
        let more = list.follow(None).unwrap();
        (0, !more)
    }

    #[test]
    fn a_list_ends_with_its_last_page() {
        assert_eq!(followed([]), (0, true));
        assert_eq!(followed(["", "a", "b", "c"]), (0, true));
    }

    #[test]
    fn a_cursor_that_repeats_ends_the_list() {
        assert_eq!(followed(["a", "a"]), (1, false));
    }

    #[test]
    fn circles_of_any_length_end_soon() {
        for length in 1..50_usize {
            let names: Vec<String> = (0..length).map(|name| name.to_string()).collect();
            let tail = ["x", "y", "z"].into_iter();
            let (count, ended) = followed(tail.chain(names.iter().map(String::as_str).cycle()));
            assert!(!ended && count <= 3 * (length + 3), "{length}: {count}");
        }
    }

    #[test]
    fn cursors_that_are_always_new_end_too() {
        let names: Vec<String> = (0..2 * MAX_PAGES).map(|name| name.to_string()).collect();
        let (count, ended) = followed(names.iter().map(String::as_str));
        assert_eq!((count, ended), (MAX_PAGES - 1, false));
    }
}
