//! Validates the messages that our side sends in tests against the published schema of their revision.
//!
//! The Rust counterpart of `tests/harness/schemas.py`. A [`Conversation`] receives the messages of both sides and
//! panics if a message of the server does not match its schema. The schemas are not part of the repository; without
//! them a note is printed once, and nothing is validated.

mod definitions;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::Value;

use definitions::{Definitions, Side};

const MODERN: &str = "2026-07-28";
/// The revision for errors that answer no request of a known revision: from it on, errors may lack an id.
const UNNEGOTIATED: &str = "2025-11-25";
const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    UNNEGOTIATED,
    MODERN,
];
const META: &str = "io.modelcontextprotocol/";

type Schemas = HashMap<&'static str, Mutex<Definitions>>;

/// The schemas of all revisions, read once; `None` if they are not on this machine.
fn schemas() -> Option<&'static Schemas> {
    static LOADED: OnceLock<Option<Schemas>> = OnceLock::new();
    LOADED
        .get_or_init(|| {
            let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec");
            if !root.is_dir() {
                eprintln!("no schemas in ../shared/spec: messages are not validated");
                return None;
            }
            let read = |revision: &'static str| {
                let text = std::fs::read_to_string(root.join(revision).join("schema.json"))
                    .expect("a schema for each revision");
                let document = serde_json::from_str(&text).expect("a schema is JSON");
                (revision, Mutex::new(Definitions::new(document)))
            };
            Some(REVISIONS.into_iter().map(read).collect())
        })
        .as_ref()
}

/// The messages of both sides of a test, in one session or in several.
///
/// If several revisions were negotiated, or ids reused, a message must match one of the possible interpretations.
#[derive(Debug, Default)]
pub struct Conversation {
    agreed: Vec<&'static str>,
    requests: HashMap<String, Vec<(String, bool)>>,
    side: Side,
}

impl Conversation {
    /// With the sides exchanged: validates a client that speaks only this revision. Pass the client's messages to
    /// [`server`](Self::server) and the server's to [`client`](Self::client).
    ///
    /// # Panics
    ///
    /// If there is no such revision.
    pub fn of_client(revision: &str) -> Self {
        let known = REVISIONS.into_iter().find(|known| *known == revision);
        Self {
            agreed: vec![known.expect("a revision of the protocol")],
            side: Side::Client,
            ..Self::default()
        }
    }

    /// Records a message, or a batch, of the client.
    pub fn client(&mut self, message: &Value) {
        if let Value::Array(batch) = message {
            for message in batch {
                self.client(message);
            }
        }
        let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else {
            return;
        };
        let version = &message["params"]["_meta"][format!("{META}protocolVersion")];
        let modern = !version.is_null() || method == "server/discover";
        let requests = self.requests.entry(id.to_string()).or_default();
        requests.push((method.to_owned(), modern));
    }

    /// Validates a message of the server.
    ///
    /// # Panics
    ///
    /// If it matches none of the schemas that may apply.
    pub fn server(&mut self, message: &Value) {
        if let Err(problems) = self.check(message) {
            panic!("{problems}\nin {message}");
        }
    }

    /// Validates a message of the server and returns what is wrong with it.
    ///
    /// # Errors
    ///
    /// The violations of the schema that most likely applies.
    pub fn check(&mut self, message: &Value) -> Result<(), String> {
        let Some(schemas) = schemas() else {
            return Ok(());
        };
        if let Value::Array(batch) = message {
            return batch.iter().try_for_each(|message| self.check(message));
        }
        if let Some(object) = message.as_object()
            && object.get("id") == Some(&Value::Null)
            && (self.agreed.is_empty()
                || self.agreed.iter().any(|revision| *revision < UNNEGOTIATED))
        {
            // JSON-RPC's own answer to unreadable input, for schemas without errors that lack an id.
            let mut without_id = object.clone();
            without_id.remove("id");
            return self.check(&without_id.into());
        }
        let mut first = None;
        for (revision, method) in self.readings(message) {
            let mut definitions = schemas[revision]
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            match definitions.check(self.side, message, method.as_deref()) {
                Ok(()) => return Ok(()),
                Err(problems) => first.get_or_insert(format!("{revision}: {problems}")),
            };
        }
        first.map_or(Ok(()), Err)
    }

