//! Repeats the requests of a traffic file at a server, and compares what it answers with what the file says.
//!
//! `cargo run -p example-weather --bin replay -- FILE URL` or `… -- FILE PROGRAM [ARGUMENT …]`. A server or a client has recorded
//! the file: see `docs/traffic-files.md`. The exit status is 1 if an answer differs, and 2 if the file cannot be read or the
//! server cannot be reached.
//!
//! For each connection and session, a client of the same revision sends the recorded requests one after another, and answers
//! input requests of the server as recorded. `[redacted]` in a recorded answer matches any text.

#![allow(clippy::print_stdout, reason = "what the example shows")]

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use mcpline::client::{
    Address, Client, ClientBuilder, ClientError, Command, HostRequest, HostRequestHandler,
    RequestOptions,
};
use mcpline::protocol::Raw;
use mcpline::traffic::{Direction, Role, TrafficContent, TrafficEntry, TrafficReader};
use mcpline::{Revision, RpcError};
use serde_json::{Map, Value, json};

type Failure = Box<dyn std::error::Error>;

/// Requests that a client sends by itself.
const METHODS_OF_THE_LIBRARY: [&str; 4] = [
    "initialize",
    "ping",
    "server/discover",
    "subscriptions/listen",
];

/// What a file says about one client of a server.
#[derive(Default)]
struct RecordedClient {
    revision: Option<Revision>,
    requests: Vec<Request>,
    /// The answers of the client to input requests, by method, in their order.
    answers: HashMap<String, VecDeque<Value>>,
    /// The methods of input requests that wait for their answers, by id.
    asked: HashMap<String, String>,
}

struct Request {
    id: String,
    method: String,
    params: Value,
    /// The response. `None` if the file has none, for example because the request was cancelled.
    recorded: Option<Value>,
}

impl RecordedClient {
    /// Takes a message of the client.
    fn sent(&mut self, message: &Value) {
        let id = message["id"].to_string();
        let Some(method) = message["method"].as_str() else {
            if let Some(method) = self.asked.remove(&id) {
                let answers = self.answers.entry(method).or_default();
                answers.push_back(message.clone());
            }
            return;
        };
        if message.get("id").is_none() || METHODS_OF_THE_LIBRARY.contains(&method) {
            return;
        }
        let mut params = message["params"].clone();
        if let Some(responses) = params.get("inputResponses") {
            // The request was sent again, with the input that the server had asked for (2026-07-28): the client will do so by itself.
            let first = self.requests.iter_mut().rev().find(|request| {
                let asks = request
                    .recorded
                    .as_ref()
                    .is_some_and(|response| response["result"]["inputRequests"].is_object());
                asks && request.method == method
            });
            if let Some(first) = first {
                let asked = first.recorded.take().unwrap_or_default();
                first.id = id;
                for (key, request) in members(&asked["result"]["inputRequests"]) {
                    let method = request["method"].as_str().unwrap_or_default();
                    let answers = self.answers.entry(method.to_owned()).or_default();
                    answers.push_back(json!({"result": responses[key]}));
                }
                return;
            }
        }
        if let Some(params) = params.as_object_mut() {
            params.remove("_meta");
        }
        self.requests.push(Request {
            id,
            method: method.to_owned(),
            params,
            recorded: None,
        });
    }

    /// Takes a message of the server.
    fn received(&mut self, message: &Value) {
        let id = message["id"].to_string();
        match message["method"].as_str() {
            Some(method) if message.get("id").is_some() => {
                self.asked.insert(id, method.to_owned());
            }
            Some(_) => {}
            None => {
                let mut requests = self.requests.iter_mut().rev();
                if let Some(request) = requests.find(|request| request.id == id) {
                    request.recorded = Some(message.clone());
                }
            }
        }
    }

    /// Returns a client that answers input requests as the file says.
    fn client(&mut self) -> ClientBuilder {
        let mut builder = Client::builder("replay", "1.0.0").configure(|settings| {
            settings
                .revisions
                .retain(|revision| self.revision.is_none_or(|recorded| *revision == recorded));
            settings.cache = false;
            // Differences are what is looked for.
            settings.check_output = false;
        });
        for (method, answers) in std::mem::take(&mut self.answers) {
            let request_handler = request_handler(answers);
            builder = match method.as_str() {
                "elicitation/create" => builder.elicit_with(request_handler),
                "sampling/createMessage" => builder.sample_with(request_handler),
                "roots/list" => builder.list_roots_with(request_handler),
                custom => builder.request_with(custom, request_handler),
            };
        }
        builder
    }

