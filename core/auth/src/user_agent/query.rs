//! URL queries, as far as user agents need them.

/// The first value of `name` in the query of `url`, decoded.
pub(super) fn value(url: &str, name: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let query = query.split('#').next().unwrap_or_default();
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(key) == name).then(|| decoded(value))
    })
}

/// Encodes text for a query.
pub(super) fn encoded(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            written.push(byte as char);
        } else {
            written.push_str(&format!("%{byte:02X}"));
        }
    }
    written
}

/// Decodes `application/x-www-form-urlencoded`; invalid escapes are kept as they are.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = after;
                }
                _ => bytes.push(b'%'),
            },
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_decoded() {
        let url = "http://h/p?a=1&st%61te=x%2by+z%zz&state=second#f?state=no";
        assert_eq!(value(url, "state").as_deref(), Some("x+y z%zz"));
        assert_eq!(value(url, "a").as_deref(), Some("1"));
        assert_eq!(value(url, "code"), None);
        assert_eq!(value("http://h/p", "a"), None);
        assert_eq!(value("http://h/p?a", "a").as_deref(), Some(""));
    }

    #[test]
    fn encoding_round_trips() {
        let text = "a b+c&d=e%f#g/ü~";
        assert_eq!(decoded(&encoded(text)), text);
    }
}
