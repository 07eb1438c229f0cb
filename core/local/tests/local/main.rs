//! State that processes of one machine share: the traits, the directory, and processes that are killed or stopped.
#![cfg(unix)]

mod directories;
mod processes;
mod scratch;
mod traits;