    /// Sends the requests, and returns how many were answered as recorded, and how many differently.
    async fn replay(mut self, address: Address) -> Result<(usize, usize), Failure> {
        let client = self.client().connect(address).await?;
        let (mut same, mut different) = (0, 0);
        for request in &self.requests {
            let label = format!("{}{}", request.method, target(&request.params));
            let Some(recorded) = &request.recorded else {
                println!("skipped {label}: the file has no response");
                continue;
            };
            let params = match &request.params {
                Value::Null => None,
                params => Some(Raw::from_serialize(params)?),
            };
            let options = RequestOptions::new();
            let answered = client
                .request(&request.method, params.as_ref(), &options)
                .await;
            let answered = match &answered {
                Ok(result) => json!({"result": result.decode::<Value>()?}),
                Err(ClientError::Rpc(error)) => json!({"error": error}),
                Err(error) => json!({"error": error.to_string()}),
            };
            let differences =
                ["result", "error"].map(|name| difference(name, &recorded[name], &answered[name]));
            match differences.into_iter().flatten().next() {
                None => {
                    same += 1;
                    println!("same {label}");
                }
                Some(difference) => {
                    different += 1;
                    println!("different {label}: {difference}");
                }
            }
        }
        client.close().await;
        Ok((same, different))
    }
}

/// Returns a handler of input requests that gives the recorded answers one after another.
fn request_handler(answers: VecDeque<Value>) -> HostRequestHandler {
    let answers = Mutex::new(answers);
    Arc::new(move |_: HostRequest| {
        let answer = answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        Box::pin(async move {
            let answer =
                answer.ok_or_else(|| RpcError::internal_error("the file has no further answer"))?;
            match answer.get("error") {
                Some(error) => Err(serde_json::from_value(error.clone())
                    .unwrap_or_else(|_| RpcError::internal_error("an error"))),
                None => Raw::from_serialize(&answer["result"])
                    .map_err(|error| RpcError::internal_error(error.to_string())),
            }
        })
    })
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

/// Returns the name or URI that a request names, for the output.
fn target(params: &Value) -> String {
    let named = params.get("name").or_else(|| params.get("uri"));
    named.map(|named| format!(" {named}")).unwrap_or_default()
}

/// Returns where two values differ first, and how.
fn difference(path: &str, recorded: &Value, answered: &Value) -> Option<String> {
    match (recorded, answered) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<_> = one.keys().chain(other.keys()).collect();
            names.into_iter().find_map(|name| {
                difference(&format!("{path}.{name}"), &recorded[name], &answered[name])
            })
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.find_map(|(index, (one, other))| {
                difference(&format!("{path}[{index}]"), one, other)
            })
        }
        (Value::String(one), Value::String(_)) if one.contains("[redacted]") => None,
        _ if recorded == answered => None,
        _ => Some(format!("{path} was {recorded} and is {answered}")),
    }
}

/// Reads the conversations of a file, in the order in which they begin.
fn read(path: &str) -> Result<Vec<RecordedClient>, Failure> {
    let mut conversations: Vec<RecordedClient> = Vec::new();
    let mut places = BTreeMap::new();
    let mut recorder = None;
    let mut reader = TrafficReader::open(path)?;
    for record in reader.by_ref() {
        let message = match record? {
            TrafficEntry::Message(message) => message,
            other => {
                println!("incomplete: {other:?}");
                continue;
            }
        };
        // If a server and its client have recorded the same messages, one of them is enough.
        if *recorder.get_or_insert(message.role) != message.role {
            continue;
        }
        let TrafficContent::Message(json) = &message.content else {
            continue;
        };
        // At a server, each request over HTTP may have a connection of its own.
        let is_shared = message.role == Role::Server && message.transport == "http";
        let connection = message.connection.filter(|_| !is_shared);
        let key = (message.name.clone(), message.session.clone(), connection);
        let place = *places.entry(key).or_insert(conversations.len());
        if place == conversations.len() {
            conversations.push(RecordedClient::default());
        }
        let conversation = &mut conversations[place];
        conversation.revision = message.revision.or(conversation.revision);
        let of_client = (message.role == Role::Client) == (message.direction == Direction::Sent);
        let batch = match json.decode()? {
            Value::Array(batch) => batch,
            single => vec![single],
        };
        for message in &batch {
            match of_client {
                true => conversation.sent(message),
                false => conversation.received(message),
            }
        }
    }
    if reader.is_cut_off() {
        println!("incomplete: the file ends within a record");
    }
    conversations.retain(|conversation| !conversation.requests.is_empty());
    Ok(conversations)
}

/// Replays a file. Returns whether all answers are the same.
async fn replay() -> Result<bool, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, at, rest @ ..] = &arguments[..] else {
        return Err("usage: replay FILE URL, or replay FILE PROGRAM [ARGUMENT …]".into());
    };
    let (mut same, mut different) = (0, 0);
    for conversation in read(file)? {
        let address: Address = match at.contains("://") {
            true => at.as_str().into(),
            false => Command::new(at).args(rest).into(),
        };
        let counted = conversation.replay(address).await?;
        (same, different) = (same + counted.0, different + counted.1);
    }
    println!("{same} answers are the same, {different} are different");
    Ok(different == 0)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match replay().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("replay: {error}");
            ExitCode::from(2)
        }
    }
}
