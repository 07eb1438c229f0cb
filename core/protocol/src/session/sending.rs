//! What handlers and the server send: progress, log messages, requests to the client, change notifications.

use std::time::Duration;

use crate::revision::Revision;
use crate::vocabulary::{LoggingLevel, meta};
use crate::wire::{Raw, RequestId, encode, json_string};

use super::incoming_requests::RequestKey;
use super::notification_limiter::LogMessage;
use super::peer_profiles::RequiredCapability;
use super::server::{Outgoing, ServerSession};
use super::server_requests::{InputRequestError, ServerRequest, ServerRequestKey};
use super::subscriptions::Change;
use super::writing::{cancellation, change_message, notification, write_number};

impl<C, A> ServerSession<C, A> {
    /// Reports progress of a request.
    ///
    /// Sent only if the request carries a token and the value increases (every revision, `basic/utilities/progress`).
    /// The rate is limited to [`SessionLimits::progress_rate`](super::SessionLimits::progress_rate).
    pub fn progress(
        &mut self,
        key: RequestKey,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
        now: Duration,
    ) -> Option<Outgoing> {
        let rate = self.limits.progress_rate;
        let with_message = self.revision_of(key)?.features().progress_message;
        let entry = self.requests.get_mut(key)?;
        let token = entry.progress_token.as_ref()?;
        if !progress.is_finite() || entry.last_progress.is_some_and(|last| progress <= last) {
            return None;
        }
        entry.last_progress = Some(progress);
        let mut params = Vec::with_capacity(96);
        params.extend_from_slice(b"{\"progressToken\":");
        params.extend_from_slice(token.as_bytes());
        params.extend_from_slice(b",\"progress\":");
        write_number(&mut params, progress);
        if let Some(total) = total.filter(|total| total.is_finite()) {
            params.extend_from_slice(b",\"total\":");
            write_number(&mut params, total);
        }
        if let Some(message) = message.filter(|_| with_message) {
            params.extend_from_slice(b",\"message\":");
            json_string(&mut params, message);
        }
        params.push(b'}');
        let message = notification("notifications/progress", &params);
        let message = entry.progress.offer(message, rate, now)?;
        Some(Outgoing {
            related: Some(key),
            message,
        })
    }

    /// Whether the client asked for progress of a request.
    pub fn wants_progress(&mut self, key: RequestKey) -> bool {
        let entry = self.requests.get_mut(key);
        entry.is_some_and(|entry| entry.progress_token.is_some())
    }

    /// Whether the client wants log messages of this level for the request `key`, or for the session.
    pub fn wants_log(&mut self, key: Option<RequestKey>, level: LoggingLevel) -> bool {
        let threshold = self.log_threshold(key);
        threshold.is_some_and(|(_, threshold)| threshold.is_none_or(|least| level >= least))
    }

    /// Returns the request whose level applies, if it has one of its own, and the least level that the client receives, if there
    /// is one; `None` if it wants no log messages.
    fn log_threshold(
        &mut self,
        key: Option<RequestKey>,
    ) -> Option<(Option<RequestKey>, Option<LoggingLevel>)> {
        let leveled = match key {
            Some(key) => {
                let features = self.revision_of(key)?.features();
                features.request_log_level.then_some(key)
            }
            None => None,
        };
        let threshold = match leveled {
            Some(key) => Some(self.requests.get_mut(key)?.log_level?),
            None => {
                self.peer()?;
                self.log_level.or(self.limits.client_log_level)
            }
        };
        Some((leveled, threshold))
    }

