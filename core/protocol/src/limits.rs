//! The limits of the wire layer, each with its reason.
//!
//! They bound what one peer can make this side hold or compute before anybody has looked at the
//! message. Limits that belong to a server or a session live with their settings.

/// Deepest nesting of arrays and objects in one message, the outermost counting as 1.
///
/// It is what `serde_json` takes; most parsers recurse and stop somewhere. What one of them would refuse
/// later is refused here, once and for all.
pub const MAX_DEPTH: usize = 127;

/// Most messages in one batch.
///
/// A batch is answered as a whole, so each further message makes the answer larger and later.
pub const MAX_BATCH: usize = 100;

/// Longest line accepted by [`LineDecoder`](crate::wire::LineDecoder), in bytes: 16 MiB.
///
/// Room for a base64 image of 12 MB; a peer that never ends its line cannot make us hold more.
pub const MAX_LINE: usize = 16 * 1024 * 1024;

/// Most members of one object: 262,144.
///
/// The check for duplicate members remembers every key of the objects that are open, 24 bytes each.
pub const MAX_MEMBERS: usize = 1 << 18;

/// Longest request id, in bytes as written, quotes included.
///
/// Ids are kept in tables and echoed in every message about the request.
pub const MAX_ID: usize = 1024;

/// Longest method name, in bytes.
///
/// Unknown methods are copied and repeated in the error that answers them.
pub const MAX_METHOD: usize = 1024;

/// Most bytes of one server-sent event, all its data lines together: 16 MiB, as [`MAX_LINE`],
/// because an event carries what a line carries.
pub const MAX_EVENT: usize = MAX_LINE;

/// Longest event id of a server-sent event, in bytes; it is sent back in a header.
pub const MAX_EVENT_ID: usize = 4 * 1024;

/// Most `x-mcp-header` annotations in one input schema.
///
/// Each costs a header on every call, and HTTP servers stop reading at about a hundred headers.
pub const MAX_PARAM_HEADERS: usize = 64;

/// Longest URI that is matched against a template, in bytes: what common HTTP servers take in a request
/// line.
pub const MAX_URI: usize = 8 * 1024;

/// Most steps of matching the URI of a request against the templates of a server: a dozen times the longest URI. A step
/// is an end of a value that is tried; most templates need as many as the URI has bytes. It takes a millisecond or two.
pub const MAX_MATCH_STEPS: usize = 100_000;

/// Most steps of matching URIs that a request takes on a thread that serves connections: a tenth of a millisecond or two.
/// The longest URI and a few plain templates are within it. What takes more is done on a thread of its own.
pub const MAX_INLINE_MATCH_STEPS: usize = 10_000;

/// Steps of matching all URIs that one request subscribes to, for each of their bytes, beside [`MAX_MATCH_STEPS`]: most
/// are matched by templates in as many steps as they have bytes.
pub const MATCH_STEPS_PER_BYTE: usize = 4;

/// Longest text that completion candidates are ranked by, in bytes; nothing fits a longer one. What people type is short,
/// and a URI is the longest that they paste.
pub const MAX_TYPED_BYTES: usize = MAX_URI;

/// Most variables in one URI template.
pub const MAX_TEMPLATE_VARIABLES: usize = 64;

pub use mcpline_schema::limits::{
    MAX_CLASS_PROPERTIES, MAX_COMPILATION_STEPS, MAX_EVALUATION_DEPTH, MAX_PATTERN_BYTES,
    MAX_PATTERN_DEPTH, MAX_PATTERN_OPERATIONS, MAX_REPORTED_POINTER_BYTES, MAX_SCHEMA_DEPTH,
    MAX_SCHEMA_PATTERN_OPERATIONS, MAX_SUBSCHEMAS, MAX_VALIDATION_STEPS,
};

/// Most steps that a validation takes on a thread that serves connections, compiling the schema included: a third of a
/// millisecond. What takes more is done on a thread of its own.
pub const MAX_INLINE_STEPS: usize = 50_000;

/// Most steps that it takes to check the answers to elicitations in one message, compiling their schemas included: some
/// milliseconds. Forms are filled in by people; a megabyte of text is within it.
pub const MAX_ANSWER_STEPS: usize = 2_000_000;

/// Largest schema that is compiled on a thread that serves connections, in bytes: decoding it takes some microseconds.
pub const MAX_INLINE_SCHEMA_BYTES: usize = 16 * 1024;

/// Most bytes of a list, a result or a request that a client decodes on a thread that serves connections: fifty tools of a
/// kilobyte; it takes a fraction of a millisecond. Larger ones are decoded on a thread of their own.
pub const MAX_INLINE_DECODED_BYTES: usize = 64 * 1024;

/// Maximum number of input requests of a server that wait for a response, in one session or one result: each may be a
/// dialog with the user.
pub const MAX_OPEN_INPUT_REQUESTS: usize = 64;

/// Maximum size of the parameters of the input requests that wait in one session, in bytes: two of the longest messages. They
/// wait for as long as a person needs. A single request may exceed it.
pub const MAX_OPEN_INPUT_REQUEST_BYTES: usize = 2 * MAX_LINE;

/// Limits of messages that a server can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WireLimits {
    /// Maximum length of a line, in bytes. Default: 16 MiB ([`MAX_LINE`]).
    pub line: usize,
    /// Maximum number of messages in a batch. Default: 100 ([`MAX_BATCH`]).
    pub batch: usize,
    /// Maximum nesting of a message; the outermost array or object counts as 1. Default:
    /// 127 ([`MAX_DEPTH`]), which is also the maximum.
    pub depth: usize,
}

impl Default for WireLimits {
    fn default() -> Self {
        Self {
            line: MAX_LINE,
            batch: MAX_BATCH,
            depth: MAX_DEPTH,
        }
    }
}
