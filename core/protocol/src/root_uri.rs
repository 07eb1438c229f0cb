//! A root's URI (`client/roots`, data types: "This MUST be a `file://` URI").

use std::ffi::OsStr;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::json::Raw;
use crate::printable::Printable;

/// Why a value is not a valid root.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("root {:?}: {reason}", Printable(root).to_string())]
pub struct InvalidRoot {
    /// The value.
    pub root: String,
    /// The rule that it breaks.
    pub reason: &'static str,
}

/// Returns the `file://` URI of a root, which may be a URI or an absolute path.
///
/// A path is percent-encoded; its bytes need not be UTF-8. Paths with a drive (`C:\a`, `C:/a`) are accepted on every
/// system. In a URI, characters that need it are percent-encoded, and a host `localhost` is left out. Segments `.` and
/// `..`, also percent-encoded, are resolved without accessing the file system; repeated slashes become one.
///
/// # Errors
/// [`InvalidRoot`]: another scheme, a relative path, another host than `localhost`, a query or a fragment, a `%` that
/// is not part of an escape, or a NUL.
pub fn root_uri(root: impl AsRef<OsStr>) -> Result<String, InvalidRoot> {
    let root = root.as_ref().as_encoded_bytes();
    let refused = |reason| InvalidRoot {
        root: String::from_utf8_lossy(root).into_owned(),
        reason,
    };
    let (path, is_uri) = match root {
        [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic() => {
            let slash = |byte: &u8| if *byte == b'\\' { b'/' } else { *byte };
            (
                std::iter::once(b'/')
                    .chain(root.iter().map(slash))
                    .collect(),
                false,
            )
        }
        [b'/', ..] => (root.to_vec(), false),
        _ => (path_of(root).map_err(refused)?.to_vec(), true),
    };
    if path.starts_with(b"//") {
        return Err(refused(OTHER_HOST));
    }
    if path.contains(&0) || (is_uri && path.windows(3).any(|three| three == b"%00")) {
        return Err(refused("it contains a NUL"));
    }
    let mut uri = String::from("file://");
    for segment in resolved(&path, is_uri, is_uri || root[0] != b'/') {
        uri.push('/');
        encode(segment, is_uri, &mut uri);
    }
    if uri.len() == "file://".len() {
        uri.push('/');
    }
    Ok(uri)
}

const OTHER_HOST: &str = "it names a host other than localhost";

/// Replaces each root in the result of `roots/list` with its [`root_uri`].
///
/// # Errors
/// As for [`root_uri`]. A result without roots is returned unchanged.
pub fn fitted_roots(result: Raw) -> Result<Raw, InvalidRoot> {
    let Ok(mut fitted) = result.decode::<Map<String, Value>>() else {
        return Ok(result);
    };
    let roots = fitted.get_mut("roots").and_then(Value::as_array_mut);
    let mut has_changed = false;
    for root in roots.into_iter().flatten() {
        if let Some(Value::String(uri)) = root.get_mut("uri") {
            let fitted = root_uri(&*uri)?;
            has_changed |= fitted != *uri;
            *uri = fitted;
        }
    }
    Ok(match has_changed {
        true => Raw::from_serialize(&fitted).unwrap_or(result),
        false => result,
    })
}

/// The path of a `file:` URI.
fn path_of(uri: &[u8]) -> Result<&[u8], &'static str> {
    const SCHEME: &[u8] = b"file:";
    let Some((scheme, rest)) = uri.split_at_checked(SCHEME.len()) else {
        return Err("neither an absolute path nor a `file://` URI");
    };
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return Err("neither an absolute path nor a `file://` URI");
    }
    let path = match rest.strip_prefix(b"//") {
        None => rest,
        Some(rest) => {
            let end = rest.iter().position(|byte| *byte == b'/');
            let (host, path) = rest.split_at(end.unwrap_or(rest.len()));
            if !host.is_empty() && !host.eq_ignore_ascii_case(b"localhost") {
                return Err(OTHER_HOST);
            }
            path
        }
    };
    if !path.starts_with(b"/") {
        return Err("its path is not absolute");
    }
    if path.iter().any(|byte| matches!(byte, b'?' | b'#')) {
        return Err("it has a query or a fragment");
    }
    let mut encoded = path.split(|byte| *byte == b'%').skip(1);
    let is_hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    if !encoded.all(|after| after.get(..2).is_some_and(is_hex)) {
        return Err("it has a `%` without two hexadecimal digits");
    }
    Ok(path)
}

