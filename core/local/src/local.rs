//! Implements the traits of `mcpline::sharing` over a directory.

use std::path::PathBuf;

use mcpline::sharing::Sharing;

use crate::address::ServiceAddress;
use crate::error::LocalError;

/// State that servers on one machine share. The constructors return it as [`Sharing`].
///
/// A thread does the I/O; it ends when the state is no longer used and everything is written. A process that is forked afterwards
/// starts a thread of its own, with its own socket, when it first uses the state.
#[derive(Debug)]
pub struct Local {
    #[cfg(unix)]
    shared: unix::Shared,
}

impl Local {
    /// Returns state that is shared by all servers of this user with this name, which has 1 to 32 letters, digits or `-_.`.
    ///
    /// It is in `$XDG_RUNTIME_DIR/mcpline/NAME`, or else in `mcpline-UID/NAME` in the directory for temporary files (on macOS always
    /// `/tmp`, because the paths of sockets are limited).
    ///
    /// # Errors
    ///
    /// The name is invalid, another user could read the directory or replace it in its parent, the directory or a socket cannot
    /// be created, the thread cannot be started, or the system is Windows.
    pub fn named(name: &str) -> Result<Sharing, LocalError> {
        Self::at(ServiceAddress::named(name)?)
    }

    /// Returns state that is shared by all servers of this user with this directory: an absolute path without `..`. It is created
    /// with mode 700 unless it exists. Its parent is checked; no other user may be able to replace a directory above that.
    ///
    /// # Errors
    ///
    /// As [`named`](Self::named), or the path is relative.
    pub fn in_directory(path: impl Into<PathBuf>) -> Result<Sharing, LocalError> {
        Self::at(ServiceAddress::Path(path.into()))
    }

    /// Returns state as a URL says: `local` for the name of the server, `local://NAME` as [`named`](Self::named), or
    /// `local:///path` as [`in_directory`](Self::in_directory). The name of a server may have any characters.
    ///
    /// # Errors
    ///
    /// As [`named`](Self::named), or the URL is invalid.
    pub fn at_url(url: &str, server: &str) -> Result<Sharing, LocalError> {
        Self::at(ServiceAddress::parse(url, server)?)
    }

    #[cfg(not(unix))]
    fn at(_: ServiceAddress) -> Result<Sharing, LocalError> {
        Err(LocalError::Unsupported)
    }
}

#[cfg(unix)]
mod unix {
    use std::sync::{Arc, Mutex, OnceLock, PoisonError};
    use std::time::Duration;

    use bytes::Bytes;
    use mcpline::sharing::{
        BucketPolicy, Bus, EventLog, LoggedEvents, MemorySharing, Pending, SaveOutcome,
        SessionStore, SharedBuckets, Sharing, SharingError, Subscription, TakeOutcome, UseOutcome,
    };
    use mcpline_runtime::{WarningLimit, clock};
    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::Local;
    use crate::address::ServiceAddress;
    use crate::directory::ServiceDirectory;
    use crate::error::LocalError;
    use crate::limits::{OPERATION_TIMEOUT, WARNINGS};
    use crate::operation_queue::{Operation, Queue, Reply};
    use crate::sessions::Expiry;
    use crate::worker;

    pub(super) struct Shared {
        /// Of the process that created the state.
        first: Process,
        address: ServiceAddress,
        /// Used only as the bus within this process.
        subscribers: Arc<MemorySharing>,
        restarts: WarningLimit,
    }

    /// What one process has: a thread does not survive a fork.
    struct Process {
        /// The id of the process.
        id: u32,
        queue: Arc<Queue>,
        /// Of a process that was forked from this one; empty in this one.
        forked: OnceLock<Box<Process>>,
        /// Held while `forked` is started: by forked processes only, so that none finds it locked by a thread of its parent.
        starting: Mutex<()>,
    }

