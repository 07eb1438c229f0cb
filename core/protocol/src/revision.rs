//! The protocol revisions as data: which exist, how they are negotiated, and what differs between them.
//!
//! [`RevisionFeatures`] says what a revision has. Nothing else compares versions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error_code::ErrorCode;

/// A revision of the Model Context Protocol. Ordered by date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
#[non_exhaustive]
pub enum Revision {
    /// 2024-11-05, the first.
    #[serde(rename = "2024-11-05")]
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, batches, tool annotations, audio.
    #[serde(rename = "2025-03-26")]
    V2025_03_26,
    /// 2025-06-18: structured content, elicitation, resource links, titles.
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    /// 2025-11-25: icons, URL elicitation, tools in sampling, polling streams.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    /// 2026-07-28: stateless, every request carries its version and capabilities.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

/// How a session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Era {
    /// An `initialize` handshake opens a session.
    Legacy,
    /// No handshake: each request is independent.
    Modern,
}

/// The text is not a revision that this library supports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no protocol revision {0:?}; supported are {dates}", dates = dates())]
pub struct UnknownRevision(pub String);

/// Returns the dates of all revisions.
fn dates() -> String {
    let dates: Vec<_> = Revision::ALL.iter().map(|one| one.as_str()).collect();
    dates.join(", ")
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: &'static [Self] = &[
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The revisions that open with a handshake, oldest first.
    pub const LEGACY: &'static [Self] = &[
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
    ];

    /// The revisions without a handshake, oldest first.
    pub const MODERN: &'static [Self] = &[Self::V2026_07_28];

    /// The newest revision with a handshake.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// The revision of an HTTP request without `MCP-Protocol-Version`, if nothing else indicates one (2025-06-18 and
    /// 2025-11-25, "Transports", Protocol Version Header).
    pub const ASSUMED_WITHOUT_HEADER: Self = Self::V2025_03_26;

    /// The date that names this revision.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of that date, if it is supported.
    pub fn parse(date: &str) -> Option<Self> {
        // Arrays are compared without a call: every HTTP request names its revision.
        let date: &[u8; 10] = date.as_bytes().try_into().ok()?;
        Self::ALL
            .iter()
            .copied()
            .find(|revision| revision.as_str().as_bytes() == date)
    }

    /// The era this revision belongs to.
    pub const fn era(self) -> Era {
        if self.features().handshake {
            Era::Legacy
        } else {
            Era::Modern
        }
    }

    /// Whether this revision has no handshake.
    pub const fn is_modern(self) -> bool {
        !self.features().handshake
    }

    /// The revision in a server's response to `initialize`: the requested one if it is known and has a handshake,
    /// otherwise the newest one with a handshake (2025-11-25, "Lifecycle", Version Negotiation).
    pub fn negotiate(requested: &str) -> Self {
        match Self::parse(requested) {
            Some(revision) if !revision.is_modern() => revision,
            _ => Self::LATEST_LEGACY,
        }
    }

    /// The features of this revision.
    pub const fn features(self) -> &'static RevisionFeatures {
        match self {
            Self::V2024_11_05 => &V2024_11_05,
            Self::V2025_03_26 => &V2025_03_26,
            Self::V2025_06_18 => &V2025_06_18,
            Self::V2025_11_25 => &V2025_11_25,
            Self::V2026_07_28 => &V2026_07_28,
        }
    }
}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(date: &str) -> Result<Self, Self::Err> {
        Self::parse(date).ok_or_else(|| UnknownRevision(date.to_owned()))
    }
}

impl TryFrom<String> for Revision {
    type Error = UnknownRevision;

    fn try_from(date: String) -> Result<Self, Self::Error> {
        Self::parse(&date).ok_or(UnknownRevision(date))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A revision's rules for JSON-RPC batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchRule {
    /// Not mentioned beyond JSON-RPC itself: received, never sent.
    Receive,
    /// Receiving is a MUST, sending is allowed.
    MustReceive,
    /// Rejected.
    Removed,
}

/// The values that `structuredContent` of a tool result may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StructuredContent {
    /// The field does not exist.
    None,
    /// A JSON object; `outputSchema` has `"type": "object"` at its root.
    Object,
    /// Any JSON value; `outputSchema` may be any schema.
    Any,
}

