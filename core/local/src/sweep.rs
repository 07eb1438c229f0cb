//! Removes what has expired, and what exceeds the limits of the directory.
//!
//! Each process looks now and then whether the latest sweep of any process is long ago. Two that sweep at the same time do no
//! harm.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::directory::{ServiceDirectory, private_file};
use crate::limits::{
    FULL_BUCKET_LIFETIME, MAX_BUCKETS, MAX_ENDED_MARKS, MAX_SESSIONS_BYTES, MAX_STREAMS_BYTES,
    MAX_USED_KEYS, REMOVED_LIFETIME, STREAM_LIFETIME, SWEEP_INTERVAL, TEMPORARY_LIFETIME,
};
use crate::sessions::{Expiry, HEADER, remove_file, remove_folder};

/// Limits of a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of all sessions.
    pub(crate) sessions: u64,
    /// Bytes of all streams.
    pub(crate) streams: u64,
    /// The number of marks of removed sessions.
    pub(crate) ended: usize,
    /// The number of keys that were used.
    pub(crate) used: usize,
    /// The number of buckets that are not full.
    pub(crate) buckets: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: MAX_SESSIONS_BYTES,
            streams: MAX_STREAMS_BYTES,
            ended: MAX_ENDED_MARKS,
            used: MAX_USED_KEYS,
            buckets: MAX_BUCKETS,
        }
    }
}

impl ServiceDirectory {
    /// Whether it is time to sweep. The process that learns this sweeps.
    pub(crate) fn is_sweep_due(&self) -> io::Result<bool> {
        let path = self.sweep_marker();
        match fs::metadata(&path) {
            Ok(found) if age(found.modified()?) < SWEEP_INTERVAL => return Ok(false),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = private_file();
        let stamp = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        stamp.set_modified(SystemTime::now())?;
        Ok(true)
    }

    /// Removes what has expired, and the oldest sessions and streams above the limits.
    ///
    /// # Errors
    ///
    /// The first one; what else can be removed is removed all the same.
    pub(crate) fn sweep(&self, limits: Limits) -> io::Result<()> {
        let mut failures = Failures::default();
        for entry in failures.entries(&self.temporary()) {
            failures.note(&entry.path(), remove_older(&entry, TEMPORARY_LIFETIME));
        }
        for entry in failures.entries(&self.bus()) {
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                failures.note(&entry.path(), remove_older(&entry, TEMPORARY_LIFETIME));
            }
        }
        self.sweep_marks(limits.ended, &mut failures);
        self.sweep_used_keys(limits.used, &mut failures);
        self.sweep_buckets(limits.buckets, &mut failures);
        let kept = self.sweep_sessions(limits.sessions, &mut failures);
        self.sweep_streams(&kept, limits.streams, &mut failures);
        failures.0.map_or(Ok(()), Err)
    }

    /// Removes the marks of sessions that were removed long ago, and the oldest above the limit.
    fn sweep_marks(&self, limit: usize, failures: &mut Failures) {
        let is_over = |modified| age(modified) >= REMOVED_LIFETIME;
        sweep_by_time(&self.ended(), is_over, limit, failures);
    }

    /// Removes the keys whose lifetime is over, and those above the limit whose lifetime ends first.
    fn sweep_used_keys(&self, limit: usize, failures: &mut Failures) {
        let now = SystemTime::now();
        sweep_by_time(&self.used(), |end| end <= now, limit, failures);
    }

    /// Removes the buckets that are full, and those above the limit that will be full first.
    fn sweep_buckets(&self, limit: usize, failures: &mut Failures) {
        let is_over = |full_at: SystemTime| {
            let since = full_at.elapsed();
            since.is_ok_and(|since| since >= FULL_BUCKET_LIFETIME)
        };
        sweep_by_time(&self.buckets(), is_over, limit, failures);
    }

    /// Returns the names of the sessions that are left.
    fn sweep_sessions(&self, limit: u64, failures: &mut Failures) -> HashSet<OsString> {
        let mut kept = HashSet::new();
        let mut files: Vec<SessionFile> = Vec::new();
        let mut bytes = 0;
        for entry in failures.entries(&self.sessions()) {
            let path = entry.path();
            let read = SessionFile::read(path.clone());
            // Another process may have removed it.
            let Some(file) = failures.note(&path, read).flatten() else {
                continue;
            };
            let name = entry.file_name();
            let has_ended = file.has_expired || self.is_marked(&name);
            if has_ended && failures.note(&path, self.remove_unchanged(&file)) == Some(true) {
                continue;
            }
            bytes += file.bytes;
            files.push(file);
            kept.insert(name);
        }
        if bytes > limit {
            files.sort_by_cached_key(SessionFile::order_of_removal);
            for file in files {
                if bytes <= limit {
                    break;
                }
                if failures.note(&file.path, self.remove_unchanged(&file)) == Some(true) {
                    kept.remove(file.name());
                    bytes -= file.bytes;
                }
            }
            tracing::warn!(
                limit,
                "the sessions of this machine exceeded their limit in bytes: those least in use were removed"
            );
        }
        kept
    }

