//! The program of the everything-server.

use everything_server::{Arguments, build, channel, mounted};
use mcpline::transport::{self, Stop};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::read()?;
    let server = build(&arguments)?;
    if let Some(number) = arguments.channel {
        return Ok(channel::serve(&server, number).await?);
    }
    let stop = Stop::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    match arguments.port {
        Some(port) if arguments.is_mounted => {
            mounted::serve(&server, arguments.http, port, &stop).await?;
        }
        Some(port) => {
            let http = transport::http::http(("127.0.0.1", port), arguments.http).await?;
            server.serve_until(http, stop).await?;
        }
        None => server.serve_until(transport::stdio(), stop).await?,
    }
    Ok(())
}

#[cfg(unix)]
async fn stop_on_signal(stop: Stop) {
    use tokio::signal::unix::{SignalKind, signal};

    let (Ok(mut terminate), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        return;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    stop.stop();
}

#[cfg(windows)]
async fn stop_on_signal(stop: Stop) {
    use tokio::signal::windows::{ctrl_break, ctrl_c};

    let (Ok(mut break_key), Ok(mut interrupt)) = (ctrl_break(), ctrl_c()) else {
        return;
    };
    tokio::select! {
        _ = break_key.recv() => {}
        _ = interrupt.recv() => {}
    }
    stop.stop();
}