/// The differences between revisions that this library acts on.
///
/// A field is named after what the revision has. Where a revision is silent, the field says what this library does with
/// a peer of that revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevisionFeatures {
    /// `initialize` and `notifications/initialized` open a session.
    pub handshake: bool,
    /// `server/discover`.
    pub discover: bool,
    /// Version, client identity and capabilities travel in `_meta` of every request.
    pub request_meta: bool,
    /// JSON-RPC batches.
    pub batches: BatchRule,

    /// `MCP-Protocol-Version` on every HTTP request after the handshake.
    pub protocol_header: bool,
    /// `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` on every POST.
    pub standard_headers: bool,
    /// HTTP+SSE: one stream for all server messages, and an endpoint named in it for all client messages.
    pub http_sse: bool,
    /// Events have ids, and `Last-Event-ID` resumes a stream.
    pub resumable_streams: bool,
    /// A stream starts with an empty event that has an id, and the server may close it at any time; `retry` tells the
    /// client when to reconnect (polling).
    pub sse_priming: bool,

    /// The server may send requests to the client.
    pub server_requests: bool,
    /// The server requests input by returning `input_required`, and the client retries with the responses.
    pub mrtr: bool,
    /// `subscriptions/listen`.
    pub listen: bool,
    /// `resources/subscribe` and `resources/unsubscribe`.
    pub resource_subscribe: bool,
    /// `ping`, in both directions.
    pub ping: bool,
    /// `logging/setLevel`.
    pub set_level: bool,
    /// The log level comes with each request; without it the client gets no log messages.
    pub request_log_level: bool,
    /// `notifications/roots/list_changed`.
    pub roots_list_changed: bool,
    /// Results carry `resultType`.
    pub result_type: bool,
    /// List, read and discover results carry `ttlMs` and `cacheScope`.
    pub cache_hints: bool,
    /// The server identifies itself in `_meta` of every result.
    pub meta_server_info: bool,
    /// Experimental tasks: `tasks/*` methods and `execution` of a tool.
    pub tasks: bool,

    /// Tool annotations (`readOnlyHint`, …).
    pub tool_annotations: bool,
    /// `title` of tools, resources, prompts, arguments and implementations.
    pub titles: bool,
    /// `icons` of tools, resources, prompts and implementations.
    pub icons: bool,
    /// `description` and `websiteUrl` of an implementation.
    pub implementation_extras: bool,
    /// `_meta` on tools, resources, prompts, contents and content blocks.
    pub object_meta: bool,
    /// `annotations.lastModified`.
    pub last_modified: bool,
    /// `outputSchema` of a tool.
    pub output_schema: bool,
    /// `structuredContent` of a tool result.
    pub structured_content: StructuredContent,
    /// `x-mcp-header` in input schemas.
    pub param_headers: bool,
    /// Content of type `audio`.
    pub audio: bool,
    /// Content of type `resource_link`.
    pub resource_link: bool,

    /// `message` of a progress notification.
    pub progress_message: bool,
    /// The `completions` capability.
    pub completions_capability: bool,
    /// Completion may be requested from a server with prompts or resources that does not declare it: servers of the
    /// official TypeScript SDK declare it only since 2025-06-18.
    pub completions_implied: bool,
    /// `context` of a completion request.
    pub completion_context: bool,
    /// `elicitation/create`.
    pub elicitation: bool,
    /// `elicitation.form` and `elicitation.url` in the client's capabilities, and `mode`.
    pub url_elicitation: bool,
    /// Default values of string, number and enum fields in forms.
    pub elicitation_defaults: bool,
    /// Titled and multiple choice enums in forms, with `oneOf`, `anyOf` and `items`.
    pub elicitation_enums: bool,
    /// `elicitationId` and `notifications/elicitation/complete`.
    pub elicitation_complete: bool,
    /// `tools` and `toolChoice` of a sampling request, content as a list.
    pub sampling_tools: bool,

    /// A server that names no authorization server is its own: its endpoints are at its root ("Authorization",
    /// Authorization Base URL).
    pub own_authorization_server: bool,

    /// The code for a resource that does not exist.
    pub resource_not_found_code: ErrorCode,
    /// The response to a request with an unreadable id has no `id` member; before, each error has one.
    pub errors_without_id: bool,
    /// The code of an error that requires the user to open a URL before the request can succeed.
    pub url_elicitation_required_code: Option<ErrorCode>,
}

