//! Every kind of request, each in a span of its own, between a client and a server in Rust.
//!
//! ```text
//! tracing-exchanges server [--http PORT | --unix PATH]
//! tracing-exchanges client REVISION memory
//! tracing-exchanges client REVISION stdio COMMAND …
//! tracing-exchanges client REVISION unix PATH
//! tracing-exchanges client REVISION http URL
//! tracing-exchanges client REVISION http+sse URL
//! ```
//!
//! `../programs/exchanges.py` and `exchanges.mjs` do the same. All export with OTLP.

mod operations;
mod server;

use std::error::Error;

use mcpline::client::{Address, Client, Command, HttpSettings};
use mcpline::otlp::{OtlpExporter, OtlpSettings};
use mcpline::protocol::vocabulary::{
    CreateMessageParams, CreateMessageResult, ElicitAction, ElicitParams, ElicitResult, Role, Root,
    SamplingContent,
};
use mcpline::transport::http::{HttpOptions, http};
use mcpline::transport::{Stop, UnixOptions, stdio, unix};
use mcpline::{Revision, RpcError};
use tokio::signal::unix::{SignalKind, signal};
use tracing::Instrument as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The address of a server, by the name of its transport.
fn address(transport: &str, place: &[String]) -> Outcome<Address> {
    let first = place.first().cloned().ok_or("the address is missing");
    Ok(match transport {
        "memory" => server::server().into(),
        "unix" => Address::Socket(first?.into()),
        "http" | "http+sse" => Address::Url(first?, HttpSettings::default()),
        _ => Command::new(first?).args(&place[1..]).into(),
    })
}

async fn answer(_: ElicitParams) -> Result<ElicitResult, RpcError> {
    let answering = async {
        let content = serde_json::json!({"value": true});
        let content = content.as_object().cloned().unwrap_or_default();
        Ok(ElicitResult::new(ElicitAction::Accept).with_content(content))
    };
    answering.instrument(tracing::info_span!("answering")).await
}

async fn connect(revision: Revision, address: Address) -> Outcome<Client> {
    let client = Client::builder("golden", "1")
        .configure(|settings| settings.revisions = vec![revision])
        .on_elicit(answer)
        .on_sample(|_: CreateMessageParams| async {
            let hello = SamplingContent::text("Hello");
            Ok(CreateMessageResult::new(Role::Assistant, hello, "model"))
        })
        .roots([Root::new("file:///home/ada")?])
        .connect(address)
        .await?;
    Ok(client)
}

async fn serve(arguments: &[String]) -> Outcome {
    let server = server::server();
    let stop = Stop::new();
    let mut terminated = signal(SignalKind::terminate())?;
    let stopping = stop.clone();
    tokio::spawn(async move {
        terminated.recv().await;
        stopping.stop();
    });
    match arguments {
        [] => server.serve_until(stdio(), stop).await?,
        [option, port] if option == "--http" => {
            let http = http(("127.0.0.1", port.parse()?), HttpOptions::default()).await?;
            server.serve_until(http, stop).await?;
        }
        [option, path] if option == "--unix" => {
            let unix = unix(path.clone(), UnixOptions::default()).await?;
            server.serve_until(unix, stop).await?;
        }
        _ => return Err("the arguments of the server are unknown".into()),
    }
    Ok(())
}

async fn run() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [side, options @ ..] if side == "server" => serve(options).await,
        [side, revision, transport, place @ ..] if side == "client" => {
            let revision: Revision = revision.parse()?;
            let client = connect(revision, address(transport, place)?).await?;
            operations::perform(&client, revision).await?;
            client.close().await;
            Ok(())
        }
        _ => Err("usage: server … or client …".into()),
    }
}

#[tokio::main]
async fn main() -> Outcome {
    let exporter = OtlpExporter::start(OtlpSettings::default())?;
    let own = Targets::new().with_targets([
        ("mcpline::spans", tracing::Level::INFO),
        ("tracing_exchanges", tracing::Level::INFO),
    ]);
    tracing_subscriber::registry()
        .with(exporter.layer().with_filter(own))
        .try_init()?;
    run().await?;
    exporter.shut_down().await?;
    Ok(())
}
