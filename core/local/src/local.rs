//! Implements the traits of `mcpline::sharing` over a directory.

use std::path::PathBuf;

use mcpline::sharing::Sharing;

use crate::address::Address;
use crate::error::LocalError;

/// State that servers on one machine share. The constructors return it as [`Sharing`].
///
/// A thread does the I/O; it ends when the state is no longer used and everything is written. A process that forks after that needs
/// state of its own: the thread is not in the child.
#[derive(Debug)]
pub struct Local {
    #[cfg(unix)]
    shared: unix::Shared,
}

impl Local {
    /// Returns state that is shared by all servers of this user with this name, which has 1 to 32 letters, digits or `-_.`.
    ///
    /// It is in `$XDG_RUNTIME_DIR/mcpline/NAME`, or else in `mcpline-UID/NAME` in the directory for temporary files.
    ///
    /// # Errors
    ///
    /// The name is invalid, another user could read or replace the directory, the directory or a socket cannot be created, the
    /// thread cannot be started, or the system is Windows.
    pub fn named(name: &str) -> Result<Sharing, LocalError> {
        Self::at(Address::named(name)?)
    }

    /// Returns state that is shared by all servers of this user with this directory. It is created with mode 700 unless it exists.
    ///
    /// # Errors
    ///
    /// As [`named`](Self::named).
    pub fn in_directory(path: impl Into<PathBuf>) -> Result<Sharing, LocalError> {
        Self::at(Address::Path(path.into()))
    }

    /// Returns state as a URL says: `local` for the name of the server, `local://NAME` as [`named`](Self::named), or
    /// `local:///path` as [`in_directory`](Self::in_directory). The name of a server may have any characters.
    ///
    /// # Errors
    ///
    /// As [`named`](Self::named), or the URL is invalid.
    pub fn at_url(url: &str, server: &str) -> Result<Sharing, LocalError> {
        Self::at(Address::parse(url, server)?)
    }

    #[cfg(not(unix))]
    fn at(_: Address) -> Result<Sharing, LocalError> {
        Err(LocalError::Unsupported)
    }
}

#[cfg(unix)]
mod unix {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;
    use mcpline::sharing::{
        Bus, EventLog, LoggedEvents, Memory, Pending, SaveOutcome, SessionStore, Sharing,
        SharingError, Subscription,
    };
    use mcpline_runtime::clock;
    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::Local;
    use crate::address::Address;
    use crate::directory::Directory;
    use crate::error::LocalError;
    use crate::limits::OPERATION_TIMEOUT;
    use crate::queue::{Operation, Queue, Reply};
    use crate::sessions::Expiry;
    use crate::worker;

    pub(super) struct Shared {
        queue: Arc<Queue>,
        /// Used only as the bus within this process.
        subscribers: Arc<Memory>,
    }

    impl std::fmt::Debug for Shared {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_struct("Shared").finish_non_exhaustive()
        }
    }

    impl Local {
        pub(super) fn at(address: Address) -> Result<Sharing, LocalError> {
            let directory = Directory::open(address, clock::token())?;
            let queue = Arc::new(Queue::default());
            let subscribers = Arc::new(Memory::default());
            worker::start(queue.clone(), directory, subscribers.clone())?;
            let shared = Arc::new(Self {
                shared: Shared { queue, subscribers },
            });
            Ok(Sharing {
                sessions: shared.clone(),
                events: shared.clone(),
                bus: shared,
            })
        }

        /// Adds an operation and waits for its outcome.
        async fn ask<T>(
            &self,
            operation: impl FnOnce(Reply<T>) -> Operation,
        ) -> Result<T, SharingError> {
            let (reply, outcome) = oneshot::channel();
            self.shared.queue.push(operation(reply));
            match timeout(OPERATION_TIMEOUT, outcome).await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => Err(SharingError::new("too many operations wait")),
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
    }

    impl EventLog for Local {
        fn append(&self, stream: &str, number: u64, event: Bytes) {
            self.shared.queue.push(Operation::Append {
                stream: stream.to_owned(),
                number,
                event,
            });
        }

        fn end(&self, stream: &str) {
            self.shared.queue.push(Operation::End {
                stream: stream.to_owned(),
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
            self.shared.queue.push(Operation::Publish(message.clone()));
            self.shared.subscribers.publish(message);
        }

        fn subscribe(&self, receive: Arc<dyn Fn(Bytes) + Send + Sync>) -> Subscription {
            self.shared.subscribers.subscribe(receive)
        }
    }

    impl Drop for Local {
        fn drop(&mut self) {
            self.shared.queue.close();
        }
    }
}
