//! The control interface for programs in other languages, at `/.control`.

use serde_json::{Value, json};

use crate::Shared;
use crate::config::Config;
use crate::exchange::{IncomingRequest, Reply};

/// Handles requests below `/.control/`.
pub(crate) fn answer(shared: &Shared, request: &IncomingRequest) -> Reply {
    let body = if request.body.is_empty() {
        Ok(Value::Null)
    } else {
        serde_json::from_str(&request.body)
    };
    let body = match body {
        Ok(body) => body,
        Err(error) => return Reply::json(400, &json!({"error": error.to_string()})),
    };
    let mut state = shared.state();
    match (
        request.method.as_str(),
        request.path.trim_start_matches("/.control/"),
    ) {
        ("GET", "requests") => Reply::json(200, &json!(state.requests)),
        ("DELETE", "requests") => {
            state.requests.clear();
            Reply::empty(204)
        }
        ("GET", "config") => Reply::json(200, &json!(state.config)),
        ("PATCH", "config") => match changed(&state.config, body) {
            Ok(config) => {
                state.config = config;
                Reply::empty(204)
            }
            Err(why) => Reply::json(400, &json!({"error": why})),
        },
        ("POST", "rotate-keys") => {
            state.rotate_keys(body["keep"].as_bool().unwrap_or(true));
            Reply::empty(204)
        }
        ("POST", "revoke-access-tokens") => {
            for access in state.access_tokens.values_mut() {
                access.revoked = true;
            }
            Reply::empty(204)
        }
        ("POST", "mint") => {
            let token = state.key().sign(&body["header"], &body["claims"]);
            Reply::json(200, &json!({"token": token}))
        }
        _ => Reply::json(404, &json!({"error": "not_found"})),
    }
}

/// Returns the configuration with the members of `change` replaced.
fn changed(config: &Config, change: Value) -> Result<Config, String> {
    let mut whole = json!(config);
    for (name, value) in change.as_object().ok_or("not an object")? {
        whole[name] = value.clone();
    }
    serde_json::from_value(whole).map_err(|error| error.to_string())
}
