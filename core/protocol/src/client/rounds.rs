//! Results that ask: the client's part of multi round-trip requests (2026-07-28, `basic/patterns/mrtr`).

use crate::limits::MAX_QUESTIONS;
use crate::wire::Raw;

/// A result that asks for input, with the questions still raw.
#[derive(Debug, Clone, PartialEq)]
pub struct InputNeeded {
    /// The questions, in the server's order.
    pub questions: Vec<InputQuestion>,
    /// What must be sent back unread, byte for byte: a JSON string.
    pub state: Option<Raw>,
}

/// One question of a result that asks.
#[derive(Debug, Clone, PartialEq)]
pub struct InputQuestion {
    /// What its answer is filed under.
    pub key: String,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// Its parameters.
    pub params: Option<Raw>,
}

/// Most characters of a type or a key that an error repeats: a server may send many megabytes.
const MAX_SHOWN_CHARS: usize = 64;

/// Whether `result` asks for input instead of being complete, as a result without `resultType` is (2026-07-28, `basic`,
/// ResultType).
///
/// # Errors
/// The result is of another type. Extensions may bring some, but a client must hold those that it doesn't know for
/// invalid.
pub fn asks_for_input(result: &Raw) -> Result<bool, String> {
    // The member stands first or last in most results and is missing in most of the handshake era.
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

impl InputNeeded {
    /// What `result` asks for; `None` if it is a result that does not ask. A result without `resultType` is complete.
    ///
    /// # Errors
    /// What is wrong with a result that says it asks, or is of a type that [`asks_for_input`] does not know.
    pub fn of(result: &Raw) -> Result<Option<Self>, String> {
        if !asks_for_input(result)? {
            return Ok(None);
        }
        let mut questions = Vec::new();
        if let Some(asked) = result
            .member("inputRequests")
            .filter(|asked| !asked.is_null())
        {
            let members = asked.members().ok_or("`inputRequests` must be an object")?;
            for (key, question) in members {
                if questions.len() == MAX_QUESTIONS {
                    return Err(format!(
                        "more than {MAX_QUESTIONS} input requests in one result"
                    ));
                }
                let method = question.member("method");
                let method = method.as_ref().and_then(Raw::string_value);
                let method = method.ok_or_else(|| {
                    let shown: String = key.chars().take(MAX_SHOWN_CHARS).collect();
                    format!("input request {shown:?} has no method")
                })?;
                questions.push(InputQuestion {
                    key: key.into_owned(),
                    method: method.into_owned(),
                    params: question.member("params"),
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
        if questions.is_empty() && state.is_none() {
            return Err("`input_required` needs `inputRequests` or `requestState`".to_owned());
        }
        Ok(Some(Self { questions, state }))
    }

    /// The parameters of the retry: those of the original request, the answers by key, and the state, if there was
    /// one. Nothing of earlier rounds is repeated.
    pub fn retry(&self, params: Option<&Raw>, answers: &[(String, Raw)]) -> Raw {
        let mut retry = String::from("{");
        let mut separator = "";
        for (name, value) in params.and_then(Raw::members).into_iter().flatten() {
            if matches!(&*name, "inputResponses" | "requestState") {
                continue;
            }
            retry.push_str(separator);
            member(&mut retry, &name, &value);
            separator = ",";
        }
        if !answers.is_empty() {
            retry.push_str(separator);
            retry.push_str(r#""inputResponses":{"#);
            for (index, (key, answer)) in answers.iter().enumerate() {
                if index > 0 {
                    retry.push(',');
                }
                member(&mut retry, key, answer);
            }
            retry.push('}');
            separator = ",";
        }
        if let Some(state) = &self.state {
            retry.push_str(separator);
            member(&mut retry, "requestState", state);
        }
        retry.push('}');
        Raw::from_trusted(retry)
    }
}

fn member(out: &mut String, name: &str, value: &Raw) {
    out.push_str(Raw::string(name).as_str());
    out.push(':');
    out.push_str(value.as_str());
}
