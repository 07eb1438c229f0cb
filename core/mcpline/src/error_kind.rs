//! The kinds of errors: one table, which the names in every language come from. `docs/errors.md` describes each.

/// Generates [`ErrorKind`] from its table: documentation, variant, name, identifier.
macro_rules! error_kinds {
    ($($(#[$documentation:meta])+ $variant:ident = $name:literal, $identifier:literal;)+) => {
        /// The kind of an error: what failed. The same kinds with the same names exist in every language.
        ///
        /// [`ErrorKind::RequestTimedOut`] is `RequestTimedOut` in Python, `RequestTimedOutError` in TypeScript and
        /// `MCPL_REQUEST_TIMED_OUT` in C. If the name of a kind is a noun, it ends in `Error` everywhere except in
        /// Rust: [`ErrorKind::Http`] is `HttpError`, `HttpError` and `MCPL_HTTP_ERROR`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$documentation])+ $variant,)+
        }

        impl ErrorKind {
            /// Every kind, in the order of C's status codes, which begin with 1.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name of the class in Python: `"RequestTimedOut"`. TypeScript appends `Error` where it is missing.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The stable identifier: `"request_timed_out"`. It is the value of `kind` in every language.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $identifier,)+
                }
            }
        }
    };
}

error_kinds! {
    /// The peer returned a JSON-RPC error.
    Rpc = "RpcError", "rpc_error";
    /// No response arrived in time. The request was cancelled; whether the peer performed it is unknown.
    RequestTimedOut = "RequestTimedOut", "request_timed_out";
    /// The request was cancelled by its sender.
    RequestCancelled = "RequestCancelled", "request_cancelled";
    /// The server responded with an HTTP status instead of a JSON-RPC message.
    Http = "HttpError", "http_error";
    /// The server could not be reached: no connection was made, or its process did not start. Nothing was sent.
    ServerUnreachable = "ServerUnreachable", "server_unreachable";
    /// The server was reached, but the handshake (`server/discover` or `initialize`) failed: it was refused, or client
    /// and server have no protocol revision in common.
    HandshakeFailed = "HandshakeFailed", "handshake_failed";
    /// The server was reached, but did not respond to `initialize` or `server/discover` in time.
    HandshakeTimedOut = "HandshakeTimedOut", "handshake_timed_out";
    /// The connection ended before the response arrived. Whether the peer performed the request is unknown.
    ConnectionLost = "ConnectionLost", "connection_lost";
    /// The server no longer knows the session (HTTP 404), or the cursor of a list belongs to an earlier session.
    SessionExpired = "SessionExpired", "session_expired";
    /// The server's process exited.
    ServerExited = "ServerExited", "server_exited";
    /// The server requires authorization, and no access token that it accepts could be obtained.
    AuthorizationFailed = "AuthorizationFailed", "authorization_failed";
    /// A response violates the protocol or a schema.
    InvalidResponse = "InvalidResponse", "invalid_response";
    /// An input request (elicitation, sampling, roots) was answered with an error, or refused by a middleware.
    InputRequestFailed = "InputRequestFailed", "input_request_failed";
    /// The host's tool call hook refused the call. Nothing was sent.
    ToolCallRefused = "ToolCallRefused", "tool_call_refused";
    /// The peer or the protocol revision does not support the operation. Nothing was sent.
    NotSupported = "NotSupported", "not_supported";
    /// A limit of this library is reached.
    LimitExceeded = "LimitExceeded", "limit_exceeded";
    /// The client, the server or the connection was closed by this program.
    Closed = "Closed", "closed";
    /// The library was used incorrectly: an invalid argument, a name that is taken, a call out of order.
    Usage = "UsageError", "usage_error";
    /// The operating system reported an error of a socket, a pipe, a process or the file of an audit log.
    Transport = "TransportError", "transport_error";
    /// A bug in mcpline.
    Internal = "InternalError", "internal_error";
}

#[cfg(feature = "client")]
impl ErrorKind {
    /// Whether the connection, the session or the process failed, or never came about.
    pub(crate) const fn is_connection_failure(self) -> bool {
        matches!(
            self,
            Self::ServerUnreachable
                | Self::ConnectionLost
                | Self::SessionExpired
                | Self::ServerExited
        )
    }
}

#[cfg(feature = "server")]
impl From<&mcpline_protocol::session::InputRequestError> for ErrorKind {
    fn from(error: &mcpline_protocol::session::InputRequestError) -> Self {
        use mcpline_protocol::session::InputRequestError;
        match error {
            InputRequestError::NotSupported(_) | InputRequestError::Inexpressible(_) => {
                Self::NotSupported
            }
            InputRequestError::Rpc { .. } | InputRequestError::Refused { .. } => {
                Self::InputRequestFailed
            }
            InputRequestError::InvalidResponse { .. } => Self::InvalidResponse,
            InputRequestError::TimedOut { .. } => Self::RequestTimedOut,
            InputRequestError::Cancelled => Self::RequestCancelled,
            InputRequestError::ConnectionLost => Self::ConnectionLost,
            InputRequestError::LimitExceeded(_) => Self::LimitExceeded,
            InputRequestError::InvalidParams(_)
            | InputRequestError::OutsideCall
            | InputRequestError::Diverged { .. } => Self::Usage,
            // A new variant that is not handled here yet is a bug.
            _ => Self::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_kind_are_recased_forms_of_each_other() {
        for kind in ErrorKind::ALL {
            let mut identifier = String::new();
            for character in kind.name().chars() {
                if character.is_ascii_uppercase() && !identifier.is_empty() {
                    identifier.push('_');
                }
                identifier.push(character.to_ascii_lowercase());
            }
            assert_eq!(identifier, kind.as_str());
            let variant = format!("{kind:?}");
            let stem = kind.name().strip_suffix("Error").unwrap_or(kind.name());
            assert_eq!(variant, stem);
        }
    }
}
