//! Implements the traits of `mcpline::sharing` over Valkey.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use mcpline::sharing::{
    BucketPolicy, Bus, EventLog, LoggedEvents, Pending, SaveOutcome, SessionStore, SharedBuckets,
    Sharing, SharingError, Subscription, TakeOutcome, UseOutcome,
};
use mcpline_runtime::{WarningLimit, background, clock};
use tokio::runtime::Handle;

use crate::address::Address;
use crate::bus::{BusReadiness, Listener, Subscribers};
use crate::connection::Connector;
use crate::error::ValkeyError;
use crate::failure::Failure;
use crate::keys::Keys;
use crate::limits::WARNINGS;
use crate::operation_queue::{Operation, Queue};
use crate::options::ValkeyOptions;
use crate::reader::Reader;
use crate::url_options;
use crate::writer::Writer;

/// State that several servers share over Valkey. [`connect`](Self::connect) returns it as [`Sharing`].
///
/// A process that is forked afterwards connects anew, on a thread of its own, when it first uses the state.
pub struct Valkey {
    process: RwLock<Arc<ConnectedProcess>>,
    subscribers: Arc<Subscribers>,
    address: Address,
    options: ValkeyOptions,
    restarts: WarningLimit,
}

/// What one process has: tasks and connections do not survive a fork.
struct ConnectedProcess {
    /// The id of the process.
    id: u32,
    queue: Arc<Queue>,
    reader: Arc<Reader>,
    joined: Arc<BusReadiness>,
    connector: Arc<Connector>,
    keys: Keys,
    /// Its name on the bus.
    name: String,
    runtime: Handle,
}

impl ConnectedProcess {
    /// Starts the writer by this function, which returns the runtime that it runs on.
    fn start(
        address: &Address,
        options: &ValkeyOptions,
        start: impl FnOnce(Writer) -> Result<Handle, ValkeyError>,
    ) -> Result<Self, ValkeyError> {
        let connector = Arc::new(Connector::new(address.clone(), options)?);
        let keys = Keys::new(&options.key_prefix);
        let queue = Arc::new(Queue::default());
        let name = clock::token();
        let writer = Writer {
            queue: queue.clone(),
            connector: connector.clone(),
            keys: keys.clone(),
            sender: name.clone(),
            warnings: WarningLimit::new(WARNINGS),
        };
        let runtime = start(writer)?;
        Ok(Self {
            id: std::process::id(),
            queue,
            reader: Arc::new(Reader::new(
                connector.clone(),
                keys.clone(),
                options.timeout,
            )),
            joined: Arc::default(),
            connector,
            keys,
            name,
            runtime,
        })
    }

    /// Starts to listen, unless it does already.
    fn listen(&self, subscribers: &Arc<Subscribers>) {
        if self.joined.listen() {
            let listener = Listener::new(
                subscribers,
                self.connector.clone(),
                self.joined.clone(),
                &self.keys,
                self.name.clone(),
            );
            background::spawn(&self.runtime, listener.run());
        }
    }
}

impl Valkey {
    /// Returns state that is shared over the Valkey at this URL.
    ///
    /// Connects in the background, so that a server can start before Valkey does. Call it within a tokio runtime, which
    /// must run as long as the state is used.
    ///
    /// | URL | Connects to |
    /// | --- | --- |
    /// | `valkey://HOST:PORT/DATABASE`, `redis://…` | one server |
    /// | `valkeys://…`, `rediss://…` | one server, with TLS (feature `tls`) |
    /// | `valkey+unix:///path`, `redis+unix:///path` | one server, over a Unix socket |
    /// | `valkey-cluster://HOST:PORT,HOST:PORT`, also `valkeys-`, `redis-`, `rediss-` | a cluster (feature `cluster`) |
    /// | `valkey-sentinel://HOST:PORT,HOST:PORT/DATABASE?service=NAME`, also `valkeys-`, `redis-`, `rediss-` | the primary that these sentinels name (feature `sentinel`) |
    ///
    /// `USER:PASSWORD@` may precede the hosts. The default port is 6379, for sentinels as well.
    ///
    /// # Errors
    ///
    /// The URL or an option is invalid, a feature is not enabled, or there is no tokio runtime. Failures to connect are
    /// not errors: they are logged, and connecting is tried again.
    pub fn connect(url: &str, options: ValkeyOptions) -> Result<Sharing, ValkeyError> {
        let start = |writer: Writer| {
            let runtime = Handle::try_current().map_err(|_| ValkeyError::NoRuntime)?;
            background::spawn(&runtime, writer.run());
            Ok(runtime)
        };
        Ok(Self::start(url, &options, start)?.share())
    }

