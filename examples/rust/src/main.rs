//! A weather server. `cargo run -p example-weather` serves stdio, `… -- --http 8000` serves HTTP.

use mcpline::transport::{self, http::HttpOptions};
use mcpline::{Context, Error, HandlerError, Json, Server};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Where {
    /// The city to forecast for. If it is left out, the user is asked.
    city: Option<String>,
    /// How many days ahead, 1 to 7.
    #[serde(default = "one")]
    days: u8,
}

fn one() -> u8 {
    1
}

#[derive(Serialize, JsonSchema)]
struct Forecast {
    city: String,
    days: u8,
    summary: String,
}

async fn forecast(args: Where, ctx: Context) -> Result<Json<Forecast>, HandlerError> {
    ctx.progress(0.0, Some(1.0), Some("looking at the sky"));
    let city = match args.city {
        Some(city) => city,
        None => ask_for_city(&ctx).await?,
    };
    ctx.progress(1.0, Some(1.0), None);
    Ok(Json(Forecast {
        summary: format!("sunny in {city}"),
        city,
        days: args.days,
    }))
}

#[derive(Deserialize, JsonSchema)]
struct City {
    city: String,
}

/// Sends an elicitation within the call; works with clients of every revision that supports elicitation.
async fn ask_for_city(ctx: &Context) -> Result<String, HandlerError> {
    match ctx.elicit_as::<City>("Which city?").await? {
        Some(answer) => Ok(answer.city),
        None => Err(HandlerError::Tool("no city was given".into())),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let server = Server::new("weather", "1.0.0").tool("forecast", "Forecast for a city", forecast);
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("--http"), Some(port)) => {
            let port = port.parse().unwrap_or(8000);
            let http = transport::http::http(("127.0.0.1", port), HttpOptions::default()).await?;
            server.serve(http).await
        }
        _ => server.serve(transport::stdio()).await,
    }
}
