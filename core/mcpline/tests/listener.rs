//! The standalone HTTP server: its paths, and how many connections it takes at once.

mod support;

use std::io::ErrorKind;
use std::net::SocketAddr;

use mcpline::Server;
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, http};
use serde_json::Value;
use support::connection::Connection;
use support::requests::initialize;

async fn start(options: HttpOptions) -> (SocketAddr, Stop) {
    let http = http(("127.0.0.1", 0), options).await.expect("a free port");
    let (address, stop) = (http.address(), Stop::new());
    let signal = stop.clone();
    tokio::spawn(async move { Server::new("listener", "1").serve_until(http, signal).await });
    (address, stop)
}

#[runtimes::test]
async fn whoever_watches_the_process_is_told_that_it_lives() {
    let (address, _stop) = start(HttpOptions::default()).await;
    let mut connection = Connection::open(address).await;
    connection.send("GET", "/health", &[], &Value::Null).await;
    connection.until(Some("ok")).await;
    assert!(connection.seen.starts_with("HTTP/1.1 200 OK"));
}

#[runtimes::test]
async fn a_path_that_does_not_exist_is_answered_with_the_one_that_does() {
    let mut options = HttpOptions::default();
    options.health_path = None;
    let (address, _stop) = start(options).await;
    for path in ["/", "/health"] {
        let mut connection = Connection::open(address).await;
        connection.send("GET", path, &[], &Value::Null).await;
        connection.until(Some("the MCP endpoint is /mcp")).await;
        assert!(connection.seen.starts_with("HTTP/1.1 404 Not Found"));
    }
}

#[runtimes::test]
async fn a_connection_too_many_waits_until_another_ends() {
    let mut options = HttpOptions::default();
    options.connections = 1;
    let (address, _stop) = start(options).await;
    let begin = initialize("2025-11-25");
    let mut first = Connection::open(address).await;
    first.send("POST", "/mcp", &[], &begin).await;
    first.until(Some("protocolVersion")).await;
    let mut second = Connection::open(address).await;
    second.send("POST", "/mcp", &[], &begin).await;
    // The first is still served, and the second isn't yet.
    first.send("GET", "/health", &[], &Value::Null).await;
    first.until(Some("\r\n\r\nok")).await;
    let early = second.stream.try_read(&mut [0; 1]);
    assert_eq!(
        early.map_err(|error| error.kind()),
        Err(ErrorKind::WouldBlock)
    );
    drop(first);
    second.until(Some("protocolVersion")).await;
}

#[runtimes::test]
async fn whoever_sends_too_much_gets_to_read_that_it_was() {
    const MIB: usize = 1024 * 1024;
    let mut options = HttpOptions::default();
    options.body_limit = MIB;
    let (address, _stop) = start(options).await;
    let mut connection = Connection::open(address).await;
    // All of it is sent before anything is read, as most clients do: more than any socket holds by itself.
    let body = Value::String("x".repeat(2 * MIB - 1_000));
    connection.send("POST", "/mcp", &[], &body).await;
    connection.until(Some("raise the option body_limit")).await;
    assert!(connection.seen.starts_with("HTTP/1.1 413 "));
}
