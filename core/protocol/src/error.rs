//! JSON-RPC errors as the protocol uses them: codes, and the error object that answers a request.
//!
//! An error from a peer is data: its code, message and data pass through untouched.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use crate::error_code::ErrorCode;
use crate::json::{JsonKind, Raw};
use crate::printable::Quoted;
use crate::revision::Revision;
use crate::vocabulary::ClientCapabilities;

impl ErrorCode {
    /// Whether a handler must not use this code for its own purposes on this revision: the protocol has reserved it
    /// without defining it (2026-07-28, `basic`, error codes: -32020 to -32099), or it is
    /// [`URL_ELICITATION_REQUIRED`](Self::URL_ELICITATION_REQUIRED), which needs its data, where that is defined.
    pub fn is_reserved(self, revision: Revision) -> bool {
        if !revision.is_modern() {
            return revision.features().url_elicitation_required_code == Some(self);
        }
        const RESERVED: std::ops::RangeInclusive<i64> = -32_099..=-32_020;
        let is_defined = matches!(
            self,
            Self::HEADER_MISMATCH | Self::MISSING_CLIENT_CAPABILITY | Self::UNSUPPORTED_VERSION
        );
        RESERVED.contains(&self.0) && !is_defined
    }
}

/// The error object of a JSON-RPC response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// The kind of failure.
    pub code: ErrorCode,
    /// One sentence for people.
    pub message: Cow<'static, str>,
    /// Anything more, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Raw>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// A [`PARSE_ERROR`](ErrorCode::PARSE_ERROR).
    pub fn parse_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::PARSE_ERROR, message)
    }

    /// An [`INVALID_REQUEST`](ErrorCode::INVALID_REQUEST).
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, message)
    }

    /// A [`METHOD_NOT_FOUND`](ErrorCode::METHOD_NOT_FOUND) naming the method.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(
            ErrorCode::METHOD_NOT_FOUND,
            format!("Method not found: {method}"),
        )
    }

    /// An [`INVALID_PARAMS`](ErrorCode::INVALID_PARAMS).
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, message)
    }

    /// An [`INTERNAL_ERROR`](ErrorCode::INTERNAL_ERROR).
    pub fn internal_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INTERNAL_ERROR, message)
    }

    /// The error for a resource that does not exist, with the code that `revision` defines and the
    /// URI, if known, as data (2026-07-28, "Resources", Error Handling).
    pub fn resource_not_found(revision: Revision, uri: Option<&str>) -> Self {
        let code = revision.features().resource_not_found_code;
        match uri {
            Some(uri) => Self::new(code, format!("Resource not found: {uri}"))
                .with_data(&serde_json::json!({ "uri": uri })),
            None => Self::new(code, "Resource not found"),
        }
    }

    /// A [`BUSY`](ErrorCode::BUSY): a limit is reached, but the same request may succeed later.
    pub fn busy(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::BUSY, message)
    }

    /// A [`SHUTTING_DOWN`](ErrorCode::SHUTTING_DOWN): the request was cancelled because the server shuts down. Its data
    /// say that it may be sent again.
    pub fn shutting_down() -> Self {
        Self::new(ErrorCode::SHUTTING_DOWN, "the server is shutting down")
            .with_data(&serde_json::json!({ "retryable": true }))
    }

    /// A [`PROCESS_ENDED`](ErrorCode::PROCESS_ENDED): another process has served the request and ended before the response. Its
    /// data say that the request may be sent again, and that it may have run.
    pub fn process_ended() -> Self {
        let message = "the process that served the request has ended; the request may have run";
        let data = serde_json::json!({ "retryable": true, "outcomeKnown": false });
        Self::new(ErrorCode::PROCESS_ENDED, message).with_data(&data)
    }

    /// A [`SESSION_ENDED`](ErrorCode::SESSION_ENDED): the request was cancelled because its session has ended. Its data say
    /// that the request may be sent again, in another session, and that it may have run.
    pub fn session_ended() -> Self {
        let message = "the session has ended; the request may have run";
        let data = serde_json::json!({ "retryable": true, "outcomeKnown": false });
        Self::new(ErrorCode::SESSION_ENDED, message).with_data(&data)
    }

    /// A [`HEADER_MISMATCH`](ErrorCode::HEADER_MISMATCH).
    pub fn header_mismatch(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::HEADER_MISMATCH, message)
    }

    /// An `UnsupportedProtocolVersionError` with the requested version and the supported ones (2026-07-28,
    /// "Versioning", Protocol Version Negotiation).
    pub fn unsupported_version(requested: &str, supported: &[Revision]) -> Self {
        Self::new(
            ErrorCode::UNSUPPORTED_VERSION,
            "Unsupported protocol version",
        )
        .with_data(&serde_json::json!({ "supported": supported, "requested": requested }))
    }

    /// A `MissingRequiredClientCapabilityError`; `required` is a client capabilities object such as
    /// `{"elicitation": {}}` (2026-07-28, "Base protocol", `_meta`).
    pub fn missing_capability(required: &impl Serialize) -> Self {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct RequiredCapabilitiesData<'a, T> {
            required_capabilities: &'a T,
        }
        Self::new(
            ErrorCode::MISSING_CLIENT_CAPABILITY,
            "Missing required client capability",
        )
        .with_data(&RequiredCapabilitiesData {
            required_capabilities: required,
        })
    }

    /// A `MissingRequiredClientCapabilityError` for a client that does not declare an extension. Revisions before
    /// 2026-07-28 don't define the code, but have no other one for it.
    pub fn missing_extension(identifier: &str) -> Self {
        let mut error = Self::missing_capability(&serde_json::json!({
            "extensions": { identifier: {} },
        }));
        error.message =
            format!("Missing required client capability: extension {identifier}").into();
        error
    }

    /// Whether 2026-07-28 defines this error's code together with `data` that the error doesn't have: such an error
    /// breaks the schema (`MissingRequiredClientCapabilityError`, `UnsupportedProtocolVersionError`).
    pub fn lacks_defined_data(&self, revision: Revision) -> bool {
        let data = self.data.as_ref();
        let member = |name| data.and_then(|data| data.member(name));
        let has_defined_data = match self.code {
            _ if !revision.is_modern() => true,
            ErrorCode::MISSING_CLIENT_CAPABILITY => {
                let required =
                    member("requiredCapabilities").filter(|one| one.kind() == JsonKind::Object);
                required.is_some_and(|required| required.decode::<ClientCapabilities>().is_ok())
            }
            ErrorCode::UNSUPPORTED_VERSION => {
                let requested = member("requested").filter(|one| one.kind() == JsonKind::String);
                let supported = member("supported").map(|list| list.decode::<Vec<String>>());
                requested.is_some() && supported.is_some_and(|list| list.is_ok())
            }
            _ => true,
        };
        !has_defined_data
    }

    /// Sets `data`. Data that cannot be written as JSON is left out: an error about an error would hide the first.
    #[must_use]
    pub fn with_data(mut self, data: &impl Serialize) -> Self {
        self.data = Raw::from_serialize(data).ok();
        self
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", Quoted(&self.message), self.code)
    }
}

