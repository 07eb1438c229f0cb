//! Results that request input: the client's part of multi round-trip requests (2026-07-28, `basic/patterns/mrtr`).

use crate::limits::MAX_OPEN_INPUT_REQUESTS;
use crate::wire::Raw;

/// A result that requests input.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequiredResult {
    /// The input requests, in the server's order.
    pub input_requests: Vec<KeyedInputRequest>,
    /// `requestState`, which is sent back byte for byte without being parsed: a JSON string.
    pub state: Option<Raw>,
}

/// An input request in a result.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyedInputRequest {
    /// The key for its response.
    pub key: String,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// Its parameters.
    pub params: Option<Raw>,
}

/// The largest number of characters of a type or key that an error repeats: a server may send many megabytes.
const MAX_SHOWN_CHARS: usize = 64;

/// Whether `result` requests input. A result without `resultType` is complete (2026-07-28, `basic`, ResultType).
///
/// # Errors
/// If the result has another type. Extensions may define some, but a client must treat types that it doesn't know as
/// invalid.
pub fn is_input_required(result: &Raw) -> Result<bool, String> {
    // Most results have the member first or last; most of the handshake era don't have it.
    let Some(kind) = result.member("resultType").filter(|kind| !kind.is_null()) else {
        return Ok(false);
    };
    match kind.string_value().as_deref() {
        Some("complete") => Ok(false),
        Some("input_required") => Ok(true),
        Some(other) => {
            let shown: String = other.chars().take(MAX_SHOWN_CHARS).collect();
            Err(format!("the client does not know the resultType {shown:?}"))
        }
        None => Err("`resultType` must be a string".to_owned()),
    }
}

impl InputRequiredResult {
    /// The input requests of `result`; `None` if it is complete, as a result without `resultType` is.
    ///
    /// # Errors
    /// What is wrong with a result that requests input, or that its type is unknown to [`is_input_required`].
    pub fn of(result: &Raw) -> Result<Option<Self>, String> {
        if !is_input_required(result)? {
            return Ok(None);
        }
        let mut input_requests = Vec::new();
        if let Some(requests) = result
            .member("inputRequests")
            .filter(|requests| !requests.is_null())
        {
            let members = requests
                .members()
                .ok_or("`inputRequests` must be an object")?;
            for (key, request) in members {
                if input_requests.len() == MAX_OPEN_INPUT_REQUESTS {
                    return Err(format!(
                        "more than {MAX_OPEN_INPUT_REQUESTS} input requests in one result"
                    ));
                }
                let method = request.member("method");
                let method = method.as_ref().and_then(Raw::string_value);
                let method = method.ok_or_else(|| {
                    let shown: String = key.chars().take(MAX_SHOWN_CHARS).collect();
                    format!("input request {shown:?} has no method")
                })?;
                input_requests.push(KeyedInputRequest {
                    key: key.into_owned(),
                    method: method.into_owned(),
                    params: request.member("params"),
                });
            }
        }
        let state = result
            .member("requestState")
            .filter(|state| !state.is_null());
        if state
            .as_ref()
            .is_some_and(|state| state.string_value().is_none())
        {
            return Err("`requestState` must be a string".to_owned());
        }
        if input_requests.is_empty() && state.is_none() {
            return Err("`input_required` needs `inputRequests` or `requestState`".to_owned());
        }
        Ok(Some(Self {
            input_requests,
            state,
        }))
    }

    /// The parameters of the retry: those of the original request, the responses by key, and the state, if there is
    /// one. Nothing of earlier rounds is repeated.
    pub fn retry(&self, params: Option<&Raw>, answers: &[(String, Raw)]) -> Raw {
        let mut retry = String::from("{");
        let mut separator = "";
        for (name, value) in params.and_then(Raw::members).into_iter().flatten() {
            if matches!(&*name, "inputResponses" | "requestState") {
                continue;
            }
            retry.push_str(separator);
            write_member(&mut retry, &name, &value);
            separator = ",";
        }
        if !answers.is_empty() {
            retry.push_str(separator);
            retry.push_str(r#""inputResponses":{"#);
            for (index, (key, answer)) in answers.iter().enumerate() {
                if index > 0 {
                    retry.push(',');
                }
                write_member(&mut retry, key, answer);
            }
            retry.push('}');
            separator = ",";
        }
        if let Some(state) = &self.state {
            retry.push_str(separator);
            write_member(&mut retry, "requestState", state);
        }
        retry.push('}');
        Raw::from_trusted(retry)
    }
}

fn write_member(out: &mut String, name: &str, value: &Raw) {
    out.push_str(Raw::string(name).as_str());
    out.push(':');
    out.push_str(value.as_str());
}
