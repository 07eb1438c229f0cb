//! Sessions as files: `sessions/DIGEST`, replaced as a whole, and `ended/DIGEST` if the session was removed.
//!
//! `save` compares and replaces under a lock that ends with its process. If the lock is held for longer than the step takes, its
//! process was stopped: `save` then goes on without it, so that a stopped process blocks no other. `remove` takes no lock: it first
//! marks the session as ended and then removes its file; `save` first writes the file and then looks for the mark. Whatever their
//! order, one of them removes the file.
//!
//! A file has eight bytes for when the session expires, in milliseconds since 1970 (little-endian), and then the session.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use mcpline::sharing::SaveOutcome;
use rustix::fs::FlockOperation;

use crate::digest::file_name;
use crate::directory::{Directory, private_file};
use crate::limits::{LOCK_RETRY, LOCK_TIMEOUT, MAX_SESSION_STATE_BYTES};

/// Bytes before the session.
pub(crate) const HEADER: usize = 8;

/// When a session expires, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Expiry(u64);

impl Expiry {
    /// After this time; `Duration::MAX` is never over.
    pub(crate) fn after(lifetime: Duration) -> Self {
        let lifetime = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
        Self(now().saturating_add(lifetime))
    }

    pub(crate) fn of_file(header: [u8; HEADER]) -> Self {
        Self(u64::from_le_bytes(header))
    }

    pub(crate) fn is_over(self) -> bool {
        self.0 <= now()
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

impl Directory {
    fn session_file(&self, id: &str) -> PathBuf {
        self.sessions().join(file_name(id))
    }

    fn ended_file(&self, id: &str) -> PathBuf {
        self.ended().join(file_name(id))
    }

    /// Whether this session was removed.
    pub(crate) fn has_ended(&self, id: &str) -> io::Result<bool> {
        self.ended_file(id).try_exists()
    }

    /// Saves a session, unless it was removed, or another process has changed what it `replaces`.
    pub(crate) fn save(
        &self,
        id: &str,
        session: &[u8],
        replaces: &[u8],
        expiry: Expiry,
    ) -> io::Result<SaveOutcome> {
        if session.len() > MAX_SESSION_STATE_BYTES {
            return Err(io::Error::other(format!(
                "a session has {} bytes, more than {MAX_SESSION_STATE_BYTES}",
                session.len()
            )));
        }
        if self.has_ended(id)? {
            return Ok(SaveOutcome::Saved);
        }
        let path = self.session_file(id);
        {
            let _lock = self.lock(id)?;
            if let Some(stored) = self.load(id)?
                && stored != replaces
                && stored != session
            {
                return Ok(SaveOutcome::Conflict(stored));
            }
            self.replace(&path, &[&expiry.0.to_le_bytes(), session])?;
        }
        if self.has_ended(id)? {
            remove_file(&path)?;
        }
        Ok(SaveOutcome::Saved)
    }

    /// Locks the sessions whose names begin like this one's; `None` if a process keeps the lock, because it was stopped.
    fn lock(&self, id: &str) -> io::Result<Option<File>> {
        let mut options = private_file();
        let file = options.write(true).create(true).truncate(false);
        let file = file.open(self.locks().join(&file_name(id)[..2]))?;
        let end = Instant::now() + LOCK_TIMEOUT;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(file)),
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < end => {
                    std::thread::sleep(LOCK_RETRY);
                }
                // Some file systems have no locks, either.
                Err(_) => return Ok(None),
            }
        }
    }

    /// Returns the session saved last; `None` if there is none, it was removed, or its lifetime is over.
    pub(crate) fn load(&self, id: &str) -> io::Result<Option<Bytes>> {
        let mut file = match File::open(self.session_file(id)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut read = Vec::new();
        file.read_to_end(&mut read)?;
        let Some((header, _)) = read.split_first_chunk() else {
            return Ok(None);
        };
        if Expiry::of_file(*header).is_over() || self.has_ended(id)? {
            return Ok(None);
        }
        Ok(Some(Bytes::from(read).slice(HEADER..)))
    }

    /// Removes a session with its streams. A later [`save`](Self::save) has no effect.
    pub(crate) fn remove(&self, id: &str) -> io::Result<()> {
        private_file()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.ended_file(id))?;
        remove_file(&self.session_file(id))?;
        self.remove_streams(&file_name(id))
    }

    /// Removes the streams of the session whose files have this name.
    pub(crate) fn remove_streams(&self, session: &str) -> io::Result<()> {
        match fs::remove_dir_all(self.streams().join(session)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Removes a file unless another process has.
pub(crate) fn remove_file(path: &std::path::Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
