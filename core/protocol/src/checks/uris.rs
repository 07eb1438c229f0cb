//! Checks URIs of resources and of URL elicitations (RFC 3986).

use fluent_uri::{ParseError, ParseErrorKind, Uri};

/// Checks that a text is a URI (RFC 3986): it has a scheme, and reserved characters are percent-encoded.
///
/// # Errors
/// The rule that is broken, and where.
pub fn uri(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("a URI must not be empty".to_owned());
    }
    let scheme = scheme_of(text)?;
    check_scheme(scheme)?;
    Uri::parse(text)
        .map(drop)
        .map_err(|error| parse_error_text(text, error))
}

/// Checks that the URIs of a template have a valid scheme, as far as the text before the first expression shows.
pub(super) fn template_scheme(template: &str) -> Result<(), String> {
    let literal = template.split('{').next().unwrap_or_default();
    if literal.contains(':') || literal.len() == template.len() {
        return check_scheme(scheme_of(literal)?);
    }
    match literal {
        // The scheme comes from an expression.
        "" => Ok(()),
        part if part.contains(['/', '?', '#']) => Err(NO_SCHEME.to_owned()),
        part => check_scheme(part),
    }
}

const NO_SCHEME: &str = "a URI begins with a scheme, such as `file:` or `app:`";

fn scheme_of(text: &str) -> Result<&str, String> {
    match text.split_once(':') {
        Some((scheme, _)) if !scheme.contains(['/', '?', '#']) => Ok(scheme),
        _ => Err(NO_SCHEME.to_owned()),
    }
}

fn check_scheme(scheme: &str) -> Result<(), String> {
    let is_in_scheme = |char: char| char.is_ascii_alphanumeric() || "+-.".contains(char);
    if let Some(char) = scheme.chars().find(|char| !is_in_scheme(*char)) {
        return Err(format!(
            "the scheme {scheme:?} contains {char:?}; it may have only letters, digits, `+`, `-` and `.`"
        ));
    }
    match scheme.starts_with(|first: char| first.is_ascii_alphabetic()) {
        true => Ok(()),
        false => Err(format!("the scheme {scheme:?} must begin with a letter")),
    }
}

fn parse_error_text(text: &str, error: ParseError) -> String {
    let at = error.index();
    let char = text.get(at..).and_then(|rest| rest.chars().next());
    match (error.kind(), char) {
        (ParseErrorKind::InvalidPctEncodedOctet, _) => {
            format!("`%` at byte {at} must be followed by two hexadecimal digits")
        }
        (ParseErrorKind::UnexpectedChar, Some(char)) => {
            format!("{char:?} at byte {at} must be percent-encoded")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_uris_of_rfc_3986() {
        for text in [
            "memo:1",
            "app://x/y%20z",
            "test://static-text",
            "file:///home/ada/a.txt",
            "urn:isbn:0451450523",
            "db+postgres://[::1]:5432/table?limit=5#row",
            "screen://localhost",
            "https://example.com",
            "x:",
        ] {
            assert_eq!(uri(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn error_names_the_invalid_character_of_a_uri() {
        for (text, expected) in [
            ("", "empty"),
            ("notes", "begins with a scheme"),
            ("/etc/hosts", "begins with a scheme"),
            ("a/b:c", "begins with a scheme"),
            ("app://x/y z", "' ' at byte 9"),
            ("note://caf\u{e9}", "'\u{e9}' at byte 10"),
            ("my_app://x", "contains '_'"),
            ("1app://x", "begin with a letter"),
            ("://x", "begin with a letter"),
            ("app://x/%zz", "`%` at byte 8"),
            ("app://x/[1]", "'[' at byte 8"),
            ("test://{id}", "'{' at byte 7"),
        ] {
            let error = uri(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_template_begins_with_a_scheme() {
        for template in [
            "test://{id}",
            "{scheme}://x",
            "{+uri}",
            "db+{kind}://x",
            "memo:{id}",
        ] {
            assert_eq!(template_scheme(template), Ok(()), "{template}");
        }
        for template in [
            "notes/{id}",
            "/{id}",
            "my_app://{id}",
            "1{id}",
            "notes",
            ":{id}",
        ] {
            assert!(template_scheme(template).is_err(), "{template}");
        }
    }
}
