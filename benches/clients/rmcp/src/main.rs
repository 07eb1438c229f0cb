//! The official Rust SDK's client, used as in its examples.

use std::error::Error;
use std::sync::Arc;

use bench_client::{Options, TEXT, Target, drive};
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use tokio::process::Command;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse()?;
    let service = match &options.target {
        Target::Http(url) => {
            ().serve(StreamableHttpClientTransport::from_uri(url.as_str()))
                .await?
        }
        Target::Stdio(command) => {
            let mut process = Command::new(&command[0]);
            process.args(&command[1..]);
            ().serve(TokioChildProcess::new(process)?).await?
        }
    };
    let service = Arc::new(service);
    let local = tokio::task::LocalSet::new();
    local
        .run_until(drive(&options, move |_| {
            let service = service.clone();
            async move {
                let mut params = CallToolRequestParams::new("echo");
                params.arguments = serde_json::json!({"text": TEXT}).as_object().cloned();
                let result = service.call_tool(params).await?;
                if result.is_error == Some(true) {
                    return Err("not the answer".into());
                }
                Ok(())
            }
        }))
        .await
}
