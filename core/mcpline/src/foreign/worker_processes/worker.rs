//! A worker: what its supervisor says in its environment.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// The environment variable of a worker. Other programs that inherit it have another parent, and ignore it.
const VARIABLE: &str = "MCPLINE_WORKER";

/// What a supervisor says to its workers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    /// The process id of the supervisor.
    pub(super) supervisor: u32,
    /// The descriptor of the socket.
    pub(super) socket: i32,
    /// The address as the program names it.
    pub(super) address: String,
}

impl Assignment {
    /// Returns the environment variable for workers.
    pub(super) fn variable(&self) -> (&'static str, String) {
        (VARIABLE, self.to_string())
    }

    /// Returns that of this process, if a supervisor has started it.
    fn of_this_process() -> Option<Self> {
        let assignment: Self = std::env::var(VARIABLE).ok()?.parse().ok()?;
        (assignment.supervisor == parent()).then_some(assignment)
    }
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.supervisor, self.socket, self.address)
    }
}

impl FromStr for Assignment {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(3, ' ');
        let mut next = || parts.next().ok_or(());
        Ok(Self {
            supervisor: next()?.parse().map_err(drop)?,
            socket: next()?.parse().map_err(drop)?,
            address: next()?.to_owned(),
        })
    }
}

#[cfg(unix)]
fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

#[cfg(not(unix))]
fn parent() -> u32 {
    0
}

/// Whether this process is a worker.
pub(in crate::foreign) fn is_worker() -> bool {
    Assignment::of_this_process().is_some()
}

/// Returns the inherited socket, as the host of an address, if this process is a worker.
pub(super) fn socket_of(address: &str) -> Result<Option<String>, Error> {
    let Some(assignment) = Assignment::of_this_process() else {
        return Ok(None);
    };
    if assignment.address != address {
        return Err(Error::usage(
            "workers: one server of a program can have worker processes",
        ));
    }
    Ok(Some(format!("fd://{}", assignment.socket)))
}

/// Tells the supervisor that this process serves. When the supervisor has ended, this process gets SIGTERM.
#[cfg(unix)]
pub(super) fn follow_supervisor() -> Result<(), Error> {
    mcpline_process::follow_supervisor().map_err(|error| {
        let message = "cannot reach the supervisor of this worker process";
        Error::transport("listen", message, error)
    })
}

#[cfg(not(unix))]
pub(super) fn follow_supervisor() -> Result<(), Error> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_read_as_they_are_written() {
        let assignment = Assignment {
            supervisor: 4711,
            socket: 5,
            address: "a host with spaces:8000".to_owned(),
        };
        assert_eq!(assignment.to_string().parse(), Ok(assignment));
        for text in ["", "1", "1 2", "a 2 b", "1 b c"] {
            assert_eq!(text.parse::<Assignment>(), Err(()), "{text:?}");
        }
    }

    #[test]
    fn only_a_child_of_the_supervisor_is_a_worker() {
        let of = |supervisor: u32| Assignment {
            supervisor,
            socket: 3,
            address: String::new(),
        };
        // This test's program was not started by a supervisor.
        assert!(!is_worker());
        assert_ne!(of(std::process::id()).supervisor, parent());
    }
}
