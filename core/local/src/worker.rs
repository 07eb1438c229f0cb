//! The thread that reads and writes the files and the sockets, so that a slow disk delays no request that needs neither.

use std::fmt::Display;
use std::io;
use std::sync::Arc;

use mcpline::sharing::{MemorySharing, SharingError};
use mcpline_runtime::WarningLimit;
use tokio::time::{Interval, MissedTickBehavior};

use crate::buckets::unix_time;
use crate::directory::ServiceDirectory;
use crate::error::LocalError;
use crate::inbox::{Inbox, InboxTasks};
use crate::limits::{BUCKET_BYTES, MARK_BYTES, SWEEP_BYTES, TICK, USED_KEY_BYTES, WARNINGS};
use crate::operation_queue::{Operation, Queue, Reply};
use crate::peers::Peers;
use crate::readers::Readers;
use crate::streams::Records;
use crate::sweep::Limits;

/// What the thread has.
pub(crate) struct Worker {
    pub(crate) queue: Arc<Queue>,
    pub(crate) directory: Arc<ServiceDirectory>,
    pub(crate) subscribers: Arc<MemorySharing>,
    /// Bytes written since the latest sweep of this process.
    written: u64,
    failures: WarningLimit,
    readers: Readers,
}

/// Starts the thread. It ends when the queue is closed.
pub(crate) fn start(
    queue: Arc<Queue>,
    directory: ServiceDirectory,
    subscribers: Arc<MemorySharing>,
) -> Result<(), LocalError> {
    let inbox = Inbox::bind(&directory)?;
    let no_thread = |error: io::Error| LocalError::NoThread(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .map_err(no_thread)?;
    let worker = Worker {
        queue,
        directory: Arc::new(directory),
        subscribers,
        written: 0,
        failures: WarningLimit::new(WARNINGS),
        readers: Readers::default(),
    };
    let thread = std::thread::Builder::new().name("mcpline-local".to_owned());
    thread
        .spawn(move || runtime.block_on(worker.run(inbox)))
        .map_err(no_thread)?;
    Ok(())
}

impl Worker {
    async fn run(mut self, inbox: Inbox) {
        let mut peers = Peers::new(self.directory.bus(), inbox.name().to_owned());
        let mut receiving = self.receive(inbox);
        let mut ticks = ticks();
        let queue = self.queue.clone();
        loop {
            tokio::select! {
                batch = queue.take() => match batch {
                    Some(batch) => self.execute(batch, &mut peers),
                    None => break,
                },
                _ = ticks.tick() => {
                    self.listen_again(&mut receiving, &mut peers);
                    self.sweep_if_due();
                }
            }
            // The tasks of the connections run on the same thread.
            tokio::task::yield_now().await;
        }
        drop(receiving);
        peers.close().await;
    }

    fn receive(&self, inbox: Inbox) -> Option<InboxTasks> {
        let path = inbox.path().to_owned();
        let receiving = inbox.receive(&self.subscribers);
        let warn = |error: &io::Error| {
            tracing::warn!(path = %path.display(), %error, "cannot receive messages of other processes");
        };
        receiving.inspect_err(warn).ok()
    }

    /// Creates the socket again if something has removed it.
    fn listen_again(&self, receiving: &mut Option<InboxTasks>, peers: &mut Peers) {
        if receiving.as_ref().is_some_and(InboxTasks::is_found) {
            return;
        }
        let bound = self.directory.create();
        match bound.and_then(|()| Inbox::bind(&self.directory)) {
            Ok(inbox) => {
                peers.set_own_socket(inbox.name().to_owned());
                *receiving = self.receive(inbox);
            }
            Err(error) => tracing::warn!(%error, "cannot share sessions with other processes"),
        }
    }

    /// Executes operations in order. Events of one stream that follow each other are one write.
    fn execute(&mut self, batch: Vec<Operation>, peers: &mut Peers) {
        let mut appending: Option<(String, Records)> = None;
        for operation in batch {
            match operation {
                Operation::Append {
                    stream,
                    number,
                    event,
                } => self
                    .records_of(&mut appending, stream)
                    .event(number, &event),
                Operation::End { stream, last } => {
                    self.records_of(&mut appending, stream).end(last);
                }
                Operation::Publish(message) => peers.publish(&message),
                other => {
                    self.append(appending.take());
                    self.execute_and_reply(other);
                }
            }
        }
        self.append(appending);
        if self.written > SWEEP_BYTES {
            self.sweep();
        }
    }

    /// Returns the records that wait for this stream, after writing those for another.
    fn records_of<'a>(
        &mut self,
        appending: &'a mut Option<(String, Records)>,
        stream: String,
    ) -> &'a mut Records {
        if appending.as_ref().is_some_and(|(name, _)| *name != stream) {
            self.append(appending.take());
        }
        &mut appending
            .get_or_insert_with(|| (stream, Records::default()))
            .1
    }

    fn append(&mut self, appending: Option<(String, Records)>) {
        let Some((stream, records)) = appending else {
            return;
        };
        self.written += records.bytes();
        if let Err(error) = self.again(|directory| directory.append(&stream, &records))
            && let Some(suppressed) = self.failures.admit()
        {
            tracing::warn!(%error, suppressed, "events could not be written for other processes");
        }
    }

    fn execute_and_reply(&mut self, operation: Operation) {
        match operation {
            Operation::Save {
                session,
                value,
                replaces,
                expiry,
                reply: to,
            } => {
                self.written += value.len() as u64;
                let saved =
                    self.again(|directory| directory.save(&session, &value, &replaces, expiry));
                reply(to, saved);
            }
            Operation::Load { session, reply: to } => reply(to, self.directory.load(&session)),
            Operation::Remove { session, reply: to } => {
                self.written += MARK_BYTES;
                reply(to, self.again(|directory| directory.remove(&session)));
            }
            Operation::RecordUse {
                key,
                lifetime,
                reply: to,
            } => {
                self.written += USED_KEY_BYTES;
                reply(
                    to,
                    self.again(|directory| directory.record_use(&key, lifetime)),
                );
            }
            Operation::Take {
                key,
                policy,
                tokens,
                reply: to,
            } => {
                // Nobody waits for it any longer, so nobody would use the tokens.
                if to.is_closed() {
                    return;
                }
                let taken =
                    self.again(|directory| directory.take(&key, policy, tokens, unix_time()));
                if let Ok((_, true)) = taken {
                    self.written += BUCKET_BYTES;
                }
                reply(to, taken.map(|(taken, _)| taken));
            }
            Operation::GiveBack {
                key,
                policy,
                tokens,
                reply: to,
            } => reply(
                to,
                self.again(|directory| directory.give_back(&key, policy, tokens, unix_time())),
            ),
            Operation::Read {
                stream,
                after,
                reply: to,
            } => reply(to, self.directory.read(&stream, after, &mut self.readers)),
            Operation::Flush { reply: to } => reply(to, Ok::<_, io::Error>(())),
            Operation::Append { .. } | Operation::End { .. } | Operation::Publish(_) => {}
        }
    }

    /// Writes, once more if something has removed the directory.
    fn again<T>(&self, write: impl Fn(&ServiceDirectory) -> io::Result<T>) -> io::Result<T> {
        match write(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.directory.create().map_err(io::Error::other)?;
                write(&self.directory)
            }
            written => written,
        }
    }

    fn sweep_if_due(&mut self) {
        if self.directory.is_sweep_due().unwrap_or_default() {
            self.sweep();
        }
    }

    /// Sweeps on another thread, because it may have many files to look at.
    fn sweep(&mut self) {
        self.written = 0;
        let directory = self.directory.clone();
        tokio::task::spawn_blocking(move || {
            if let Err(error) = directory.sweep(Limits::default()) {
                tracing::warn!(%error, "expired sessions could not be removed");
            }
        });
    }
}

fn reply<T>(to: Reply<T>, outcome: Result<T, impl Display>) {
    // The request may have given up.
    let _ = to.send(outcome.map_err(|error| SharingError::new(error.to_string())));
}

fn ticks() -> Interval {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