const V2024_11_05: RevisionFeatures = RevisionFeatures {
    errors_without_id: false,
    handshake: true,
    discover: false,
    request_meta: false,
    batches: BatchRule::Receive,
    protocol_header: false,
    standard_headers: false,
    http_sse: true,
    resumable_streams: false,
    sse_priming: false,
    server_requests: true,
    mrtr: false,
    listen: false,
    resource_subscribe: true,
    ping: true,
    set_level: true,
    request_log_level: false,
    roots_list_changed: true,
    result_type: false,
    cache_hints: false,
    meta_server_info: false,
    tasks: false,
    tool_annotations: false,
    titles: false,
    icons: false,
    implementation_extras: false,
    object_meta: false,
    last_modified: false,
    output_schema: false,
    structured_content: StructuredContent::None,
    param_headers: false,
    audio: false,
    resource_link: false,
    progress_message: false,
    completions_capability: false,
    completions_implied: false,
    own_authorization_server: false,
    completion_context: false,
    elicitation: false,
    url_elicitation: false,
    elicitation_defaults: false,
    elicitation_enums: false,
    elicitation_complete: false,
    sampling_tools: false,
    resource_not_found_code: ErrorCode::RESOURCE_NOT_FOUND,
    url_elicitation_required_code: None,
};

const V2025_03_26: RevisionFeatures = RevisionFeatures {
    batches: BatchRule::MustReceive,
    resumable_streams: true,
    tool_annotations: true,
    audio: true,
    progress_message: true,
    completions_capability: true,
    completions_implied: true,
    own_authorization_server: true,
    http_sse: false,
    ..V2024_11_05
};

const V2025_06_18: RevisionFeatures = RevisionFeatures {
    batches: BatchRule::Removed,
    protocol_header: true,
    titles: true,
    object_meta: true,
    last_modified: true,
    output_schema: true,
    structured_content: StructuredContent::Object,
    resource_link: true,
    completion_context: true,
    elicitation: true,
    completions_implied: false,
    own_authorization_server: false,
    ..V2025_03_26
};

const V2025_11_25: RevisionFeatures = RevisionFeatures {
    errors_without_id: true,
    sse_priming: true,
    tasks: true,
    icons: true,
    implementation_extras: true,
    url_elicitation: true,
    elicitation_defaults: true,
    elicitation_enums: true,
    elicitation_complete: true,
    sampling_tools: true,
    url_elicitation_required_code: Some(ErrorCode::URL_ELICITATION_REQUIRED),
    ..V2025_06_18
};

const V2026_07_28: RevisionFeatures = RevisionFeatures {
    handshake: false,
    discover: true,
    request_meta: true,
    standard_headers: true,
    resumable_streams: false,
    sse_priming: false,
    server_requests: false,
    mrtr: true,
    listen: true,
    resource_subscribe: false,
    ping: false,
    set_level: false,
    request_log_level: true,
    roots_list_changed: false,
    result_type: true,
    cache_hints: true,
    meta_server_info: true,
    tasks: false,
    structured_content: StructuredContent::Any,
    param_headers: true,
    elicitation_complete: false,
    resource_not_found_code: ErrorCode::INVALID_PARAMS,
    url_elicitation_required_code: None,
    ..V2025_11_25
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negotiates_a_known_handshake_revision_as_requested() {
        for revision in Revision::LEGACY {
            assert_eq!(Revision::negotiate(revision.as_str()), *revision);
        }
    }

    #[test]
    fn anything_else_gets_the_newest_handshake_revision_as_counter_offer() {
        for requested in ["1999-01-01", "2026-07-28", "", "2025-11-25 "] {
            assert_eq!(Revision::negotiate(requested), Revision::V2025_11_25);
        }
    }

    #[test]
    fn order_names_and_eras_agree() {
        let dates: Vec<_> = Revision::ALL.iter().map(|r| r.as_str()).collect();
        assert!(dates.is_sorted() && Revision::ALL.is_sorted());
        assert_eq!([Revision::LEGACY, Revision::MODERN].concat(), Revision::ALL);
        assert!(
            Revision::LEGACY
                .iter()
                .all(|r| r.era() == Era::Legacy && !r.is_modern())
        );
        assert!(
            Revision::MODERN
                .iter()
                .all(|r| r.era() == Era::Modern && r.is_modern())
        );
        for revision in Revision::ALL {
            assert_eq!(revision.as_str().parse(), Ok(*revision));
            let json = serde_json::to_string(revision).expect("serializes");
            assert_eq!(json, format!("{:?}", revision.as_str()));
        }
    }
}
