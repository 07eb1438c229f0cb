//! A custom transport: messages over stdin and stdout.

use std::io;

use mcpline::Server;
use mcpline::server::Caller;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// Serves one client, with the principal of `--channel N`, until stdin ends.
///
/// # Errors
///
/// Reading stdin or writing stdout fails.
pub async fn serve(server: &Server, number: usize) -> io::Result<()> {
    let alice = || Caller::new().with_subject("alice");
    let connection = match number {
        2 => server.connect_as(alice()),
        3 => server.connect_as(alice().with_scopes(["acme:write"])),
        _ => server.connect(),
    };
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    let mut output = tokio::io::stdout();
    loop {
        tokio::select! {
            line = input.next_line() => match line? {
                Some(line) => connection.send(line),
                None => break,
            },
            Some(message) = connection.receive() => write(&mut output, &message).await?,
        }
    }
    connection.close();
    Ok(())
}

async fn write(output: &mut tokio::io::Stdout, message: &[u8]) -> io::Result<()> {
    output.write_all(message).await?;
    output.write_all(b"\n").await?;
    output.flush().await
}