impl std::error::Error for RpcError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contains all codes that mcpline defines.
    const SOURCE: &str = include_str!("error_code.rs");

    #[test]
    fn own_codes_are_outside_of_the_protocols_ranges() {
        let codes = SOURCE.lines().filter_map(|line| {
            let (_, code) = line
                .trim()
                .split_once("pub const ")?
                .1
                .split_once(": Self = Self(")?;
            let code = code.strip_suffix(");")?.replace('_', "");
            Some(code.parse::<i64>().expect("a code"))
        });
        let codes: Vec<i64> = codes.collect();
        assert!(
            codes.contains(&-32_700) && codes.contains(&-31_002),
            "{codes:?}"
        );
        const JSON_RPC: [i64; 5] = [-32_700, -32_600, -32_601, -32_602, -32_603];
        const PROTOCOL: [i64; 5] = [-32_002, -32_042, -32_020, -32_021, -32_022];
        for code in codes {
            let is_known = JSON_RPC.contains(&code) || PROTOCOL.contains(&code);
            assert!(is_known || !(-32_768..=-32_000).contains(&code), "{code}");
        }
    }

    #[test]
    fn undefined_protocol_codes_are_reserved() {
        for code in [
            -32_019, -32_020, -32_021, -32_022, -32_100, -32_603, -1, 7, -31_050,
        ] {
            assert!(
                !ErrorCode(code).is_reserved(Revision::V2026_07_28),
                "{code}"
            );
        }
        for code in [-32_023, -32_042, -32_050, -32_099] {
            let code = ErrorCode(code);
            assert!(code.is_reserved(Revision::V2026_07_28), "{code}");
            assert!(!code.is_reserved(Revision::V2025_06_18), "{code}");
            let is_url_elicitation = code == ErrorCode::URL_ELICITATION_REQUIRED;
            assert_eq!(
                code.is_reserved(Revision::V2025_11_25),
                is_url_elicitation,
                "{code}"
            );
        }
    }

    #[test]
    fn unsupported_version_lists_requested_and_supported_versions() {
        let error = RpcError::unsupported_version("1900-01-01", &[Revision::V2026_07_28]);
        let data = error.data.expect("data");
        assert_eq!(
            data.as_str(),
            r#"{"supported":["2026-07-28"],"requested":"1900-01-01"}"#
        );
    }

    #[test]
    fn missing_capability_names_the_capability_in_its_data() {
        let error = RpcError::missing_capability(&serde_json::json!({"elicitation": {}}));
        assert_eq!(
            error.data.expect("data").as_str(),
            r#"{"requiredCapabilities":{"elicitation":{}}}"#
        );
    }

    #[test]
    fn resource_not_found_has_the_code_of_its_revision() {
        let old = RpcError::resource_not_found(Revision::V2025_11_25, Some("file:///x"));
        let new = RpcError::resource_not_found(Revision::V2026_07_28, Some("file:///x"));
        assert_eq!((old.code.0, new.code.0), (-32002, -32602));
    }
}
