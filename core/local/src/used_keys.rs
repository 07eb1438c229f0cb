//! Keys of what may be used once, as empty files: `used/DIGEST`. The file that a process creates is the use; the time of its
//! latest change is when the key's lifetime ends.

use std::io;
use std::time::{Duration, SystemTime};

use mcpline::sharing::UseOutcome;

use crate::directory::{ServiceDirectory, private_file};
use crate::file_names::file_name;

impl ServiceDirectory {
    /// Records the use of a key. A key whose lifetime is over may count as used until a sweep removes it: replacing it would need a
    /// lock.
    pub(crate) fn record_use(&self, key: &str, lifetime: Duration) -> io::Result<UseOutcome> {
        let end = SystemTime::now().checked_add(lifetime);
        let end = end.ok_or_else(|| io::Error::other("the lifetime of a key is too long"))?;
        let path = self.used().join(file_name(key));
        let file = match private_file().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Ok(UseOutcome::Repeated);
            }
            opened => opened?,
        };
        file.set_modified(end)?;
        Ok(UseOutcome::First)
    }
}