    impl Process {
        /// Starts the thread.
        fn start(
            address: ServiceAddress,
            subscribers: &Arc<MemorySharing>,
        ) -> Result<Self, LocalError> {
            let directory = ServiceDirectory::open(address, clock::token())?;
            let queue = Arc::new(Queue::default());
            worker::start(queue.clone(), directory, subscribers.clone())?;
            Ok(Self {
                id: std::process::id(),
                queue,
                forked: OnceLock::new(),
                starting: Mutex::default(),
            })
        }

        /// Returns the one that was started last.
        fn latest(&self) -> &Self {
            let mut latest = self;
            while let Some(forked) = latest.forked.get() {
                latest = forked;
            }
            latest
        }
    }

    impl std::fmt::Debug for Shared {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_struct("Shared").finish_non_exhaustive()
        }
    }

    impl Local {
        pub(super) fn at(address: ServiceAddress) -> Result<Sharing, LocalError> {
            let shared = Arc::new(Self::start(address)?);
            Ok(Sharing {
                sessions: shared.clone(),
                events: shared.clone(),
                bus: shared.clone(),
                buckets: Some(shared),
            })
        }

        fn start(address: ServiceAddress) -> Result<Self, LocalError> {
            let subscribers = Arc::new(MemorySharing::default());
            let first = Process::start(address.clone(), &subscribers)?;
            let shared = Shared {
                first,
                address,
                subscribers,
                restarts: WarningLimit::new(WARNINGS),
            };
            Ok(Self { shared })
        }

        /// Returns the queue of this process. A process that was forked from the one that had it starts a thread of its own.
        ///
        /// # Errors
        ///
        /// The thread cannot be started in a forked process.
        fn queue(&self) -> Result<&Queue, SharingError> {
            let id = std::process::id();
            let latest = self.shared.first.latest();
            if latest.id == id {
                return Ok(&latest.queue);
            }
            let starting = latest.starting.lock();
            let _starting = starting.unwrap_or_else(PoisonError::into_inner);
            if latest.forked.get().is_none() {
                let started = Process::start(self.shared.address.clone(), &self.shared.subscribers);
                let started = started.map_err(|error| {
                    SharingError::new(format!("cannot share state in a forked process: {error}"))
                })?;
                // Empty, because `starting` is locked.
                let _ = latest.forked.set(Box::new(started));
            }
            Ok(&latest.latest().queue)
        }

        /// Adds an operation without an outcome.
        fn push(&self, operation: Operation) {
            match self.queue() {
                Ok(queue) => queue.push(operation),
                Err(error) => {
                    if let Some(suppressed) = self.shared.restarts.admit() {
                        tracing::warn!(%error, suppressed, "dropped an event or a message for other processes");
                    }
                }
            }
        }

        /// Adds an operation and waits for its outcome.
        async fn ask<T>(
            &self,
            operation: impl FnOnce(Reply<T>) -> Operation,
        ) -> Result<T, SharingError> {
            let (reply, outcome) = oneshot::channel();
            self.queue()?.push(operation(reply));
            match timeout(OPERATION_TIMEOUT, outcome).await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => Err(SharingError::new(
                    "too many operations are waiting for the file system",
                )),
                Err(_) => Err(SharingError::new(format!(
                    "the file system did not answer within {} seconds",
                    OPERATION_TIMEOUT.as_secs()
                ))),
            }
        }
    }

    impl SessionStore for Local {
        fn save<'a>(
            &'a self,
            id: &'a str,
            value: Bytes,
            replaces: Bytes,
            lifetime: Duration,
        ) -> Pending<'a, SaveOutcome> {
            Box::pin(self.ask(move |reply| Operation::Save {
                session: id.to_owned(),
                value,
                replaces,
                expiry: Expiry::after(lifetime),
                reply,
            }))
        }

        fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
            Box::pin(self.ask(move |reply| Operation::Load {
                session: id.to_owned(),
                reply,
            }))
        }

        fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
            Box::pin(self.ask(move |reply| Operation::Remove {
                session: id.to_owned(),
                reply,
            }))
        }

        fn record_use<'a>(&'a self, key: &'a str, lifetime: Duration) -> Pending<'a, UseOutcome> {
            Box::pin(self.ask(move |reply| Operation::RecordUse {
                key: key.to_owned(),
                lifetime,
                reply,
            }))
        }
    }

    impl SharedBuckets for Local {
        fn take<'a>(
            &'a self,
            key: &'a str,
            policy: BucketPolicy,
            tokens: u32,
        ) -> Pending<'a, TakeOutcome> {
            Box::pin(self.ask(move |reply| Operation::Take {
                key: key.to_owned(),
                policy,
                tokens,
                reply,
            }))
        }

        fn give_back<'a>(
            &'a self,
            key: &'a str,
            policy: BucketPolicy,
            tokens: u32,
        ) -> Pending<'a, ()> {
            Box::pin(self.ask(move |reply| Operation::GiveBack {
                key: key.to_owned(),
                policy,
                tokens,
                reply,
            }))
        }
    }

    impl EventLog for Local {
        fn append(&self, stream: &str, number: u64, event: Bytes) {
            self.push(Operation::Append {
                stream: stream.to_owned(),
                number,
                event,
            });
        }

        fn end(&self, stream: &str, last: u64) {
            self.push(Operation::End {
                stream: stream.to_owned(),
                last,
            });
        }

        fn flush(&self) -> Pending<'_, ()> {
            Box::pin(self.ask(|reply| Operation::Flush { reply }))
        }

        fn read<'a>(&'a self, stream: &'a str, after: u64) -> Pending<'a, Option<LoggedEvents>> {
            Box::pin(self.ask(move |reply| Operation::Read {
                stream: stream.to_owned(),
                after,
                reply,
            }))
        }
    }

    impl Bus for Local {
        fn publish(&self, message: Bytes) {
            self.push(Operation::Publish(message.clone()));
            self.shared.subscribers.publish(message);
        }

        fn subscribe(&self, receive: Arc<dyn Fn(Bytes) + Send + Sync>) -> Subscription {
            let subscription = self.shared.subscribers.subscribe(receive);
            // A forked process that cannot start its thread tries again when it uses the state.
            let _ = self.queue();
            subscription
        }
    }

    impl Drop for Local {
        fn drop(&mut self) {
            // In a forked process, the parent's queue is neither closed nor freed: a thread that does not exist there owns it,
            // too.
            let latest = self.shared.first.latest();
            if latest.id == std::process::id() {
                latest.queue.close();
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// A fork copies everything but the threads, and changes the id of the process.
        #[tokio::test]
        async fn a_process_with_another_id_starts_its_own_thread() {
            let path = std::env::temp_dir().join(format!("mcpline-fork-{}", std::process::id()));
            let mut forked = Local::start(ServiceAddress::Path(path.clone())).expect("starts");
            forked.shared.first.id = 0;
            let sockets = || {
                let names = std::fs::read_dir(path.join("1/bus")).expect("a directory");
                names.count()
            };
            assert_eq!(sockets(), 1);
            let value = Bytes::from_static(b"value");
            // As if a thread of the parent had the lock at the fork.
            std::mem::forget(forked.shared.first.queue.lock());
            let saving = forked.save("one", value.clone(), value.clone(), Duration::MAX);
            assert_eq!(saving.await.expect("saves"), SaveOutcome::Saved);
            assert_eq!(sockets(), 2);
            let process = forked.shared.first.latest();
            assert_eq!(process.id, std::process::id());
            assert_eq!(forked.load("one").await.expect("loads"), Some(value));
            forked.append("one/1", 0, Bytes::new());
            assert!(std::ptr::eq(process, forked.shared.first.latest()));
            drop(forked);
            let ended = async {
                while sockets() > 1 {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            };
            timeout(Duration::from_secs(60), ended)
                .await
                .expect("its thread ends");
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}
