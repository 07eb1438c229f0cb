//! Custom notifications, which no revision defines: handled by the author's functions, on every revision and transport.

use std::sync::Arc;
use std::time::Duration;

use crate::support::served_transports::served_transports;
use crate::support::{Client, Nothing};
use mcpline::client::{Client as McpClient, ClientBuilder, RequestOptions};
use mcpline::protocol::Raw;
use mcpline::protocol::session::InputRequestError;
use mcpline::protocol::vocabulary::{ElicitAction, ElicitParams, ElicitResult, FormSchema};
use mcpline::server::MethodOptions;
use mcpline::transport::http::{HttpOptions, http};
use mcpline::transport::{Stop, lines};
use mcpline::{Context, HandlerError, Revision, Server, Settings};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, Semaphore};

/// How long something that must happen may take on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Note {
    number: i64,
}

/// The parameter and the revision that a handler got.
type Handled = (i64, Revision);

/// A server, and a receiver of what its handler of `acme/note` gets.
fn server() -> (Server, UnboundedReceiver<Handled>) {
    let (sender, handled) = unbounded_channel();
    let server = Server::new("acme", "1")
        .on_notification("acme/note", move |note: Note, ctx: Context| {
            let sender: UnboundedSender<Handled> = sender.clone();
            async move {
                // The test may have ended.
                let _ = sender.send((note.number, ctx.revision()));
            }
        })
        .on_request("acme/ping", |_: Nothing, _: Context| async {
            Ok::<_, HandlerError>(json!({}))
        });
    (server, handled)
}

fn host(revision: Revision) -> ClientBuilder {
    McpClient::builder("host", "1").configure(|settings| settings.revisions = vec![revision])
}

fn raw(value: &Value) -> Raw {
    Raw::from_serialize(value).expect("JSON")
}

fn note(number: i64) -> Raw {
    raw(&json!({"number": number}))
}

async fn next<T>(received: &mut UnboundedReceiver<T>) -> T {
    let next = tokio::time::timeout(TEST_TIMEOUT, received.recv()).await;
    next.expect("in time").expect("a sender")
}

/// Reports that a handler was dropped.
struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[runtimes::test]
async fn custom_notifications_are_handled_on_every_revision_and_transport() {
    for revision in Revision::ALL {
        let (server, mut handled) = server();
        for transport in served_transports(&server, *revision).await {
            let place = format!("{revision}, {}", transport.name);
            let client = host(*revision).connect((transport.address)()).await;
            let client = client.expect(&place);
            for number in 0..3 {
                let sent = client.notify("acme/note", Some(&note(number))).await;
                sent.expect(&place);
                assert_eq!(next(&mut handled).await, (number, *revision), "{place}");
            }
            // No handler, or not the parameters that the handler requires.
            for (method, params) in [
                ("acme/other", Some(note(7))),
                ("acme/note", Some(raw(&json!({"number": "seven"})))),
                ("acme/note", Some(raw(&json!({"number": 7, "more": true})))),
                ("acme/note", None),
            ] {
                client.notify(method, params.as_ref()).await.expect(&place);
            }
            let meta = json!({"number": 8, "_meta": {"acme.example/a": 1}});
            let sent = client.notify("acme/note", Some(&raw(&meta))).await;
            sent.expect(&place);
            assert_eq!(next(&mut handled).await, (8, *revision), "{place}");
            let plain = RequestOptions::new();
            let answered = client.request("acme/ping", None, &plain).await;
            answered.expect(&place);
            assert!(handled.try_recv().is_err(), "{place}");
            client.close().await;
        }
    }
}

