//! Tests of the links against this crate's own server.

use std::net::SocketAddr;

use serde_json::json;

use crate::transport::http::{HttpOptions, http};
use crate::{Context, Server};

use super::super::HttpSseLink;
use super::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// Starts a server and returns its address.
async fn start() -> SocketAddr {
    let server = Server::new("http", "1")
        .tool("plain", "Answers at once", |_: Nothing, _: Context| async {
            "done"
        })
        .tool(
            "reports",
            "Reports, answers",
            |_: Nothing, ctx: Context| async move {
                ctx.progress(1.0, None, None);
                "done"
            },
        );
    let transport = http("127.0.0.1:0", HttpOptions::default())
        .await
        .expect("a port");
    let address = transport.address();
    tokio::spawn(async move { server.serve(transport).await });
    address
}

fn params(tool: &str, revision: Revision) -> Value {
    let mut params = json!({"name": tool, "arguments": {}, "_meta": {"progressToken": 7}});
    if revision.is_modern() {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(revision);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    params
}

fn tool(number: u64, tool: &str, revision: Revision) -> Outgoing {
    let mut head = head(number, revision);
    if revision.is_modern() {
        head.headers = vec![
            ("Mcp-Method".into(), "tools/call".into()),
            ("Mcp-Name".into(), tool.into()),
        ];
    }
    with_head(head, "tools/call", params(tool, revision))
}

#[runtimes::test]
async fn a_modern_call_is_answered_with_and_without_a_stream() {
    let (link, mut receiver) = link(&format!("http://{}/mcp", start().await));
    link.set_session_open(MODERN);
    link.send(tool(1, "plain", MODERN));
    assert_eq!(
        receiver.message().await["result"]["content"][0]["text"],
        "done"
    );
    link.send(tool(2, "reports", MODERN));
    assert_eq!(receiver.message().await["method"], "notifications/progress");
    assert_eq!(receiver.message().await["id"], 2);
    close(&link).await;
    assert_eq!(receiver.rest(), []);
}

#[runtimes::test]
async fn a_session_is_opened_used_and_closed_for_good() {
    for revision in [
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
    ] {
        let url = format!("http://{}/mcp", start().await);
        let client = http_client(settings());
        let (link, mut receiver) = link_of(&client, &url);
        link.send(initialize(1));
        assert!(receiver.message().await["result"].is_object());
        link.set_session_open(revision);
        link.send(initialized());
        link.send(tool(2, "reports", revision));
        assert_eq!(receiver.message().await["method"], "notifications/progress");
        assert_eq!(receiver.message().await["id"], 2);
        link.send(tool(3, "plain", revision));
        assert_eq!(receiver.message().await["id"], 3);
        close(&link).await;
        assert_eq!(receiver.rest(), []);
    }
}

#[runtimes::test]
async fn http_sse_serves_a_whole_session() {
    let (recorder, mut receiver) = ReportReceiver::new();
    let url = format!("http://{}/sse", start().await);
    let link = HttpSseLink::open(&url, &http_client(settings()), recorder).expect("a URL");
    link.send(initialize(1));
    assert!(receiver.message().await["result"].is_object());
    link.set_session_open(Revision::V2024_11_05);
    link.send(initialized());
    link.send(tool(2, "reports", Revision::V2024_11_05));
    assert_eq!(receiver.message().await["method"], "notifications/progress");
    assert_eq!(receiver.message().await["id"], 2);
    close(&link).await;
    assert_eq!(receiver.rest(), []);
}
