//! A client and a server in one process.

use mcpline::client::Client;
use mcpline::{Context, Server};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    city: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("weather", "1.0.0").tool(
        "forecast",
        "Forecast for a city",
        |place: Place, _: Context| async move { place.city + ": sunny" },
    );
    let client = Client::connect(server).await?;
    let result = client.call_tool("forecast", serde_json::json!({ "city": "Oslo" })).await?;
    println!("{}", serde_json::to_string(&result.content)?);
    client.close().await;
    Ok(())
}