    /// Whether the session whose file has this name was removed.
    fn is_marked(&self, name: &OsStr) -> bool {
        self.ended().join(name).exists()
    }

    /// Removes a session, unless it was saved or loaded since this was read, or another process has the lock on it. Returns
    /// whether it did.
    fn remove_unchanged(&self, file: &SessionFile) -> io::Result<bool> {
        let name = file.name().to_str().filter(|name| name.is_char_boundary(2));
        let _lock = match name.filter(|name| name.len() > 2) {
            Some(name) => match self.try_lock(name)? {
                Some(lock) => Some(lock),
                None => return Ok(false),
            },
            // Not a session.
            None => None,
        };
        match SessionFile::read(file.path.clone())? {
            Some(found) if found != *file => Ok(false),
            _ => remove_file(&file.path).map(|()| true),
        }
    }

    fn sweep_streams(&self, sessions: &HashSet<OsString>, limit: u64, failures: &mut Failures) {
        let mut files: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
        let mut bytes = 0;
        for session in failures.entries(&self.streams()) {
            let name = session.file_name();
            let folder = session.path();
            let mut is_in_use = sessions.contains(&name);
            let mut streams = Vec::new();
            for stream in failures.entries(&folder) {
                let path = stream.path();
                let Ok(found) = stream.metadata() else {
                    continue;
                };
                let Some(modified) = failures.note(&path, found.modified()) else {
                    continue;
                };
                is_in_use |= age(modified) < STREAM_LIFETIME;
                streams.push((modified, path, size(&found)));
            }
            if self.is_marked(&name) || !is_in_use {
                failures.note(&folder, remove_folder(&folder));
                continue;
            }
            bytes += streams.iter().map(|(_, _, bytes)| bytes).sum::<u64>();
            files.append(&mut streams);
        }
        if bytes > limit {
            files.sort();
            for (_, path, size) in files {
                if bytes <= limit {
                    break;
                }
                if failures.note(&path, remove_file(&path)).is_some() {
                    bytes -= size;
                }
            }
        }
    }
}

/// Removes the files in a directory whose lifetime is over according to the time of their latest change, and those above the limit
/// with the earliest time.
fn sweep_by_time(
    folder: &Path,
    is_over: impl Fn(SystemTime) -> bool,
    limit: usize,
    failures: &mut Failures,
) {
    let mut kept: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in failures.entries(folder) {
        let path = entry.path();
        // Another process may have removed it.
        let Ok(found) = entry.metadata() else {
            continue;
        };
        let Some(modified) = failures.note(&path, found.modified()) else {
            continue;
        };
        if is_over(modified) {
            failures.note(&path, remove_file(&path));
        } else {
            kept.push((modified, path));
        }
    }
    let surplus = kept.len().saturating_sub(limit);
    kept.sort();
    for (_, path) in &kept[..surplus] {
        failures.note(path, remove_file(path));
    }
}

/// The first error of a sweep, which goes on.
#[derive(Default)]
struct Failures(Option<io::Error>);

impl Failures {
    /// Returns the result without its error.
    fn note<T>(&mut self, path: &Path, result: io::Result<T>) -> Option<T> {
        let noted = |error: io::Error| {
            let path = path.display();
            self.0
                .get_or_insert_with(|| io::Error::new(error.kind(), format!("{path}: {error}")));
        };
        result.map_err(noted).ok()
    }

    /// Returns the entries of a directory; none if it was removed.
    fn entries(&mut self, folder: &Path) -> Vec<DirEntry> {
        let listed = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            listed => self.note(folder, listed),
        };
        let entries = listed.into_iter().flatten();
        entries
            .filter_map(|entry| self.note(folder, entry))
            .collect()
    }
}

/// The file of a session.
#[derive(Debug, PartialEq, Eq)]
struct SessionFile {
    path: PathBuf,
    modified: SystemTime,
    bytes: u64,
    has_expired: bool,
    is_used_again: bool,
}

