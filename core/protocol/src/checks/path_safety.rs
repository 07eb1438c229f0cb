//! Checks that the values of a template's variables are safe as parts of a path.
//!
//! Handlers join them to a directory, a key prefix or a URL (2026-07-28, `server/resources`, security considerations).

use std::borrow::Cow;

use crate::uri_template::{UriTemplate, Variable, Variables};

/// Checks the variables of a URI that matches a template, except those named in `unchecked`.
///
/// Values are checked as the handler gets them, percent-decoded, and decoded once more, because a handler may do so,
/// too. No value contains the character NUL or a segment `..`, whether slashes or backslashes separate it, nor do
/// several together. No value is an absolute path such as `/etc` or `C:`, which would replace the directory when the
/// two are joined.
///
/// In `file://{+path}` and `file:///{+path}`, which name all files, the path is absolute.
///
/// # Errors
/// The rule that is broken, and the variable.
pub fn path_variables(
    template: &UriTemplate,
    variables: &Variables,
    unchecked: &[String],
) -> Result<(), String> {
    let whole_path = whole_file_path(template.as_str());
    let mut checked = Variables::new();
    for (name, value) in variables.iter() {
        if unchecked.iter().any(|other| other == name) {
            continue;
        }
        checked.set(name.to_owned(), value.clone());
        let problem = match () {
            () if has_text(value, has_nul) => "contain the character NUL",
            () if has_text(value, has_parent_segment) => "contain `..` segments",
            () if whole_path != Some(name) && has_text(value, is_rooted) => "be an absolute path",
            () => continue,
        };
        return Err(format!("the variable `{name}` must not {problem}"));
    }
    let uri = template.expand(&checked);
    if has_parent_segment(&uri) {
        return Err("the variables must not make a `..` segment together".to_owned());
    }
    match file_directory(template.as_str()) {
        Some(directory) if !directory.is_empty() => file_below(directory, &uri),
        _ => Ok(()),
    }
}

/// Checks that a text is safe as a part of a path, by the same rules as the variables of a template.
///
/// # Errors
/// The rule that is broken, to continue "must not".
pub fn path_text(text: &str) -> Result<(), &'static str> {
    match () {
        () if has_nul(text) => Err("contain the character NUL"),
        () if has_parent_segment(text) => Err("contain `..` segments"),
        () if is_rooted(text) => Err("be an absolute path"),
        () => Ok(()),
    }
}

/// Checks that a `file:` URI stays below the directory that its template begins with, however several variables share
/// its path.
fn file_below(directory: &str, uri: &str) -> Result<(), String> {
    let slashes = directory.matches('/').count();
    let below = file_path(uri).splitn(slashes + 1, '/').nth(slashes);
    match below.is_some_and(is_rooted) {
        true => Err(format!(
            "the path below {directory} must not begin with a slash or a drive"
        )),
        false => Ok(()),
    }
}

/// Returns the variable that is the whole path of a template of `file:` URIs.
fn whole_file_path(template: &str) -> Option<&str> {
    let (scheme, rest) = template.split_once("://")?;
    let expression = rest.strip_prefix('/').unwrap_or(rest);
    let name = expression.strip_prefix("{+")?.strip_suffix('}')?;
    (scheme.eq_ignore_ascii_case("file") && !name.contains(['{', ',', ':', '*'])).then_some(name)
}

/// Returns the directory that a template of `file:` URIs begins with, which is empty if it names all files. `None` for
/// other schemes.
fn file_directory(template: &str) -> Option<&str> {
    let (scheme, _) = template.split_once(':')?;
    if !scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    let directory = file_path(template.split('{').next().unwrap_or_default());
    match directory.trim_matches('/').is_empty() {
        true => Some(""),
        false => Some(directory),
    }
}

/// Whether the predicate holds for a text of a value.
fn has_text(value: &Variable, predicate: impl Fn(&str) -> bool) -> bool {
    match value {
        Variable::Text(text) => predicate(text),
        Variable::List(items) => items.iter().any(|item| predicate(item)),
        Variable::Map(pairs) => pairs
            .iter()
            .any(|(key, value)| predicate(key) || predicate(value)),
    }
}

fn has_nul(text: &str) -> bool {
    decode_ascii(&decode_ascii(text)).contains('\0')
}

