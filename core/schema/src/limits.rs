//! Limits on what one schema or one value can make this side hold or compute.

/// The deepest nesting of a JSON Schema; compiling and validating recurse.
pub const MAX_SCHEMA_DEPTH: usize = 64;

/// The largest number of subschemas in a JSON Schema. Schemas generated from large type hierarchies have some hundreds.
pub const MAX_SUBSCHEMAS: usize = 10_000;

/// The number of steps that a validation may take, besides 64 per byte of the value: a few milliseconds for a small
/// value. A step takes some nanoseconds: testing one state of a regular expression at one character, or 16 bytes of a
/// text that is compared, counted or hashed, or one rule. Alternatives and references can cause exponential time with a
/// small schema and a small value, and a schema that reads a long text repeatedly does so with a large value.
pub const MAX_VALIDATION_STEPS: usize = 1_000_000;

/// The number of steps that compiling a schema may take, besides those for its size: several times as many as for a
/// schema of a megabyte without references.
pub const MAX_COMPILATION_STEPS: usize = 4_000_000;

/// The longest JSON pointer into a value that a message contains, in bytes; the rest is cut off. Names in a value may
/// be as long as a message, and each failed alternative has a pointer.
pub const MAX_REPORTED_POINTER_BYTES: usize = 1_000;

/// The longest `pattern`, in bytes. Those that list all allowed texts, such as time zones, have some ten thousand.
pub const MAX_PATTERN_BYTES: usize = 64 * 1024;

/// The largest number of properties in a class of a `pattern`, with all general categories counting as one: each is
/// looked up per character. Half as many if case is ignored, because then most letters are looked up twice.
pub const MAX_CLASS_PROPERTIES: usize = 16;

/// The deepest nesting of groups in a `pattern`; parsing and compiling it recurse. Hand-written ones have up to about
/// ten levels, and generated ones not many more.
pub const MAX_PATTERN_DEPTH: usize = 64;

/// The largest number of operations that a `pattern` may be compiled to, and of its parts that may be visited for that.
/// A bounded repetition is expanded, unless it repeats a single character or class: `^([a-z0-9-]{1,63}\.){1,127}$`
/// takes about 1000 operations. An operation takes 8 bytes, and at worst a step at each position of a text.
pub const MAX_PATTERN_OPERATIONS: usize = 20_000;

/// The largest number of nested evaluations of schemas for a value and its parents: references may lead from one schema
/// to the next without end, and each takes stack space. A value is nested 128 levels deep at most, and few schemas need
/// more than three evaluations per level.
pub const MAX_EVALUATION_DEPTH: usize = 512;

/// The largest number of operations of all regular expressions of a schema together: some megabytes at worst.
pub const MAX_SCHEMA_PATTERN_OPERATIONS: usize = 200_000;
