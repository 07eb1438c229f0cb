//! What drivers need from the runtime and the system: tasks, the time and entropy, and limits of warnings.
//!
//! Protocol logic takes time and entropy as arguments and starts no tasks. `mcpline` and the drivers of `mcpline-auth`
//! use this crate for them.

pub mod background;
pub mod clock;
mod warning_limit;

pub use warning_limit::WarningLimit;
