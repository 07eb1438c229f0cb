//! Checks URIs of resources and of URL elicitations (RFC 3986), and paths of `file:` URIs.

use std::borrow::Cow;

use fluent_uri::{ParseError, ParseErrorKind, Uri};

use crate::uri_template::{Variable, Variables};

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

/// Whether the URIs of a template are `file:` URIs.
fn is_file(template: &str) -> bool {
    let scheme = template.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("file"))
}

/// Checks that a `file:` URI of a template stays in the directory that the template names (2026-07-28,
/// `server/resources`, security considerations). The meaning of other schemes is left to their author.
///
/// Values are checked as the handler gets them, percent-decoded, and decoded once more, because a handler may do so,
/// too. No segment may be `..`, whether slashes or backslashes separate it. If the template names a directory, the text
/// after it, or a value after a slash, must not be an absolute path such as `/etc` or `C:`, which would replace the
/// directory when the two are joined.
///
/// # Errors
/// The rule that the path breaks.
pub fn check_file_path(
    template: &str,
    uri: &str,
    variables: &Variables,
) -> Result<(), &'static str> {
    if !is_file(template) {
        return Ok(());
    }
    let climbs = |text: &str| {
        let text = decode_ascii(&decode_ascii(text)).into_owned();
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
    let directory = file_path(literal);
    if directory.trim_matches('/').is_empty() {
        return Ok(());
    }
    let slashes = directory.matches('/').count();
    let below = file_path(uri).splitn(slashes + 1, '/').nth(slashes);
    match below.is_some_and(is_rooted) || has_rooted_value(template, variables) {
        true => Err("the path of a file must not begin anew behind its directory"),
        false => Ok(()),
    }
}

/// Whether a value in the path would be absolute when it is joined to the text before it.
fn has_rooted_value(template: &str, variables: &Variables) -> bool {
    let mut rest = template;
    while let Some((before, (expression, after))) = rest
        .split_once('{')
        .and_then(|(before, after)| Some((before, after.split_once('}')?)))
    {
        rest = after;
        if before.contains(['?', '#']) || expression.starts_with(['?', '&', '#']) {
            return false;
        }
        if expression.starts_with(['.', ';']) {
            continue;
        }
        let has_slash = before.ends_with('/') || expression.starts_with('/');
        let is_bad = |text: &str| match has_slash {
            true => is_rooted(text),
            // Its first slash may be the separator after the directory.
            false => decode_ascii(&decode_ascii(text))
                .strip_prefix(['/', '\\'])
                .is_some_and(is_rooted),
        };
        let names = expression.trim_start_matches(['+', '/']).split(',');
        let mut values = names.filter_map(|name| {
            let name = name.split([':', '*']).next().unwrap_or_default();
            variables.get(name)
        });
        let is_found = values.any(|value| match value {
            Variable::Text(text) => is_bad(text),
            Variable::List(items) => items.iter().any(|item| is_bad(item)),
            Variable::Map(pairs) => pairs
                .iter()
                .any(|(key, value)| is_bad(key) || is_bad(value)),
        });
        if is_found {
            return true;
        }
    }
    false
}

/// Whether a path is absolute or begins with a Windows drive.
fn is_rooted(path: &str) -> bool {
    let path = decode_ascii(&decode_ascii(path)).into_owned();
    match path.as_bytes() {
        [b'/' | b'\\', ..] => true,
        [drive, b':', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    }
}

/// The path of a `file:` URI, or of the first part of one.
fn file_path(uri: &str) -> &str {
    let rest = uri.split_once(':').map_or(uri, |(_, rest)| rest);
    let path = match rest.strip_prefix("//") {
        Some(rest) => rest.find('/').map_or("", |start| &rest[start..]),
        None => rest,
    };
    path.split(['?', '#']).next().unwrap_or_default()
}

/// Decodes percent-encoded ASCII characters: only these decide where a path leads.
fn decode_ascii(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 3);
        let char = digits
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .filter(u8::is_ascii)
            .map(char::from);
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
            ("file:///docs{+path}", "file:///docs//etc/passwd"),
            ("file:///docs{/path}", "file:///docs/%2Fetc%2Fpasswd"),
            ("file:///docs/{a}/{b}", "file:///docs/x/%2Fetc%2Fpasswd"),
            ("file:///docs/{a}{b}", "file:///docs/%2Fetc%2Fpasswd"),
            ("file:///docs/{name}", "file:///docs/%5Cetc"),
            ("file:///docs/{+path}", "file:///docs/C:/Windows/win.ini"),
            ("file:///docs/{+path}", "file:///docs/C:%5CWindows"),
            ("file:///docs/{name}", "file:///docs/%63%3A%5CWindows"),
            ("file:///docs/{name}", "file:///docs/%2563%253A%255CWindows"),
            ("file:///docs{+path}", "file:///docs/C:/Windows/win.ini"),
            (
                "file:////server/share/{name}",
                "file:////server/share/%2Fetc",
            ),
            (
                "file:////server/share/{name}",
                "file:////server/share/..%5Cx",
            ),
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
            ("file:///{+path}", "file:///C:/Users"),
            (
                "file:////server/share/{name}",
                "file:////server/share/a.txt",
            ),
            (
                "file:///cache/{url}",
                "file:///cache/https%3A%2F%2Fexample.com",
            ),
            ("file:///docs/{+path}", "file:///docs/a//b"),
            ("file:///docs{+path}", "file:///docs/a.txt"),
            ("file:///docs{/path*}", "file:///docs/a/b.txt"),
            ("file:///docs/{a}{+rest}", "file:///docs/a/b"),
            ("file:///d%C3%B6k/{name}", "file:///d%C3%B6k/%C3%A4"),
            ("file:///docs/{name}{?path}", "file:///docs/a?path=%2Fetc"),
            ("git://{name}", "git://..%2Fmain..dev"),
        ] {
            assert_eq!(read(template, uri), Ok(()), "{template} {uri}");
        }
    }
}
