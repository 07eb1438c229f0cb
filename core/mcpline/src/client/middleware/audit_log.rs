//! The audit log of a client.

use std::borrow::Cow;

use mcpline_protocol::Revision;
use mcpline_protocol::wire::Raw;

use crate::client::request_span::SentRequest;
use crate::client_error::ClientError;
use crate::middleware::{AuditLog, Ending, RecordedRequest};
use crate::sync::Arc;

use super::{ClientMiddleware, ClientMiddlewareFuture, ClientNext, ClientRequest};

/// A request of a client, and what is known of it once it was sent.
struct SentRecord {
    request: ClientRequest,
    sent: Arc<SentRequest>,
    /// The name of the server, if the client was connected at the beginning.
    server: Option<String>,
}

impl SentRecord {
    fn of(request: &ClientRequest, sent: Arc<SentRequest>) -> Self {
        Self {
            request: request.clone(),
            sent,
            server: request.server_name(),
        }
    }
}

impl RecordedRequest for SentRecord {
    fn kind(&self) -> Option<&'static str> {
        Some("sent_request")
    }

    fn method(&self) -> &str {
        self.request.method()
    }

    fn name(&self) -> Option<Cow<'_, str>> {
        self.request.name().map(Cow::Owned)
    }

    fn request_id(&self) -> Option<Cow<'_, str>> {
        self.sent.number().map(|number| number.to_string().into())
    }

    fn peer(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        let name = self.request.server_name().or_else(|| self.server.clone());
        let members = [("server", name), ("address", self.request.server_address())];
        let given = members
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?.into())));
        given.collect()
    }

    fn transport(&self) -> Option<&'static str> {
        match self.sent.network_transport()? {
            "pipe" => Some("stdio"),
            "tcp" => Some("http"),
            other => Some(other),
        }
    }

    fn revision(&self) -> Option<Revision> {
        self.sent.revision()
    }

    fn arguments(&self) -> Option<Raw> {
        self.request.arguments()
    }
}

impl ClientMiddleware for AuditLog {
    fn handle(&self, mut request: ClientRequest, next: ClientNext) -> ClientMiddlewareFuture {
        let begin = self.begin();
        Box::pin(async move {
            let sent = request.track();
            let record = begin.await.record(SentRecord::of(&request, sent));
            let outcome = next.run(request).await;
            let line = record.line(&match &outcome {
                Ok(result) => Ending::Result(result),
                Err(error) => Ending::Error {
                    kind: Some(error.kind().as_str()),
                    code: error.rpc().map(|rpc| rpc.code),
                },
            });
            match record.end(line).await {
                true => outcome,
                false => Err(ClientError::NotRecorded {
                    reason: "the audit log cannot be written".to_owned(),
                }),
            }
        })
    }

    fn record_cancelled_before_start(&self, request: &ClientRequest) {
        // Dropped, it is recorded as cancelled.
        drop(
            self.begin_now()
                .map(|log| log.record(SentRecord::of(request, Arc::default()))),
        );
    }
}
