//! URIs of resources and of pages to visit (RFC 3986), and paths of `file:` URIs.

use std::borrow::Cow;

use fluent_uri::{ParseError, ParseErrorKind, Uri};

use crate::uri_template::{Variable, Variables};

/// Checks that a text is a URI (RFC 3986): it has a scheme, and every other character is percent-encoded.
///
/// # Errors
/// What is wrong, and where.
pub fn uri(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("a URI must not be empty".to_owned());
    }
    let scheme = scheme_of(text)?;
    check_scheme(scheme)?;
    Uri::parse(text)
        .map(drop)
        .map_err(|error| explained(text, error))
}

/// Checks that what a template makes has a valid scheme, as far as the text before its first expression tells.
pub(super) fn template_scheme(template: &str) -> Result<(), String> {
    let literal = template.split('{').next().unwrap_or_default();
    if literal.contains(':') || literal.len() == template.len() {
        return check_scheme(scheme_of(literal)?);
    }
    match literal {
        // An expression makes the scheme.
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

fn explained(text: &str, error: ParseError) -> String {
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

/// Whether a template makes `file:` URIs.
fn is_file(template: &str) -> bool {
    let scheme = template.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("file"))
}

/// Checks that a URI that a template of `file:` URIs makes stays in the directory that the template names (2026-07-28,
/// `server/resources`, security considerations). Whatever other schemes mean is their author's to know.
///
/// Values are looked at as the handler gets them, percent-decoded, and decoded once more, because a handler may do that, too.
/// No segment may be `..`, whether slashes or backslashes separate it. Where the template names a directory, no path may
/// begin at the root anew either, as `/etc` does when it is joined to one.
///
/// # Errors
/// What is wrong with the path.
pub fn check_file_path(
    template: &str,
    uri: &str,
    variables: &Variables,
) -> Result<(), &'static str> {
    if !is_file(template) {
        return Ok(());
    }
    let climbs = |text: &str| {
        let text = decoded(&decoded(text)).into_owned();
        text.split(['/', '\\']).any(|segment| segment == "..")
    };
    let has_climbing_value = variables.iter().any(|(_, value)| match value {
        Variable::Text(text) => climbs(text),
        Variable::List(items) => items.iter().any(|item| climbs(item)),
        Variable::Map(pairs) => pairs
            .iter()
            .any(|(key, value)| climbs(key) || climbs(value)),
    });
    if has_climbing_value || climbs(uri) {
        return Err("the path of a file must not contain `..` segments");
    }
    let literal = template.split('{').next().unwrap_or_default();
    let directory = path_of(literal);
    if directory.trim_matches('/').is_empty() {
        return Ok(());
    }
    let path = decoded(&decoded(path_of(uri))).replace('\\', "/");
    match path.contains("//") {
        true => Err("the path of a file must not contain empty segments"),
        false => Ok(()),
    }
}

/// The path of a `file:` URI, or of the beginning of one.
fn path_of(uri: &str) -> &str {
    let rest = uri.split_once(':').map_or(uri, |(_, rest)| rest);
    let path = match rest.strip_prefix("//") {
        Some(rest) => rest.find('/').map_or("", |start| &rest[start..]),
        None => rest,
    };
    path.split(['?', '#']).next().unwrap_or_default()
}

/// The text with `.`, `/`, `\` and `%` in place of their percent-encodings: what tells where a path leads.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let char = match rest.as_bytes().get(at + 1..at + 3) {
            Some(b"2e" | b"2E") => Some('.'),
            Some(b"2f" | b"2F") => Some('/'),
            Some(b"5c" | b"5C") => Some('\\'),
            Some(b"25") => Some('%'),
            _ => None,
        };
        out.push(char.unwrap_or('%'));
        rest = &rest[at + if char.is_some() { 3 } else { 1 }..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uri_template::UriTemplate;

    #[test]
    fn what_rfc_3986_calls_a_uri_is_taken() {
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
    fn the_character_that_keeps_a_text_from_being_a_uri_is_named() {
        for (text, told) in [
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
            assert!(error.contains(told), "{text}: {error}");
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

    fn read(template: &str, uri: &str) -> Result<(), &'static str> {
        let parsed = UriTemplate::parse(template).expect("a template");
        let variables = parsed.matches(uri).expect("the template makes the URI");
        check_file_path(template, uri, &variables)
    }

    #[test]
    fn a_path_that_leaves_its_directory_is_refused_however_it_is_encoded() {
        for (template, uri) in [
            ("file:///{name}", "file:///..%2F..%2Fetc%2Fpasswd"),
            ("file:///{name}", "file:///.."),
            ("file:///{name}", "file:///%2e%2E%2fx"),
            ("file:///{name}", "file:///%252e%252e%252fx"),
            ("file:///docs/{name}", "file:///docs/..%5C..%5Cwindows"),
            ("file:///docs/{+path}", "file:///docs/a/../../etc/passwd"),
            ("file:///docs/{a}{b}", "file:///docs/.."),
            ("file:///docs{/path*}", "file:///docs/a/../b"),
            ("file:///docs/x{?path}", "file:///docs/x?path=..%2Fetc"),
            ("FILE:///{name}", "FILE:///.."),
            ("file:///docs/{name}", "file:///docs/%2Fetc%2Fpasswd"),
            ("file:///docs/{+path}", "file:///docs//etc/passwd"),
        ] {
            assert!(read(template, uri).is_err(), "{template} {uri}");
        }
    }

    #[test]
    fn other_paths_and_other_schemes_are_left_alone() {
        for (template, uri) in [
            ("file:///{name}", "file:///a..b"),
            ("file:///{name}", "file:///..."),
            ("file:///docs/{name}", "file:///docs/50%25%20off"),
            ("file:///docs/{+path}", "file:///docs/a/b.txt"),
            ("file://{+path}", "file:///home/ada"),
            ("file:///{+path}", "file:////home/ada"),
            ("git://{name}", "git://..%2Fmain..dev"),
        ] {
            assert_eq!(read(template, uri), Ok(()), "{template} {uri}");
        }
    }
}