/// The segments of an absolute path without `.`, `..` and empty ones, except for an empty one at the end.
fn resolved(path: &[u8], is_uri: bool, may_have_drive: bool) -> Vec<&[u8]> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in path.split(|byte| *byte == b'/') {
        match dots(segment, is_uri) {
            Some(1) => {}
            Some(_) => {
                // Nothing is above a drive or the root.
                let is_drive = may_have_drive
                    && matches!(kept[..], [[letter, b':']] if letter.is_ascii_alphabetic());
                if !is_drive {
                    kept.pop();
                }
            }
            None if segment.is_empty() => {}
            None => kept.push(segment),
        }
    }
    if path.ends_with(b"/") && !kept.is_empty() {
        kept.push(b"");
    }
    kept
}

/// The number of dots if a segment is `.` or `..`.
fn dots(segment: &[u8], is_uri: bool) -> Option<usize> {
    let mut rest = segment;
    let mut count = 0;
    while !rest.is_empty() {
        rest = match rest {
            [b'.', rest @ ..] => rest,
            [b'%', b'2', b'e' | b'E', rest @ ..] if is_uri => rest,
            _ => return None,
        };
        count += 1;
    }
    matches!(count, 1 | 2).then_some(count)
}

/// Percent-encodes the characters that a segment must not contain (RFC 3986, section 3.3).
fn encode(segment: &[u8], is_uri: bool, out: &mut String) {
    for byte in segment {
        match byte {
            b'%' if is_uri => out.push('%'),
            b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+'
            | b',' | b';' | b'=' | b':' | b'@' => out.push(char::from(*byte)),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(*byte)),
            // Writing to a `String` can't fail.
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases that all languages test.
    const ROWS: &str = include_str!("../../../tests/roots/roots.json");

    #[test]
    fn paths_and_uris_become_file_uris_and_all_else_is_refused() {
        let rows: Value = serde_json::from_str(ROWS).expect("JSON");
        for (root, uri) in rows["accepted"].as_object().expect("an object") {
            assert_eq!(
                root_uri(root).as_deref(),
                Ok(uri.as_str().expect("a URI")),
                "{root:?}"
            );
            // Converting the result again changes nothing.
            let again = root_uri(uri.as_str().expect("a URI")).expect("a root");
            assert_eq!(again, *uri);
        }
        for (root, reason) in rows["refused"].as_object().expect("an object") {
            let refused = root_uri(root).expect_err(root);
            assert_eq!(refused.reason, reason, "{root:?}");
        }
    }

    #[test]
    fn converts_each_root_of_a_result() {
        let fitted = |result: &str| fitted_roots(Raw::from_trusted(result.to_owned()));
        let given = r#"{"roots":[{"uri":"/a b","name":"A"},{"uri":"file:///c"}],"_meta":{}}"#;
        let uris: Value = fitted(given).expect("roots").decode().expect("JSON");
        assert_eq!(
            uris["roots"][0],
            serde_json::json!({"uri": "file:///a%20b", "name": "A"})
        );
        let refused = fitted(r#"{"roots":[{"uri":"/a"},{"uri":"http://x"}]}"#);
        assert_eq!(refused.expect_err("not a file").root, "http://x");
        for as_it_is in [
            r#"{ "roots":[{"uri":"file:///c"}]}"#,
            "{}",
            "[]",
            r#"{"roots":7}"#,
        ] {
            assert_eq!(fitted(as_it_is).expect("left alone").as_str(), as_it_is);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_path_need_not_be_utf8() {
        use std::os::unix::ffi::OsStrExt;
        let root = root_uri(OsStr::from_bytes(b"/caf\xe9"));
        assert_eq!(root.as_deref(), Ok("file:///caf%E9"));
    }

    #[test]
    fn error_text_has_no_terminal_escapes() {
        let refused = root_uri("x\u{1b}[31m").expect_err("relative");
        assert!(!refused.to_string().contains(char::is_control), "{refused}");
    }
}
