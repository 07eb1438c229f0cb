//! System calls of Windows: jobs of processes, standard handles, named pipes, blocked threads. Empty on other systems.
#![cfg(windows)]

mod job;
mod pipe;
mod standard_handles;
mod thread;

pub use job::{Job, START_FLAGS};
pub use pipe::{PIPE_PREFIX, create_pipe};
pub use standard_handles::StandardHandles;
pub use thread::cancel_blocking_io;
