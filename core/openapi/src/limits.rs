//! Limits on what a document or a response can make this side hold or compute.

/// The largest document, in bytes of JSON. GitHub's has 13 MB, and 73 MB with all references written out.
pub const MAX_DOCUMENT_BYTES: usize = 128 * 1024 * 1024;

/// The largest number of operations in a document. The largest public ones have 17,000.
pub const MAX_OPERATIONS: usize = 50_000;

/// The largest number of tags of one operation. Documents use one or two.
pub const MAX_TAGS: usize = 32;

/// The longest tag of an operation, in bytes. It is a word that selects operations.
pub const MAX_TAG_BYTES: usize = 200;

/// The largest number of references that lead from one to the next before a value is found.
pub const MAX_REFERENCE_HOPS: usize = 32;

/// The largest number of parameters of one operation.
pub const MAX_PARAMETERS: usize = 500;

/// The default size of one generated schema, in bytes of JSON. A model reads it with each request.
pub const DEFAULT_SCHEMA_BYTES: usize = 32 * 1024;

/// Maximum total size of the schemas of one import, in bytes of JSON: enough for 1,000 operations with two schemas of the default
/// size. In memory, schemas take several times as much.
pub const MAX_IMPORT_SCHEMA_BYTES: usize = 64 * 1024 * 1024;

/// How many bytes are converted for all schemas of one import, with those of attempts that were too large: some seconds of work.
pub const MAX_IMPORT_CONVERTED_BYTES: usize = 256 * 1024 * 1024;

/// The deepest nesting of a generated schema. `mcpline-schema` accepts 64 levels.
pub(crate) const MAX_SCHEMA_DEPTH: usize = 30;

/// The longest description of an operation or of a schema, in bytes. A longer one is cut.
pub const MAX_DESCRIPTION_BYTES: usize = 4 * 1024;

/// The longest default or example that a schema keeps, in bytes of JSON. Longer ones cost more than they tell.
pub(crate) const MAX_EXAMPLE_BYTES: usize = 200;

/// The longest name, in characters. Hosts accept 64, and a mount's prefix needs some.
pub const MAX_NAME_CHARS: usize = 56;

/// The longest name of an argument, in characters, which some hosts require.
pub(crate) const MAX_ARGUMENT_NAME_CHARS: usize = 64;

/// How much of the body of an error response a tool's result contains, in bytes.
pub const MAX_ERROR_BODY_BYTES: usize = 4 * 1024;

/// The deepest nesting of an argument that is written with the style `deepObject`.
pub(crate) const MAX_DEEP_OBJECT_DEPTH: usize = 16;
