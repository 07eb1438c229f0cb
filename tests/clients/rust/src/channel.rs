//! A custom transport: a program that this transport starts, with one message per line on its stdin and stdout.

use std::io;
use std::pin::Pin;
use std::process::Stdio;

use mcpline::client::{Channel, ClientTransport};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc;

/// The number of received messages that may wait for the client.
const MAX_WAITING: usize = 16;

/// The program and its arguments.
pub(crate) struct ProgramTransport(pub(crate) Vec<String>);

impl ClientTransport for ProgramTransport {
    fn dial(&self) -> Pin<Box<dyn Future<Output = io::Result<Channel>> + Send + '_>> {
        Box::pin(async { self.open() })
    }
}

impl ProgramTransport {
    fn open(&self) -> io::Result<Channel> {
        let (program, arguments) = self
            .0
            .split_first()
            .ok_or_else(|| io::Error::other("the command is empty"))?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        let mut input = child.stdin.take().ok_or_else(closed)?;
        let output = child.stdout.take().ok_or_else(closed)?;

        let (to_server, mut sent) = mpsc::unbounded_channel();
        let (received, from_server) = mpsc::channel(MAX_WAITING);
        let channel = Channel {
            to_server,
            from_server,
        };
        tokio::spawn(async move {
            while let Some(message) = sent.recv().await {
                let line = [&message[..], b"\n"].concat();
                if input.write_all(&line).await.is_err() {
                    break;
                }
            }
            // The program ends with its stdin.
            drop(input);
            child.wait().await
        });
        tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Some(line) = lines.next_line().await.transpose() {
                if received.send(line.map(Into::into)).await.is_err() {
                    break;
                }
            }
        });
        Ok(channel)
    }
}
