//! The limits of the wire layer, each with its reason.
//!
//! They bound what one peer can make this side hold or compute before a message has been inspected. Limits that belong
//! to a server or a session are part of their settings.

/// The deepest nesting of arrays and objects in one message, the outermost counting as 1.
///
/// The limit of `serde_json`; most parsers recurse and stop somewhere. Anything that a parser would reject later is
/// rejected here.
pub const MAX_DEPTH: usize = 127;

/// The largest number of messages in one batch.
///
/// A batch gets one response as a whole, so each further message makes that larger and later.
pub const MAX_BATCH: usize = 100;

/// The longest line that [`LineDecoder`](crate::wire::LineDecoder) accepts, in bytes: 16 MiB.
///
/// Room for a base64 image of 12 MB. It bounds the memory for a line that never ends.
pub const MAX_LINE: usize = 16 * 1024 * 1024;

/// The largest number of members of an object: 262,144.
///
/// The check for duplicate members stores every key of the open objects, 24 bytes each.
pub const MAX_MEMBERS: usize = 1 << 18;

/// The longest request id, in bytes as written, quotes included.
///
/// Ids are kept in tables and echoed in every message about the request.
pub const MAX_ID: usize = 1024;

/// The longest method name, in bytes.
///
/// Unknown methods are copied and repeated in the error response.
pub const MAX_METHOD: usize = 1024;

/// The largest server-sent event in bytes, all its data lines together: 16 MiB like [`MAX_LINE`], because an event
/// carries the same messages as a line.
pub const MAX_EVENT: usize = MAX_LINE;

/// The longest id of a server-sent event, in bytes; it is sent back in a header.
pub const MAX_EVENT_ID: usize = 4 * 1024;

/// The largest number of `x-mcp-header` annotations in one input schema.
///
/// Each adds a header to every call, and HTTP servers accept about a hundred headers.
pub const MAX_PARAM_HEADERS: usize = 64;

/// The largest number of recent changes that the state of a session names: more than a client makes while one of the processes
/// that share the session cannot reach the store. A change that is no longer named is merged by its effect alone.
pub const MAX_RECENT_CHANGES: usize = 32;

/// The largest size in bytes of the URIs of these changes together: each saved or published state has them.
pub const MAX_RECENT_CHANGE_BYTES: usize = 8 * 1024;

/// The longest URI that is matched against a template, in bytes: what common HTTP servers accept in a request line.
pub const MAX_URI: usize = 8 * 1024;

/// The largest number of steps for matching the URI of a request against the templates of a server: a dozen times the
/// longest URI. Each possible end of a value is a step; most templates need as many as the URI has bytes. The limit
/// takes a millisecond or two.
pub const MAX_MATCH_STEPS: usize = 100_000;

/// The largest number of steps for matching URIs on a thread that serves connections: 0.1 to 0.2 ms. It suffices for
/// the longest URI and a few plain templates. Longer work runs on its own thread.
pub const MAX_INLINE_MATCH_STEPS: usize = 10_000;

/// Additional steps for matching all URIs of one subscription request, per byte of the URIs, besides
/// [`MAX_MATCH_STEPS`]: for most templates, a URI takes as many steps as it has bytes.
pub const MATCH_STEPS_PER_BYTE: usize = 4;

/// The longest input for completion ranking, in bytes; nothing matches a longer one. Typed text is short, and a URI is
/// the longest text that users paste.
pub const MAX_TYPED_BYTES: usize = MAX_URI;

/// The largest number of variables in one URI template.
pub const MAX_TEMPLATE_VARIABLES: usize = 64;

pub use mcpline_schema::limits::{
    MAX_CLASS_PROPERTIES, MAX_COMPILATION_STEPS, MAX_EVALUATION_DEPTH, MAX_PATTERN_BYTES,
    MAX_PATTERN_DEPTH, MAX_PATTERN_OPERATIONS, MAX_REPORTED_POINTER_BYTES, MAX_SCHEMA_DEPTH,
    MAX_SCHEMA_PATTERN_OPERATIONS, MAX_SUBSCHEMAS, MAX_VALIDATION_STEPS,
};

/// The largest number of steps for a validation on a thread that serves connections, including compiling the schema: a
/// third of a millisecond. Longer work runs on its own thread.
pub const MAX_INLINE_STEPS: usize = 50_000;

/// The largest number of steps for checking the elicitation responses in one message, including compiling their
/// schemas: some milliseconds. Forms are filled in by people; a megabyte of text is within the limit.
pub const MAX_ANSWER_STEPS: usize = 2_000_000;

/// The largest schema that is compiled on a thread that serves connections, in bytes: decoding it takes some
/// microseconds.
pub const MAX_INLINE_SCHEMA_BYTES: usize = 16 * 1024;

/// The largest list, result or request that a client decodes on a thread that serves connections, in bytes: fifty tools
/// of a kilobyte, which takes a fraction of a millisecond. Larger ones are decoded on their own thread.
pub const MAX_INLINE_DECODED_BYTES: usize = 64 * 1024;

/// The largest number of open input requests of a server, in one session or one result: each may stand for a dialogue
/// with the user.
pub const MAX_OPEN_INPUT_REQUESTS: usize = 64;

/// The largest size of the parameters of all open input requests of a session, in bytes: two of the longest messages. They
/// wait for as long as a person needs. A single request may exceed it.
pub const MAX_OPEN_INPUT_REQUEST_BYTES: usize = 2 * MAX_LINE;

/// Configurable limits of a server's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WireLimits {
    /// Maximum length of a line, in bytes. Default: 16 MiB ([`MAX_LINE`]).
    pub max_line_bytes: usize,
    /// Maximum number of messages in a batch. Default: 100 ([`MAX_BATCH`]).
    pub max_batch_messages: usize,
    /// Maximum nesting of a message; the outermost array or object counts as 1. Default:
    /// 127 ([`MAX_DEPTH`]), which is also the maximum.
    pub max_json_depth: usize,
}

impl Default for WireLimits {
    fn default() -> Self {
        Self {
            max_line_bytes: MAX_LINE,
            max_batch_messages: MAX_BATCH,
            max_json_depth: MAX_DEPTH,
        }
    }
}
