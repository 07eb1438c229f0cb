//! Percent-encoding (RFC 3986, section 2.1).

/// Which characters besides the unreserved ones are written as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnescapedCharacters {
    /// None: a segment of a path, or a value.
    Nothing,
    /// Reserved characters, except those that separate parameters, or end the query (`&`, `+`, `#`).
    Reserved,
}

/// Appends a text.
pub(crate) fn encode(out: &mut String, text: &str, keep: UnescapedCharacters) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if is_plain || (keep == UnescapedCharacters::Reserved && b":/?[]@!$'()*,;=".contains(&byte))
        {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

/// Appends a path, of which only those characters are encoded that no path can have (RFC 3986, section 3.3). A `%` that begins
/// an encoded character is kept.
pub(crate) fn encode_path(out: &mut String, path: &str) {
    for (at, character) in path.char_indices() {
        let is_digit = |offset: usize| {
            let digit = path.as_bytes().get(at + offset);
            digit.is_some_and(u8::is_ascii_hexdigit)
        };
        let is_plain = match character {
            '%' => is_digit(1) && is_digit(2),
            '/' | ':' | '@' | '!' | '$' | '&' | '\'' | '(' | ')' | '*' | '+' | ',' | ';' | '=' => {
                true
            }
            _ => false,
        };
        match is_plain {
            true => out.push(character),
            false => encode(
                out,
                character.encode_utf8(&mut [0; 4]),
                UnescapedCharacters::Nothing,
            ),
        }
    }
}

/// Returns the encoded text.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    encode(&mut out, text, UnescapedCharacters::Nothing);
    out
}

/// Returns the decoded text; `None` if it is not UTF-8 or a `%` is not followed by two digits.
pub(crate) fn decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        out.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_all_but_unreserved_characters() {
        assert_eq!(encoded("a b/ü.~%"), "a%20b%2F%C3%BC.~%25");
        let mut out = String::new();
        encode(&mut out, "a/b?c=d&e#f+g", UnescapedCharacters::Reserved);
        assert_eq!(out, "a/b?c=d%26e%23f%2Bg");
    }

    #[test]
    fn decodes_only_what_is_encoded_correctly() {
        assert_eq!(decoded("a%20b%C3%bc").as_deref(), Some("a b\u{fc}"));
        for wrong in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
