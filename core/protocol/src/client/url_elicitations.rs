//! URL elicitations of one server, so that only the completion of known ones is reported (2025-11-25, `client/elicitation`,
//! completion notifications for URL mode elicitation).

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::RpcError;
use crate::wire::{JsonKind, Raw};

use super::input_requests::is_web_address;

/// The largest number of open URL elicitations; the oldest are dropped. Each may stand for a page that is open in a
/// user's browser.
const MAX_OPEN: usize = 1_024;

/// The open URL elicitations of a server. They outlive a connection: a server may announce the completion in a later
/// session than the one in which they started. Clones share their state, so each session with the server has one.
///
/// Only a digest of each id is kept, because ids may be of any length. A server that creates two ids with the same
/// digest only confuses its own user.
#[derive(Clone, Debug, Default)]
pub struct UrlElicitations(Arc<Mutex<VecDeque<u64>>>);

impl UrlElicitations {
    fn lock(&self) -> MutexGuard<'_, VecDeque<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an elicitation by its id. Ids that are used twice count once.
    pub(super) fn begin(&self, id: &str) -> u64 {
        let digest = digest(id);
        let mut open = self.lock();
        forget(&mut open, digest);
        if open.len() >= MAX_OPEN {
            open.pop_front();
        }
        open.push_back(digest);
        digest
    }

    /// Whether an elicitation with this id was open. It no longer is.
    pub(super) fn end(&self, id: &str) -> bool {
        self.forget(digest(id))
    }

    pub(super) fn forget(&self, digest: u64) -> bool {
        forget(&mut self.lock(), digest)
    }

    /// Records the elicitations that an error -32042 requires.
    ///
    /// # Errors
    /// If one has no URL, or one that must not reach a host.
    pub(super) fn begin_required(&self, error: &RpcError) -> Result<(), String> {
        let required = error
            .data
            .as_ref()
            .and_then(|data| data.member("elicitations"));
        let required = required.iter().filter_map(Raw::elements).flatten();
        for (index, one) in required.enumerate() {
            let url = one.member("url");
            let url = url.as_ref().and_then(Raw::string_value);
            if one.kind() != JsonKind::Object || !url.is_some_and(|url| is_web_address(&url)) {
                return Err(format!(
                    "error {}: `elicitations[{index}].url` must be a valid URL with the scheme `https` or `http`",
                    error.code
                ));
            }
            let id = one.member("elicitationId");
            if let Some(id) = id.as_ref().and_then(Raw::string_value) {
                self.begin(&id);
            }
        }
        Ok(())
    }
}

fn forget(open: &mut VecDeque<u64>, digest: u64) -> bool {
    let index = open.iter().position(|other| *other == digest);
    index.and_then(|index| open.remove(index)).is_some()
}

fn digest(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_completion_is_reported_once() {
        let open = UrlElicitations::default();
        open.begin("a");
        open.begin("");
        open.begin("a");
        assert!(open.end("a") && open.end(""));
        assert!(!open.end("a") && !open.end("") && !open.end("b"));
    }

    #[test]
    fn no_more_than_a_limit_are_remembered() {
        let open = UrlElicitations::default();
        for number in 0..=MAX_OPEN {
            open.begin(&number.to_string());
        }
        assert_eq!(open.lock().len(), MAX_OPEN);
        assert!(!open.end("0") && open.end("1") && open.end(&MAX_OPEN.to_string()));
    }
}
