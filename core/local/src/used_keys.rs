//! Keys of what may be used once, as empty files: `used/DIGEST`. Giving a file this name is the use; the time of its
//! latest change is when the key's lifetime ends.

use std::fs;
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
        // Complete before it has its name: a sweep would remove one whose time is not set yet.
        let temporary = self.new_temporary();
        let linked = private_file()
            .write(true)
            .create_new(true)
            .open(&temporary)
            .and_then(|file| file.set_modified(end))
            .and_then(|()| fs::hard_link(&temporary, self.used().join(file_name(key))));
        // It may not even exist.
        let _ = fs::remove_file(&temporary);
        match linked {
            Ok(()) => Ok(UseOutcome::First),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(UseOutcome::Repeated),
            Err(error) => Err(error),
        }
    }
}
