//! Models of event streams and of responses to POSTs. Writers, the end of a stream, a reader and the one that takes the
//! stream over, the loss of a connection, and the moment at which an idle exchange becomes a stream race each other.
//! Each event is read once, in order; a waiting reader is woken; a callback for the loss of a connection is called once
//! or dropped; an exchange has one outcome, which contains the response. The end of a session races handlers that answer and
//! requests that arrive: each call is answered once before its response ends.

use std::future::poll_fn;

use bytes::Bytes;
use mcpline_protocol::RequestId;
use mcpline_protocol::wire;
use serde_json::{Value, json};
use shuttle::future::block_on;
use shuttle::thread;

use crate::message_sink::{self, MessageKind, MessageSink, ResponseStatus};
use crate::quota::{ClientQuota, ClientTable};
use crate::race_models::{Record, check, end_runtime};
use crate::server::race_models::{self, Client, Threads};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex};

use super::options::HttpOptions;
use super::post_response::{Outcome, PostResponse};
use super::sessions::{Session, Sessions};
use super::stream::{Reader, Stream, StreamName};

fn client() -> Arc<ClientQuota> {
    ClientTable::new(1.0, usize::MAX, usize::MAX).sole_client()
}

fn resumable() -> Arc<Stream> {
    let name = StreamName {
        number: 1,
        process: None,
    };
    Stream::resumable(name, None, &HttpOptions::default(), &client())
}

fn transient() -> Arc<Stream> {
    Stream::transient(&HttpOptions::default(), &client())
}

/// Returns the next events, as a response's body would read them.
fn next(reader: &mut Reader) -> Option<Bytes> {
    block_on(poll_fn(|cx| reader.poll(cx)))
}

/// Parses messages, which are numbers here, from events.
fn numbers(events: &[u8]) -> Vec<u32> {
    let text = std::str::from_utf8(events).expect("UTF-8");
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter_map(|data| data.parse().ok())
        .collect()
}

/// Reads until the end of the reader's part of the stream.
fn read_all(reader: &mut Reader) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some(events) = next(reader) {
        all.extend(numbers(&events));
    }
    all
}

fn write(sink: &dyn MessageSink, kind: MessageKind, number: u32) {
    message_sink::send(sink, kind, number.to_string().as_bytes());
}

const RESPONSE: MessageKind = MessageKind::Response(ResponseStatus::Result);

/// A second reader takes the stream over while it is written to and ended.
#[test]
fn takeover_races_writes_and_end() {
    check(|| {
        let stream = resumable();
        let writing = stream.clone();
        let writer = thread::spawn(move || {
            for number in 0..3 {
                write(&writing, MessageKind::Notification, number);
            }
            writing.end();
        });
        let mut first = stream.read(None).expect("a reader");
        let reading = thread::spawn(move || read_all(&mut first));
        let mut second = stream.read(None).expect("a reader");
        let late = read_all(&mut second);
        let early = reading.join().expect("no panic");
        writer.join().expect("no panic");
        assert_eq!([early, late].concat(), [0, 1, 2]);
        drop(second);
        assert!(!stream.is_connected());
    });
}

/// A connection is dropped while another one takes the stream over.
#[test]
fn takeover_races_end_of_previous_connection() {
    check(|| {
        let stream = resumable();
        let first = stream.read(None).expect("a reader");
        let writing = stream.clone();
        let threads = Threads::default();
        threads.start(move || drop(first));
        threads.start(move || {
            write(&writing, MessageKind::Notification, 0);
            writing.end();
        });
        let mut second = stream.read(None).expect("a reader");
        assert!(stream.is_connected());
        assert_eq!(read_all(&mut second), [0]);
        threads.join();
    });
}

/// A handler closes the connection of its stream, which continues on the next one.
#[test]
fn connection_close_races_reader_and_writes() {
    check(|| {
        let stream = resumable();
        let closed: Arc<Record<()>> = Arc::default();
        let (writing, back) = (stream.clone(), closed.clone());
        let threads = Threads::default();
        threads.start(move || {
            write(&writing, MessageKind::Notification, 0);
            writing.close_connection();
            back.wait_for(0);
            write(&writing, MessageKind::Notification, 1);
            writing.end();
        });
        let mut all = Vec::new();
        // The closed connection, and the one with which the client reconnects.
        for _ in 0..2 {
            all.extend(read_all(&mut stream.read(None).expect("a reader")));
            closed.add(());
        }
        threads.join();
        assert_eq!(all, [0, 1]);
    });
}

