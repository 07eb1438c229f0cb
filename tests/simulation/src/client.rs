//! Clients: what they do, and what they check.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::exchange::{
    ConnectionLost, Contacts, EventStream, Received, ReceivedEvents, Reply, ReplyBody, request,
    send,
};
use crate::replica::{RESOURCES, update, uri};
use crate::world::World;

/// An operation, with all its retries, ends within this time: a replica that has ended is noticed after 25 s at most, and a handler
/// waits for 40 s for a response that was lost with a message of the bus.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(240);

/// The states of a session at all replicas and in the store are the same after this time without faults.
const SETTLING_TIME: Duration = Duration::from_secs(2);

/// How long a client listens for what must not arrive.
const LISTENING_TIME: Duration = Duration::from_secs(1);

/// Codes of errors that a fault explains: a limit, a shutdown, the end of a process.
const RETRYABLE: [i64; 3] = [-31_000, -31_002, -31_003];

/// The code of the error for a request whose session has ended.
const SESSION_ENDED: i64 = -31_004;

/// The code of the error for a request state that is refused.
const INVALID_PARAMS: i64 = -32602;

/// A client with its session.
pub(crate) struct Client {
    world: Arc<World>,
    /// Which of the sessions that exist at the same time it has; it has a resource of this number for itself, if there is one.
    slot: u64,
    revision: &'static str,
    session: String,
    /// The store may not have the session, or not know that its handshake is complete, because a fault met its beginning.
    is_fragile: bool,
    next_id: u64,
    /// The log level, if its change was answered.
    quiet: bool,
}

/// How an attempt at a call ended.
enum Attempt {
    /// With a result.
    Answered(Value),
    /// Without one, for a reason that a fault explains: the client tries again.
    Failed,
    /// The session is unknown, and may be.
    SessionLost,
}

/// The session is lost, or the run has a violation: the client starts again with another session.
struct Abandoned;

impl Client {
    /// Runs a client until the end of its session.
    pub(crate) async fn run(world: Arc<World>, slot: u64) {
        let is_modern = world.happens(250);
        if is_modern {
            let mut client = Self::new(&world, slot, "2026-07-28");
            for _ in 0..world.size.steps {
                if client.step_without_session().await.is_err() {
                    break;
                }
                world.pause(0, 4_000).await;
            }
            world.count(|counts| counts.sessions += 1);
            return;
        }
        let revision = match world.happens(200) {
            true => "2025-06-18",
            false => "2025-11-25",
        };
        let mut client = Self::new(&world, slot, revision);
        if client.begin().await.is_ok() {
            // Some clients are in no hurry: their sessions outlive the lifetime that the store was told first.
            let longest_pause = match world.happens(150) {
                true => 30_000,
                false => 3_000,
            };
            for _ in 0..world.size.steps {
                if client.step().await.is_err() {
                    break;
                }
                world.pause(0, longest_pause).await;
            }
            // Some leave without a word.
            if !world.happens(200) {
                // Its violations are recorded.
                let _ = client.end().await;
            }
        }
        world.count(|counts| counts.sessions += 1);
    }

    fn new(world: &Arc<World>, slot: u64, revision: &'static str) -> Self {
        Self {
            world: world.clone(),
            slot,
            revision,
            session: String::new(),
            is_fragile: false,
            next_id: 0,
            quiet: false,
        }
    }

    fn deadline(&self) -> Instant {
        Instant::now() + OPERATION_TIMEOUT
    }

