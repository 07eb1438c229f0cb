//! The `_meta` of a request: the members of every revision, and what 2026-07-28 requires.

use crate::error::RpcError;
use crate::revision::Revision;
use crate::vocabulary::LoggingLevel;
use crate::vocabulary::meta;
use crate::wire::{Params, Raw};

/// The reserved members of a request's `_meta`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestMeta {
    /// `progressToken`: a string or an integer, echoed as it came.
    pub progress_token: Option<Raw>,
    /// `io.modelcontextprotocol/protocolVersion`.
    pub version: Option<Raw>,
    /// `io.modelcontextprotocol/clientInfo`.
    pub client_info: Option<Raw>,
    /// `io.modelcontextprotocol/clientCapabilities`.
    pub client_capabilities: Option<Raw>,
    /// `io.modelcontextprotocol/logLevel`.
    pub log_level: Option<Raw>,
}

impl RequestMeta {
    /// Extracts the reserved members from a request's parameters.
    pub fn of(params: Option<&Params>) -> Self {
        match params.and_then(Params::meta) {
            Some(meta) => Self::within(&meta),
            None => Self::default(),
        }
    }

    /// Whether a request's parameters name a version.
    pub fn names_version(params: Option<&Params>) -> bool {
        params
            .and_then(|params| params.get_ref("_meta"))
            .and_then(|meta| meta.member(meta::PROTOCOL_VERSION))
            .is_some_and(|version| version.as_bytes() != b"null")
    }

    fn within(meta: &Raw) -> Self {
        let mut found = Self::default();
        let Some(members) = meta.borrowed().named_members() else {
            return found;
        };
        for (name, value) in members {
            let places = [
                (meta::PROGRESS_TOKEN, &mut found.progress_token),
                (meta::PROTOCOL_VERSION, &mut found.version),
                (meta::CLIENT_INFO, &mut found.client_info),
                (meta::CLIENT_CAPABILITIES, &mut found.client_capabilities),
                (meta::LOG_LEVEL, &mut found.log_level),
            ];
            let place = places.into_iter().find(|(known, _)| name == **known);
            // `null` counts as absent, as in the parameters.
            if let Some((_, place)) = place
                && value.as_bytes() != b"null"
            {
                *place = Some(meta.part(value));
            }
        }
        found
    }

    /// The version that the request names, if it names one as a string.
    pub fn version(&self) -> Option<String> {
        Some(self.version.as_ref()?.string_value()?.into_owned())
    }

    /// The progress token, if it is of a type that the protocol allows.
    pub fn progress_token(&self) -> Option<Raw> {
        self.progress_token
            .as_ref()
            .filter(|token| match token.as_bytes().first() {
                Some(b'"') => true,
                Some(_) => token.decode::<i64>().is_ok() || token.decode::<u64>().is_ok(),
                None => false,
            })
            .cloned()
    }

    /// Checks what 2026-07-28 requires of every request (`basic/index`, per-request protocol fields).
    ///
    /// # Errors
    ///
    /// -32602 for a required field that is missing or of the wrong type, or an unknown log level; -32022 for a version
    /// that is not supported.
    pub fn check_modern(&self, served: &[Revision]) -> Result<ModernRequestMeta, RpcError> {
        let Some(version) = &self.version else {
            return Err(missing(meta::PROTOCOL_VERSION));
        };
        let Some(version) = version.string_value() else {
            return Err(RpcError::invalid_params(format!(
                "_meta[\"{}\"] must be a string",
                meta::PROTOCOL_VERSION
            )));
        };
        let revision = match Revision::parse(&version) {
            Some(revision) if revision.is_modern() && served.contains(&revision) => revision,
            _ => return Err(RpcError::unsupported_version(&version, served)),
        };
        let Some(capabilities) = &self.client_capabilities else {
            return Err(missing(meta::CLIENT_CAPABILITIES));
        };
        if capabilities.as_bytes().first() != Some(&b'{') {
            return Err(RpcError::invalid_params(format!(
                "_meta[\"{}\"] must be an object",
                meta::CLIENT_CAPABILITIES
            )));
        }
        let log_level = match &self.log_level {
            None => None,
            Some(level) => match level.decode::<LoggingLevel>() {
                Ok(level) => Some(level),
                Err(_) => {
                    return Err(RpcError::invalid_params(format!(
                        "_meta[\"{}\"] is not a log level: {}",
                        meta::LOG_LEVEL,
                        level.as_str()
                    )));
                }
            },
        };
        Ok(ModernRequestMeta {
            revision,
            capabilities: capabilities.clone(),
            log_level,
        })
    }
}

/// The checked protocol fields of a 2026-07-28 request.
#[derive(Debug)]
pub struct ModernRequestMeta {
    /// The revision that the request follows.
    pub revision: Revision,
    /// `ClientCapabilities` as received.
    pub capabilities: Raw,
    /// The minimum level of log messages for the request; `None` for none at all.
    pub log_level: Option<LoggingLevel>,
}

fn missing(name: &str) -> RpcError {
    RpcError::invalid_params(format!("params._meta lacks \"{name}\""))
}
