//! A server whose tool calls the same tool of the next server: `tracing-proxy [--http PORT]`.
//!
//! Reads `TRACING_NEXT` (the next server: a URL, or a command as JSON) and `TRACING_REVISION`, and what OpenTelemetry's SDKs
//! read: `OTEL_SERVICE_NAME` and `OTEL_EXPORTER_OTLP_ENDPOINT`.

use std::error::Error;

use mcpline::client::{Address, Client, Command, HttpSettings};
use mcpline::otlp::{OtlpExporter, OtlpSettings};
use mcpline::protocol::vocabulary::{ElicitAction, ElicitParams, ElicitResult};
use mcpline::transport::http::{HttpOptions, http};
use mcpline::transport::{Stop, stdio};
use mcpline::{Context, HandlerError, Revision, Server, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};
use tracing::Instrument as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

#[derive(Deserialize, Serialize, JsonSchema)]
struct Relay {
    /// Whether the last server in Python sends an input request.
    asks: bool,
}

/// Calls the next server, which is connected for this call alone.
async fn relay(arguments: Relay, _: Context) -> Result<String, HandlerError> {
    let relayed = async {
        let client = connect().await?;
        let result = client.call_tool("relay", &arguments).await?;
        client.close().await;
        Ok::<_, Box<dyn Error + Send + Sync>>(result)
    };
    match relayed.instrument(tracing::info_span!("relaying")).await {
        Ok(result) if result.is_error == Some(true) => Err(ToolError::new(result.text()).into()),
        Ok(result) => Ok(result.text()),
        Err(error) => Err(ToolError::new(error.to_string()).into()),
    }
}

async fn connect() -> Result<Client, Box<dyn Error + Send + Sync>> {
    let revision: Revision = std::env::var("TRACING_REVISION")?.parse()?;
    let next = std::env::var("TRACING_NEXT")?;
    let address = if next.starts_with("http") {
        Address::Url(next, HttpSettings::default())
    } else {
        let command: Vec<String> = serde_json::from_str(&next)?;
        let (program, arguments) = command.split_first().ok_or("TRACING_NEXT is empty")?;
        Command::new(program).args(arguments).into()
    };
    let client = Client::builder("proxy", "1")
        .configure(|settings| settings.revisions = vec![revision])
        .on_elicit(answer)
        .connect(address)
        .await?;
    Ok(client)
}

async fn answer(_: ElicitParams) -> Result<ElicitResult, mcpline::RpcError> {
    let content = serde_json::json!({"value": true});
    let content = content.as_object().cloned().unwrap_or_default();
    Ok(ElicitResult::new(ElicitAction::Accept).with_content(content))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let exporter = OtlpExporter::start(OtlpSettings::default())?;
    let own = Targets::new().with_targets([
        ("mcpline::spans", tracing::Level::INFO),
        ("tracing_proxy", tracing::Level::INFO),
    ]);
    tracing_subscriber::registry()
        .with(exporter.layer().with_filter(own))
        .try_init()?;
    let server = Server::new("proxy", "1").tool("relay", "Calls the next server", relay);
    let stop = Stop::new();
    let mut terminated = signal(SignalKind::terminate())?;
    let stopping = stop.clone();
    tokio::spawn(async move {
        terminated.recv().await;
        stopping.stop();
    });
    match std::env::args().nth(2) {
        Some(port) => {
            let http = http(("127.0.0.1", port.parse()?), HttpOptions::default()).await?;
            server.serve_until(http, stop).await?;
        }
        None => server.serve_until(stdio(), stop).await?,
    }
    exporter.shut_down().await?;
    Ok(())
}