    /// Returns state that is shared over the Valkey at this URL, for programs without a tokio runtime or with several.
    ///
    /// A thread with a runtime of its own does the I/O; it ends when the state is no longer used and everything is
    /// written. The URL is as for [`connect`](Self::connect), and its query may have the options `key_prefix` and
    /// `timeout`, in seconds: `valkey://localhost?key_prefix=weather&timeout=0.5`.
    ///
    /// # Errors
    ///
    /// The URL or an option is invalid, a feature is not enabled, or the thread cannot be started.
    pub fn connect_on_own_thread(url: &str) -> Result<Sharing, ValkeyError> {
        let (url, options) = url_options::separate(url)?;
        Ok(Self::start(&url, &options, start_thread)?.share())
    }

    /// Starts the writer by this function, which returns the runtime that it runs on.
    fn start(
        url: &str,
        options: &ValkeyOptions,
        start: impl FnOnce(Writer) -> Result<Handle, ValkeyError>,
    ) -> Result<Arc<Self>, ValkeyError> {
        options.check()?;
        let address = Address::parse(url)?;
        let process = ConnectedProcess::start(&address, options, start)?;
        Ok(Arc::new(Self {
            process: RwLock::new(Arc::new(process)),
            subscribers: Arc::default(),
            address,
            options: options.clone(),
            restarts: WarningLimit::new(WARNINGS),
        }))
    }

    fn share(self: Arc<Self>) -> Sharing {
        Sharing {
            sessions: self.clone(),
            events: self.clone(),
            bus: self.clone(),
            buckets: Some(self),
        }
    }

    /// Returns the connections of this process. A process that was forked from the one that had them opens its own.
    ///
    /// # Errors
    ///
    /// They cannot be opened in a forked process.
    fn process(&self) -> Result<Arc<ConnectedProcess>, Failure> {
        let process = self
            .process
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if process.id == std::process::id() {
            return Ok(process);
        }
        let mut current = self.process.write().unwrap_or_else(PoisonError::into_inner);
        if current.id == std::process::id() {
            return Ok(current.clone());
        }
        let started = ConnectedProcess::start(&self.address, &self.options, start_thread);
        let started = Arc::new(started.map_err(|error| {
            Failure::Unreachable(format!("cannot connect in a forked process: {error}"))
        })?);
        if !self.subscribers.is_empty() {
            started.listen(&self.subscribers);
        }
        // What the parent's threads use is not dropped: they do not exist here, and may have held locks.
        std::mem::forget(std::mem::replace(&mut *current, started.clone()));
        std::mem::forget(process);
        Ok(started)
    }

    /// Adds to the queue, which cannot fail but in a forked process.
    fn enqueue(&self, add: impl FnOnce(&Queue)) {
        match self.process() {
            Ok(process) => add(&process.queue),
            Err(error) => {
                if let Some(suppressed) = self.restarts.admit() {
                    tracing::warn!(%error, suppressed, "dropped an event or a message for other processes");
                }
            }
        }
    }

    async fn write(&self, operation: Operation) -> Result<Option<Bytes>, SharingError> {
        // The operation waits for the previous batch or for a connection, and then for its own batch.
        let timeout = self.options.timeout.saturating_mul(2);
        let process = self.process()?;
        Ok(process.queue.push_and_wait(operation, timeout).await?)
    }
}

/// Starts a thread that runs the writer, and what else is started on its runtime until the writer ends.
fn start_thread(writer: Writer) -> Result<Handle, ValkeyError> {
    let no_thread = |error: std::io::Error| ValkeyError::NoThread(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(no_thread)?;
    let handle = runtime.handle().clone();
    let thread = std::thread::Builder::new().name("mcpline-valkey".to_owned());
    thread
        .spawn(move || runtime.block_on(writer.run()))
        .map_err(no_thread)?;
    Ok(handle)
}

impl SessionStore for Valkey {
    fn save<'a>(
        &'a self,
        id: &'a str,
        session: Bytes,
        replaces: Bytes,
        lifetime: Duration,
    ) -> Pending<'a, SaveOutcome> {
        Box::pin(async move {
            self.process()?.joined.wait(self.options.timeout).await;
            let session = Operation::Save {
                session: id.to_owned(),
                value: session,
                replaces: vec![replaces],
                lifetime,
            };
            Ok(match self.write(session).await? {
                None => SaveOutcome::Saved,
                Some(stored) => SaveOutcome::Conflict(stored),
            })
        })
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        Box::pin(async move {
            let process = self.process()?;
            process.joined.wait(self.options.timeout).await;
            Ok(process.reader.load(id).await?)
        })
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let session = id.to_owned();
            self.write(Operation::Remove { session }).await?;
            Ok(())
        })
    }

    fn record_use<'a>(&'a self, key: &'a str, lifetime: Duration) -> Pending<'a, UseOutcome> {
        Box::pin(async move {
            let used = Operation::RecordUse {
                key: key.to_owned(),
                value: clock::token().into(),
                lifetime,
            };
            Ok(match self.write(used).await? {
                None => UseOutcome::First,
                Some(_) => UseOutcome::Repeated,
            })
        })
    }
}

