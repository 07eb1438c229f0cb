//! Responses whose head has arrived, and the reading of their bodies.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::response::Parts;
use http::{Response, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use mcpline_protocol::HttpOrigin;

use crate::shared_io_error::text_with_sources;

use super::connector::HttpConnection;
use super::pool::Pool;

/// How long a response that is no longer needed is read, so that its connection can be reused. Most end right after the
/// part that mattered.
const DRAIN_TIME: Duration = Duration::from_millis(500);

/// How much of it is read. More costs as much as a new connection.
const DRAIN_BYTES: usize = 64 * 1024;

/// A response with its connection. Dropping it before its end closes the connection.
pub(crate) struct HttpResponse {
    pub(crate) head: Parts,
    /// Address of the server, unless a proxy is in between.
    pub(crate) peer: Option<IpAddr>,
    body: Incoming,
    /// Returned to the pool at the end of the body.
    lease: Option<(HttpConnection, Arc<HttpOrigin>, Arc<Pool>)>,
}

/// Why a body cannot be read as a whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// It exceeds the limit.
    TooLong,
    /// It, or the connection, ended too early.
    Broken(String),
}

/// Media type of a body, by its `Content-Type`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    EventStream,
    /// Any other type, as in the header; `None` without the header.
    Other(Option<String>),
}

impl HttpResponse {
    pub(crate) fn new(
        response: Response<Incoming>,
        wire: HttpConnection,
        origin: Arc<HttpOrigin>,
        pool: Arc<Pool>,
    ) -> Self {
        let (head, body) = response.into_parts();
        let mut answer = Self {
            head,
            peer: wire.peer,
            body,
            lease: Some((wire, origin, pool)),
        };
        answer.release_at_end();
        answer
    }

    pub(crate) fn media(&self) -> Media {
        let Some(value) = self.head.headers.get(header::CONTENT_TYPE) else {
            return Media::Other(None);
        };
        let text = String::from_utf8_lossy(value.as_bytes());
        let essence = text.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/json") {
            Media::Json
        } else if essence.eq_ignore_ascii_case("text/event-stream") {
            Media::EventStream
        } else {
            Media::Other(Some(text.into_owned()))
        }
    }

    /// Returns the next piece of the body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| text_with_sources(&error))?;
            self.release_at_end();
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        self.release();
        Ok(None)
    }

    /// Reads the whole body.
    pub(crate) async fn collect(&mut self, limit: usize) -> Result<Bytes, BodyError> {
        if self.body.size_hint().lower() > limit as u64 {
            return Err(BodyError::TooLong);
        }
        let Some(first) = self.chunk().await.map_err(BodyError::Broken)? else {
            return Ok(Bytes::new());
        };
        // Most bodies are one piece and need no copy.
        let mut all: Option<BytesMut> = None;
        while self.lease.is_some() {
            let Some(chunk) = self.chunk().await.map_err(BodyError::Broken)? else {
                break;
            };
            let all = all.get_or_insert_with(|| BytesMut::from(&first[..]));
            if all.len() + chunk.len() > limit {
                return Err(BodyError::TooLong);
            }
            all.extend_from_slice(&chunk);
        }
        let all = all.map_or(first, BytesMut::freeze);
        if all.len() > limit {
            return Err(BodyError::TooLong);
        }
        Ok(all)
    }

    /// Reads the beginning of the body, as far as it arrives: for errors.
    pub(crate) async fn read_beginning(&mut self, limit: usize) -> Bytes {
        let mut all = BytesMut::new();
        while all.len() < limit {
            match self.chunk().await {
                Ok(Some(chunk)) => all.extend_from_slice(&chunk),
                Ok(None) | Err(_) => break,
            }
        }
        all.freeze()
    }

    /// Reads the rest, if it is short and arrives soon.
    pub(crate) async fn drain(mut self) {
        if self.lease.is_none() {
            return;
        }
        let mut left = DRAIN_BYTES;
        let rest = async {
            while let Ok(Some(chunk)) = self.chunk().await
                && chunk.len() < left
            {
                left -= chunk.len();
            }
        };
        let _ = tokio::time::timeout(DRAIN_TIME, rest).await;
    }

    fn release_at_end(&mut self) {
        if self.body.is_end_stream() {
            self.release();
        }
    }

    fn release(&mut self) {
        if let Some((wire, origin, pool)) = self.lease.take() {
            pool.put(origin, wire);
        }
    }
}