/// A connection is lost while its stream ends and a callback is registered.
#[test]
fn connection_loss_races_end_of_stream() {
    check(|| {
        let stream = transient();
        let (lost, held) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
        let reader = stream.read(None).expect("a reader");
        let (count, kept) = (lost.clone(), held.clone());
        stream.on_lost(move || {
            count.fetch_add(1, Ordering::SeqCst);
            drop(kept);
        });
        let threads = Threads::default();
        let ending = stream.clone();
        threads.start(move || {
            write(&ending, RESPONSE, 0);
            ending.end();
        });
        threads.start(move || drop(reader));
        threads.join();
        assert!(lost.load(Ordering::SeqCst) <= 1);
        assert_eq!(Arc::strong_count(&held), 1, "nothing is kept");
    });
}

/// A client that reads too slowly loses its connection, as if it had disconnected. The callback is called even if it is
/// registered only after that.
#[test]
fn overflowed_stream_reports_its_loss() {
    check(|| {
        let options = HttpOptions {
            max_unread_bytes: 1,
            ..HttpOptions::default()
        };
        let stream = Stream::transient(&options, &client());
        let lost = Arc::new(AtomicUsize::new(0));
        let reader = stream.read(None).expect("a reader");
        let threads = Threads::default();
        let writing = stream.clone();
        threads.start(move || {
            write(&writing, MessageKind::Request, 10);
            write(&writing, MessageKind::Request, 11);
        });
        let count = lost.clone();
        stream.on_lost(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        threads.join();
        drop(reader);
        assert_eq!(lost.load(Ordering::SeqCst), 1);
    });
}

/// An exchange whose stream would end with its connection.
fn exchange() -> Arc<PostResponse> {
    let client = client();
    let quota = client.clone();
    PostResponse::new(client, None, move || {
        Stream::transient(&HttpOptions::default(), &quota)
    })
}

/// Returns the messages that the client of the POST gets, in one body or as events; `None` if it gets nothing.
fn outcome(exchange: &PostResponse) -> Option<Vec<u32>> {
    match block_on(poll_fn(|cx| exchange.poll(cx))) {
        Outcome::Json(body, _) => {
            let body = std::str::from_utf8(&body).expect("UTF-8");
            Some(vec![body.parse().expect("a number")])
        }
        Outcome::Stream(stream) => Some(read_all(&mut stream.read(None).expect("a reader"))),
        Outcome::Nothing => None,
    }
}

/// The response races the moment at which the exchange becomes a stream.
#[test]
fn response_races_stream_upgrade() {
    check(|| {
        let exchange = exchange();
        let threads = Threads::default();
        let (answering, breaking) = (exchange.clone(), exchange.clone());
        threads.start(move || write(&*answering, RESPONSE, 1));
        threads.start(move || breaking.upgrade_to_stream());
        assert_eq!(outcome(&exchange), Some(vec![1]));
        threads.join();
        assert!(exchange.is_answered());
    });
}

/// The same with notifications before the response.
#[test]
fn notifications_race_stream_upgrade() {
    check(|| {
        let exchange = exchange();
        let threads = Threads::default();
        let (answering, breaking) = (exchange.clone(), exchange.clone());
        threads.start(move || {
            write(&*answering, MessageKind::Notification, 1);
            write(&*answering, MessageKind::Notification, 2);
            write(&*answering, RESPONSE, 3);
        });
        threads.start(move || breaking.upgrade_to_stream());
        assert_eq!(outcome(&exchange), Some(vec![1, 2, 3]));
        threads.join();
        assert!(exchange.is_answered());
    });
}

/// The request is cancelled: its client gets nothing, or a stream that ends.
#[test]
fn cancellation_races_stream_upgrade() {
    check(|| {
        let exchange = exchange();
        let threads = Threads::default();
        let (cancelling, breaking) = (exchange.clone(), exchange.clone());
        threads.start(move || {
            write(&*cancelling, MessageKind::Notification, 1);
            cancelling.abandon();
        });
        threads.start(move || breaking.upgrade_to_stream());
        assert_eq!(outcome(&exchange), Some(vec![1]));
        threads.join();
        let silent = self::exchange();
        let (cancelling, breaking) = (silent.clone(), silent.clone());
        threads.start(move || cancelling.abandon());
        threads.start(move || breaking.upgrade_to_stream());
        assert!(outcome(&silent).is_none_or(|messages| messages.is_empty()));
        threads.join();
        assert!(silent.is_answered());
    });
}

/// A session of 2025-06-18.
fn session(server: &crate::Server) -> Arc<Session> {
    let options = Arc::new(HttpOptions::default());
    let sessions = Sessions::new(server, 1, server.inner().next_transport());
    let session = sessions.begin(server, &options, "", &client());
    complete_handshake(&session);
    session
}

fn complete_handshake(session: &Session) {
    for message in [
        json!({"jsonrpc": "2.0", "id": "handshake", "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ] {
        race_models::receive(&session.connection, &Client::new(), &message);
    }
}

/// The response to a POST with a call, which may become a stream of the session.
fn posted(session: &Arc<Session>) -> Arc<PostResponse> {
    let opener = session.clone();
    let id = RequestId::string("call");
    PostResponse::new(client(), Some(id), move || opener.open_stream())
}

fn receive_call(session: &Session, exchange: &Arc<PostResponse>) {
    let call =
        json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": "tool"}});
    let sink: Arc<dyn MessageSink> = exchange.clone();
    let call = wire::read(call.to_string().into());
    session.connection.receive(call, &sink, None);
}

/// Returns the only message that the client of the POST gets before its response ends.
fn only_message(exchange: &PostResponse) -> Value {
    let text = match block_on(poll_fn(|cx| exchange.poll(cx))) {
        Outcome::Json(body, _) => String::from_utf8(body.to_vec()).expect("UTF-8"),
        Outcome::Stream(stream) => return only_message_of(&stream),
        Outcome::Nothing => panic!("no message"),
    };
    serde_json::from_str(&text).expect("JSON")
}

fn only_message_of(stream: &Arc<Stream>) -> Value {
    let mut reader = stream.read(None).expect("a reader");
    let mut all = Vec::new();
    while let Some(events) = next(&mut reader) {
        all.extend_from_slice(&events);
    }
    let all = String::from_utf8(all).expect("UTF-8");
    let messages: Vec<&str> = all
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|data| !data.is_empty())
        .collect();
    assert_eq!(messages.len(), 1, "{messages:?}");
    serde_json::from_str(messages[0]).expect("JSON")
}

fn assert_answered(answer: &Value) {
    let is_result = answer["result"].is_object();
    assert!(is_result || answer["error"]["code"] == -31_004, "{answer}");
    assert_eq!(answer["id"], "call");
}

/// A handler answers on the stream of its call while the session ends.
#[test]
fn session_end_races_response_on_stream() {
    check(|| {
        let threads = Threads::default();
        let others = threads.clone();
        let server = race_models::server(move |call| {
            others.start(move || call.reply(race_models::done("done")));
        });
        let session = session(&server);
        let exchange = posted(&session);
        exchange.upgrade_to_stream();
        receive_call(&session, &exchange);
        let ending = session.clone();
        threads.start(move || ending.end_locally());
        assert_answered(&only_message(&exchange));
        threads.join_threads();
        end_runtime();
        assert!(exchange.is_answered());
        assert!(session.connection.is_idle());
    });
}

/// A handler answers on the only stream of a session over HTTP+SSE while the session ends.
#[test]
fn session_end_races_response_on_http_sse() {
    check(|| {
        let threads = Threads::default();
        let others = threads.clone();
        let server = race_models::server(move |call| {
            others.start(move || call.reply(race_models::done("done")));
        });
        let options = Arc::new(HttpOptions::default());
        let sessions = Sessions::new(&server, 1, server.inner().next_transport());
        let stream = Stream::transient(&options, &client());
        let session = sessions.begin_http_sse(&server, &options, "", &client(), stream.clone());
        complete_handshake(&session);
        let call = json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": "tool"}});
        let sink: Arc<dyn MessageSink> = Arc::new(stream.clone());
        let call = wire::read(call.to_string().into());
        session.connection.receive(call, &sink, None);
        let ending = session.clone();
        threads.start(move || ending.end_locally());
        assert_answered(&only_message_of(&stream));
        threads.join_threads();
        end_runtime();
    });
}

/// A call arrives, and may become a stream, while its session ends. Its handler answers at once, or never.
#[test]
fn session_end_races_arrival_of_call() {
    for answers in [false, true] {
        check(move || {
            let threads = Threads::default();
            let kept: Arc<Mutex<Vec<crate::server::Call>>> = Arc::default();
            let keeping = kept.clone();
            let server = race_models::server(move |call| match answers {
                true => call.reply(race_models::done("done")),
                false => keeping.lock().expect("no panic").push(call),
            });
            let session = session(&server);
            let exchange = posted(&session);
            let (arriving, at, ending) = (session.clone(), exchange.clone(), session.clone());
            let breaking = exchange.clone();
            threads.start(move || receive_call(&arriving, &at));
            threads.start(move || ending.end_locally());
            threads.start(move || breaking.upgrade_to_stream());
            assert_answered(&only_message(&exchange));
            threads.join_threads();
            end_runtime();
            assert!(session.connection.is_idle());
        });
    }
}