#[runtimes::test]
async fn notification_handlers_can_elicit_and_notify_within_a_session() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let (sender, mut answered) = unbounded_channel();
        let server = Server::new("acme", "1").on_notification(
            "acme/ask",
            move |_: Nothing, ctx: Context| {
                let sender = sender.clone();
                async move {
                    ctx.notify("acme/asking", None).expect("a custom method");
                    let form = ElicitParams::form("Who?", FormSchema::new());
                    let answer = ctx.elicit(&form).await;
                    // The test may have ended.
                    let _ = sender.send(answer.map(|answer| answer.action));
                }
            },
        );
        let (sender_of_notes, mut notes) = unbounded_channel();
        let accept = |_| async { Ok(ElicitResult::new(ElicitAction::Accept)) };
        let client = host(revision).on_elicit(accept);
        let client = client.on_notification(move |notification| {
            // The test may have ended.
            let _ = sender_of_notes.send(notification.method.as_str().to_owned());
        });
        let client = client.connect(&server).await.expect("a server");
        client.notify("acme/ask", None).await.expect("sent");
        let answer = next(&mut answered).await;
        if revision.is_modern() {
            assert!(
                matches!(answer, Err(InputRequestError::OutsideCall)),
                "{answer:?}"
            );
            assert!(notes.try_recv().is_err());
        } else {
            assert_eq!(answer.expect("an answer"), ElicitAction::Accept);
            assert_eq!(next(&mut notes).await, "acme/asking");
        }
        client.close().await;
    }
}

#[runtimes::test]
async fn closing_the_connection_cancels_notification_handlers() {
    let (started, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begun, ended) = (started.clone(), dropped.clone());
    let server = Server::new("acme", "1").on_notification("acme/wait", move |_: Nothing, _| {
        let guard = OnDrop(ended.clone());
        let begun = begun.clone();
        async move {
            let _guard = guard;
            begun.notify_one();
            std::future::pending::<()>().await;
        }
    });
    let client = Client::legacy(&server, "2025-11-25").await;
    client.send(json!({"jsonrpc": "2.0", "method": "acme/wait"}));
    started.notified().await;
    drop(client);
    let gone = tokio::time::timeout(TEST_TIMEOUT, dropped.notified()).await;
    gone.expect("the handler is dropped");
}

#[runtimes::test]
async fn drops_notifications_past_the_limit_until_a_handler_ends() {
    let (sender, mut begun) = unbounded_channel();
    let go_on = Arc::new(Semaphore::new(0));
    let mut settings = Settings::default();
    settings.session.max_requests_in_flight = 2;
    let server = Server::builder("acme", "1").settings(settings).build();
    let waiting = go_on.clone();
    let server = server.expect("a server");
    let server = server.on_notification("acme/note", move |note: Note, _: Context| {
        let (sender, waiting) = (sender.clone(), waiting.clone());
        async move {
            sender.send(note.number).expect("the test goes on");
            waiting.acquire().await.expect("it is open").forget();
            sender.send(-note.number).expect("the test goes on");
        }
    });
    let client = Client::legacy(&server, "2025-11-25").await;
    let notify = |number: i64| {
        let params = json!({"number": number});
        client.send(json!({"jsonrpc": "2.0", "method": "acme/note", "params": params}));
    };
    for number in 1..=3 {
        notify(number);
    }
    let first = [next(&mut begun).await, next(&mut begun).await];
    assert_eq!(first, [1, 2]);
    go_on.add_permits(2);
    let mut ended = [next(&mut begun).await, next(&mut begun).await];
    ended.sort_unstable();
    assert_eq!(ended, [-2, -1], "the third was dropped");
    notify(4);
    assert_eq!(next(&mut begun).await, 4);
}

#[runtimes::test]
async fn drops_notifications_before_the_handshake_or_of_an_unknown_revision() {
    let (server, mut handled) = server();
    let mut settings = Settings::default();
    settings.revisions = vec![Revision::V2025_11_25];
    let legacy_only = Server::builder("acme", "1").settings(settings).build();
    let (sender, mut early) = unbounded_channel();
    let legacy_only =
        legacy_only
            .expect("a server")
            .on_notification("acme/note", move |note: Note, _| {
                let sender = sender.clone();
                async move { sender.send(note.number).expect("the test goes on") }
            });
    let note = |number: i64| {
        let params = json!({"number": number});
        json!({"jsonrpc": "2.0", "method": "acme/note", "params": params})
    };
    let client = Client::modern(&legacy_only);
    client.send(note(1));
    let client = client.shake_hands("2025-11-25").await;
    client.send(note(2));
    assert_eq!(next(&mut early).await, 2);

    let client = Client::modern(&server);
    let mut odd = note(3);
    odd["params"]["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2031-01-01"});
    client.send(odd);
    client.send(note(4));
    assert_eq!(next(&mut handled).await, (4, Revision::V2026_07_28));
}

