//! The input requests that the protocol defines, with their methods and capabilities.

use crate::methods::Method;
use crate::vocabulary::ClientCapabilities;

/// An input request: a server sends it up to 2025-11-25, and returns it in a result since 2026-07-28.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputMethod {
    /// Input from the user: `elicitation/create`.
    Elicit,
    /// A completion by the client's model: `sampling/createMessage`.
    Sample,
    /// The client's root directories: `roots/list`.
    ListRoots,
}

impl InputMethod {
    /// All input requests.
    pub const ALL: &'static [Self] = &[Self::Elicit, Self::Sample, Self::ListRoots];

    /// The input request with this method.
    pub fn parse(method: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|known| known.as_str() == method)
    }

    /// Its row in the method table.
    pub fn method(self) -> &'static Method {
        static ELICIT: Method = Method::ElicitationCreate;
        static SAMPLE: Method = Method::SamplingCreateMessage;
        static LIST_ROOTS: Method = Method::RootsList;
        match self {
            Self::Elicit => &ELICIT,
            Self::Sample => &SAMPLE,
            Self::ListRoots => &LIST_ROOTS,
        }
    }

    /// Its method on the wire.
    pub fn as_str(self) -> &'static str {
        self.method().as_str()
    }

    /// Whether a client with these capabilities accepts it.
    pub fn is_declared(self, capabilities: &ClientCapabilities) -> bool {
        match self {
            Self::Elicit => capabilities.elicitation.is_some(),
            Self::Sample => capabilities.sampling.is_some(),
            Self::ListRoots => capabilities.roots.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::methods::{MethodHandledBy, Sender};
    use crate::vocabulary::InputRequest;

    #[test]
    fn all_requests_of_servers_alone_are_input_requests() {
        let sent = Method::KNOWN.iter().filter(|method| {
            method.is(|spec| {
                let is_of_server = spec.sender == Sender::Server && !spec.is_notification;
                assert!(!is_of_server || spec.handled_by == MethodHandledBy::Nothing);
                is_of_server
            })
        });
        for method in sent {
            let input = InputMethod::parse(method.as_str()).expect("an input request");
            assert_eq!(input.method(), method);
        }
        assert_eq!(InputMethod::parse("ping"), None);
    }

    #[test]
    fn the_vocabulary_has_the_same_methods() {
        for input in InputMethod::ALL {
            let request = json!({"method": input.as_str(), "params": {"message": "?", "messages": [], "maxTokens": 1}});
            let request = serde_json::from_str(&request.to_string()).expect("a request");
            let expected = match request {
                InputRequest::Elicit(_) => InputMethod::Elicit,
                InputRequest::Sample(_) => InputMethod::Sample,
                InputRequest::ListRoots(_) => InputMethod::ListRoots,
                InputRequest::Other(other) => panic!("{other:?}"),
            };
            assert_eq!(*input, expected);
        }
    }
}
