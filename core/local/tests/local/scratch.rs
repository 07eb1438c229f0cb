//! A directory for each test, and what tests wait for.

use std::fs;
use std::future::Future;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpline::sharing::{SaveOutcome, Sharing, SharingError, Subscription};
use mcpline_local::Local;

pub(crate) const LIFETIME: Duration = Duration::from_secs(3_600);

/// Much longer than anything takes.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A directory that is removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("mcpline-local-{}-{number}", std::process::id()));
        fs::create_dir(&path).expect("created");
        set_mode(&path, 0o700);
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The files in this part of the layout.
    pub(crate) fn files(&self, folder: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.join("1").join(folder)).expect("a directory");
        entries
            .map(|entry| entry.expect("an entry").path())
            .collect()
    }

    /// Another process's end, in this process.
    pub(crate) fn share(&self) -> Sharing {
        Local::in_directory(self.path()).expect("shared")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
}

/// What a subscriber received.
pub(crate) struct Subscriber {
    received: Arc<Mutex<Vec<Bytes>>>,
    _subscription: Subscription,
}

impl Subscriber {
    pub(crate) fn new(sharing: &Sharing) -> Self {
        let received: Arc<Mutex<Vec<Bytes>>> = Arc::default();
        let pushed = received.clone();
        let subscription = sharing.bus.subscribe(Arc::new(move |message| {
            let mut pushed = pushed.lock().unwrap_or_else(PoisonError::into_inner);
            pushed.push(message);
        }));
        Self {
            received,
            _subscription: subscription,
        }
    }

    pub(crate) fn received(&self) -> Vec<Bytes> {
        let received = self.received.lock();
        received.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn until_received(&self, message: &'static str) {
        until(message, || async {
            self.received().iter().any(|received| received == message)
        })
        .await;
    }
}

/// Waits until this is so.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, is_so: impl Fn() -> F) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < WAIT_TIMEOUT, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Saves a session, whatever it replaces.
pub(crate) async fn save(sharing: &Sharing, id: &str, value: &str, lifetime: Duration) {
    let saving = try_save(sharing, id, value, lifetime);
    saving.await.expect("saves");
}

/// Saves a session, whatever it replaces.
pub(crate) async fn try_save(
    sharing: &Sharing,
    id: &str,
    value: &str,
    lifetime: Duration,
) -> Result<(), SharingError> {
    let value = Bytes::copy_from_slice(value.as_bytes());
    let mut replaces = value.clone();
    loop {
        let saving = sharing
            .sessions
            .save(id, value.clone(), replaces.clone(), lifetime);
        match saving.await? {
            SaveOutcome::Saved => return Ok(()),
            SaveOutcome::Conflict(stored) => replaces = stored,
        }
    }
}

pub(crate) async fn load(sharing: &Sharing, id: &str) -> Option<Bytes> {
    sharing.sessions.load(id).await.expect("loads")
}

/// The events of a stream after this one.
pub(crate) async fn read(sharing: &Sharing, stream: &str, after: u64) -> Option<Vec<Bytes>> {
    sharing.events.flush().await.expect("flushes");
    let read = sharing.events.read(stream, after).await.expect("reads");
    read.map(|read| read.events)
}
