//! Answers requests of the server to the host, on handshake revisions. Each has a task of its own, which ends when the
//! answer is no longer needed. On 2026-07-28 the server asks in its results: `client/request.rs` answers those.

use mcpline_protocol::wire::{Request, RequestId};
use mcpline_protocol::{Raw, RpcError};

use crate::background;
use crate::client::handlers::adapt_answer;
use crate::client::input_request_span::InputRequestOrigin;
use crate::client::link::OutgoingKind;

use super::Session;

impl Session {
    pub(super) fn answer_server_request(&self, request: Request) {
        let (Some(client), Some(session)) = (self.client.upgrade(), self.this.upgrade()) else {
            return;
        };
        // A slice would keep the whole message in memory, which may be much larger.
        let params = request
            .params
            .as_ref()
            .map(|params| params.raw().detached());
        let origin = InputRequestOrigin {
            session: Some(&session),
            server: client.dialler.server_address(),
            request_id: Some(&request.id),
        };
        let method = request.method.as_str();
        let answer = client.handlers.answer_recorded(method, params, &origin);
        let peer = client.handlers.peer;
        let answer = adapt_answer(peer, request.method.as_str(), answer, self.revision());
        let id = request.id.clone();
        // The task cannot end before it is entered, because it waits for the lock.
        let mut state = self.lock();
        // It may have been cancelled over another stream meanwhile, or the session may have ended: nothing would abort
        // its handler later.
        if state.ended.is_some() || !state.conversation.has_input_request(&request.id) {
            return;
        }
        let task = background::spawn(
            &client.runtime,
            client.handlers.tasks.until_closed(async move {
                let outcome = answer.await;
                session.send_response(&id, &outcome);
            }),
        );
        state.answering.push((request.id, task.abort_handle()));
    }

    fn send_response(&self, id: &RequestId, outcome: &Result<Raw, RpcError>) {
        let reply = {
            let mut state = self.lock();
            state.answering.retain(|(other, _)| other != id);
            state
                .conversation
                .write_input_response(id, outcome.as_ref())
        };
        if let Some(reply) = reply {
            self.send(reply, OutgoingKind::Answer);
        }
    }

    pub(super) fn withdraw(&self, id: &RequestId) {
        let mut state = self.lock();
        let position = state.answering.iter().position(|(other, _)| other == id);
        if let Some(position) = position {
            state.answering.swap_remove(position).1.abort();
        }
    }
}
