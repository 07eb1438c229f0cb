//! JSON as text: one pass that validates it, and slices of the validated text.
//!
//! The scanner finds where values are; [`Raw`] keeps one of them as bytes until it is decoded.

mod raw;
mod raw_ref;
mod scan;
mod text;

pub use raw::{Elements, Members, Raw};
pub use raw_ref::RawRef;
pub use scan::{JsonKind, Problem, ScanError, check};
pub(crate) use scan::{Key, Member, ScanResult, Scanner, Span, head, scan};
pub use text::json_string;
pub(crate) use text::unescape;
