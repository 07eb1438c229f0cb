//! System calls of Windows: jobs of processes, standard handles, named pipes, private files, blocked threads. Empty on other systems.
#![cfg(windows)]

mod job;
mod pipe;
mod private_file;
mod security_descriptor;
mod standard_handles;
mod thread;

pub use job::{JOB_CREATION_FLAGS, Job};
pub use pipe::{PIPE_PREFIX, create_pipe};
pub use private_file::{
    OtherUsersAccess, create_private_directory, create_private_file, lock_private_file, set_access,
};
pub use standard_handles::StandardHandles;
pub use thread::cancel_blocking_io;