#[test]
fn rejects_notification_handlers_of_protocol_methods() {
    struct Never;
    impl mcpline::Handler for Never {
        fn call(&self, _: mcpline::Call) {}
    }
    let server = Server::new("acme", "1");
    let add = |method: &str| {
        server.add_notification_handler(method, MethodOptions::default(), Arc::new(Never))
    };
    for (method, named) in [
        ("", "1 to 1024"),
        ("notifications/initialized", "protocol defines it"),
        ("notifications/message", "protocol defines it"),
        ("tools/call", "protocol defines it"),
        ("rpc.note", "JSON-RPC"),
    ] {
        let error = add(method).expect_err(method);
        assert!(error.to_string().contains(named), "{method}: {error}");
    }
    add("notifications/acme/changed").expect("free");
    let error = add("notifications/acme/changed").expect_err("taken");
    assert!(error.to_string().contains("handler already"), "{error}");
    assert!(server.remove_notification_handler("notifications/acme/changed"));
    assert!(!server.remove_notification_handler("notifications/acme/changed"));
}

/// A server whose handler of `acme/wait` ends when `go_on` is notified.
fn waiting(
    started: &Arc<Notify>,
    go_on: &Arc<Notify>,
) -> (Server, UnboundedReceiver<&'static str>) {
    let (sender, ended) = unbounded_channel();
    let mut settings = Settings::default();
    settings.shutdown_timeout = TEST_TIMEOUT;
    let server = Server::builder("acme", "1").settings(settings).build();
    let (started, go_on) = (started.clone(), go_on.clone());
    let server =
        server
            .expect("a server")
            .on_notification("acme/wait", move |_: Nothing, _: Context| {
                let (started, go_on, sender) = (started.clone(), go_on.clone(), sender.clone());
                async move {
                    started.notify_one();
                    go_on.notified().await;
                    sender.send("handled").expect("the test goes on");
                }
            });
    (server, ended)
}

#[runtimes::test]
async fn shutdown_waits_for_notification_handlers() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let (started, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (server, mut ended) = waiting(&started, &go_on);
        let http = http("127.0.0.1:0", HttpOptions::default()).await;
        let http = http.expect("a port");
        let bound = http.address();
        let address = format!("http://{bound}/mcp");
        let stop = Stop::new();
        let signal = stop.clone();
        let served = tokio::spawn(async move { server.serve_until(http, signal).await });
        let client = host(revision).connect(address).await.expect("a server");
        client.notify("acme/wait", None).await.expect("sent");
        started.notified().await;
        stop.stop();
        // From now on, only the handler keeps the server running.
        while tokio::net::TcpStream::connect(bound).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(!served.is_finished(), "{revision}");
        go_on.notify_one();
        assert_eq!(next(&mut ended).await, "handled", "{revision}");
        client.close().await;
        served.await.expect("no panic").expect("served");
    }
}