    /// Reports a violation, after which the client does nothing more.
    fn fails(&self, what: std::fmt::Arguments<'_>) -> Abandoned {
        self.world.violation(format_args!(
            "session {} ({}): {what}",
            self.session, self.revision
        ));
        Abandoned
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    async fn post(&self, contacts: &mut Contacts, body: &Value) -> Result<Reply, ConnectionLost> {
        self.exchange(Method::POST, contacts, &[], body).await
    }

    async fn exchange(
        &self,
        method: Method,
        contacts: &mut Contacts,
        more: &[(&str, &str)],
        body: &Value,
    ) -> Result<Reply, ConnectionLost> {
        let mut headers = vec![("mcp-protocol-version", self.revision)];
        if !self.session.is_empty() {
            headers.push(("mcp-session-id", &self.session));
        }
        headers.extend_from_slice(more);
        let name = body["method"]
            .as_str()
            .unwrap_or(method.as_str())
            .to_owned();
        let sent = request(method, &headers, body);
        let reply = send(&self.world, contacts, sent).await;
        match &reply {
            Ok(reply) => self.world.trace(format_args!(
                "{} {name} at {}: {}",
                self.session,
                reply.replica.number,
                reply.status.as_u16()
            )),
            Err(ConnectionLost) => self
                .world
                .trace(format_args!("{} {name}: lost", self.session)),
        }
        reply
    }

    /// Whether a refusal is explained by a fault.
    fn explains(&self, reply: &Reply, contacts: &Contacts) -> bool {
        reply.status == StatusCode::SERVICE_UNAVAILABLE && contacts.were_disturbed()
    }

    /// Opens the session.
    async fn begin(&mut self) -> Result<(), Abandoned> {
        let deadline = self.deadline();
        loop {
            if Instant::now() > deadline {
                return Err(self.fails(format_args!("no session in time")));
            }
            let mut contacts = Contacts::new(&self.world);
            let hello = json!({"jsonrpc": "2.0", "id": self.id(), "method": "initialize", "params": {
                "protocolVersion": self.revision, "capabilities": {"elicitation": {}},
                "clientInfo": {"name": "simulation", "version": "1"}}});
            self.session.clear();
            match self.post(&mut contacts, &hello).await {
                Ok(Reply {
                    session: Some(session),
                    status: StatusCode::OK,
                    ..
                }) => {
                    self.session = session;
                    self.is_fragile = contacts.were_disturbed();
                    break;
                }
                Ok(reply) if !self.explains(&reply, &contacts) => {
                    return Err(self.fails(format_args!("initialize: {}", reply.status)));
                }
                _ => self.retry_later().await,
            }
        }
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.deliver(&ready).await
    }

    async fn retry_later(&self) {
        self.world.count(|counts| counts.retries += 1);
        self.world.pause(100, 1_500).await;
    }

    /// Sends a message that has no response until a replica accepts it.
    async fn deliver(&mut self, message: &Value) -> Result<(), Abandoned> {
        let deadline = self.deadline();
        loop {
            let mut contacts = Contacts::new(&self.world);
            match self.post(&mut contacts, message).await {
                Ok(reply) if reply.status == StatusCode::ACCEPTED => {
                    self.is_fragile |= contacts.were_disturbed();
                    return Ok(());
                }
                Ok(reply) if reply.status == StatusCode::NOT_FOUND && self.is_fragile => {
                    return Err(Abandoned);
                }
                Ok(reply) if !self.explains(&reply, &contacts) => {
                    return Err(self.fails(format_args!("{message}: {}", reply.status)));
                }
                _ => self.retry_later().await,
            }
            if Instant::now() > deadline {
                return Err(self.fails(format_args!("{message} was not accepted in time")));
            }
        }
    }

    async fn step(&mut self) -> Result<(), Abandoned> {
        match self.world.between(0, 9) {
            0..=3 => self.call("echo", &json!({}), &[]).await.map(|_| ()),
            4 | 5 => self.call_with_progress().await,
            6 | 7 => self.call_with_input_requests().await,
            8 => self.change_state().await,
            _ => self.listen().await,
        }
    }

    /// A call that reports progress.
    async fn call_with_progress(&mut self) -> Result<(), Abandoned> {
        let steps = self.world.between(1, 6);
        let arguments = json!({"steps": steps});
        self.call("progress", &arguments, &[]).await.map(|_| ())
    }

    /// A call that asks the client.
    async fn call_with_input_requests(&mut self) -> Result<(), Abandoned> {
        let answers: Vec<String> = (0..self.world.between(1, 3))
            .map(|_| self.world.number().to_string())
            .collect();
        let arguments = json!({"questions": answers.len()});
        self.call("ask", &arguments, &answers).await.map(|_| ())
    }

    /// Calls a tool until there is a result, which is checked. Returns the log messages of the call.
    async fn call(
        &mut self,
        tool: &str,
        arguments: &Value,
        answers: &[String],
    ) -> Result<Vec<String>, Abandoned> {
        let deadline = self.deadline();
        loop {
            let call = self.world.number();
            let mut arguments = arguments.clone();
            arguments["call"] = call.into();
            let mut contacts = Contacts::new(&self.world);
            let mut logged = Vec::new();
            let attempt = self
                .attempt(
                    tool,
                    &arguments,
                    answers,
                    &mut contacts,
                    &mut logged,
                    deadline,
                )
                .await?;
            let executions = self.world.take_executions(call);
            if executions > 1 {
                return Err(self.fails(format_args!("{tool} {call} ran {executions} times")));
            }
            match attempt {
                Attempt::Answered(result) => {
                    let expected = match answers {
                        [] => call.to_string(),
                        answers => answers.join(","),
                    };
                    let text = result["content"][0]["text"].as_str().unwrap_or_default();
                    if text == expected {
                        if executions != 1 {
                            return Err(self.fails(format_args!(
                                "{tool} {call} was answered and did not run"
                            )));
                        }
                        self.world.count(|counts| counts.answers += 1);
                        return Ok(logged);
                    }
                    // The bus loses messages of replicas that are cut off.
                    let is_explained = self.is_fragile || contacts.were_disturbed();
                    let is_lost_answer = text.starts_with("error: ") && is_explained;
                    if !is_lost_answer {
                        return Err(self.fails(format_args!(
                            "{tool} {call}: {text:?} instead of {expected:?}"
                        )));
                    }
                }
                Attempt::SessionLost => return Err(Abandoned),
                Attempt::Failed => {}
            }
            if Instant::now() > deadline {
                return Err(self.fails(format_args!("{tool} was not answered in time")));
            }
            self.retry_later().await;
        }
    }

    /// Sends a call and reads until its response, on as many connections as it takes.
    async fn attempt(
        &mut self,
        tool: &str,
        arguments: &Value,
        answers: &[String],
        contacts: &mut Contacts,
        logged: &mut Vec<String>,
        deadline: Instant,
    ) -> Result<Attempt, Abandoned> {
        let id = self.id();
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments, "_meta": {"progressToken": id}}});
        let reply = match self.post(contacts, &body).await {
            Ok(reply) => reply,
            Err(ConnectionLost) => return Ok(Attempt::Failed),
        };
        let mut stream = match self.begin_reading(tool, reply, contacts)? {
            Begun::Stream(stream) => stream,
            Begun::Message(message) => return self.response(&message, id, contacts),
            Begun::Ended(attempt) => return Ok(attempt),
        };
        let mut received = ReceivedEvents::default();
        let mut progress = 0;
        let mut answered = 0;
        let mut ended: Option<Attempt> = None;
        loop {
            let until = match &ended {
                Some(_) => Instant::now() + LISTENING_TIME,
                None => deadline,
            };
            let next = stream.next(until).await;
            let is_end = matches!(next, Received::End);
            match next {
                Received::Event(event, message) => {
                    if !received.add(event.clone()) {
                        return Err(self.fails(format_args!("event {event} arrived twice")));
                    }
                    if message.is_null() {
                        continue;
                    }
                    if message["id"] == json!(id) && message.get("method").is_none() {
                        if ended.is_some() {
                            return Err(self.fails(format_args!("{tool} was answered twice")));
                        }
                        ended = Some(self.response(&message, id, contacts)?);
                        continue;
                    }
                    match message["method"].as_str() {
                        Some("notifications/progress") => {
                            let reported =
                                message["params"]["progress"].as_f64().unwrap_or_default();
                            if reported as u64 != progress + 1 {
                                return Err(self.fails(format_args!(
                                    "progress {reported} arrived after {progress}"
                                )));
                            }
                            progress += 1;
                        }
                        Some("notifications/message") => {
                            let data = message["params"]["data"].as_str().unwrap_or_default();
                            logged.push(data.to_owned());
                        }
                        Some("elicitation/create") => {
                            let asked = message["params"]["message"].as_str().unwrap_or_default();
                            let expected = format!("{}/{answered}", arguments["call"]);
                            if asked != expected {
                                return Err(self.fails(format_args!(
                                    "input request {asked} arrived instead of {expected}"
                                )));
                            }
                            let value = answers.get(answered).map_or("surplus", String::as_str);
                            answered += 1;
                            self.world.count(|counts| counts.input_responses += 1);
                            let response = json!({"jsonrpc": "2.0", "id": message["id"],
                                "result": {"action": "accept", "content": {"value": value}}});
                            if self.respond(&response, contacts).await? {
                                return Ok(Attempt::SessionLost);
                            }
                        }
                        // The bus lost the response to an input request, or the store does not know that the
                        // handshake is complete.
                        Some("notifications/cancelled")
                            if self.is_fragile || contacts.were_disturbed() => {}
                        _ => {
                            return Err(self.fails(format_args!("{tool}: {message} arrived")));
                        }
                    }
                }
                Received::Nothing if ended.is_none() => {
                    return Err(self.fails(format_args!(
                        "{tool} {} was not answered in time",
                        arguments["call"]
                    )));
                }
                Received::End | Received::Lost | Received::Nothing => {
                    if let Some(attempt) = ended {
                        return Ok(attempt);
                    }
                    if is_end && !contacts.were_disturbed() {
                        return Err(self.fails(format_args!(
                            "the stream of {tool} {} ended without its response",
                            arguments["call"]
                        )));
                    }
                    let Some(last) = received.last.clone() else {
                        // Nothing to resume from.
                        return Ok(Attempt::Failed);
                    };
                    match self.resume(&last, contacts, deadline).await? {
                        Begun::Stream(resumed) => stream = resumed,
                        Begun::Ended(attempt) => return Ok(attempt),
                        Begun::Message(message) => {
                            return Err(self.fails(format_args!("{message} instead of a stream")));
                        }
                    }
                }
            }
        }
    }

    /// Sends the response to an input request until a replica accepts it. Returns whether the session is lost.
    async fn respond(
        &mut self,
        response: &Value,
        contacts: &mut Contacts,
    ) -> Result<bool, Abandoned> {
        let deadline = self.deadline();
        loop {
            match self.post(contacts, response).await {
                Ok(reply) if reply.status == StatusCode::ACCEPTED => return Ok(false),
                Ok(reply) if reply.status == StatusCode::NOT_FOUND && self.is_fragile => {
                    return Ok(true);
                }
                Ok(reply) if !self.explains(&reply, contacts) => {
                    return Err(
                        self.fails(format_args!("a response to the server: {}", reply.status))
                    );
                }
                _ => self.retry_later().await,
            }
            if Instant::now() > deadline {
                return Err(self.fails(format_args!("a response was not accepted in time")));
            }
        }
    }

    /// Resumes a stream.
    async fn resume(
        &mut self,
        last: &str,
        contacts: &mut Contacts,
        deadline: Instant,
    ) -> Result<Begun, Abandoned> {
        self.world.count(|counts| counts.resumed += 1);
        loop {
            self.world.pause(200, 800).await;
            if Instant::now() > deadline {
                return Err(
                    self.fails(format_args!("the stream of {last} was not resumed in time"))
                );
            }
            let headers = [("last-event-id", last)];
            let sent = self.exchange(Method::GET, contacts, &headers, &Value::Null);
            match sent.await {
                Err(ConnectionLost) => {}
                Ok(reply) if reply.status == StatusCode::BAD_REQUEST => {
                    return match contacts.were_disturbed() {
                        true => Ok(Begun::Ended(Attempt::Failed)),
                        false => Err(self.fails(format_args!("the stream of {last} is unknown"))),
                    };
                }
                Ok(reply) => match self.begin_reading("GET", reply, contacts)? {
                    Begun::Ended(Attempt::Failed) => {}
                    begun => return Ok(begun),
                },
            }
        }
    }

    fn begin_reading(
        &self,
        what: &str,
        reply: Reply,
        contacts: &Contacts,
    ) -> Result<Begun, Abandoned> {
        match (reply.status, reply.body) {
            (StatusCode::OK, ReplyBody::Stream(stream)) => Ok(Begun::Stream(stream)),
            (StatusCode::OK, ReplyBody::Json(message)) => Ok(Begun::Message(message)),
            (StatusCode::NOT_FOUND, _) if self.is_fragile => Ok(Begun::Ended(Attempt::SessionLost)),
            (StatusCode::SERVICE_UNAVAILABLE, _) if contacts.were_disturbed() => {
                Ok(Begun::Ended(Attempt::Failed))
            }
            (status, _) => Err(self.fails(format_args!(
                "{what} at replica {}: {status}",
                reply.replica.number
            ))),
        }
    }

    /// Checks a response.
    fn response(
        &self,
        message: &Value,
        id: u64,
        contacts: &Contacts,
    ) -> Result<Attempt, Abandoned> {
        if message["id"] != json!(id) {
            return Err(self.fails(format_args!("{message} instead of a response to {id}")));
        }
        if let Some(result) = message.get("result") {
            return Ok(Attempt::Answered(result.clone()));
        }
        let code = message["error"]["code"].as_i64().unwrap_or_default();
        let is_explained = RETRYABLE.contains(&code) || (code == SESSION_ENDED && self.is_fragile);
        match is_explained && contacts.were_disturbed() {
            true => Ok(Attempt::Failed),
            false => Err(self.fails(format_args!("{message} without a reason"))),
        }
    }

    /// Sends a request that a replica answers itself, until it is answered. Returns whether a fault met it.
    async fn ask(&mut self, method: &str, params: &Value) -> Result<bool, Abandoned> {
        let deadline = self.deadline();
        let mut was_disturbed = false;
        loop {
            let mut contacts = Contacts::new(&self.world);
            let id = self.id();
            let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            if let Ok(reply) = self.post(&mut contacts, &body).await {
                match self.begin_reading(method, reply, &contacts)? {
                    Begun::Message(message) => {
                        if let Attempt::Answered(_) = self.response(&message, id, &contacts)? {
                            return Ok(was_disturbed || contacts.were_disturbed());
                        }
                    }
                    Begun::Stream(_) => {
                        // A slow store turned it into a stream, which is not read: it is sent again.
                    }
                    Begun::Ended(Attempt::SessionLost) => return Err(Abandoned),
                    Begun::Ended(_) => {}
                }
            }
            // It may be served later.
            was_disturbed = true;
            if Instant::now() > deadline {
                return Err(self.fails(format_args!("{method} was not answered in time")));
            }
            self.retry_later().await;
        }
    }

    /// Changes the log level and the subscriptions at the same time, at any two replicas, and checks that both changes hold.
    async fn change_state(&mut self) -> Result<(), Abandoned> {
        let since = self.world.now();
        let quiet = self.world.happens(500);
        let level = json!({"level": if quiet { "error" } else { "info" }});
        let subscription = json!({"uri": uri(self.slot % RESOURCES)});
        let subscribes = self.world.happens(500);
        let other = match subscribes {
            true => "resources/subscribe",
            false => "resources/unsubscribe",
        };
        let mut twin = Self::new(&self.world, self.slot, self.revision);
        twin.session.clone_from(&self.session);
        twin.is_fragile = self.is_fragile;
        // Another part of the same client, whose ids are others.
        twin.next_id = self.next_id + (1 << 32);
        let (first, second) = both(
            self.ask("logging/setLevel", &level),
            twin.ask(other, &subscription),
        )
        .await;
        self.next_id = self.next_id.max(twin.next_id);
        let was_disturbed = first? | second?;
        self.quiet = quiet;
        if was_disturbed {
            // Not known which of the changes hold; the next ones set both again.
            return Ok(());
        }
        tokio::time::sleep(SETTLING_TIME).await;
        let logged = self.call("log", &json!({}), &[]).await?;
        let expected: &[&str] = match quiet {
            true => &["loud"],
            false => &["quiet", "loud"],
        };
        if logged != expected && !self.world.replicas.any_disturbed(since) {
            return Err(self.fails(format_args!(
                "the call logged {logged:?} instead of {expected:?}"
            )));
        }
        Ok(())
    }

    /// Listens on the session's own stream for an update of its resource.
    async fn listen(&mut self) -> Result<(), Abandoned> {
        if self.slot >= RESOURCES {
            return Ok(());
        }
        let since = self.world.now();
        let subscription = json!({"uri": uri(self.slot)});
        self.ask("resources/subscribe", &subscription).await?;
        tokio::time::sleep(SETTLING_TIME).await;
        let mut contacts = Contacts::new(&self.world);
        let sent = self.exchange(Method::GET, &mut contacts, &[], &Value::Null);
        let Ok(reply) = sent.await else {
            return Ok(());
        };
        let mut stream = match self.begin_reading("GET", reply, &contacts)? {
            Begun::Stream(stream) => stream,
            Begun::Ended(Attempt::SessionLost) => return Err(Abandoned),
            _ => return Ok(()),
        };
        let Some(updating) = self.world.replicas.choose(&self.world) else {
            return Ok(());
        };
        update(&updating, self.slot);
        let mut updates = 0;
        let until = Instant::now() + SETTLING_TIME;
        let is_whole = loop {
            match stream.next(until).await {
                Received::Event(_, message) => {
                    updates += u64::from(message["method"] == "notifications/resources/updated");
                }
                Received::Nothing => break true,
                Received::End | Received::Lost => break false,
            }
        };
        // The updating replica may have ended since.
        let was_disturbed =
            updating.was_disturbed(since) || self.world.replicas.any_disturbed(since);
        if updates > 1 || (updates == 0 && is_whole && !was_disturbed) {
            return Err(self.fails(format_args!(
                "an update at replica {} arrived {updates} times",
                updating.number
            )));
        }
        let last = json!({"uri": uri(self.slot)});
        self.ask("resources/unsubscribe", &last).await.map(|_| ())
    }

    /// Ends the session, and checks that no replica continues it.
    async fn end(&mut self) -> Result<(), Abandoned> {
        let since = self.world.now();
        let mut is_sure = true;
        // A replica that is cut off does not reach the store, and may have ended when this is checked.
        let mut was_disturbed = false;
        loop {
            let mut contacts = Contacts::new(&self.world);
            let sent = self.exchange(Method::DELETE, &mut contacts, &[], &Value::Null);
            let sent = sent.await;
            was_disturbed |= contacts.were_disturbed();
            match sent {
                Ok(reply) if reply.status == StatusCode::NO_CONTENT => break,
                // The previous attempt was served.
                Ok(reply)
                    if reply.status == StatusCode::NOT_FOUND && (!is_sure || self.is_fragile) =>
                {
                    break;
                }
                Ok(reply) if !self.explains(&reply, &contacts) => {
                    return Err(self.fails(format_args!("DELETE: {}", reply.status)));
                }
                _ => {}
            }
            is_sure = false;
            self.retry_later().await;
            if self.world.now() - since > OPERATION_TIMEOUT {
                return Err(self.fails(format_args!("DELETE was not answered in time")));
            }
        }
        tokio::time::sleep(SETTLING_TIME).await;
        for _ in 0..3 {
            let mut contacts = Contacts::new(&self.world);
            let body = json!({"jsonrpc": "2.0", "id": self.id(), "method": "ping"});
            if let Ok(reply) = self.post(&mut contacts, &body).await
                && reply.status == StatusCode::OK
                && !was_disturbed
                && !self.world.replicas.any_disturbed(since)
            {
                return Err(self.fails(format_args!(
                    "replica {} serves the session after DELETE",
                    reply.replica.number
                )));
            }
        }
        Ok(())
    }

    /// A call of 2026-07-28, which has no sessions.
    async fn step_without_session(&mut self) -> Result<(), Abandoned> {
        let answers: Vec<String> = (0..self.world.between(0, 3))
            .map(|_| self.world.number().to_string())
            .collect();
        let (tool, arguments) = match answers.len() {
            0 => ("echo", json!({})),
            questions => ("ask", json!({"questions": questions})),
        };
        let deadline = self.deadline();
        let mut call = self.world.number();
        let mut answered = 0;
        let mut more = json!({});
        let mut was_lost = false;
        loop {
            if Instant::now() > deadline {
                return Err(self.fails(format_args!("{tool} {call} was not answered in time")));
            }
            let id = self.id();
            let mut contacts = Contacts::new(&self.world);
            let mut body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
                "name": tool, "arguments": arguments, "_meta": {
                    "io.modelcontextprotocol/protocolVersion": self.revision,
                    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}}});
            body["params"]["arguments"]["call"] = call.into();
            for (name, value) in more.as_object().into_iter().flatten() {
                body["params"][name] = value.clone();
            }
            let headers = [("mcp-method", "tools/call"), ("mcp-name", tool)];
            let sent = self.exchange(Method::POST, &mut contacts, &headers, &body);
            let Ok(reply) = sent.await else {
                was_lost = true;
                self.retry_later().await;
                continue;
            };
            let message = match self.begin_reading(tool, reply, &contacts)? {
                Begun::Message(message) => message,
                Begun::Stream(mut stream) => {
                    match stream.next(Instant::now() + OPERATION_TIMEOUT).await {
                        Received::Event(_, message) => message,
                        _ => {
                            was_lost = true;
                            self.retry_later().await;
                            continue;
                        }
                    }
                }
                Begun::Ended(_) => {
                    self.retry_later().await;
                    continue;
                }
            };
            if was_lost && message["error"]["code"] == INVALID_PARAMS {
                // A request state is accepted once. The response to it was lost, so the call begins anew.
                call = self.world.number();
                (answered, more, was_lost) = (0, json!({}), false);
                continue;
            }
            let Attempt::Answered(result) = self.response(&message, id, &contacts)? else {
                self.retry_later().await;
                continue;
            };
            if result["resultType"] == "input_required" {
                let mut responses = json!({});
                for (key, asked) in result["inputRequests"].as_object().into_iter().flatten() {
                    let text = asked["params"]["message"].as_str().unwrap_or_default();
                    if text != format!("{call}/{answered}") {
                        return Err(self.fails(format_args!("input request {text} arrived")));
                    }
                    let value = answers.get(answered).map_or("surplus", String::as_str);
                    responses[key] = json!({"action": "accept", "content": {"value": value}});
                    answered += 1;
                    self.world.count(|counts| counts.input_responses += 1);
                }
                more = json!({"requestState": result["requestState"], "inputResponses": responses});
                was_lost = false;
                self.world.pause(0, 2_000).await;
                continue;
            }
            let expected = match &answers[..] {
                [] => call.to_string(),
                answers => answers.join(","),
            };
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            if text != expected {
                return Err(self.fails(format_args!(
                    "{tool} {call}: {message} instead of {expected:?}"
                )));
            }
            if self.world.take_executions(call) == 0 {
                return Err(self.fails(format_args!("{tool} {call} was answered and did not run")));
            }
            self.world.count(|counts| counts.answers += 1);
            return Ok(());
        }
    }
}

/// What a client can read of a response.
enum Begun {
    Stream(Box<EventStream>),
    Message(Value),
    Ended(Attempt),
}

/// Runs two futures together.
async fn both<A: Future, B: Future>(first: A, second: B) -> (A::Output, B::Output) {
    use std::task::Poll;
    let (mut first, mut second) = (std::pin::pin!(first), std::pin::pin!(second));
    let (mut a, mut b) = (None, None);
    std::future::poll_fn(move |cx| {
        if a.is_none()
            && let Poll::Ready(output) = first.as_mut().poll(cx)
        {
            a = Some(output);
        }
        if b.is_none()
            && let Poll::Ready(output) = second.as_mut().poll(cx)
        {
            b = Some(output);
        }
        match (a.take(), b.take()) {
            (Some(one), Some(other)) => Poll::Ready((one, other)),
            (one, other) => {
                (a, b) = (one, other);
                Poll::Pending
            }
        }
    })
    .await
}
