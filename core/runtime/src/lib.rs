//! What drivers need of the runtime and of the system, whatever they drive: tasks, the time and entropy.
//!
//! Protocol logic takes time and entropy as arguments and starts no tasks. `mcpline` and the drivers of `mcpline-auth` get them
//! here.

pub mod background;
pub mod clock;