    /// Returns the possible revisions of a message, each with the method that it may answer.
    fn readings(&mut self, message: &Value) -> Vec<(&'static str, Option<String>)> {
        let mut agreed = self.agreed.clone();
        if message.get("method").is_some() && self.side == Side::Client {
            return agreed
                .into_iter()
                .map(|revision| (revision, None))
                .collect();
        }
        if message.get("method").is_some() {
            if message["params"]["_meta"]
                .get(format!("{META}subscriptionId"))
                .is_some()
            {
                agreed = vec![MODERN];
            } else if agreed.is_empty() {
                // The test did not record the handshake.
                agreed.extend(REVISIONS);
            }
            agreed.push(MODERN);
            return agreed
                .into_iter()
                .map(|revision| (revision, None))
                .collect();
        }
        let Some(id) = message.get("id") else {
            return vec![(UNNEGOTIATED, None)];
        };
        let requests = self
            .requests
            .get(&id.to_string())
            .cloned()
            .unwrap_or_default();
        if let Some(version) = message["result"]["protocolVersion"].as_str()
            && requests.iter().any(|(method, _)| method == "initialize")
        {
            let known = REVISIONS.into_iter().find(|revision| *revision == version);
            agreed.splice(0..0, known);
            self.agreed.extend(known);
        }
        if agreed.is_empty() {
            agreed.push(UNNEGOTIATED);
        }
        let mut readings = Vec::new();
        for (method, modern) in requests {
            let revisions = if modern { vec![MODERN] } else { agreed.clone() };
            readings.extend(
                revisions
                    .into_iter()
                    .map(|revision| (revision, Some(method.clone()))),
            );
        }
        if readings.is_empty() {
            readings.extend(agreed.into_iter().map(|revision| (revision, None)));
        }
        readings
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn after_handshake(revision: &str) -> Conversation {
        let mut talk = Conversation::default();
        talk.client(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}));
        talk.server(&json!({"jsonrpc": "2.0", "id": 0, "result": {
            "protocolVersion": revision, "capabilities": {},
            "serverInfo": {"name": "s", "version": "1"}}}));
        talk
    }

    fn answered(revision: &str, method: &str, result: Value) -> Result<(), String> {
        let mut talk = after_handshake(revision);
        talk.client(&json!({"jsonrpc": "2.0", "id": 1, "method": method}));
        talk.check(&json!({"jsonrpc": "2.0", "id": 1, "result": result}))
    }

    #[test]
    fn validates_a_result_by_the_method_of_its_request() {
        if schemas().is_none() {
            return;
        }
        assert_eq!(
            answered("2025-03-26", "tools/list", json!({"tools": []})),
            Ok(())
        );
        assert!(answered("2025-03-26", "prompts/list", json!({"tools": []})).is_err());
        assert!(answered("2025-03-26", "ping", json!(1)).is_err());
        assert!(answered("2025-03-26", "server/discover", json!({})).is_err());
        assert_eq!(answered("2025-03-26", "ping", json!({})), Ok(()));
    }

    #[test]
    fn validates_a_client_by_the_definitions_of_clients() {
        if schemas().is_none() {
            return;
        }
        let says = |message: Value| Conversation::of_client("2025-11-25").check(&message);
        let call = |params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        assert_eq!(says(call(json!({"name": "x"}))), Ok(()));
        assert!(says(call(json!({}))).is_err());
        assert!(says(json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover"})).is_err());
        assert!(says(json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})).is_err());
        let mut talk = Conversation::of_client("2025-11-25");
        talk.client(&json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}));
        assert!(
            talk.check(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}))
                .is_err()
        );
    }

    #[test]
    fn validates_messages_by_their_revision() {
        if schemas().is_none() {
            return;
        }
        let audio = json!({"content": [{"type": "audio", "data": "", "mimeType": "audio/wav"}]});
        assert!(answered("2024-11-05", "tools/call", audio.clone()).is_err());
        assert_eq!(answered("2025-03-26", "tools/call", audio), Ok(()));
        let elicitation = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {
            "message": "", "requestedSchema": {"type": "object", "properties": {}}}});
        assert!(after_handshake("2025-03-26").check(&elicitation).is_err());
        assert_eq!(after_handshake("2025-06-18").check(&elicitation), Ok(()));
    }

    #[test]
    fn accepts_a_null_id_only_if_errors_require_an_id() {
        if schemas().is_none() {
            return;
        }
        let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": ""}});
        assert_eq!(after_handshake("2025-06-18").check(&error), Ok(()));
        assert!(after_handshake("2025-11-25").check(&error).is_err());
    }

    #[test]
    fn validates_errors_of_2026_07_28_by_their_code() {
        if schemas().is_none() {
            return;
        }
        let mut talk = Conversation::default();
        talk.client(
            &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}}),
        );
        let error = |data: Value| {
            json!({"jsonrpc": "2.0", "id": 1,
                   "error": {"code": -32021, "message": "", "data": data}})
        };
        assert!(talk.check(&error(json!({}))).is_err());
        assert_eq!(
            talk.check(&error(json!({"requiredCapabilities": {}}))),
            Ok(())
        );
        let asking = json!({"resultType": "input_required", "requestState": "s"});
        assert_eq!(
            talk.check(&json!({"jsonrpc": "2.0", "id": 1, "result": asking})),
            Ok(())
        );
        let bare = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}});
        assert!(talk.check(&bare).is_err());
    }
}
