//! Fetches documents that clients refer to: client metadata and keys.

use std::time::Duration;

use axum::body::Body;
use http_body_util::{BodyExt, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// Far larger than any of these documents.
const LIMIT: usize = 64 * 1024;
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the JSON at a plain HTTP URL. Documents at https URLs must be known in advance.
pub(crate) async fn json(url: &str) -> Result<Value, String> {
    let url = url.parse().map_err(|error| format!("{url}: {error}"))?;
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let got = async {
        let response = client.get(url).await.map_err(|error| error.to_string())?;
        if !response.status().is_success() {
            return Err(format!("status {}", response.status()));
        }
        let body = Limited::new(response.into_body(), LIMIT);
        let body = body.collect().await.map_err(|error| error.to_string())?;
        serde_json::from_slice(&body.to_bytes()).map_err(|error| error.to_string())
    };
    let got = tokio::time::timeout(TIMEOUT, got).await;
    got.unwrap_or_else(|_| Err("no answer".into()))
}
