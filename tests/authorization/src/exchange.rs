//! HTTP requests and responses, and the log of requests.

use std::collections::{BTreeMap, VecDeque};

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

use crate::config::Endpoint;

/// Number of requests that the log keeps: enough for any test, and little memory.
const REMEMBERED: usize = 4096;

/// A request as it arrived.
pub(crate) struct IncomingRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Parameters,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    pub(crate) form: Parameters,
}

impl IncomingRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

pub(crate) fn read(head: &Parts, body: &[u8]) -> IncomingRequest {
    let body = String::from_utf8_lossy(body).into_owned();
    let kind = head
        .headers
        .get("content-type")
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    let form = match kind {
        Some("application/x-www-form-urlencoded") => Parameters::read(&body),
        _ => Parameters::default(),
    };
    IncomingRequest {
        method: head.method.as_str().to_owned(),
        path: head.uri.path().to_owned(),
        query: Parameters::read(head.uri.query().unwrap_or_default()),
        headers: head.headers.clone(),
        body,
        form,
    }
}

/// Parameters of a query or a form, in order.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Parameters(pub Vec<(String, String)>);

impl Parameters {
    pub(crate) fn read(encoded: &str) -> Self {
        Self(
            form_urlencoded::parse(encoded.as_bytes())
                .into_owned()
                .collect(),
        )
    }

    /// The first value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Every value of a parameter.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let found = self.0.iter().filter(move |(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that must not occur twice; an empty one counts as absent.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&str>, Refusal> {
        let mut values = self.all(name);
        let first = values.next().filter(|value| !value.is_empty());
        if values.next().is_some() {
            return Err(Refusal::new(
                "invalid_request",
                format!("{name} is there twice"),
            ));
        }
        Ok(first)
    }

    /// The value of a parameter that must occur once.
    pub(crate) fn needed(&self, name: &str) -> Result<&str, Refusal> {
        self.one(name)?
            .ok_or_else(|| Refusal::new("invalid_request", format!("{name} is missing")))
    }
}

/// An OAuth error.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    pub(crate) description: String,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Refusal {
    pub(crate) fn new(code: &'static str, description: impl Into<String>) -> Self {
        Self {
            status: 400,
            code,
            description: description.into(),
            headers: Vec::new(),
        }
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn reply(self) -> Reply {
        let body = json!({"error": self.code, "error_description": self.description});
        let mut reply = Reply::json(self.status, &body);
        for (name, value) in self.headers {
            reply = reply.with_header(name, value);
        }
        reply
    }
}

/// A response.
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Reply {
    pub(crate) fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: String::new(),
        }
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::text(status, "application/json", body.to_string())
    }

    pub(crate) fn text(status: u16, kind: &str, body: impl Into<String>) -> Self {
        Self {
            body: body.into(),
            ..Self::empty(status).with_header("Content-Type", kind)
        }
    }

    pub(crate) fn redirect(location: impl Into<String>) -> Self {
        Self::empty(302).with_header("Location", location)
    }

    pub(crate) fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn into_response(self) -> Response<axum::body::Body> {
        let mut response = Response::new(axum::body::Body::from(self.body));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response
            .headers_mut()
            .insert("Cache-Control", HeaderValue::from_static("no-store"));
        for (name, value) in self.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }
}

/// A request in the log.
#[derive(Clone, Debug, Serialize)]
pub struct Request {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query's parameters.
    pub query: Parameters,
    /// The headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The parameters of a form.
    pub form: Parameters,
    /// The unparsed body.
    pub body: String,
    /// The status of the response, once it is known.
    pub status: Option<u16>,
}

impl Request {
    /// A parameter of the query or of the form.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.get(name).or_else(|| self.form.get(name))
    }

    /// The body, read as JSON.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_str(&self.body).ok()
    }
}

/// The log of requests. It has the last few thousand in full.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Requests {
    /// The requests, oldest first.
    pub last: VecDeque<Request>,
    /// Number of requests, by endpoint.
    pub counts: BTreeMap<Endpoint, usize>,
    /// Number of requests to the token endpoint, by grant.
    pub grants: BTreeMap<String, usize>,
    forgotten: usize,
}

impl Requests {
    /// Number of requests to an endpoint.
    pub fn count(&self, endpoint: Endpoint) -> usize {
        self.counts.get(&endpoint).copied().unwrap_or_default()
    }

    /// Number of token requests with a grant (`refresh_token`).
    pub fn grants(&self, name: &str) -> usize {
        self.grants.get(name).copied().unwrap_or_default()
    }

    /// The requests to an endpoint, oldest first.
    pub fn of(&self, endpoint: Endpoint) -> impl DoubleEndedIterator<Item = &Request> {
        self.last
            .iter()
            .filter(move |request| request.endpoint == endpoint)
    }

    /// Adds a request to the log and returns its number, for `answered`.
    pub(crate) fn add(&mut self, endpoint: Endpoint, request: &IncomingRequest) -> usize {
        *self.counts.entry(endpoint).or_default() += 1;
        if endpoint == Endpoint::Token {
            let grant = request
                .form
                .get("grant_type")
                .unwrap_or_default()
                .to_owned();
            *self.grants.entry(grant).or_default() += 1;
        }
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
            self.forgotten += 1;
        }
        let headers = request.headers.iter();
        self.last.push_back(Request {
            endpoint,
            method: request.method.clone(),
            path: request.path.clone(),
            query: request.query.clone(),
            headers: headers
                .map(|(name, value)| {
                    let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                    (name.as_str().to_owned(), value)
                })
                .collect(),
            form: request.form.clone(),
            body: request.body.clone(),
            status: None,
        });
        self.forgotten + self.last.len() - 1
    }

    pub(crate) fn answered(&mut self, number: usize, status: u16) {
        let index = number.checked_sub(self.forgotten);
        if let Some(request) = index.and_then(|index| self.last.get_mut(index)) {
            request.status = Some(status);
        }
    }

    /// Clears the log.
    pub(crate) fn clear(&mut self) {
        let forgotten = self.forgotten + self.last.len();
        *self = Self {
            forgotten,
            ..Self::default()
        };
    }
}
