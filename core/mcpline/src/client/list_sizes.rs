//! Sizes of paginated lists, summed up page by page, with the connection of each page.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use crate::client_error::ClientError;

/// Maximum number of remembered cursors: a host pages through few lists at once, and each needs only its latest cursor.
const MAX_CURSORS: usize = 64;

/// The total size of the pages up to each cursor, and the connection that the cursor came from.
///
/// Code in every language requests the pages one by one. The cursor of the previous page is what connects them, so
/// sizes are added up here.
#[derive(Debug, Default)]
pub(super) struct ListSizes {
    /// Cursors are stored as hashes with random keys, because they may be as long as a message.
    hashes: RandomState,
    sizes: VecDeque<ListSize>,
}

#[derive(Debug)]
struct ListSize {
    cursor: u64,
    bytes: usize,
    conversation: u64,
}

impl ListSizes {
    /// Returns the connection in which a page of `method` contained this cursor, if it is remembered.
    pub(super) fn connection_of_cursor(&self, method: &str, cursor: &str) -> Option<u64> {
        Some(self.known(method, cursor)?.conversation)
    }

    fn known(&self, method: &str, cursor: &str) -> Option<&ListSize> {
        let hash = self.hashes.hash_one((method, cursor));
        self.sizes.iter().find(|known| known.cursor == hash)
    }

    /// Adds a page to its list: the page requested with `cursor`, followed by the one at `next`. `conversation` is the
    /// connection that it came from.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidResponse`]: the pages of the list exceed `most` bytes in total.
    pub(super) fn add(
        &mut self,
        method: &str,
        cursor: Option<&str>,
        next: Option<&str>,
        bytes: usize,
        most: usize,
        conversation: u64,
    ) -> Result<(), ClientError> {
        let before = cursor.and_then(|cursor| self.known(method, cursor));
        let before = before.map_or(0, |known| known.bytes);
        let size = before.saturating_add(bytes);
        if size > most {
            return Err(ClientError::InvalidResponse {
                reason: format!(
                    "the pages of {method} have more than {most} bytes together (`max_list_bytes`)"
                ),
            });
        }
        if let Some(next) = next {
            let hash = self.hashes.hash_one((method, next));
            self.sizes.retain(|known| known.cursor != hash);
            if self.sizes.len() == MAX_CURSORS {
                self.sizes.pop_front();
            }
            self.sizes.push_back(ListSize {
                cursor: hash,
                bytes: size,
                conversation,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_one_list_add_up_and_others_do_not() {
        let mut sizes = ListSizes::default();
        let mut add = |method, cursor, next| sizes.add(method, cursor, next, 40, 100, 1);
        assert!(add("tools/list", None, Some("a")).is_ok());
        assert!(add("prompts/list", None, Some("a")).is_ok());
        assert!(add("tools/list", Some("a"), Some("b")).is_ok());
        assert!(add("prompts/list", Some("a"), None).is_ok());
        let error = add("tools/list", Some("b"), Some("c")).expect_err("too large");
        assert!(error.to_string().contains("max_list_bytes"), "{error}");
        // Starting over is allowed.
        assert!(add("tools/list", None, Some("a")).is_ok());
        assert!(add("tools/list", Some("a"), None).is_ok());
    }

    #[test]
    fn sums_repeated_cursors_and_bounds_remembered_ones() {
        let mut sizes = ListSizes::default();
        let mut pages = 0;
        while sizes
            .add("tools/list", Some("same"), Some("same"), 10, 100, 1)
            .is_ok()
        {
            pages += 1;
        }
        assert_eq!(pages, 10);
        for cursor in 0..1_000 {
            let cursor = cursor.to_string();
            assert!(
                sizes
                    .add("tools/list", None, Some(&cursor), 1, 100, 1)
                    .is_ok()
            );
        }
        assert_eq!(sizes.sizes.len(), MAX_CURSORS);
    }
}
