//! Implements the traits of `mcpline::sharing` over Valkey.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcpline::sharing::{
    Bus, EventLog, LoggedEvents, Pending, SaveOutcome, SessionStore, Sharing, SharingError,
    Subscription,
};
use mcpline_runtime::{background, clock};
use tokio::runtime::Handle;

use crate::address::Address;
use crate::bus::{BusReadiness, Listener, Subscribers};
use crate::connection::Connector;
use crate::error::ValkeyError;
use crate::keys::Keys;
use crate::options::ValkeyOptions;
use crate::queue::{Operation, Queue};
use crate::reader::Reader;
use crate::url_options;
use crate::warning_limiter::WarningLimiter;
use crate::writer::Writer;

/// State that several servers share over Valkey. [`connect`](Self::connect) returns it as [`Sharing`].
pub struct Valkey {
    queue: Arc<Queue>,
    reader: Reader,
    subscribers: Arc<Subscribers>,
    joined: Arc<BusReadiness>,
    connector: Arc<Connector>,
    keys: Keys,
    /// The name of this process on the bus.
    name: String,
    timeout: Duration,
    runtime: Handle,
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
        Self::start(url, &options, start)
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
        Self::start(&url, &options, start_thread)
    }

    /// Starts the writer by this function, which returns the runtime that it runs on.
    fn start(
        url: &str,
        options: &ValkeyOptions,
        start: impl FnOnce(Writer) -> Result<Handle, ValkeyError>,
    ) -> Result<Sharing, ValkeyError> {
        options.check()?;
        let connector = Arc::new(Connector::new(Address::parse(url)?, options)?);
        let keys = Keys::new(&options.key_prefix);
        let queue = Arc::new(Queue::default());
        let name = clock::token();
        let writer = Writer {
            queue: queue.clone(),
            connector: connector.clone(),
            keys: keys.clone(),
            sender: name.clone(),
            warnings: WarningLimiter::default(),
        };
        let runtime = start(writer)?;
        let shared = Arc::new(Self {
            queue,
            reader: Reader::new(connector.clone(), keys.clone(), options.timeout),
            subscribers: Arc::default(),
            joined: Arc::default(),
            connector,
            keys,
            name,
            timeout: options.timeout,
            runtime,
        });
        Ok(Sharing {
            sessions: shared.clone(),
            events: shared.clone(),
            bus: shared,
        })
    }

    async fn write(&self, operation: Operation) -> Result<Option<Bytes>, SharingError> {
        // The operation waits for the previous batch or for a connection, and then for its own batch.
        let timeout = self.timeout.saturating_mul(2);
        Ok(self.queue.push_and_wait(operation, timeout).await?)
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
            self.joined.wait(self.timeout).await;
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
            self.joined.wait(self.timeout).await;
            Ok(self.reader.load(id).await?)
        })
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let session = id.to_owned();
            self.write(Operation::Remove { session }).await?;
            Ok(())
        })
    }
}

impl EventLog for Valkey {
    fn append(&self, stream: &str, number: u64, event: Bytes) {
        self.queue.push(Operation::Append {
            stream: stream.to_owned(),
            number,
            event,
        });
    }

    fn end(&self, stream: &str) {
        self.queue.push(Operation::End {
            stream: stream.to_owned(),
        });
    }

    fn flush(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            self.queue.flush().await;
            Ok(())
        })
    }

    fn read<'a>(&'a self, stream: &'a str, after: u64) -> Pending<'a, Option<LoggedEvents>> {
        Box::pin(async move { Ok(self.reader.read(stream, after).await?) })
    }
}

impl Bus for Valkey {
    fn publish(&self, message: Bytes) {
        self.queue.publish(message.clone());
        self.subscribers.deliver(&message);
    }

    fn subscribe(&self, receive: Arc<dyn Fn(Bytes) + Send + Sync>) -> Subscription {
        let number = self.subscribers.add(receive);
        if self.joined.listen() {
            let listener = Listener::new(
                &self.subscribers,
                self.connector.clone(),
                self.joined.clone(),
                &self.keys,
                self.name.clone(),
            );
            background::spawn(&self.runtime, listener.run());
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
        // The writer ends once everything is written.
        self.queue.close();
    }
}

impl std::fmt::Debug for Valkey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Valkey").finish_non_exhaustive()
    }
}
