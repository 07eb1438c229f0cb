//! The audit log of a server.

use std::borrow::Cow;

use mcpline_protocol::wire::Raw;
use mcpline_protocol::{Revision, RpcError};

use super::super::{MessageKind, Middleware, MiddlewareFuture, MiddlewareRequest, Next};
use super::AuditLog;
use super::record::{Ending, RecordedRequest};

impl RecordedRequest for MiddlewareRequest {
    fn kind(&self) -> Option<&'static str> {
        match self.kind() {
            MessageKind::Request => None,
            kind => Some(kind.name()),
        }
    }

    fn method(&self) -> &str {
        self.method()
    }

    fn name(&self) -> Option<Cow<'_, str>> {
        self.name().map(Cow::Borrowed)
    }

    fn request_id(&self) -> Option<Cow<'_, str>> {
        Some(self.request_id().into())
    }

    fn peer(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        let Some(caller) = self.auth() else {
            // The principal may contain the digest of a token.
            return match self.principal().is_empty() {
                true => vec![("client", self.client().into())],
                false => Vec::new(),
            };
        };
        let members = [
            ("issuer", caller.issuer()),
            ("subject", caller.subject()),
            ("client_id", caller.client_id()),
        ];
        let given = members
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?.into())));
        given.collect()
    }

    fn transport(&self) -> Option<&'static str> {
        Some(self.transport())
    }

    fn revision(&self) -> Option<Revision> {
        Some(self.revision())
    }

    fn arguments(&self) -> Option<Raw> {
        self.arguments()
    }
}

impl Middleware for AuditLog {
    fn handle(&self, request: MiddlewareRequest, next: Next) -> MiddlewareFuture {
        let begin = self.begin();
        Box::pin(async move {
            let record = begin.await.record(request.clone());
            let outcome = next.run(request).await;
            let line = record.line(&match &outcome {
                Ok(result) => Ending::Result(result),
                Err(error) => Ending::Error {
                    kind: None,
                    code: Some(error.code),
                },
            });
            match record.end(line).await {
                true => outcome,
                false => Err(RpcError::internal_error(
                    "the audit log cannot be written; the request may have been performed",
                )),
            }
        })
    }
}
