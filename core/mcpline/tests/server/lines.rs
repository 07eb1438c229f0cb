//! Newline-delimited messages over a byte stream.

use std::time::Duration;

use crate::support::Nothing;
use crate::support::log::Log;
use mcpline::protocol::Raw;
use mcpline::{Context, Server, Settings, ToolReply, transport};
use schema_check::Conversation;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

#[runtimes::test]
async fn writes_indented_json_of_a_handler_on_one_line() {
    let server =
        Server::new("lines", "1").tool("indented", "Indented", |_: Nothing, _: Context| async {
            ToolReply {
                content: Some(Raw::EMPTY_ARRAY),
                structured: Raw::parse(&b"{\n  \"a\": \"line\\nend\",\r\n  \"b\": 1\n}"[..]).ok(),
                ..ToolReply::default()
            }
        });
    let (client, ours) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let serving = tokio::spawn(async move { server.serve(transport::lines(reader, writer)).await });
    let (reader, mut writer) = tokio::io::split(client);
    let mut lines = BufReader::new(reader).lines();
    let mut talk = Conversation::default();
    for message in [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "indented"}}),
    ] {
        talk.client(&message);
        writer
            .write_all(format!("{message}\n").as_bytes())
            .await
            .expect("written");
    }
    let mut answers = Vec::new();
    for _ in 0..2 {
        let line = lines.next_line().await.expect("read").expect("a line");
        let message: Value = serde_json::from_str(&line).expect("one message on one line");
        talk.server(&message);
        answers.push(message);
    }
    assert_eq!(
        answers[1]["result"]["structuredContent"],
        json!({"a": "line\nend", "b": 1})
    );
    writer.shutdown().await.expect("closed");
    assert!(lines.next_line().await.expect("read").is_none());
    serving.await.expect("no panic").expect("ends well");
}

fn with_pings() -> Server {
    let mut settings = Settings::default();
    settings.session.ping_interval = Some(Duration::from_secs(10));
    settings.session.max_missed_pings = 2;
    let server = Server::builder("lines", "1").settings(settings);
    server.build().expect("a server")
}

#[tokio::test(start_paused = true)]
async fn closes_an_in_memory_connection_when_pings_are_unanswered() {
    let log = Log::new(tracing::Level::INFO);
    let _guard = tracing::subscriber::set_default(log.clone());
    let memory = with_pings().connect();
    for message in [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ] {
        memory.send(message.to_string());
    }
    let received = async {
        let mut received = 0;
        while memory.receive().await.is_some() {
            received += 1;
        }
        received
    };
    let received = tokio::time::timeout(Duration::from_secs(3_600), received).await;
    assert_eq!(received, Ok(3), "the handshake and two pings");
    assert!(log.has("a client no longer answers pings"));
}

#[tokio::test(start_paused = true)]
async fn closes_a_byte_stream_when_pings_are_unanswered() {
    let log = Log::new(tracing::Level::INFO);
    let _guard = tracing::subscriber::set_default(log.clone());
    let server = with_pings().tool("slow", "Never ends", |_: Nothing, _: Context| async {
        std::future::pending::<String>().await
    });
    let (client, ours) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let serving = tokio::spawn(async move { server.serve(transport::lines(reader, writer)).await });
    let (reader, mut writer) = tokio::io::split(client);
    let mut lines = BufReader::new(reader).lines();
    for message in [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}}),
    ] {
        writer
            .write_all(format!("{message}\n").as_bytes())
            .await
            .expect("written");
    }
    // The client reads everything and sends nothing more; its end of the pipe stays open.
    let mut pings = 0;
    let read_to_end = async {
        while let Some(line) = lines.next_line().await.expect("read") {
            pings += usize::from(line.contains("\"ping\""));
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(3_600), read_to_end).await;
    ended.expect("the server closes its end");
    assert_eq!(pings, 2);
    assert!(log.has("a client no longer answers pings"));
    serving.await.expect("no panic").expect("ends well");
}
