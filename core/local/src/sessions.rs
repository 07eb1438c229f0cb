//! Sessions as files: `sessions/DIGEST`, replaced as a whole, and `ended/DIGEST` if the session was removed.
//!
//! `save` compares and replaces under a lock that ends with its process. If the lock is held for longer than the step takes, its
//! process was stopped: `save` then goes on without it, so that a stopped process blocks no other. `remove` takes no lock: it first
//! marks the session as ended and then removes its file; `save` first writes the file and then looks for the mark. Whatever their
//! order, one of them removes the file.
//!
//! A file has eight bytes for when the session expires, in milliseconds since 1970 (little-endian), and then the session. The
//! lowest bit of these milliseconds says that the session was used again: saved a second time, or loaded. A load also sets the
//! file's time. What was never used again is removed first when there are too many sessions.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use mcpline::sharing::SaveOutcome;
use rustix::fs::FlockOperation;

use crate::directory::{ServiceDirectory, private_file};
use crate::file_names::file_name;
use crate::limits::{
    GIVEN_UP_LOCK_ATTEMPTS, LOCK_RETRY, LOCK_TIMEOUT, MAX_SESSION_STATE_BYTES, MIN_LOCK_ATTEMPTS,
};

/// Bytes before the session.
pub(crate) const HEADER: usize = 8;

/// The bit of the milliseconds that says that a session was used again.
const USED_AGAIN: u64 = 1;

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

    /// Whether the session was saved a second time, or loaded.
    pub(crate) fn is_used_again(self) -> bool {
        self.0 & USED_AGAIN != 0
    }

    fn with_use(self, is_used_again: bool) -> Self {
        Self(self.0 & !USED_AGAIN | u64::from(is_used_again))
    }
}

/// A lock on some sessions, until it is dropped.
pub(crate) struct Lock {
    _file: File,
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

impl ServiceDirectory {
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
                "a session of {} bytes cannot be shared: the limit is {MAX_SESSION_STATE_BYTES} bytes",
                session.len()
            )));
        }
        if self.has_ended(id)? {
            return Ok(SaveOutcome::Saved);
        }
        let path = self.session_file(id);
        {
            let _lock = self.lock(id)?;
            let stored = self.read_session(id)?.map(|(_, _, stored)| stored);
            let expiry = expiry.with_use(stored.is_some());
            if let Some(stored) = stored
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

    /// Locks the sessions and buckets whose names begin like this one's; `None` if a process keeps the lock, because it was
    /// stopped.
    pub(crate) fn lock(&self, id: &str) -> io::Result<Option<Lock>> {
        let name = file_name(id);
        let began = Instant::now();
        let sleep = || {
            std::thread::sleep(LOCK_RETRY);
            began.elapsed()
        };
        let was_given_up = self.given_up_locks().contains(&name[..2]);
        let (timeout, attempts) = match was_given_up {
            true => (Duration::ZERO, GIVEN_UP_LOCK_ATTEMPTS),
            false => (LOCK_TIMEOUT, MIN_LOCK_ATTEMPTS),
        };
        let lock = retry(timeout, attempts, || self.try_lock(&name), sleep)?;
        let mut given_up = self.given_up_locks();
        match &lock {
            Some(_) => given_up.remove(&name[..2]),
            None => given_up.insert(name[..2].to_owned()),
        };
        Ok(lock)
    }

    /// Locks the sessions whose files' names begin like this one; `None` if another process has the lock.
    pub(crate) fn try_lock(&self, file_name: &str) -> io::Result<Option<Lock>> {
        let mut options = private_file();
        let file = options.write(true).create(true).truncate(false);
        let file = file.open(self.locks().join(&file_name[..2]))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            // Some file systems have no locks.
            _ => Ok(Some(Lock { _file: file })),
        }
    }

    /// Returns the session saved last; `None` if there is none, it was removed, or its lifetime is over.
    pub(crate) fn load(&self, id: &str) -> io::Result<Option<Bytes>> {
        let Some((file, expiry, session)) = self.read_session(id)? else {
            return Ok(None);
        };
        // What is in use is removed last. If the time cannot be set, the session is still whole.
        let _ = if expiry.is_used_again() {
            file.set_modified(SystemTime::now())
        } else {
            let [lowest, ..] = expiry.with_use(true).0.to_le_bytes();
            file.write_all_at(&[lowest], 0)
        };
        Ok(Some(session))
    }

    fn read_session(&self, id: &str) -> io::Result<Option<(File, Expiry, Bytes)>> {
        let mut options = private_file();
        let mut file = match options.read(true).write(true).open(self.session_file(id)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut read = Vec::new();
        file.read_to_end(&mut read)?;
        let Some((header, _)) = read.split_first_chunk() else {
            return Ok(None);
        };
        let expiry = Expiry::of_file(*header);
        if expiry.is_over() || self.has_ended(id)? {
            return Ok(None);
        }
        Ok(Some((file, expiry, Bytes::from(read).slice(HEADER..))))
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
        remove_folder(&self.streams().join(session))
    }
}