    /// Sends a log message for the request `key`, or for the session.
    ///
    /// Handshake era: at or above the level of `logging/setLevel`, and before it is set at or above
    /// [`SessionLimits::client_log_level`](super::SessionLimits::client_log_level). 2026-07-28: only for a request that named a
    /// level, at or above it. The rate is limited to
    /// [`SessionLimits::log_rate`](super::SessionLimits::log_rate).
    pub fn log(
        &mut self,
        key: Option<RequestKey>,
        level: LoggingLevel,
        logger: Option<&str>,
        data: &Raw,
        now: Duration,
    ) -> Option<Outgoing> {
        let (leveled, threshold) = self.log_threshold(key)?;
        if threshold.is_some_and(|threshold| level < threshold) {
            return None;
        }
        let mut params = Vec::with_capacity(64 + data.as_bytes().len());
        params.extend_from_slice(b"{\"level\":\"");
        params.extend_from_slice(level.as_str().as_bytes());
        params.push(b'"');
        if let Some(logger) = logger {
            params.extend_from_slice(b",\"logger\":");
            json_string(&mut params, logger);
        }
        params.extend_from_slice(b",\"data\":");
        params.extend_from_slice(data.as_bytes());
        params.push(b'}');
        let message = notification("notifications/message", &params);
        let rate = self.limits.log_rate;
        if let Some(key) = leveled {
            let entry = self.requests.get_mut(key)?;
            let held = entry.log.get_or_insert_default();
            let sent = held.offer(LogMessage { level, message }, rate, now)?;
            return Some(Outgoing {
                related: Some(key),
                message: sent.message,
            });
        }
        let outgoing = Outgoing {
            related: key,
            message,
        };
        let message = LogMessage {
            level,
            message: outgoing,
        };
        Some(self.log.offer(message, rate, now)?.message)
    }

