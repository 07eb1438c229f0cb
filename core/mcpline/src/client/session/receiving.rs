//! Messages from the server: each goes to the request that waits for it, or to the host.

use mcpline_protocol::Printable;
use mcpline_protocol::client::{ClientEvent, OutgoingRequestId};
use mcpline_protocol::vocabulary::Progress;
use mcpline_protocol::wire::{Incoming, Message, ReadError, RequestId};
use mcpline_runtime::clock;

use crate::client::link::OutgoingKind;
use crate::client_error::ClientError;
use crate::sync::MutexGuard;

use super::{LinkEvent, Session, State, Waiter};

impl Session {
    /// Handles a report that arrived before the session was open.
    pub(in crate::client) fn handle_early_event(&self, report: LinkEvent) {
        match report {
            LinkEvent::Message(message, _) => {
                self.receive(Ok(message), None);
            }
            LinkEvent::Unreadable(error, course, _) => {
                self.receive(Err(error), course.map(OutgoingRequestId::from_number));
            }
            LinkEvent::Failed(number, error) => {
                self.fail(OutgoingRequestId::from_number(number), error)
            }
            LinkEvent::Held(number, held) => self.set_timeout_paused(number, held),
            LinkEvent::Ended(error) => self.end(&error),
        }
    }

    /// Handles one message or batch. Returns whether the request `course` now has its response.
    pub(super) fn receive(
        &self,
        read: Result<Incoming, ReadError>,
        course: Option<OutgoingRequestId>,
    ) -> bool {
        match read {
            Ok(Incoming::Single(message)) => self.receive_message(message, course),
            // Batches are accepted on every revision: dropping the responses in them would help no one.
            Ok(Incoming::Batch(messages)) => {
                for message in messages {
                    match message {
                        Ok(message) => self.receive_message(message, course),
                        Err(error) => self.receive_unreadable(error, None),
                    }
                }
            }
            Err(error) => self.receive_unreadable(error, course),
        }
        course.is_none_or(|key| self.lock().conversation.request_handle(key).is_none())
    }

    fn receive_message(&self, message: Message, course: Option<OutgoingRequestId>) {
        let elsewhere = match &message {
            Message::Response(response) => response.id.as_ref().and_then(RequestId::as_integer),
            _ => None,
        };
        let elsewhere = elsewhere.filter(|id| course.is_none_or(|key| *id != key.number().into()));
        let event = {
            let mut state = self.lock();
            let event = state.conversation.receive(message, clock::now());
            // The end of a subscription does not prove that the server works: it may do nothing else before it ends
            // again.
            state.answered |= matches!(&event, ClientEvent::RequestEnded(waiter, _) if waiter.acknowledged.is_none());
            self.record_activity(state, course);
            event
        };
        if let Some(number) = elsewhere.and_then(|id| u64::try_from(id).ok())
            && matches!(event, ClientEvent::RequestEnded(..))
        {
            // The response came over another stream, so the request's own one has nothing to wait for any more.
            self.link.abandon(number);
        }
        self.handle_client_event(event);
    }

    fn receive_unreadable(&self, mut error: ReadError, course: Option<OutgoingRequestId>) {
        // Each message of an oversized batch counts as invalid, so that each waiting request fails.
        for (shape, id) in error.batch.take().iter().flat_map(|batch| batch.messages()) {
            let one = ReadError {
                id: Some(id),
                shape,
                ..ReadError::unreadable(error.error.clone())
            };
            let event = self.lock().conversation.receive_unreadable(one, None);
            self.handle_client_event(event);
        }
        let event = {
            let mut state = self.lock();
            let event = state.conversation.receive_unreadable(error, course);
            self.record_activity(state, course);
            event
        };
        self.handle_client_event(event);
    }

    /// Records a sign of life, on the stream of `course` if there is one. Without pings nothing depends on it.
    fn record_activity(&self, mut state: MutexGuard<'_, State>, course: Option<OutgoingRequestId>) {
        if !self.pings {
            return;
        }
        let needless = state.conversation.note_activity(clock::now());
        let next = state.conversation.next_ping();
        drop(state);
        self.schedule(next);
        if let Some(key) = needless.filter(|key| course != Some(*key)) {
            self.link.abandon(key.number());
        }
    }

    fn handle_client_event(&self, event: ClientEvent<Waiter>) {
        match event {
            // The caller may be gone.
            ClientEvent::RequestEnded(waiter, outcome) => {
                let _ = waiter.answer.send(outcome.map_err(ClientError::from));
            }
            ClientEvent::Progress(key, progress) => self.report(key, progress),
            ClientEvent::InputRequest(request) => self.answer_server_request(request),
            ClientEvent::InputRequestCancelled(id, reason) => {
                tracing::debug!(
                    "the server withdrew a request: {}",
                    Printable(reason.as_deref().unwrap_or("no reason given"))
                );
                self.withdraw(&id);
            }
            ClientEvent::SubscriptionEnded(key, waiter, reason) => {
                // Over HTTP its stream may still be open.
                self.link.abandon(key.number());
                let why = match reason {
                    Some(reason) => format!("the server ended the subscription: {reason}"),
                    None => "the server ended the subscription".to_owned(),
                };
                tracing::debug!("{}", Printable(&why));
                // The caller may be gone.
                let _ = waiter.answer.send(Err(ClientError::lost(why)));
            }
            ClientEvent::SubscriptionAcknowledged(key, notification) => {
                let state = self.lock();
                let waiter = state.conversation.request_handle(key);
                if let Some(acknowledged) = waiter.and_then(|waiter| waiter.acknowledged.as_ref()) {
                    // It has one already, or the caller is gone.
                    let _ = acknowledged.try_send(notification.clone());
                }
                drop(state);
                if let Some(client) = self.client.upgrade() {
                    client.deliver_notification(&notification);
                }
            }
            ClientEvent::Notification(notification) => {
                if let Some(client) = self.client.upgrade() {
                    client.deliver_notification(&notification);
                }
            }
            ClientEvent::UnknownSubscription(notification) => {
                let method = Printable(notification.method.as_str());
                tracing::debug!("dropped {method} of a subscription that is not open");
                if let Some(client) = self.client.upgrade() {
                    client.cache().invalidate(&notification);
                }
            }
            ClientEvent::Reply(message) => self.send(message, OutgoingKind::Answer),
            ClientEvent::Violation(why) => tracing::warn!("{}", Printable(why)),
            ClientEvent::Ignored(why) => tracing::debug!("{}", Printable(why)),
        }
    }

    fn report(&self, key: OutgoingRequestId, progress: Progress) {
        let listener = {
            let state = self.lock();
            state
                .conversation
                .request_handle(key)
                .and_then(|waiter| waiter.progress.clone())
        };
        if let Some(listener) = listener {
            listener(progress);
        }
    }
}
