//! What one schema or one value can make this side hold or compute.

/// Deepest nesting of a JSON Schema; compiling and validating recurse.
pub const MAX_SCHEMA_DEPTH: usize = 64;

/// Most subschemas in a JSON Schema. Schemas generated from large type hierarchies have some hundreds.
pub const MAX_SUBSCHEMAS: usize = 10_000;

/// How many steps a validation may take, beside 64 per byte of the value: a few milliseconds for a small value.
/// A step is what some nanoseconds suffice for: a look at one state of a regular expression at one character, at 16
/// bytes of a text that is compared, counted or hashed, or at a rule. Alternatives and references can make a small
/// schema and a small value cost exponential time, and schemas that look at a long text again and again need no small
/// value for that.
pub const MAX_VALIDATION_STEPS: usize = 1_000_000;

/// How many steps compiling a schema may take, beside what its size allows: several times what a schema of a megabyte
/// without references takes.
pub const MAX_COMPILATION_STEPS: usize = 4_000_000;

/// Longest JSON pointer into a value that a message tells, in bytes; what goes on is cut. Names in a value may be as
/// long as a message, and each failed alternative has a pointer.
pub const MAX_REPORTED_POINTER_BYTES: usize = 1_000;

/// Longest `pattern`, in bytes. Those that list what a text may be, such as time zones, have some ten thousand.
pub const MAX_PATTERN_BYTES: usize = 64 * 1024;

/// Most properties in a class of a `pattern`, all general categories counting as one: each is looked up for a character.
/// Half as many where case is ignored, for there most letters are looked up twice.
pub const MAX_CLASS_PROPERTIES: usize = 16;

/// Deepest nesting of groups in a `pattern`; reading and compiling it recurse. Those that people write have some ten, and
/// generated ones not many more.
pub const MAX_PATTERN_DEPTH: usize = 64;

/// Most operations that a `pattern` may be compiled to, and parts of it that may be visited for that. What is repeated up
/// to a bound is written out that often, unless it is a single character or class: `^([a-z0-9-]{1,63}\.){1,127}$` takes
/// some 1000. An operation takes 8 bytes, and a step at each position of a text at worst.
pub const MAX_PATTERN_OPERATIONS: usize = 20_000;

/// How many schemas may be at work on one value and what it stands in: references may lead on and on, and each
/// takes some of the thread's stack. A value is nested 128 levels deep at most, and few schemas need more than
/// three for a level.
pub const MAX_EVALUATION_DEPTH: usize = 512;

/// Most operations that all regular expressions of a schema may be compiled to together: some megabytes at worst.
pub const MAX_SCHEMA_PATTERN_OPERATIONS: usize = 200_000;
