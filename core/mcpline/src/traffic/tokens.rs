//! Tokens of text that should be JSON, but may be anything.

/// Maximum length of an escaped character in bytes: of a surrogate pair.
const MAX_ESCAPE_BYTES: usize = 12;

/// Maximum length of a character in bytes.
const MAX_CHAR_BYTES: usize = 4;

/// Returns the length of the first token: of a string, of a structural character, of white space, or of anything up to the
/// next of these.
pub(super) fn token_length(text: &[u8]) -> usize {
    let length = match text.first() {
        None => Some(0),
        Some(b'"' | b'\'') => Some(string_length(text)),
        Some(first) if is_space(*first) => text.iter().position(|byte| !is_space(*byte)),
        Some(first) if ends_word(*first) => Some(1),
        Some(_) => word_length(text),
    };
    length.unwrap_or(text.len())
}

/// Whether a byte is white space in JSON.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn ends_word(byte: u8) -> bool {
    is_space(byte) || b"\"'{}[]():,".contains(&byte)
}

/// Returns the length of text before the next token. A quotation mark with a backslash belongs to it: strings that follow a
/// lone quotation mark begin where they begin after its text.
fn word_length(text: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    text.iter().position(|&byte| {
        let ends = !is_escaped && ends_word(byte);
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

/// Returns the length of a string with its quotation marks; of everything if it does not end.
fn string_length(text: &[u8]) -> usize {
    let mut is_escaped = false;
    for (index, &byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            _ if byte == text[0] => return index + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of what follows the name of a member: up to the comma or bracket that ends it. In JSON this is a value.
pub(super) fn value_length(text: &[u8]) -> usize {
    let (mut length, mut depth) = (0, 0_usize);
    while let Some(first) = text.get(length) {
        match first {
            b'{' | b'[' | b'(' => depth += 1,
            b',' if depth == 0 => break,
            b'}' | b']' | b')' if depth == 0 => break,
            b'}' | b']' | b')' => depth -= 1,
            _ => {}
        }
        length += token_length(&text[length..]);
    }
    text[..length].trim_ascii_end().len()
}

/// Whether a value is a string or has strings in it that are not names.
pub(super) fn has_strings(value: &[u8]) -> bool {
    let mut rest = value;
    while !rest.is_empty() {
        let (token, after) = rest.split_at(token_length(rest));
        if matches!(token[0], b'"' | b'\'') && after.trim_ascii_start().first() != Some(&b':') {
            return true;
        }
        rest = after;
    }
    false
}

/// Returns the text of a string that begins with a quotation mark, and whether that is all of it: at least its first `chars`
/// characters. An invalid escape stays as it is.
pub(super) fn unescaped(string: &[u8], chars: usize) -> (String, bool) {
    let content = &string[1..];
    let content = match string.len() > 1 && content.last() == string.first() {
        true => &content[..content.len() - 1],
        false => content,
    };
    let cut = content.len().min(MAX_ESCAPE_BYTES * chars);
    let mut text = Vec::with_capacity(cut.min(MAX_CHAR_BYTES * chars));
    let mut rest = &content[..cut];
    while text.len() < MAX_CHAR_BYTES * chars
        && let Some(backslash) = rest.iter().position(|byte| *byte == b'\\')
    {
        text.extend_from_slice(&rest[..backslash]);
        rest = &rest[backslash..];
        let (char, length) = escape(rest).unwrap_or(('\\', 1));
        text.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &rest[length..];
    }
    let left = &rest[..rest
        .len()
        .min((MAX_CHAR_BYTES * chars).saturating_sub(text.len()))];
    let is_whole = cut == content.len() && left.len() == rest.len();
    text.extend_from_slice(left);
    let text = String::from_utf8_lossy(&text).into_owned();
    (text, is_whole)
}

/// Returns the character of the escape with which a text begins, and the length of the escape; `None` if it is invalid.
fn escape(text: &[u8]) -> Option<(char, usize)> {
    let char = match text.get(1)? {
        b'u' => return unicode_escape(text),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        other @ (b'"' | b'\'' | b'\\' | b'/') => char::from(*other),
        _ => return None,
    };
    Some((char, 2))
}

/// Returns the character of `\uXXXX`, or of two of them that are a surrogate pair.
fn unicode_escape(text: &[u8]) -> Option<(char, usize)> {
    let unit = |text: &[u8]| {
        let digits = text.strip_prefix(b"\\u")?.get(..4)?;
        let value = |digit: u8| char::from(digit).to_digit(16);
        let unit = digits
            .iter()
            .try_fold(0, |unit, digit| Some(unit * 16 + value(*digit)?))?;
        u16::try_from(unit).ok()
    };
    let first = unit(text)?;
    let pair = [first, unit(&text[6..]).unwrap_or(0)];
    Some(match char::decode_utf16(pair).next()? {
        Ok(char) => (char, 6 * char.len_utf16()),
        // Half of a pair.
        Err(_) => (char::REPLACEMENT_CHARACTER, 6),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_and_invalid_ones_kept() {
        for (string, expected) in [
            (&br#""a\"\\\/\b\f\n\r\t""#[..], "a\"\\/\u{8}\u{c}\n\r\t"),
            (br#""\u0041\u00e9\ud83d\ude00""#, "Aé😀"),
            (
                br#""\ud800 \ud800\u0041 \udc00""#,
                "\u{fffd} \u{fffd}A \u{fffd}",
            ),
            (br#""\x \u00 \u+123""#, "\\x \\u00 \\u+123"),
            (b"\"a\\", "a\\"),
            (b"\"", ""),
            (b"\"\xff", "\u{fffd}"),
        ] {
            assert_eq!(unescaped(string, 100), (expected.to_owned(), true));
        }
    }

    #[test]
    fn values_end_at_commas_and_brackets_outside_of_them() {
        for (text, expected) in [
            ("1, 2", "1"),
            ("{\"a\": [1, \"}\"]} }", "{\"a\": [1, \"}\"]}"),
            ("Some(\"a\", 'b,)'), 2", "Some(\"a\", 'b,)')"),
            ("\"a\" + \"b\"]", "\"a\" + \"b\""),
            ("\"a,", "\"a,"),
            ("", ""),
        ] {
            assert_eq!(&text[..value_length(text.as_bytes())], expected);
        }
    }
}
