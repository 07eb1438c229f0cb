//! A client that speaks HTTP over a socket, byte by byte.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long to wait for something that has to happen. Only a failing test waits this long.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// One HTTP connection.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    /// Everything that was read.
    pub(crate) seen: String,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        Self {
            stream: TcpStream::connect(address).await.expect("it listens"),
            seen: String::new(),
        }
    }

    /// Sends a request without waiting for the answer.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        request.push_str(&body);
        self.stream
            .write_all(request.as_bytes())
            .await
            .expect("it reads");
    }

    /// Reads until `text` has been seen, or to the end if it is `None`.
    pub(crate) async fn until(&mut self, text: Option<&str>) {
        let read = async {
            let mut buffer = [0; 4096];
            while text.is_none_or(|text| !self.seen.contains(text)) {
                match self.stream.read(&mut buffer).await {
                    Ok(0) | Err(_) => return text.is_none(),
                    Ok(count) => self.seen += &String::from_utf8_lossy(&buffer[..count]),
                }
            }
            true
        };
        let arrived = tokio::time::timeout(TEST_TIMEOUT, read).await;
        assert_eq!(arrived, Ok(true), "{text:?} after {:?}", self.seen);
    }
}
