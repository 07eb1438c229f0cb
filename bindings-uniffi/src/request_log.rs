//! Passes the records of requests that have ended to the other language.

use std::sync::Arc;

use mcpline::ErrorKind;
use mcpline::client::ClientRequestRecord;
use mcpline::server::{RequestOutcome, RequestRecord};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::failure::ForeignFailure;

/// Maximum number of records that wait for the listener. While it is slower, further ones are dropped.
const MAX_WAITING_RECORDS: usize = 4_096;

/// Maximum number of records that cross the boundary at once.
const MAX_RECORDS: usize = 64;

/// Gets the records of requests, in the other language.
#[uniffi::export(with_foreign)]
#[async_trait::async_trait]
pub trait RequestListener: Send + Sync {
    /// Takes records, which are JSON objects, in the order in which the requests have ended. The next ones come when it returns.
    async fn ended(&self, records: Vec<String>) -> Result<(), ForeignFailure>;
}

/// Returns a function that passes records to a listener. The task that calls the listener ends when the function is dropped.
fn pass(
    listener: Arc<dyn RequestListener>,
    runtime: &Handle,
) -> impl Fn(serde_json::Value) + Send + Sync + 'static {
    let (queue, mut records) = mpsc::channel::<String>(MAX_WAITING_RECORDS);
    runtime.spawn(async move {
        let mut batch = Vec::new();
        while records.recv_many(&mut batch, MAX_RECORDS).await > 0 {
            // The package logs what its listeners throw.
            let _ = listener.ended(std::mem::take(&mut batch)).await;
        }
    });
    move |record| {
        let _ = queue.try_send(record.to_string());
    }
}

/// Returns the listener of a server's requests.
pub(crate) fn of_server(
    listener: Arc<dyn RequestListener>,
    runtime: &Handle,
) -> impl Fn(&RequestRecord<'_>) + Send + Sync + 'static {
    let pass = pass(listener, runtime);
    move |record| {
        let code = match record.outcome {
            RequestOutcome::Error(code) => Some(code.0),
            _ => None,
        };
        pass(json!({
            "method": record.method,
            "name": record.name,
            "outcome": record.outcome.name(),
            "code": code,
            "duration": record.duration.as_secs_f64(),
            "client": record.client,
            "session": record.session,
            "issuer": record.issuer,
            "subject": record.subject,
            "clientId": record.client_id,
            "traceId": record.trace_id,
        }));
    }
}

/// Returns the listener of a client's requests.
pub(crate) fn of_client(
    listener: Arc<dyn RequestListener>,
    runtime: &Handle,
) -> impl Fn(&ClientRequestRecord<'_>) + Send + Sync + 'static {
    let pass = pass(listener, runtime);
    move |record| {
        pass(json!({
            "direction": record.direction.name(),
            "method": record.method,
            "name": record.name,
            "outcome": record.outcome.name(),
            "errorKind": record.outcome.error_kind().map(ErrorKind::as_str),
            "code": record.outcome.code().map(|code| code.0),
            "duration": record.duration.as_secs_f64(),
            "server": record.server,
            "address": record.address,
            "session": record.session,
            "traceId": record.trace_id,
        }));
    }
}