fn has_parent_segment(text: &str) -> bool {
    decode_ascii(&decode_ascii(text))
        .split(['/', '\\'])
        .any(|segment| segment == "..")
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

    fn read_unchecked(template: &str, uri: &str, unchecked: &[&str]) -> Result<(), String> {
        let parsed = UriTemplate::parse(template).expect("a template");
        let variables = parsed.matches(uri).expect("the template makes the URI");
        let unchecked: Vec<_> = unchecked.iter().map(ToString::to_string).collect();
        path_variables(&parsed, &variables, &unchecked)
    }

    fn read(template: &str, uri: &str) -> Result<(), String> {
        read_unchecked(template, uri, &[])
    }

    #[test]
    fn unsafe_paths_are_refused_for_every_scheme() {
        for (template, uri, expected) in [
            (
                "note://{name}",
                "note://..%2F..%2Fetc%2Fpasswd",
                "`name` must not contain `..`",
            ),
            ("note://{name}", "note://..", "`..`"),
            ("note://{name}", "note://a%5C..%5Cb", "`..`"),
            ("note://{name}", "note://%252e%252e%252fx", "`..`"),
            ("note://{name}", "note://a%00.txt", "NUL"),
            ("note://{name}", "note://a%2500.txt", "NUL"),
            (
                "note://{name}",
                "note://%2Fetc%2Fpasswd",
                "`name` must not be an absolute path",
            ),
            ("note:{name}", "note:%2Fetc", "absolute"),
            ("note://{name}", "note://C%3A%5CWindows", "absolute"),
            ("note://{name}", "note://%5C%5Cserver%5Cshare", "absolute"),
            (
                "note://all/{+path}",
                "note://all/a/../../etc",
                "`path` must not contain `..`",
            ),
            ("note://all/{+path}", "note://all//etc/passwd", "absolute"),
            ("note://{+path}", "note:///etc/passwd", "absolute"),
            ("note://all{/path*}", "note://all/a/%2Fetc", "absolute"),
            ("note://all{?path}", "note://all?path=..%2Fx", "`..`"),
            ("note://all{?path}", "note://all?path=%2Fetc", "absolute"),
            ("note://all{#path}", "note://all#/etc", "absolute"),
            ("note://all{+path}", "note://all/etc/passwd", "absolute"),
            ("note://{dir}-{+path}", "note://x-/etc/passwd", "absolute"),
            ("note://all/{a}{b}", "note://all/..", "together"),
            (
                "note://{a}/{b}",
                "note://x/%2Fetc",
                "`b` must not be an absolute path",
            ),
        ] {
            let error = read(template, uri).expect_err(uri);
            assert!(error.contains(expected), "{template} {uri}: {error}");
        }
    }

    #[test]
    fn ordinary_values_are_accepted_for_every_scheme() {
        for (template, uri) in [
            ("git://{range}", "git://main..dev"),
            ("note://{name}", "note://a%2Fb.txt"),
            ("note://{name}", "note://..."),
            ("note://{name}", "note://12%3A30"),
            ("note://{name}", "note://urn%3Aisbn%3A1"),
            ("note://all/{+path}", "note://all/a//b"),
            ("web://{url}", "web://https%3A%2F%2Fexample.com%2F"),
            ("note://{name}{.type}", "note://a.txt"),
        ] {
            assert_eq!(read(template, uri), Ok(()), "{template} {uri}");
        }
    }

    #[test]
    fn a_variable_that_is_excepted_may_have_any_value() {
        for (template, uri) in [
            ("note://{name}", "note://..%2Fx"),
            ("note://{+name}", "note:///etc/passwd"),
            ("note://{name}", "note://%00"),
            ("file:///docs/{+name}", "file:///docs/../x"),
            ("file:///docs/{+name}", "file:///docs//etc"),
            ("file://{+name}", "file:///a/../b"),
        ] {
            assert_eq!(read_unchecked(template, uri, &["name"]), Ok(()), "{uri}");
        }
        read_unchecked("note://{a}/{b}", "note://..%2Fx/..", &["a"]).unwrap_err();
        read_unchecked("note://all/{a}{b}{?q}", "note://all/..?q=..", &["q"]).unwrap_err();
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
            ("file:///{name}", "file:///%2Fetc%2Fpasswd"),
            ("file:///{user}/docs/{+path}", "file:///u/docs//etc/passwd"),
            ("file:///docs{+path}", "file:///docs/a.txt"),
            ("file:///docs/{a}{+rest}", "file:///docs/a/b"),
            ("file:///docs/{name}{?path}", "file:///docs/a?path=%2Fetc"),
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
    fn other_paths_of_files_are_accepted() {
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
            ("file:///docs{/path*}", "file:///docs/a/b.txt"),
            ("file:///d%C3%B6k/{name}", "file:///d%C3%B6k/%C3%A4"),
        ] {
            assert_eq!(read(template, uri), Ok(()), "{template} {uri}");
        }
    }
}