/// Removes a directory unless another process has. If another process writes into it meanwhile, a later sweep removes the rest.
pub(crate) fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Tries to lock until there have been enough attempts and this time has passed. `sleep` waits for the next attempt, and returns
/// the time since the first.
fn retry<T>(
    timeout: Duration,
    min_attempts: u32,
    attempt: impl Fn() -> io::Result<Option<T>>,
    mut sleep: impl FnMut() -> Duration,
) -> io::Result<Option<T>> {
    let mut attempts = 0;
    loop {
        if let Some(lock) = attempt()? {
            return Ok(Some(lock));
        }
        attempts += 1;
        if sleep() >= timeout && attempts >= min_attempts {
            return Ok(None);
        }
    }
}

/// Removes a file unless another process has.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::address::ServiceAddress;

    /// Returns the number of attempts, and the time after the last, if each takes this long.
    fn give_up(each: Duration) -> (u32, Duration) {
        let (attempts, now) = (Cell::new(0), Cell::new(Duration::ZERO));
        let attempt = || {
            attempts.set(attempts.get() + 1);
            Ok(None::<()>)
        };
        let sleep = || {
            now.set(now.get() + each);
            now.get()
        };
        assert!(
            retry(LOCK_TIMEOUT, MIN_LOCK_ATTEMPTS, attempt, sleep)
                .expect("no error")
                .is_none()
        );
        (attempts.get(), now.get())
    }

    #[test]
    fn a_lock_is_given_up_after_enough_time_and_enough_attempts() {
        let (attempts, time) = give_up(LOCK_RETRY);
        assert!(attempts > MIN_LOCK_ATTEMPTS);
        assert_eq!(time, LOCK_TIMEOUT);
        // The process itself was stopped meanwhile.
        let (attempts, _) = give_up(LOCK_TIMEOUT);
        assert_eq!(attempts, MIN_LOCK_ATTEMPTS);
    }

    #[test]
    fn a_lock_that_is_released_is_taken() {
        let attempts = Cell::new(0);
        let attempt = || {
            attempts.set(attempts.get() + 1);
            Ok((attempts.get() == 3).then_some(()))
        };
        let taken =
            retry(LOCK_TIMEOUT, MIN_LOCK_ATTEMPTS, attempt, || Duration::ZERO).expect("no error");
        assert!(taken.is_some());
    }

    #[test]
    fn sessions_are_saved_while_a_process_keeps_their_lock() {
        let path = std::env::temp_dir().join(format!("mcpline-lock-{}", std::process::id()));
        let open = || {
            let directory =
                ServiceDirectory::open(ServiceAddress::Path(path.clone()), "own".to_owned());
            directory.expect("a directory")
        };
        let (directory, stopped) = (open(), open());
        let lock = stopped.try_lock(&file_name("one")).expect("opened");
        assert!(lock.is_some());
        for _ in 0..2 {
            let saved = directory.save("one", b"value", b"value", Expiry::after(Duration::MAX));
            assert_eq!(saved.expect("saves"), SaveOutcome::Saved);
            // The second time it makes a few attempts.
            assert_eq!(directory.given_up_locks().len(), 1);
        }
        drop(lock);
        let lock = directory.lock("one").expect("no error");
        assert!(lock.is_some());
        assert!(directory.given_up_locks().is_empty());
        let _ = fs::remove_dir_all(&path);
    }
}
