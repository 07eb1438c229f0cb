//! Builds the headers of a request. Nothing else writes them.
//!
//! The headers of a link change twice: when its session begins and when the revision is agreed on. Both maps are built
//! at these points and copied for each request.

use std::sync::Arc;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use mcpline_protocol::Revision;

use crate::client::link::RequestHead;
use crate::header_names::{LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};

use crate::http_client::USER_AGENT_VALUE;
use crate::http_client::target::Target;

const EITHER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The prepared headers of a link's requests.
#[derive(Debug, Clone)]
pub(super) struct PreparedHeaders {
    pub(super) post: Arc<HeaderMap>,
    /// For GET and DELETE.
    pub(super) get: Arc<HeaderMap>,
    /// The revision that both contain.
    named: Option<Revision>,
}

impl PreparedHeaders {
    /// `own` are the user's headers; `session` and `revision` are given once they are known.
    pub(super) fn new(
        own: &HeaderMap,
        target: &Target,
        session: Option<&HeaderValue>,
        revision: Option<Revision>,
    ) -> Self {
        let named = revision.filter(|revision| revision.features().protocol_header);
        let mut get = own.clone();
        get.insert(HOST, target.host.clone());
        get.entry(USER_AGENT).or_insert(USER_AGENT_VALUE);
        if let Some(credentials) = &target.credentials {
            get.entry(AUTHORIZATION).or_insert(credentials.clone());
        }
        if let Some(session) = session {
            get.insert(SESSION_ID, session.clone());
        }
        if let Some(revision) = named {
            get.insert(PROTOCOL_VERSION, version(revision));
        }
        let mut post = get.clone();
        get.insert(ACCEPT, EVENTS);
        post.insert(ACCEPT, EITHER);
        post.insert(CONTENT_TYPE, JSON);
        Self {
            post: Arc::new(post),
            get: Arc::new(get),
            named,
        }
    }

    /// Returns the headers for the POST of a request.
    pub(super) fn of(&self, request: &RequestHead) -> HeaderMap {
        let mut headers = (*self.post).clone();
        if request.revision.is_modern() && self.named != Some(request.revision) {
            headers.insert(PROTOCOL_VERSION, version(request.revision));
        }
        if request.opens {
            // A new attempt does not continue the session of an earlier one.
            headers.remove(SESSION_ID);
        }
        for (name, value) in &request.headers {
            let pair = (
                HeaderName::from_bytes(name.as_bytes()),
                HeaderValue::from_str(value),
            );
            // The protocol crate has encoded them. What is still not a valid header is left to the server's check.
            if let (Ok(name), Ok(value)) = pair {
                headers.insert(name, value);
            }
        }
        headers
    }

    /// Returns the headers of a GET that resumes after this event.
    pub(super) fn after(&self, event: Option<&HeaderValue>) -> HeaderMap {
        let mut headers = (*self.get).clone();
        if let Some(event) = event {
            headers.insert(LAST_EVENT_ID, event.clone());
        }
        headers
    }
}

fn version(revision: Revision) -> HeaderValue {
    HeaderValue::from_static(revision.as_str())
}
