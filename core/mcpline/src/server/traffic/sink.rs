//! A message sink that records what passes.

use mcpline_protocol::Scopes;

use crate::message_sink::{Encode, MessageKind, MessageSink};
use crate::server::inner::Inner;
use crate::sync::Arc;

use super::{Direction, TrafficOrigin};

/// Returns a sink that records its messages and passes them on to `sink`.
pub(in crate::server) fn recorded(
    server: &Arc<Inner>,
    origin: &Arc<TrafficOrigin>,
    sink: &Arc<dyn MessageSink>,
) -> Arc<dyn MessageSink> {
    Arc::new(RecordingSink {
        sink: sink.clone(),
        server: server.clone(),
        origin: origin.clone(),
    })
}

struct RecordingSink {
    sink: Arc<dyn MessageSink>,
    server: Arc<Inner>,
    origin: Arc<TrafficOrigin>,
}

impl MessageSink for RecordingSink {
    fn write(&self, kind: MessageKind, hint: usize, encode: Encode<'_>) {
        let mut message = Vec::with_capacity(hint);
        encode(&mut message);
        // Before the client can respond to it.
        if let Some(log) = &self.server.traffic {
            log.record(Direction::Sent, &self.origin, &message);
        }
        self.sink.write(kind, message.len(), &mut |out| {
            out.extend_from_slice(&message);
        });
    }

    fn is_connected(&self) -> bool {
        self.sink.is_connected()
    }

    fn is_congested(&self) -> bool {
        self.sink.is_congested()
    }

    fn abandon(&self) {
        self.sink.abandon();
    }

    fn report_missing_scopes(&self, needed: &Scopes) {
        self.sink.report_missing_scopes(needed);
    }

    fn close_stream(&self) {
        self.sink.close_stream();
    }
}
