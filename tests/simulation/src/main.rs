//! Replicas that share sessions, and their clients, simulated with faults in virtual time.
//!
//! See `README.md`, and `simulation --help`.

#![allow(clippy::print_stdout, reason = "this is what it is for")]

mod client;
mod command;
mod exchange;
mod faults;
mod plant;
mod random;
mod replica;
mod run;
mod shared_state;
mod system;
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    command::main()
}
