//! A minimal browser for sign-ins: it follows redirects and keeps cookies.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::http::request::Builder;
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// Maximum number of redirects of a sign-in.
const REDIRECTS: usize = 10;

/// A user's browser; clones share its cookies.
#[derive(Clone, Default)]
pub(crate) struct Browser {
    cookies: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Browser {
    /// Follows a URL and its redirects up to the redirect URI `until`, which it does not request.
    pub(crate) async fn follow(&self, url: String, until: &str) -> Result<String, String> {
        let mut url = url;
        for _ in 0..REDIRECTS {
            if url.starts_with(until) {
                return Ok(url);
            }
            let mut request = Request::get(&url);
            let cookies = self
                .cookies
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            if !cookies.is_empty() {
                let cookies: Vec<String> = cookies
                    .into_iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                request = request.header("Cookie", cookies.join("; "));
            }
            let response = send(request, "").await?;
            self.keep(&response);
            let location = response
                .headers()
                .get("location")
                .and_then(|location| location.to_str().ok());
            url = match location {
                Some(location) if location.starts_with('/') => {
                    format!("{}{location}", origin(&url))
                }
                Some(location) => location.to_owned(),
                None => {
                    let status = response.status();
                    let body = read(response).await?;
                    let body = String::from_utf8_lossy(&body);
                    return Err(format!("{url} ends the visit with {status}: {body}"));
                }
            };
        }
        Err(format!("the visit never ends: {url}"))
    }

    fn keep<T>(&self, response: &Response<T>) {
        let mut cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        for set in response.headers().get_all("set-cookie") {
            let pair = set
                .to_str()
                .unwrap_or_default()
                .split(';')
                .next()
                .unwrap_or_default();
            match pair.split_once('=') {
                Some((name, "")) => drop(cookies.remove(name)),
                Some((name, value)) => drop(cookies.insert(name.to_owned(), value.to_owned())),
                None => {}
            }
        }
    }
}

fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |scheme| scheme + 3);
    url[start..]
        .find('/')
        .map_or(url, |path| &url[..start + path])
}

/// Posts JSON and returns the JSON of the response.
pub(crate) async fn post(url: &str, body: &Value) -> Result<Value, String> {
    let response = send(Request::post(url), &body.to_string()).await?;
    serde_json::from_slice(&read(response).await?).map_err(to_text)
}

async fn send(request: Builder, body: &str) -> Result<Response<Incoming>, String> {
    let request = request
        .body(Full::new(Bytes::from(body.to_owned())))
        .map_err(to_text)?;
    let client = Client::builder(TokioExecutor::new()).build_http();
    client.request(request).await.map_err(to_text)
}

async fn read(response: Response<Incoming>) -> Result<Bytes, String> {
    let body = response.into_body().collect().await;
    Ok(body.map_err(to_text)?.to_bytes())
}

fn to_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
