//! Replicas that share sessions, and their clients, simulated with faults in virtual time.
//!
//! See `README.md`, and `simulation --help`.

#![allow(clippy::print_stdout, reason = "this is what it is for")]

#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod command;
#[cfg(target_os = "linux")]
mod exchange;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(target_os = "linux")]
mod plant;
#[cfg(target_os = "linux")]
mod random;
#[cfg(target_os = "linux")]
mod replica;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod shared_state;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod world;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    command::main()
}

/// Other systems have no fixed addresses, or other functions for entropy and the time.
#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("the simulation runs on Linux: elsewhere, a run would not depend on its seed alone");
    ExitCode::from(2)
}
