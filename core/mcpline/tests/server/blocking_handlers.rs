//! Blocking handlers run side by side, and leave the pipe free for the client's other messages.

use std::sync::{Arc, Condvar, Mutex};

use crate::support::connection::TEST_TIMEOUT;
use crate::support::requests::{call, initialize};
use mcpline::middleware::{MiddlewareRequest, Next};
use mcpline::server::Blocking;
use mcpline::{Context, Server, transport};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

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

/// What a handler of [`pings_and_cancellations_pass`] runs.
type Blocks = Box<dyn Fn(Context) -> &'static str + Send + Sync>;

#[runtimes::test]
async fn calls_block_side_by_side_while_pings_and_cancellations_pass() {
    let blocking = |blocks: Blocks| {
        let description = "Blocks a thread until the test goes on";
        Server::new("blocking", "1").tool("blocks", description, Blocking(blocks))
    };
    pings_and_cancellations_pass(blocking).await;
}

/// One thread for each call, one that reads, and one that takes over.
#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn handlers_that_block_unexpectedly_leave_the_pipe_to_other_threads() {
    let plain = |blocks: Blocks| {
        let description = "Blocks the thread that reads";
        let blocks = Arc::new(blocks);
        Server::new("blocking", "1").tool("blocks", description, move |ctx: Context| {
            let blocks = blocks.clone();
            async move { blocks(ctx) }
        })
    };
    pings_and_cancellations_pass(plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn middleware_that_blocks_unexpectedly_leaves_the_pipe_to_other_threads() {
    middleware_leaves_the_pipe(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn middleware_that_blocks_before_its_future_leaves_the_pipe_to_other_threads() {
    middleware_leaves_the_pipe(true).await;
}

async fn middleware_leaves_the_pipe(blocks_at_once: bool) {
    let (started, mut starting) = mpsc::unbounded_channel();
    let gate = Gate::default();
    let waiting = gate.clone();
    let _open_at_end = OpenAtEnd(gate.clone());
    let server = Server::new("blocking", "1")
        .tool("returns", "Returns at once", async || "done")
        .middleware(move |request: MiddlewareRequest, next: Next| {
            let (started, waiting) = (started.clone(), waiting.clone());
            let block = move |request: &MiddlewareRequest| {
                if request.method() == "tools/call" {
                    let _ = started.send(());
                    waiting.wait();
                }
            };
            if blocks_at_once {
                block(&request);
            }
            async move {
                if !blocks_at_once {
                    block(&request);
                }
                next.run(request).await
            }
        });
    let (mut lines, mut writer, serving) = serve(server);
    for message in handshake_and_calls("returns") {
        write(&mut writer, &message).await;
    }
    for _ in 0..CALLS {
        tokio::time::timeout(TEST_TIMEOUT, starting.recv())
            .await
            .expect("all start while all block");
    }
    gate.open();
    for _ in 0..=CALLS {
        assert!(next(&mut lines).await["result"].is_object());
    }
    writer.shutdown().await.expect("closed");
    serving.await.expect("no panic").expect("ends well");
}

/// Several calls block at the same time. Meanwhile a ping is answered, and a call is cancelled.
async fn pings_and_cancellations_pass(server: impl FnOnce(Blocks) -> Server) {
    let (started, mut starting) = mpsc::unbounded_channel();
    let (cancelled, mut cancelling) = mpsc::unbounded_channel();
    let gate = Gate::default();
    let waiting = gate.clone();
    let _open_at_end = OpenAtEnd(gate.clone());
    let server = server(Box::new(move |ctx: Context| {
        let cancelled = cancelled.clone();
        ctx.on_cancel(move || {
            // The test may have ended.
            let _ = cancelled.send(());
        });
        let _ = started.send(());
        waiting.wait();
        "done"
    }));
    let (mut lines, mut writer, serving) = serve(server);
    let mut messages = handshake_and_calls("blocks");
    messages.push(json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"}));
    messages.push(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    );
    for message in messages {
        write(&mut writer, &message).await;
    }
    for _ in 0..CALLS {
        tokio::time::timeout(TEST_TIMEOUT, starting.recv())
            .await
            .expect("all start while all block");
    }
    tokio::time::timeout(TEST_TIMEOUT, cancelling.recv())
        .await
        .expect("the cancellation arrives");
    let (_, ping) = (next(&mut lines).await, next(&mut lines).await);
    assert_eq!(ping["id"], "ping", "{ping}");
    gate.open();
    for _ in 1..CALLS {
        let message = next(&mut lines).await;
        assert_eq!(message["result"]["content"][0]["text"], "done", "{message}");
    }
    writer.shutdown().await.expect("closed");
    serving.await.expect("no panic").expect("ends well");
}

type Lines = tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>;

/// Serves over a pipe. Returns what the server writes, what it reads, and its end.
fn serve(
    server: Server,
) -> (
    Lines,
    WriteHalf<DuplexStream>,
    JoinHandle<Result<(), mcpline::Error>>,
) {
    let (client, ours) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let serving = tokio::spawn(async move { server.serve(transport::lines(reader, writer)).await });
    let (reader, writer) = tokio::io::split(client);
    (BufReader::new(reader).lines(), writer, serving)
}

fn handshake_and_calls(tool: &str) -> Vec<Value> {
    let mut messages = vec![
        initialize("2025-11-25"),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    messages.extend((1..=CALLS as i64).map(|id| call(id, tool)));
    messages
}

async fn write(writer: &mut WriteHalf<DuplexStream>, message: &Value) {
    let line = format!("{message}\n");
    writer.write_all(line.as_bytes()).await.expect("written");
}

async fn next(lines: &mut Lines) -> Value {
    let line = tokio::time::timeout(TEST_TIMEOUT, lines.next_line()).await;
    let line = line.expect("in time").expect("read").expect("a line");
    serde_json::from_str(&line).expect("JSON")
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
    tokio::time::timeout(TEST_TIMEOUT, starting.recv())
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
    let notified = tokio::time::timeout(TEST_TIMEOUT, cancelling.recv()).await;
    notified.expect("the callback runs").expect("once");
}
