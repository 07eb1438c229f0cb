//! Texts of errors with those of their sources.

use std::error::Error;

/// Returns the text of an error and of its sources, the outermost first.
pub(crate) fn with_sources(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text.push_str(": ");
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::store::StoreError;
    use crate::user_agent::UserAgentError;

    fn denied() -> io::Error {
        io::Error::from(io::ErrorKind::PermissionDenied)
    }

    /// Returns errors of stores and of user agents that have a source, or are another error.
    fn examples() -> Vec<Box<dyn Error + Send + Sync>> {
        vec![
            Box::new(StoreError::File {
                path: "/tokens".into(),
                action: "read",
                source: denied(),
            }),
            Box::new(StoreError::other(denied())),
            Box::new(UserAgentError::Listen {
                address: "127.0.0.1:80".to_owned(),
                source: denied(),
            }),
            Box::new(UserAgentError::from(denied())),
            Box::new(UserAgentError::other(denied())),
        ]
    }

    #[test]
    fn no_message_repeats_its_source_and_the_chain_has_both() {
        for error in examples() {
            let full = with_sources(&*error);
            let source = denied().to_string();
            assert_eq!(full.matches(&source).count(), 1, "{full}");
        }
    }
}
