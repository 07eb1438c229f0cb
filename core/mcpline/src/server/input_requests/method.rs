//! The requests that a server sends to its clients.

use std::borrow::Cow;
use std::sync::Arc;

use mcpline_protocol::InputMethod;
use mcpline_protocol::methods::check_custom_request;

use crate::error::Error;

/// A method of requests from a server to its client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InputRequestMethod {
    /// `elicitation/create`: input from the user.
    Elicit,
    /// `sampling/createMessage`: a completion by the client's model.
    Sample,
    /// `roots/list`: the client's root directories.
    ListRoots,
    /// A custom request, of a method that no revision defines: [`InputRequestMethod::custom`].
    Custom(CustomMethod),
}

/// The name of a custom request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CustomMethod(Arc<str>);

impl InputRequestMethod {
    /// The method's name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Elicit => InputMethod::Elicit.as_str(),
            Self::Sample => InputMethod::Sample.as_str(),
            Self::ListRoots => InputMethod::ListRoots.as_str(),
            Self::Custom(CustomMethod(name)) => name,
        }
    }

    pub(in crate::server) fn name(&self) -> Cow<'static, str> {
        let known = InputMethod::parse(self.as_str()).map(InputMethod::as_str);
        known.map_or_else(|| Cow::Owned(self.as_str().to_owned()), Cow::Borrowed)
    }

    /// A custom request. On a revision that defines the method (`tasks/get` on 2025-11-25), sending it fails with
    /// [`InputRequestError::Inexpressible`](mcpline_protocol::session::InputRequestError::Inexpressible).
    ///
    /// # Errors
    ///
    /// If the method is defined by the protocol, begins with `notifications/` or `rpc.`, or is not 1 to 1024 bytes of visible
    /// ASCII.
    pub fn custom(method: &str) -> Result<Self, Error> {
        check_custom_request(method).map_err(|reason| {
            Error::usage(format!(
                "method {method:?} can't be sent to a client: {reason}"
            ))
        })?;
        Ok(Self::Custom(CustomMethod(method.into())))
    }

    /// The method with this name.
    ///
    /// # Errors
    ///
    /// If the method cannot be sent to a client: see [`InputRequestMethod::custom`].
    pub fn parse(name: &str) -> Result<Self, Error> {
        match InputMethod::parse(name) {
            Some(InputMethod::Elicit) => Ok(Self::Elicit),
            Some(InputMethod::Sample) => Ok(Self::Sample),
            Some(InputMethod::ListRoots) => Ok(Self::ListRoots),
            None => Self::custom(name),
        }
    }
}
