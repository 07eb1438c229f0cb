//! What one schema or one value can make this side hold or compute.

/// Deepest nesting of a JSON Schema; compiling and validating recurse.
pub const MAX_SCHEMA_DEPTH: usize = 64;

/// Most subschemas in a JSON Schema. Schemas generated from large type hierarchies have some hundreds.
pub const MAX_SUBSCHEMAS: usize = 10_000;

/// How often a validation may try a subschema, beside 16 times per byte of the value. Alternatives and
/// references can make a small schema and a small value cost exponential time.
pub const MAX_SCHEMA_TRIES: usize = 100_000;

/// How often matching one `pattern` may go back, where it needs look-around or back-references. Other
/// patterns take linear time.
pub const MAX_BACKTRACKING: usize = 100_000;