impl SessionFile {
    /// Returns `None` if the file is no longer there.
    fn read(path: PathBuf) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER];
        let opened = File::open(&path)
            .and_then(|mut file| Ok((file.metadata()?, file.read_exact(&mut header))));
        let (found, read) = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let expiry = match read {
            Ok(()) => Some(Expiry::of_file(header)),
            // Not a session.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => return Err(error),
        };
        Ok(Some(Self {
            path,
            modified: found.modified()?,
            bytes: size(&found),
            has_expired: expiry.is_none_or(Expiry::is_over),
            is_used_again: expiry.is_some_and(Expiry::is_used_again),
        }))
    }

    fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// Returns a key by which those come first that are removed first above the limit: what was never used again, the largest
    /// first, and then what was not used for the longest time. So a client that starts many sessions, or large ones, removes its
    /// own.
    fn order_of_removal(&self) -> (bool, Reverse<u64>, SystemTime) {
        let bytes = if self.is_used_again { 0 } else { self.bytes };
        (self.is_used_again, Reverse(bytes), self.modified)
    }
}

fn remove_older(entry: &DirEntry, lifetime: Duration) -> io::Result<()> {
    match entry.metadata() {
        Ok(found) if age(found.modified()?) >= lifetime => remove_file(&entry.path()),
        _ => Ok(()),
    }
}

/// Returns the time since then. After the clock was set back, that is the time until then.
fn age(modified: SystemTime) -> Duration {
    modified.elapsed().unwrap_or_else(|ahead| ahead.duration())
}

/// Returns what a file takes in the file system.
fn size(found: &Metadata) -> u64 {
    found.blocks() * 512
}

#[cfg(test)]
mod tests {
    use mcpline::sharing::{BucketPolicy, SaveOutcome, TakeOutcome, UseOutcome};

    use super::*;
    use crate::address::ServiceAddress;
    use crate::buckets::unix_time;
    use crate::file_names::file_name;
    use crate::readers::Readers;
    use crate::streams::Records;

    const LIFETIME: Duration = Duration::from_secs(3_600);