#[runtimes::test]
async fn a_closing_pipe_waits_for_notification_handlers() {
    let (started, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (server, mut ended) = waiting(&started, &go_on);
    let (ours, theirs) = tokio::io::duplex(4096);
    let (reader, writer) = tokio::io::split(theirs);
    let serving = server.clone();
    let served = tokio::spawn(async move {
        let until = Stop::new();
        serving.serve_until(lines(reader, writer), until).await
    });
    let (mut answers, mut messages) = tokio::io::split(ours);
    let message = json!({"jsonrpc": "2.0", "method": "acme/wait"});
    let line = format!("{message}\n");
    messages.write_all(line.as_bytes()).await.expect("a pipe");
    started.notified().await;
    messages.shutdown().await.expect("a pipe");
    tokio::task::yield_now().await;
    go_on.notify_one();
    assert_eq!(next(&mut ended).await, "handled");
    let mut rest = Vec::new();
    answers.read_to_end(&mut rest).await.expect("a pipe");
    assert_eq!(rest, b"");
    served.await.expect("no panic").expect("served");
}

/// A schema that takes a million steps to validate the value of [`long`].
fn slow_schema() -> Value {
    json!({"type": "object", "properties": {"items": {"type": "array", "uniqueItems": true, "items": {
        "anyOf": [{"type": "null"}, {"type": "object"}, {"type": "integer"}]}}}})
}

fn long() -> Value {
    json!({"items": (0..20_000).collect::<Vec<_>>()})
}

#[runtimes::test]
async fn large_notifications_are_handled_and_released_with_their_session() {
    let (sender, mut handled) = unbounded_channel();
    let kept = Arc::new(());
    let held = kept.clone();
    let server = Server::new("acme", "1");
    let options = MethodOptions::default().with_params_schema(slow_schema());
    struct Counts {
        sender: UnboundedSender<usize>,
        _held: Arc<()>,
    }
    impl mcpline::Handler for Counts {
        fn call(&self, call: mcpline::Call) {
            // The test may have ended.
            let _ = self.sender.send(call.arguments().as_bytes().len());
            call.reply(Ok(mcpline::Reply::Result(Raw::EMPTY_OBJECT)));
        }
    }
    let counts = Arc::new(Counts {
        sender,
        _held: held,
    });
    let added = server.add_notification_handler("acme/long", options, counts);
    added.expect("a method of the author's");
    let message = json!({"jsonrpc": "2.0", "method": "acme/long", "params": long()});
    let client = Client::legacy(&server, "2025-11-25").await;
    client.send(message.clone());
    assert!(next(&mut handled).await > 100_000);
    // Whether or not validation has ended before the session: nothing holds the handler afterwards.
    for pause in 0..20 {
        let client = Client::legacy(&server, "2025-11-25").await;
        client.send(message.clone());
        tokio::time::sleep(Duration::from_millis(pause)).await;
        drop(client);
    }
    assert!(server.remove_notification_handler("acme/long"));
    let gone = async {
        while Arc::strong_count(&kept) > 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let gone = tokio::time::timeout(TEST_TIMEOUT, gone).await;
    gone.expect("no call holds the handler");
}

#[runtimes::test]
async fn notifications_keep_params_that_a_later_revision_reserves() {
    let (sender, mut handled) = unbounded_channel();
    let server = Server::new("acme", "1").on_notification("acme/any", move |params: Value, _| {
        let sender = sender.clone();
        async move { sender.send(params).expect("the test goes on") }
    });
    let params = json!({"requestState": "mine", "inputResponses": 7});
    for client in [
        Client::modern(&server),
        Client::legacy(&server, "2025-11-25").await,
    ] {
        client.send(json!({"jsonrpc": "2.0", "method": "acme/any", "params": params}));
        assert_eq!(next(&mut handled).await, params);
    }
}

#[test]
fn dropping_a_refused_or_removed_handler_may_use_the_server() {
    struct Uses(Server);
    impl mcpline::Handler for Uses {
        fn call(&self, _: mcpline::Call) {}
    }
    impl Drop for Uses {
        fn drop(&mut self) {
            self.0.remove_tool("none");
        }
    }
    let server = Server::new("acme", "1");
    let add = || {
        let handler = Arc::new(Uses(server.clone()));
        server.add_notification_handler("acme/a", MethodOptions::default(), handler)
    };
    add().expect("free");
    add().expect_err("taken");
    assert!(server.remove_notification_handler("acme/a"));
    let add_prompt = || {
        let prompt = mcpline::protocol::vocabulary::Prompt::new("a");
        server.add_prompt(prompt, Arc::new(Uses(server.clone())))
    };
    add_prompt().expect("free");
    add_prompt().expect_err("taken");
    assert!(server.remove_prompt("a"));
}
