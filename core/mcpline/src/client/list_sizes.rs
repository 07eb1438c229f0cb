//! How large lists have become, page by page, and in which conversation.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use crate::client_error::ClientError;

/// Most cursors that are remembered: a host follows a few lists at once, and each needs its latest cursor alone.
const MAX_CURSORS: usize = 64;

/// The bytes of the pages that led to each cursor, and the conversation that it came in.
///
/// Pages are asked for one by one, by code of every language. What they have in common is that a page is asked for with
/// the cursor of the page before, so this is where they are added up.
#[derive(Debug, Default)]
pub(super) struct ListSizes {
    /// A cursor may be as long as a message, so its hash stands for it; the hash's keys are random.
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
    /// The conversation in which a page of `method` named this cursor, if that is remembered.
    pub(super) fn conversation_of(&self, method: &str, cursor: &str) -> Option<u64> {
        Some(self.known(method, cursor)?.conversation)
    }

    fn known(&self, method: &str, cursor: &str) -> Option<&ListSize> {
        let hash = self.hashes.hash_one((method, cursor));
        self.sizes.iter().find(|known| known.cursor == hash)
    }

    /// Adds a page to the list that it belongs to: the one asked for with `cursor`, followed by the one at `next`.
    /// It came in this conversation.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidResponse`]: the pages of the list have more than `most` bytes together.
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
        // From its beginning again.
        assert!(add("tools/list", None, Some("a")).is_ok());
        assert!(add("tools/list", Some("a"), None).is_ok());
    }

    #[test]
    fn a_cursor_that_repeats_adds_up_and_few_are_remembered() {
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
