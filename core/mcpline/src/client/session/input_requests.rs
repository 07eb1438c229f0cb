//! Requests of the server to the host: each is answered by a task of its own, which ends when the answer is not wanted any
//! more.

use mcpline_protocol::wire::{Request, RequestId};
use mcpline_protocol::{Raw, RpcError};

use crate::background;
use crate::client::handlers::adapted;
use crate::client::link::Purpose;

use super::Session;

impl Session {
    pub(super) fn question(&self, request: Request) {
        let (Some(client), Some(session)) = (self.client.upgrade(), self.this.upgrade()) else {
            return;
        };
        // A slice would keep the whole message in memory, which may be much larger.
        let params = request
            .params
            .as_ref()
            .map(|params| params.raw().detached());
        let answer = client.handlers.answer(request.method.as_str(), params);
        let peer = client.handlers.peer;
        let answer = adapted(peer, request.method.as_str(), answer, self.revision());
        let id = request.id.clone();
        // The task can't end before it is entered: it waits for the lock.
        let mut state = self.lock();
        // It may have been withdrawn by another stream since it was heard, or the conversation may be over: whoever ends its
        // handler has come and gone.
        if state.ended.is_some() || !state.conversation.has_input_request(&request.id) {
            return;
        }
        let task = background::spawn(
            &client.runtime,
            client.handlers.tasks.until_closed(async move {
                let outcome = answer.await;
                session.answered(&id, &outcome);
            }),
        );
        state.answering.push((request.id, task.abort_handle()));
    }

    fn answered(&self, id: &RequestId, outcome: &Result<Raw, RpcError>) {
        let reply = {
            let mut state = self.lock();
            state.answering.retain(|(other, _)| other != id);
            state
                .conversation
                .write_input_response(id, outcome.as_ref())
        };
        if let Some(reply) = reply {
            self.send(reply, Purpose::Answer);
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
