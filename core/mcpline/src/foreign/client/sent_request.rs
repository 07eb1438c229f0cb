//! Requests of clients that have a span in another language.

use crate::client::{self, RequestOptions};
use crate::sync::Arc;

/// What is known of a request once it was sent, for its span.
#[derive(Debug)]
pub struct SentRequest(Arc<client::SentRequest>);

impl SentRequest {
    /// Begins to track the request that is sent with these options.
    pub fn track(options: &mut RequestOptions) -> Self {
        Self(client::SentRequest::track(options))
    }

    /// Returns what is known as attributes of the span. None but arguments if the request was not sent, because its result is
    /// cached or because it was refused.
    pub fn attributes(&self) -> Vec<(&'static str, String)> {
        self.0.attributes()
    }
}
