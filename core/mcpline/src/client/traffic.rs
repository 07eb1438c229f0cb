//! Records the messages of a client in its traffic file: a [`Dialler`] whose links and sinks record what passes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use mcpline_protocol::Revision;

use crate::background;
use crate::client_error::ClientError;
use crate::error::Error;
use crate::span::NetworkAddress;
use crate::traffic::{Direction, FileRecord, LatestRevision, RecordedMessage, Role, TrafficFile};

use super::connect::{DialFuture, Dialler};
use super::handshake_servers::ServerKey;
use super::link::{Link, LinkEventSink, LinkFuture, Outgoing, OutgoingKind, SharedEventSink};
use super::settings::ClientSettings;

/// How long a client that is closed waits for the disk: longer than one that is busy, and not as long as one that is lost.
const MAX_FLUSHING_TIME: Duration = Duration::from_secs(1);

/// Returns a dialler that records messages, if the settings or the environment name a file for them. `client` is the name of
/// the client, `transport` that of the transport.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the file cannot be opened for writing.
pub(super) fn recorded(
    dialler: Box<dyn Dialler>,
    settings: &ClientSettings,
    client: &str,
    transport: &'static str,
) -> Result<Box<dyn Dialler>, Error> {
    Ok(match TrafficFile::of(settings.traffic_file.as_deref())? {
        Some(file) => Box::new(RecordingDialler {
            dialler,
            file,
            client: client.into(),
            transport,
        }),
        None => dialler,
    })
}

struct RecordingDialler {
    dialler: Box<dyn Dialler>,
    file: Arc<TrafficFile>,
    client: Arc<str>,
    transport: &'static str,
}

impl Dialler for RecordingDialler {
    fn dial(&self, sink: SharedEventSink, http_sse: bool) -> DialFuture<'_> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let recorder = Arc::new(TrafficRecorder {
            file: self.file.clone(),
            client: self.client.clone(),
            transport: match http_sse {
                true => "http+sse",
                false => self.transport,
            },
            connection: NUMBERS.fetch_add(1, Ordering::Relaxed),
            revision: LatestRevision::default(),
        });
        let sink = Arc::new(RecordingSink {
            sink,
            recorder: recorder.clone(),
        });
        let dialling = self.dialler.dial(sink, http_sse);
        Box::pin(async move {
            let link = dialling.await?;
            let link: Arc<dyn Link> = Arc::new(RecordingLink { link, recorder });
            Ok(link)
        })
    }

    fn server_address(&self) -> Option<&NetworkAddress> {
        self.dialler.server_address()
    }

    fn known_server(&self) -> Option<ServerKey> {
        self.dialler.known_server()
    }

    fn starts_process(&self) -> bool {
        self.dialler.starts_process()
    }

    fn authorization(&self) -> u64 {
        self.dialler.authorization()
    }

    /// Also waits until what was recorded is written.
    fn close(&self) -> LinkFuture {
        let (closing, file) = (self.dialler.close(), self.file.clone());
        Box::pin(async move {
            closing.await;
            let flushing = background::blocking(move || file.flush(MAX_FLUSHING_TIME));
            flushing.await;
        })
    }
}

/// Records the messages of one link in the traffic file.
struct TrafficRecorder {
    file: Arc<TrafficFile>,
    client: Arc<str>,
    transport: &'static str,
    /// Number of the link in this process.
    connection: u64,
    /// The revision of the latest request.
    revision: LatestRevision,
}

impl TrafficRecorder {
    fn record(&self, direction: Direction, message: &[u8]) {
        self.file.record(&FileRecord {
            role: Role::Client,
            name: &self.client,
            direction,
            transport: self.transport,
            connection: Some(self.connection),
            session: None,
            revision: self.revision.get(),
            message: RecordedMessage::Message(message),
        });
    }
}

struct RecordingLink {
    link: Arc<dyn Link>,
    recorder: Arc<TrafficRecorder>,
}

impl Link for RecordingLink {
    fn send(&self, outgoing: Outgoing) {
        if let OutgoingKind::Request(head) = &outgoing.purpose {
            self.recorder.revision.set(head.revision);
        }
        self.recorder.record(Direction::Sent, &outgoing.message);
        self.link.send(outgoing);
    }

    fn mirrors_params_as_headers(&self) -> bool {
        self.link.mirrors_params_as_headers()
    }

    fn network_transport(&self) -> Option<&'static str> {
        self.link.network_transport()
    }

    fn session_id(&self) -> Option<String> {
        self.link.session_id()
    }

    fn pid(&self) -> Option<u32> {
        self.link.pid()
    }

    fn abandon(&self, request: u64) {
        self.link.abandon(request);
    }

    fn set_session_open(&self, revision: Revision) {
        self.recorder.revision.set(revision);
        self.link.set_session_open(revision);
    }

    fn close(&self) -> LinkFuture {
        self.link.close()
    }
}

struct RecordingSink {
    sink: SharedEventSink,
    recorder: Arc<TrafficRecorder>,
}

impl LinkEventSink for RecordingSink {
    fn message(&self, message: Bytes, request: Option<u64>) -> bool {
        self.recorder.record(Direction::Received, &message);
        self.sink.message(message, request)
    }

    fn failed(&self, request: u64, error: ClientError) {
        self.sink.failed(request, error);
    }

    fn set_timeout_paused(&self, request: Option<u64>, held: bool) {
        self.sink.set_timeout_paused(request, held);
    }

    fn ended(&self, error: ClientError) {
        self.sink.ended(error);
    }

    fn warning(&self, text: String) {
        self.sink.warning(text);
    }
}