    struct Scratch(PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn directory(name: &str) -> (Scratch, ServiceDirectory) {
        let name = format!("mcpline-sweep-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let scratch = Scratch(path.clone());
        let directory = ServiceDirectory::open(ServiceAddress::Path(path), "own".to_owned());
        (scratch, directory.expect("a directory"))
    }

    fn save(directory: &ServiceDirectory, id: &str, bytes: usize, lifetime: Duration) {
        let session = vec![b'x'; bytes];
        let saved = directory.save(id, &session, &session, Expiry::after(lifetime));
        assert_eq!(saved.expect("saves"), SaveOutcome::Saved);
    }

    fn append(directory: &ServiceDirectory, stream: &str, bytes: usize) {
        let mut records = Records::default();
        records.event(0, &vec![b'x'; bytes]);
        directory.append(stream, &records).expect("appended");
    }

    fn is_kept(directory: &ServiceDirectory, stream: &str) -> bool {
        let read = directory.read(stream, 0, &mut Readers::default());
        read.expect("reads").is_some()
    }

    fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
        fs::read_dir(folder)?.collect()
    }

    /// Makes all files in a folder older.
    fn make_older(folder: &Path, by: Duration) {
        for entry in entries(folder).expect("listed") {
            let path = entry.path();
            if path.is_dir() {
                make_older(&path, by);
                continue;
            }
            let file = fs::OpenOptions::new().append(true).open(&path);
            file.and_then(|file| file.set_modified(file.metadata()?.modified()? - by))
                .expect("changed");
        }
    }

    fn count(folder: &Path) -> usize {
        entries(folder).expect("listed").len()
    }

    #[test]
    fn expired_sessions_are_removed_with_their_streams() {
        let (_scratch, directory) = directory("expired");
        save(&directory, "over", 10, Duration::ZERO);
        save(&directory, "kept", 10, LIFETIME);
        append(&directory, "over/1", 10);
        append(&directory, "kept/1", 10);
        make_older(&directory.streams(), STREAM_LIFETIME);
        directory.sweep(Limits::default()).expect("swept");
        assert_eq!(count(&directory.sessions()), 1);
        assert!(directory.load("kept").expect("loads").is_some());
        assert!(!is_kept(&directory, "over/1"));
        assert!(is_kept(&directory, "kept/1"));
    }

    #[test]
    fn streams_of_sessions_that_are_not_saved_yet_are_kept_for_an_hour() {
        let (_scratch, directory) = directory("unsaved");
        append(&directory, "old/1", 10);
        make_older(&directory.streams(), STREAM_LIFETIME);
        append(&directory, "new/1", 10);
        directory.sweep(Limits::default()).expect("swept");
        assert!(!is_kept(&directory, "old/1"));
        assert!(is_kept(&directory, "new/1"));
    }

    #[test]
    fn what_killed_processes_left_is_removed() {
        let (_scratch, directory) = directory("left");
        fs::write(directory.new_temporary(), "half").expect("written");
        fs::write(directory.bus().join(".unnamed"), "").expect("written");
        directory.remove("ended").expect("removes");
        directory.sweep(Limits::default()).expect("swept");
        let folders = [directory.temporary(), directory.bus(), directory.ended()];
        for folder in &folders {
            assert_eq!(count(folder), 1, "{}", folder.display());
            make_older(folder, REMOVED_LIFETIME);
        }
        directory.sweep(Limits::default()).expect("swept");
        for folder in &folders {
            assert_eq!(count(folder), 0, "{}", folder.display());
        }
    }

    #[test]
    fn the_oldest_sessions_and_streams_above_the_limits_are_removed() {
        let (_scratch, directory) = directory("limits");
        save(&directory, "first", 100_000, LIFETIME);
        append(&directory, "first/1", 100_000);
        make_older(&directory.sessions(), Duration::from_secs(2));
        make_older(&directory.streams(), Duration::from_secs(2));
        for id in ["second", "third"] {
            save(&directory, id, 100_000, LIFETIME);
            append(&directory, &format!("{id}/1"), 100_000);
        }
        let limits = Limits {
            sessions: 250_000,
            streams: 250_000,
            ..Limits::default()
        };
        directory.sweep(limits).expect("swept");
        assert!(directory.load("first").expect("loads").is_none());
        assert!(!is_kept(&directory, "first/1"));
        for id in ["second", "third"] {
            assert!(directory.load(id).expect("loads").is_some());
            assert!(is_kept(&directory, &format!("{id}/1")));
        }
    }

    #[test]
    fn sessions_in_use_are_removed_last() {
        let (_scratch, directory) = directory("in-use");
        for id in ["loaded", "saved"] {
            save(&directory, id, 100_000, LIFETIME);
        }
        assert!(directory.load("loaded").expect("loads").is_some());
        save(&directory, "saved", 100_000, LIFETIME);
        // Of another client, and newer.
        for id in ["small", "largest", "large"] {
            make_older(&directory.sessions(), Duration::from_secs(2));
            let bytes = if id == "largest" { 200_000 } else { 100_000 };
            save(&directory, id, bytes, LIFETIME);
        }
        for (limit, removed) in [(450_000, "largest"), (350_000, "small"), (250_000, "large")] {
            make_older(&directory.sessions(), Duration::from_secs(2));
            let limits = Limits {
                sessions: limit,
                ..Limits::default()
            };
            directory.sweep(limits).expect("swept");
            let is_left = directory.sessions().join(file_name(removed)).exists();
            assert!(!is_left, "{removed}");
        }
        assert_eq!(count(&directory.sessions()), 2);
        // Its load counts as use, although it was saved before the other.
        assert!(directory.load("loaded").expect("loads").is_some());
        let limits = Limits {
            sessions: 150_000,
            ..Limits::default()
        };
        directory.sweep(limits).expect("swept");
        assert!(directory.load("loaded").expect("loads").is_some());
        assert!(directory.load("saved").expect("loads").is_none());
    }

    #[test]
    fn a_session_that_changes_during_a_sweep_is_kept() {
        let (_scratch, directory) = directory("changes");
        save(&directory, "one", 10, LIFETIME);
        make_older(&directory.sessions(), Duration::from_secs(2));
        let path = directory.sessions().join(file_name("one"));
        let read = || {
            let file = SessionFile::read(path.clone());
            file.expect("readable").expect("there")
        };
        let before = read();
        assert!(directory.load("one").expect("loads").is_some());
        assert!(!directory.remove_unchanged(&before).expect("known"));
        let locked = directory.try_lock(&file_name("one")).expect("opened");
        assert!(!directory.remove_unchanged(&read()).expect("known"));
        drop(locked);
        assert!(path.exists());
        assert!(directory.remove_unchanged(&read()).expect("known"));
        assert!(!path.exists());
    }

    #[test]
    fn entries_that_cannot_be_removed_stop_no_sweep() {
        let (_scratch, directory) = directory("odd");
        save(&directory, "over", 10, Duration::ZERO);
        append(&directory, "over/1", 10);
        make_older(&directory.streams(), STREAM_LIFETIME);
        directory.remove("ended").expect("removes");
        make_older(&directory.ended(), REMOVED_LIFETIME);
        for folder in [directory.sessions(), directory.ended()] {
            fs::create_dir(folder.join("folder")).expect("created");
        }
        // Older than a file may be that is being written.
        let odd = directory.temporary().join("folder");
        fs::create_dir(&odd).expect("created");
        let earlier = SystemTime::now() - TEMPORARY_LIFETIME;
        let set = File::open(odd).and_then(|folder| folder.set_modified(earlier));
        set.expect("changed");
        fs::write(directory.streams().join("file"), "").expect("written");
        let error = directory.sweep(Limits::default()).unwrap_err().to_string();
        assert!(error.contains("1/tmp/folder: "), "{error}");
        for (folder, left) in [
            (directory.sessions(), 1),
            (directory.ended(), 1),
            (directory.streams(), 1),
        ] {
            assert_eq!(count(&folder), left, "{}", folder.display());
        }
    }

    #[test]
    fn the_oldest_marks_of_removed_sessions_above_the_limit_are_removed() {
        let (_scratch, directory) = directory("marks");
        for id in ["first", "second", "third", "fourth"] {
            make_older(&directory.ended(), Duration::from_secs(2));
            directory.remove(id).expect("removes");
        }
        let limits = Limits {
            ended: 2,
            ..Limits::default()
        };
        directory.sweep(limits).expect("swept");
        let kept = ["first", "second", "third", "fourth"].map(|id| directory.has_ended(id));
        let kept = kept.map(|has_ended| has_ended.expect("known"));
        assert_eq!(kept, [false, false, true, true]);
    }

    #[test]
    fn used_keys_are_kept_for_their_lifetime_within_their_limit() {
        let (_scratch, directory) = directory("used");
        let use_key = |key: &str, lifetime: Duration| {
            let used = directory.record_use(key, lifetime);
            used.expect("recorded")
        };
        assert_eq!(use_key("over", Duration::ZERO), UseOutcome::First);
        for (key, seconds) in [("third", 300), ("first", 100), ("second", 200)] {
            assert_eq!(
                use_key(key, Duration::from_secs(seconds)),
                UseOutcome::First
            );
        }
        directory.sweep(Limits::default()).expect("swept");
        assert_eq!(count(&directory.used()), 3);
        let limits = Limits {
            used: 2,
            ..Limits::default()
        };
        directory.sweep(limits).expect("swept");
        let outcomes = ["second", "third", "first"].map(|key| use_key(key, LIFETIME));
        use UseOutcome::{First, Repeated};
        assert_eq!(outcomes, [Repeated, Repeated, First]);
    }

    #[test]
    fn buckets_are_kept_until_they_are_full_within_their_limit() {
        let (_scratch, directory) = directory("buckets");
        let now = unix_time();
        let take = |key: &str, seconds: u64, now: Duration| {
            let policy = BucketPolicy {
                interval: Duration::from_secs(seconds),
                burst: 1,
            };
            let taken = directory.take(key, policy, 1, now);
            taken.expect("taken").0
        };
        // It is full since a while.
        let earlier = now - 2 * FULL_BUCKET_LIFETIME;
        assert_eq!(take("over", 1, earlier), TakeOutcome::Taken(1));
        for (key, seconds) in [("third", 300), ("first", 100), ("second", 200)] {
            assert_eq!(take(key, seconds, now), TakeOutcome::Taken(1));
        }
        assert_eq!(count(&directory.buckets()), 4);
        directory.sweep(Limits::default()).expect("swept");
        assert_eq!(count(&directory.buckets()), 3);
        let limits = Limits {
            buckets: 2,
            ..Limits::default()
        };
        directory.sweep(limits).expect("swept");
        // What is removed is full.
        assert_eq!(take("first", 100, now), TakeOutcome::Taken(1));
        for (key, seconds) in [("second", 200), ("third", 300)] {
            let wait = Duration::from_secs(seconds);
            assert_eq!(take(key, seconds, now), TakeOutcome::Empty(wait), "{key}");
        }
    }

    #[test]
    fn one_process_sweeps_in_each_interval() {
        let (_scratch, directory) = directory("interval");
        assert!(directory.is_sweep_due().expect("known"));
        assert!(!directory.is_sweep_due().expect("known"));
        let stamp = fs::OpenOptions::new()
            .append(true)
            .open(directory.sweep_marker());
        let earlier = SystemTime::now() - SWEEP_INTERVAL;
        stamp
            .and_then(|stamp| stamp.set_modified(earlier))
            .expect("changed");
        assert!(directory.is_sweep_due().expect("known"));
    }
}
