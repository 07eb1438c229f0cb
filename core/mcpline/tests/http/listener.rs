//! The standalone HTTP server: its paths, and its limits on connections.

use std::io::ErrorKind;
use std::net::SocketAddr;
#[cfg(target_os = "linux")]
use std::time::Duration;

use crate::support::connection::Connection;
use crate::support::requests::initialize;
use mcpline::Server;
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, http};
use serde_json::Value;
#[cfg(target_os = "linux")]
use {
    crate::support::{Nothing, connection::TEST_TIMEOUT},
    mcpline::Context,
    serde_json::json,
    tokio::io::AsyncWriteExt,
    tokio::net::TcpSocket,
    tokio::sync::mpsc,
};

async fn start(options: HttpOptions) -> (SocketAddr, Stop) {
    start_server(Server::new("listener", "1"), options).await
}

async fn start_server(server: Server, options: HttpOptions) -> (SocketAddr, Stop) {
    let http = http(("127.0.0.1", 0), options).await.expect("a free port");
    let (address, stop) = (http.address(), Stop::new());
    let signal = stop.clone();
    tokio::spawn(async move { server.serve_until(http, signal).await });
    (address, stop)
}

#[runtimes::test]
async fn serves_health_and_readiness_checks() {
    let (address, _stop) = start(HttpOptions::default()).await;
    for (path, body) in [("/health", "\r\n\r\nok"), ("/ready", "\r\n\r\nready")] {
        let mut connection = Connection::open(address).await;
        connection.send("GET", path, &[], &Value::Null).await;
        connection.until(Some(body)).await;
        assert!(connection.seen.starts_with("HTTP/1.1 200 OK"));
    }
}

#[runtimes::test]
async fn unknown_paths_get_404_with_the_mcp_endpoint() {
    let mut options = HttpOptions::default();
    options.health_path = None;
    options.ready_path = None;
    let (address, _stop) = start(options).await;
    for path in ["/", "/health", "/ready"] {
        let mut connection = Connection::open(address).await;
        connection.send("GET", path, &[], &Value::Null).await;
        connection.until(Some("the MCP endpoint is /mcp")).await;
        assert!(connection.seen.starts_with("HTTP/1.1 404 Not Found"));
    }
}

#[runtimes::test]
async fn a_connection_past_the_limit_waits_until_another_ends() {
    let mut options = HttpOptions::default();
    options.max_connections = 1;
    let (address, _stop) = start(options).await;
    let begin = initialize("2025-11-25");
    let mut first = Connection::open(address).await;
    first.send("POST", "/mcp", &[], &begin).await;
    first.until(Some("protocolVersion")).await;
    let mut second = Connection::open(address).await;
    second.send("POST", "/mcp", &[], &begin).await;
    // The first is still served, the second is not served yet.
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
async fn clients_can_read_the_413_response_to_a_large_body() {
    const MIB: usize = 1024 * 1024;
    let mut options = HttpOptions::default();
    options.max_body_bytes = MIB;
    let (address, _stop) = start(options).await;
    let mut connection = Connection::open(address).await;
    // Everything is sent before anything is read, as most clients do: more than any socket buffers.
    let body = Value::String("x".repeat(2 * MIB - 1_000));
    connection.send("POST", "/mcp", &[], &body).await;
    connection.until(Some("raise `max_body_bytes`")).await;
    assert!(connection.seen.starts_with("HTTP/1.1 413 "));
}

/// Calls a tool without a handshake.
#[cfg(target_os = "linux")]
async fn call_tool(connection: &mut Connection, tool: &str) {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"name": tool, "arguments": {}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
    ];
    connection.send("POST", "/mcp", &headers, &body).await;
}

#[cfg(target_os = "linux")]
#[runtimes::test]
async fn disconnecting_with_unread_pipelined_bytes_ends_the_call() {
    /// Reports the end of a handler when it is dropped.
    struct Ends(mpsc::UnboundedSender<&'static str>);
    impl Drop for Ends {
        fn drop(&mut self) {
            let _ = self.0.send("ended");
        }
    }
    let (sender, mut events) = mpsc::unbounded_channel();
    let server = Server::new("listener", "1").tool(
        "waits",
        "Never answers",
        move |_: Nothing, context: Context| {
            let ends = Ends(sender.clone());
            async move {
                let _ = ends.0.send("began");
                let _ends = ends;
                context.progress(0.0, None, None);
                std::future::pending::<String>().await
            }
        },
    );
    let mut options = HttpOptions::default();
    // No write would reveal that the client has left.
    options.stream_upgrade_delay = Duration::from_secs(24 * 3_600);
    options.keep_alive_interval = options.stream_upgrade_delay;
    let (address, _stop) = start_server(server, options).await;
    // Nothing, one byte, and more than hyper reads while a request is served.
    for ahead in [0, 1, 100_000] {
        let mut connection = Connection::open(address).await;
        call_tool(&mut connection, "waits").await;
        assert_eq!(events.recv().await, Some("began"));
        let bytes = vec![b'G'; ahead];
        let sent = connection.stream.write_all(&bytes).await;
        sent.expect("the system takes it");
        // The bytes arrive before the connection ends.
        tokio::task::yield_now().await;
        assert!(events.try_recv().is_err(), "{ahead}");
        drop(connection);
        let ended = tokio::time::timeout(TEST_TIMEOUT, events.recv()).await;
        assert_eq!(ended, Ok(Some("ended")), "{ahead} bytes");
    }
}

/// Returns the sockets of this system with these local and remote ports: their state, and how many sent bytes are not
/// acknowledged.
#[cfg(target_os = "linux")]
fn sockets(local: u16, remote: u16) -> Vec<(String, usize)> {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux has it");
    let port = |address: &str| {
        let (_, port) = address.split_once(':').expect("an address and a port");
        u16::from_str_radix(port, 16).expect("hexadecimal")
    };
    let mut found = Vec::new();
    for line in table.lines().skip(1) {
        let columns: Vec<&str> = line.split_whitespace().collect();
        if (port(columns[1]), port(columns[2])) == (local, remote) {
            let (unsent, _) = columns[4].split_once(':').expect("two queues");
            let unsent = usize::from_str_radix(unsent, 16).expect("hexadecimal");
            found.push((columns[3].to_owned(), unsent));
        }
    }
    found
}

#[cfg(target_os = "linux")]
#[runtimes::test]
async fn the_system_buffers_little_unread_data_and_finally_none() {
    const ESTABLISHED: &str = "01";
    const MIB: usize = 1024 * 1024;
    let server = Server::new("listener", "1").tool(
        "large",
        "Answers at length",
        |_: Nothing, _: Context| async { "x".repeat(16 * MIB) },
    );
    let mut options = HttpOptions::default();
    options.write_timeout = Duration::from_secs(1);
    let (address, _stop) = start_server(server, options).await;
    let socket = TcpSocket::new_v4().expect("a socket");
    // The client's own receive buffer does not count.
    socket.set_recv_buffer_size(64 * 1024).expect("small");
    let stream = socket.connect(address).await.expect("it listens");
    let port = stream.local_addr().expect("connected").port();
    let mut connection = Connection {
        stream,
        seen: String::new(),
    };
    call_tool(&mut connection, "large").await;
    let mut most = 0;
    let left = loop {
        let sockets = sockets(address.port(), port);
        match sockets.as_slice() {
            [(state, unsent)] if state == ESTABLISHED => most = most.max(*unsent),
            _ => break sockets,
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert!((1..MIB / 2).contains(&most), "{most} bytes");
    // The socket is gone at once, without an orderly close.
    assert_eq!(left, []);
    drop(connection);
}
