//! Adapts the parameters of a client's requests to the revision of a server.

use crate::revision::Revision;
use crate::wire::{Method, Raw};

/// The parameters as a server of `revision` reads them, or `None` if they need no change: `context` of
/// `completion/complete` is left out before 2025-06-18.
pub fn request_params(method: &Method, params: &Raw, revision: Revision) -> Option<Raw> {
    let has_context =
        *method != Method::CompletionComplete || revision.features().completion_context;
    match has_context || params.member("context").is_none() {
        true => None,
        false => Some(params.without("context")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_of_a_completion_is_left_out_where_the_revision_has_none() {
        let params = r#"{"ref":{"type":"ref/prompt","name":"p"},"context":{"arguments":{}},"argument":{"name":"context"}}"#;
        let without = r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"context"}}"#;
        let params = Raw::from_trusted(params);
        for &revision in Revision::ALL {
            let adapted = request_params(&Method::CompletionComplete, &params, revision);
            let expected = (revision < Revision::V2025_06_18).then_some(without);
            assert_eq!(adapted.as_ref().map(Raw::as_str), expected, "{revision}");
            let other = Method::parse("acme/complete");
            assert_eq!(request_params(&other, &params, revision), None);
            let without = Raw::from_trusted(without);
            let adapted = request_params(&Method::CompletionComplete, &without, revision);
            assert_eq!(adapted, None, "{revision}");
        }
    }
}
