//! Blocking handlers run side by side, and leave the pipe free for the client's other messages.

mod support;

use std::sync::{Arc, Condvar, Mutex};

use mcpline::server::Blocking;
use mcpline::{Context, Server, transport};
use serde_json::{Value, json};
use support::connection::PATIENCE;
use support::requests::{call, initialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

/// How many calls block at the same time.
const CALLS: usize = 4;

/// Opened once, for all threads that wait.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn open(&self) {
        *self.0.0.lock().expect("not poisoned") = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let open = self.0.0.lock().expect("not poisoned");
        let waited = self.0.1.wait_while(open, |open| !*open);
        drop(waited.expect("not poisoned"));
    }
}

/// Opens the gate when the test ends, also by a failure: a runtime waits for its blocking threads.
struct OpenAtEnd(Gate);

impl Drop for OpenAtEnd {
    fn drop(&mut self) {
        self.0.open();
    }
}

#[runtimes::test]
async fn calls_block_side_by_side_while_pings_and_cancellations_pass() {
    let (started, mut starting) = mpsc::unbounded_channel();
    let (cancelled, mut cancelling) = mpsc::unbounded_channel();
    let gate = Gate::default();
    let waiting = gate.clone();
    let _open_at_end = OpenAtEnd(gate.clone());
    let server = Server::new("blocking", "1").tool(
        "blocks",
        "Blocks a thread until the test goes on",
        Blocking(move |ctx: Context| {
            let cancelled = cancelled.clone();
            ctx.on_cancel(move || {
                // The test may have ended.
                let _ = cancelled.send(());
            });
            let _ = started.send(());
            waiting.wait();
            "done"
        }),
    );
    let (client, ours) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let serving = tokio::spawn(async move { server.serve(transport::lines(reader, writer)).await });
    let (reader, mut writer) = tokio::io::split(client);
    let mut lines = BufReader::new(reader).lines();
    let mut messages = vec![
        initialize("2025-11-25"),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    messages.extend((1..=CALLS as i64).map(|id| call(id, "blocks")));
    messages.push(json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"}));
    messages.push(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    );
    for message in messages {
        writer
            .write_all(format!("{message}\n").as_bytes())
            .await
            .expect("written");
    }
    for _ in 0..CALLS {
        tokio::time::timeout(PATIENCE, starting.recv())
            .await
            .expect("all start while all block");
    }
    tokio::time::timeout(PATIENCE, cancelling.recv())
        .await
        .expect("the cancellation arrives");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let line = lines.next_line().await.expect("read").expect("a line");
        let message: Value = serde_json::from_str(&line).expect("JSON");
        ids.push(message["id"].clone());
    }
    assert_eq!(ids[1], "ping", "{ids:?}");
    gate.open();
    for _ in 1..CALLS {
        let line = lines.next_line().await.expect("read").expect("a line");
        let message: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(message["result"]["content"][0]["text"], "done", "{message}");
    }
    writer.shutdown().await.expect("closed");
    serving.await.expect("no panic").expect("ends well");
}

#[runtimes::test]
async fn a_function_that_outlives_its_cancelled_call_is_told() {
    let (cancelled, mut cancelling) = mpsc::unbounded_channel();
    let (started, mut starting) = mpsc::unbounded_channel();
    let gate = Gate::default();
    let waiting = gate.clone();
    let _open_at_end = OpenAtEnd(gate.clone());
    let server = Server::new("blocking", "1").tool(
        "blocks",
        "Registers its callback after the cancellation",
        Blocking(move |ctx: Context| {
            // The test may have ended.
            let _ = started.send(());
            waiting.wait();
            let cancelled = cancelled.clone();
            ctx.on_cancel(move || {
                let _ = cancelled.send(());
            });
        }),
    );
    let client = server.connect();
    for message in [
        initialize("2025-11-25"),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        call(1, "blocks"),
    ] {
        client.send(message.to_string());
    }
    tokio::time::timeout(PATIENCE, starting.recv())
        .await
        .expect("it starts");
    for message in [
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"}),
    ] {
        client.send(message.to_string());
    }
    for _ in 0..2 {
        client
            .receive()
            .await
            .expect("the handshake, then the ping");
    }
    gate.open();
    let notified = tokio::time::timeout(PATIENCE, cancelling.recv()).await;
    notified.expect("the callback runs").expect("once");
}