/// Buckets do not wait in the queue: what is taken later is of no use. They are taken in a task, because the request waits for less
/// time than it takes to find a lost connection or to make a new one, which must go on.
impl SharedBuckets for Valkey {
    fn take<'a>(
        &'a self,
        key: &'a str,
        policy: BucketPolicy,
        tokens: u32,
    ) -> Pending<'a, TakeOutcome> {
        Box::pin(async move {
            let process = self.process()?;
            let (reader, key) = (process.reader.clone(), key.to_owned());
            let taking = async move { reader.take(&key, policy, tokens).await };
            let taken = background::spawn(&process.runtime, taking).await;
            Ok(taken.map_err(|error| SharingError::new(error.to_string()))??)
        })
    }

    fn give_back<'a>(&'a self, key: &'a str, policy: BucketPolicy, tokens: u32) -> Pending<'a, ()> {
        Box::pin(async move {
            Ok(self
                .process()?
                .reader
                .give_back(key, policy, tokens)
                .await?)
        })
    }
}

impl EventLog for Valkey {
    fn append(&self, stream: &str, number: u64, event: Bytes) {
        let stream = stream.to_owned();
        self.enqueue(|queue| {
            queue.push(Operation::Append {
                stream,
                number,
                event,
            })
        });
    }

    fn end(&self, stream: &str, last: u64) {
        let stream = stream.to_owned();
        self.enqueue(|queue| queue.push(Operation::End { stream, last }));
    }

    fn flush(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            self.process()?.queue.flush().await;
            Ok(())
        })
    }

    fn read<'a>(&'a self, stream: &'a str, after: u64) -> Pending<'a, Option<LoggedEvents>> {
        Box::pin(async move { Ok(self.process()?.reader.read(stream, after).await?) })
    }
}

impl Bus for Valkey {
    fn publish(&self, message: Bytes) {
        self.enqueue(|queue| queue.publish(message.clone()));
        self.subscribers.deliver(&message);
    }

    fn subscribe(&self, receive: Arc<dyn Fn(Bytes) + Send + Sync>) -> Subscription {
        let number = self.subscribers.add(receive);
        // A process that cannot connect tries again when it uses the state.
        if let Ok(process) = self.process() {
            process.listen(&self.subscribers);
        }
        // Does not keep the listener.
        let subscribers = Arc::downgrade(&self.subscribers);
        Subscription::new(move || {
            if let Some(subscribers) = subscribers.upgrade() {
                subscribers.remove(number);
            }
        })
    }
}

impl Drop for Valkey {
    fn drop(&mut self) {
        let process = self
            .process
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        // The writer ends once everything is written. In a forked process it is the parent's.
        if process.id == std::process::id() {
            process.queue.close();
        }
    }
}

impl std::fmt::Debug for Valkey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Valkey").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// A fork copies everything but the threads, and changes the id of the process.
    #[tokio::test]
    async fn a_process_with_another_id_connects_anew() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let options = ValkeyOptions {
            // The server never answers.
            timeout: Duration::from_secs(3_600),
            ..ValkeyOptions::default()
        };
        let url = format!("valkey://127.0.0.1:{port}");
        let shared = Valkey::start(&url, &options, start_thread).expect("starts");
        let connected = async || {
            let accepting = tokio::time::timeout(Duration::from_secs(60), listener.accept());
            accepting.await.expect("a connection").expect("accepts")
        };
        shared.append("one/1", 0, Bytes::new());
        let _parent = connected().await;
        let before = shared.process().expect("connected").name.clone();
        {
            let mut process = shared.process.write().expect("no panic");
            Arc::get_mut(&mut process).expect("not in use").id = 0;
        }
        shared.append("one/1", 1, Bytes::new());
        let _child = connected().await;
        let process = shared.process().expect("connected");
        assert_eq!(process.id, std::process::id());
        assert_ne!(process.name, before);
    }
}
