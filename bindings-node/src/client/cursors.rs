//! Follows the cursors of a list; the core decides when to stop.

use mcpline::client::Cursors as CoreCursors;
use napi::Result;
use napi_derive::napi;

use super::failure::failure;

/// The cursors of one list so far.
#[napi]
pub struct Cursors {
    core: CoreCursors,
}

#[napi]
impl Cursors {
    /// Creates the cursors of a list that this method returns.
    #[napi(constructor, catch_unwind)]
    pub fn new(method: String) -> Self {
        Self {
            core: CoreCursors::new(method),
        }
    }

    /// Returns whether there is a further page, after one with this `nextCursor`.
    #[napi(catch_unwind)]
    pub fn follow(&mut self, next: Option<String>) -> Result<bool> {
        let followed = self.core.follow(next.as_deref());
        followed.map_err(|error| failure(&error, "").into())
    }
}