    /// Sends an input request to a handshake-era client.
    ///
    /// Returns its key and the message to send now; `None` means that it is queued until the handshake is complete. On
    /// 2026-07-28 input requests travel in `input_required` instead.
    ///
    /// # Errors
    ///
    /// [`InputRequestError::NotSupported`] if the client does not support it, [`InputRequestError::LimitExceeded`] if
    /// too many are open, [`InputRequestError::Cancelled`] if the request that it relates to has ended. The handle is
    /// returned.
    #[allow(
        clippy::result_large_err,
        reason = "the handle must come back to its owner"
    )]
    pub fn begin_server_request(
        &mut self,
        server_request: ServerRequest,
        handle: A,
        now: Duration,
    ) -> Result<(ServerRequestKey, Option<Outgoing>), (InputRequestError, A)> {
        let Some(peer) = self.peer() else {
            return Err((InputRequestError::ConnectionLost, handle));
        };
        let need = RequiredCapability::of(&server_request.method, server_request.params.as_ref());
        if !peer.accepts(need) {
            return Err((InputRequestError::NotSupported(need), handle));
        }
        if self.server_requests.open.len() >= self.limits.max_open_input_requests {
            return Err((
                InputRequestError::LimitExceeded(
                    "too many input requests are open (`max_open_input_requests`)",
                ),
                handle,
            ));
        }
        if server_request
            .related
            .is_some_and(|key| self.requests.get_mut(key).is_none())
        {
            return Err((InputRequestError::Cancelled, handle));
        }
        if need == RequiredCapability::ElicitUrl
            && let Some(id) = elicitation_id(server_request.params.as_ref())
        {
            self.url_elicitations.remember(id, server_request.related);
        }
        let related = server_request.related;
        let method = server_request.method.clone();
        let params = server_request.params.clone();
        let key = self.server_requests.insert(server_request, handle, now);
        let params = with_progress_token(params.as_ref(), key);
        let mut message = Vec::with_capacity(128);
        encode::request(
            &mut message,
            &RequestId::number(key.0 as i64),
            &method,
            Some(&params),
        );
        let outgoing = Outgoing { related, message };
        if self.is_ready() {
            return Ok((key, Some(outgoing)));
        }
        self.held
            .push_server_request(key, outgoing, &self.server_requests);
        Ok((key, None))
    }

    /// Records that an error instead of an input request requires a URL elicitation of the client, so that its
    /// completion can be announced (2025-11-25, `client/elicitation`, URL elicitation required).
    pub fn note_url_elicitation_required(&mut self, elicitation_id: &str) {
        self.url_elicitations
            .remember(elicitation_id.to_owned(), None);
    }

    /// Announces that a URL elicitation is complete, if it was sent to this client and its completion has not been
    /// announced yet (2025-11-25, `client/elicitation`, completion notifications).
    pub fn complete_url_elicitation(&mut self, elicitation_id: &str) -> Option<Outgoing> {
        let elicitation = self.url_elicitations.forget(elicitation_id)?;
        if !self.peer()?.revision.features().elicitation_complete {
            return None;
        }
        let mut params = b"{\"elicitationId\":".to_vec();
        json_string(&mut params, elicitation_id);
        params.push(b'}');
        Some(Outgoing {
            related: elicitation
                .related
                .filter(|key| self.requests.get_mut(*key).is_some()),
            message: notification("notifications/elicitation/complete", &params),
        })
    }

    /// Cancels a request to the client. Returns its handle and the cancellation to send, if it was still open.
    pub fn cancel_server_request(
        &mut self,
        key: ServerRequestKey,
        reason: &str,
    ) -> Option<(A, Outgoing)> {
        let server_request = self.server_requests.open.remove(&key)?;
        let outgoing = cancellation(key, server_request.related, reason);
        Some((server_request.handle, outgoing))
    }

    /// Notifies subscribers of a change.
    pub fn notify_change(&mut self, change: &Change) -> Vec<Outgoing> {
        let mut messages = Vec::new();
        if let Some(peer) = self.peer() {
            let wanted = match change {
                Change::Resource(uri) => self.subscribed.contains(uri),
                _ => peer.revision.features().server_requests,
            };
            if wanted {
                let outgoing = Outgoing {
                    related: None,
                    message: change_message(change, None),
                };
                if self.is_ready() {
                    messages.push(outgoing);
                } else {
                    self.held.push_notification(outgoing);
                }
            }
        }
        for listen in self
            .subscription_streams
            .iter()
            .filter(|listen| listen.wants(change))
        {
            messages.push(Outgoing {
                related: Some(listen.key),
                message: change_message(change, Some(&listen.id)),
            });
        }
        messages
    }

    /// Ends every `subscriptions/listen` stream gracefully, and returns the result of each (2026-07-28,
    /// `basic/patterns/subscriptions`, graceful closure).
    pub fn end_subscription_streams(&mut self) -> Vec<(RequestKey, RequestId, Vec<u8>)> {
        let listens = std::mem::take(&mut self.subscription_streams);
        listens
            .into_iter()
            .map(|listen| {
                self.requests.remove(listen.key, |_| ());
                let mut result = Vec::new();
                result.extend_from_slice(b"{\"resultType\":\"complete\",\"_meta\":{\"");
                result.extend_from_slice(meta::SUBSCRIPTION_ID.as_bytes());
                result.extend_from_slice(b"\":");
                result.extend_from_slice(listen.id.raw());
                result.extend_from_slice(b"}}");
                (listen.key, listen.id, result)
            })
            .collect()
    }

    fn revision_of(&mut self, key: RequestKey) -> Option<Revision> {
        self.requests.get_mut(key)?.revision
    }
}

/// The parameters of a request to the client, with its id as the progress token: progress of the client restarts the
/// idle timeout (every handshake revision, `basic/utilities/progress`).
fn with_progress_token(params: Option<&Raw>, key: ServerRequestKey) -> Vec<u8> {
    let own_meta = params.and_then(|params| params.member("_meta"));
    let members = |object: Option<&Raw>, but: &str, out: &mut Vec<u8>| {
        for (name, value) in object.and_then(Raw::members).into_iter().flatten() {
            if name != but {
                out.push(b',');
                json_string(out, &name);
                out.push(b':');
                out.extend_from_slice(value.as_bytes());
            }
        }
    };
    let mut out = format!("{{\"_meta\":{{\"{}\":{}", meta::PROGRESS_TOKEN, key.0).into_bytes();
    members(own_meta.as_ref(), meta::PROGRESS_TOKEN, &mut out);
    out.push(b'}');
    members(params, "_meta", &mut out);
    out.push(b'}');
    out
}

fn elicitation_id(params: Option<&Raw>) -> Option<String> {
    let id = params?.member("elicitationId")?;
    Some(id.string_value()?.into_owned())
}
