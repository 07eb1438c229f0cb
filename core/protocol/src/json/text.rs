//! JSON strings between their quotes: writing them, and decoding scanned ones.

use std::borrow::Cow;

use super::scan::stops;

/// Appends `text` to `out` as a JSON string, quotes included.
///
/// Escapes only what JSON requires: quote, backslash and control characters.
pub fn json_string(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, left) = rest.split_at(plain_length(rest));
        out.extend_from_slice(plain);
        let Some((&byte, left)) = left.split_first() else {
            break;
        };
        rest = left;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            control => {
                let (high, low) = (control >> 4, control & 15);
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(high)], HEX[usize::from(low)]]);
            }
        }
    }
    out.push(b'"');
}

/// Counts the leading bytes that need no escape in a JSON string.
fn plain_length(bytes: &[u8]) -> usize {
    let (words, last) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let stop = stops(u64::from_le_bytes(*word));
        if stop != 0 {
            return index * 8 + stop.trailing_zeros() as usize / 8;
        }
    }
    let escaped = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    words.len() * 8 + last.iter().position(escaped).unwrap_or(last.len())
}

/// Decodes the text between the quotes of a scanned JSON string.
///
/// Anything that no scanned string contains (bad UTF-8, bad escapes) becomes U+FFFD.
pub(crate) fn unescape(inner: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(b'\\', inner).is_none() {
        return plain(inner);
    }
    let mut decoded = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        decoded.push_str(&String::from_utf8_lossy(&rest[..at]));
        let escape = rest.get(at + 1).copied().unwrap_or(b'\\');
        rest = rest.get(at + 2..).unwrap_or_default();
        decoded.push(match escape {
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => code_point(&mut rest),
            other => char::from(other),
        });
    }
    decoded.push_str(&String::from_utf8_lossy(rest));
    Cow::Owned(decoded)
}

/// Decodes a string without escapes.
pub(super) fn plain(inner: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(inner) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(inner),
    }
}

/// Decodes the rest of an escape after `\u`: four digits, and the second half of a surrogate pair.
fn code_point(rest: &mut &[u8]) -> char {
    let Some(first) = hex4(rest) else {
        return char::REPLACEMENT_CHARACTER;
    };
    *rest = &rest[4..];
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER);
    }
    let second = rest.strip_prefix(b"\\u").and_then(hex4);
    let Some(second) = second.filter(|half| (0xdc00..0xe000).contains(half)) else {
        return char::REPLACEMENT_CHARACTER;
    };
    *rest = &rest[6..];
    let scalar = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The first position where `bytes` are not UTF-8, if there is one.
pub(crate) fn invalid_utf8(bytes: &[u8]) -> Option<usize> {
    // The faster method has a higher fixed cost.
    if bytes.len() < 64 {
        std::str::from_utf8(bytes)
            .err()
            .map(|error| error.valid_up_to())
    } else {
        simdutf8::compat::from_utf8(bytes)
            .err()
            .map(|error| error.valid_up_to())
    }
}

/// The value of the four leading hexadecimal digits of `bytes`.
pub(crate) fn hex4(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.first_chunk::<4>()?;
    digits.iter().try_fold(0, |value, &digit| {
        Some(value << 4 | char::from(digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        json_string(&mut out, text);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn writes_what_serde_json_writes() {
        for text in [
            "",
            "plain",
            "q\"b\\n\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}",
            "é😀",
            "\n",
        ] {
            assert_eq!(
                written(text),
                serde_json::to_string(text).expect("serializes")
            );
        }
    }

    #[test]
    fn writes_every_character_in_every_place_as_serde_json_does() {
        for character in (0..=0x80).filter_map(char::from_u32) {
            for before in 0..20 {
                let text = format!(
                    "{}{character}é{character}{}",
                    "x".repeat(before),
                    "y".repeat(before)
                );
                assert_eq!(
                    written(&text),
                    serde_json::to_string(&text).expect("serializes")
                );
            }
        }
    }

    #[test]
    fn reads_back_what_it_wrote_and_every_escape() {
        for text in [
            "",
            "plain",
            "q\"b\\n\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}",
            "é😀",
        ] {
            let json = written(text);
            assert_eq!(unescape(&json.as_bytes()[1..json.len() - 1]), text);
        }
        assert_eq!(unescape(br#"\/\u0041\ud83d\ude00\u00e9x"#), "/A😀éx");
    }

    #[test]
    fn damage_becomes_a_replacement_character_and_never_a_panic() {
        for damaged in [
            &b"\\"[..],
            b"\\u12",
            b"\\ud83d",
            b"\\ud83d\\u0041",
            b"\xff\\n\xff",
            b"\\ude00",
        ] {
            unescape(damaged);
        }
    }
}
