//! A network between processes and their server that large answers do not get through.

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Passes on what clients send, and the answers on each connection up to a number of bytes; then the connection stalls.
pub(crate) struct NarrowLink {
    port: u16,
    accepting: JoinHandle<()>,
}

impl NarrowLink {
    pub(crate) async fn start(server: u16, bytes: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass_on(client, server, bytes));
            }
        });
        Self { port, accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("valkey://127.0.0.1:{}", self.port)
    }
}

impl Drop for NarrowLink {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Ends when the client closes its connection.
async fn pass_on(client: TcpStream, server: u16, bytes: usize) {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await;
    let (Ok((mut answers, mut requests)), (mut from_client, mut to_client)) =
        (server.map(TcpStream::into_split), client.into_split())
    else {
        return;
    };
    let answering = async {
        let mut left = bytes;
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = answers.read(&mut buffer).await {
            if read > left || to_client.write_all(&buffer[..read]).await.is_err() {
                break;
            }
            left -= read;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = answering => {}
        _ = copy(&mut from_client, &mut requests) => {}
    }
}
