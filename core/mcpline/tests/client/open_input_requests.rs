//! How many input requests of one server a client answers at once, in number and in bytes.

use std::sync::Arc;

use crate::support::peer::{Peer, host, soon};
use mcpline::protocol::Raw;
use mcpline::{Revision, RpcError};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

const BUSY: i64 = -31000;

/// An answer that the host gives when the test says so.
type Answers = mpsc::UnboundedReceiver<oneshot::Sender<Result<Raw, RpcError>>>;

fn slow_host() -> (mcpline::client::ClientBuilder, Answers) {
    let (sender, answers) = mpsc::unbounded_channel();
    let host = host().sample_with(Arc::new(move |_| {
        let (answer, given) = oneshot::channel();
        sender.send(answer).expect("the test runs");
        Box::pin(async move {
            given
                .await
                .unwrap_or_else(|_| Err(RpcError::internal_error("none")))
        })
    }));
    (host, answers)
}

/// A server that answers each notification of its client with `count` requests of `padding` bytes beside their parameters.
fn asking_server(count: usize, padding: usize, answers: mpsc::UnboundedSender<Value>) -> Peer {
    let mut number = 0;
    let numbers = std::sync::Mutex::new(move || {
        number += 1;
        number
    });
    Peer::new(Revision::V2025_11_25, move |message, say| {
        if message["method"].is_null() {
            answers.send(message.clone()).expect("the test runs");
            return;
        }
        for _ in 0..count {
            let id = (numbers.lock().unwrap())();
            let params = json!({"messages": [], "maxTokens": 1, "padding": "x".repeat(padding)});
            say(
                json!({"jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": params}),
            );
        }
    })
}

fn sampled() -> Result<Raw, RpcError> {
    Ok(Raw::from_trusted(
        r#"{"role":"assistant","model":"m","content":{"type":"text","text":""}}"#,
    ))
}

#[runtimes::test]
async fn input_requests_beyond_the_limit_of_bytes_are_refused_as_busy() {
    const LARGE: usize = 12 * 1024 * 1024;
    let (sender, mut responses) = mpsc::unbounded_channel();
    let peer = asking_server(3, LARGE, sender);
    let (host, mut answers) = slow_host();
    let client = peer.connect(host).await;
    let go_on = async || client.notify("notifications/x", None).await.expect("sent");

    go_on().await;
    let response = soon(responses.recv()).await.expect("a response");
    assert_eq!(response["error"]["code"], BUSY, "{response}");
    assert_eq!(response["id"], 3);

    for _ in 0..2 {
        let answer = soon(answers.recv()).await.expect("the host is asked");
        answer.send(sampled()).expect("the client waits");
        let response = soon(responses.recv()).await.expect("a response");
        assert!(response.get("error").is_none(), "{response}");
    }
    // Requests that were answered make room.
    go_on().await;
    let response = soon(responses.recv()).await.expect("a response");
    assert_eq!(response["error"]["code"], BUSY, "{response}");
    assert_eq!(response["id"], 6);
    client.close().await;
}

#[runtimes::test]
async fn input_requests_beyond_the_limit_of_their_number_are_refused_as_busy() {
    let (sender, mut responses) = mpsc::unbounded_channel();
    let peer = asking_server(65, 0, sender);
    let (host, _answers) = slow_host();
    let client = peer.connect(host).await;
    client.notify("notifications/x", None).await.expect("sent");
    let response = soon(responses.recv()).await.expect("a response");
    assert_eq!(
        (&response["id"], &response["error"]["code"]),
        (&json!(65), &json!(BUSY))
    );
    client.close().await;
}
