//! Secrets in text: in URLs (`https://user:password@host`), in parameters (`api_key=…`) and after `Bearer`.
//!
//! Text has no syntax, so this finds only what is a secret for certain. The guides say what is shown.

use crate::secret_names::{Secrecy, secrecy};

/// Shown in place of a secret within a text.
const REDACTED: &str = "[redacted]";

/// Length from which what follows `Bearer` is a token even without digits, and no word.
const MIN_TOKEN_BYTES: usize = 20;

/// Returns the text without its secrets; `None` if there are none.
pub(super) fn without_secrets(text: &str) -> Option<String> {
    let mut shown = String::new();
    // How much of the text is in `shown`, and where to look further.
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = text[at..].find([':', '=', ' ']) {
        let sign = at + found;
        at = sign + 1;
        let secret = match text.as_bytes()[sign] {
            b':' => user_info(&text[sign..]),
            b'=' => parameter(&text[copied..sign], &text[at..]).map(|length| (1, length)),
            _ => bearer_token(&text[copied..sign], &text[at..]).map(|length| (1, length)),
        };
        if let Some((start, length)) = secret {
            shown.push_str(&text[copied..sign + start]);
            shown.push_str(REDACTED);
            copied = sign + start + length;
            at = copied;
        }
    }
    (copied > 0).then(|| shown + &text[copied..])
}

/// Returns start and length of what precedes the `@` in the authority of a URL, which `text` is from its colon on.
fn user_info(text: &str) -> Option<(usize, usize)> {
    let authority = text.strip_prefix("://")?;
    let ends = |char: char| char.is_whitespace() || "/?#\"'<>\\`".contains(char);
    let authority = &authority[..authority.find(ends).unwrap_or(authority.len())];
    let length = authority.rfind('@').filter(|length| *length > 0)?;
    Some((3, length))
}

/// Returns the length of the value of a parameter if its name, with which `before` ends, is one of a secret.
fn parameter(before: &str, after: &str) -> Option<usize> {
    let is_part = |char: char| char.is_alphanumeric() || "_-.".contains(char);
    let name = &before[before.trim_end_matches(is_part).len()..];
    let secrecy = secrecy(name);
    if secrecy == Secrecy::Public {
        return None;
    }
    let quoted = after.starts_with(['"', '\'']).then(|| &after[..1]);
    let length = match quoted {
        Some(quote) => after[1..].find(quote).map_or(after.len(), |end| end + 2),
        None => after
            .find(|char: char| char.is_whitespace() || "&;,)]}=\"'<>\\`".contains(char))
            .unwrap_or(after.len()),
    };
    let is_count = secrecy == Secrecy::SecretText && after[..length].parse::<f64>().is_ok();
    (length > 0 && !is_count).then_some(length)
}

/// Returns the length of a token if `before` ends with `Bearer`.
fn bearer_token(before: &str, after: &str) -> Option<usize> {
    let start = before.len().checked_sub("bearer".len())?;
    if !before.get(start..)?.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let is_part = |char: char| char.is_ascii_alphanumeric() || "-._~+/=".contains(char);
    let token = &after[..after.find(|char| !is_part(char)).unwrap_or(after.len())];
    let is_token =
        token.len() >= MIN_TOKEN_BYTES || token.contains(|char: char| char.is_ascii_digit());
    is_token.then_some(token.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced() {
        for (text, expected) in [
            ("https://u:s3cret@h/?a=1", "https://[redacted]@h/?a=1"),
            (
                "see postgres://u:s3@cret@h:5/db.",
                "see postgres://[redacted]@h:5/db.",
            ),
            (
                "https://h/?access_token=s3cret&b=2",
                "https://h/?access_token=[redacted]&b=2",
            ),
            ("API_KEY=s3cret\nB=2", "API_KEY=[redacted]\nB=2"),
            ("password='s3 cret' b=2", "password=[redacted] b=2"),
            ("tokens=s3cret", "tokens=[redacted]"),
            ("token=\"s3cret", "token=[redacted]"),
            (
                "Authorization: Bearer s3cret",
                "Authorization: Bearer [redacted]",
            ),
            ("bearer abcdefghijklmnopqrst, é", "bearer [redacted], é"),
            (
                "token=s3cret token=s3cret",
                "token=[redacted] token=[redacted]",
            ),
        ] {
            assert_eq!(without_secrets(text).as_deref(), Some(expected));
        }
    }

    #[test]
    fn other_text_is_shown_as_it_is() {
        for text in [
            "",
            "https://h/a@b?c=1",
            "a: b",
            "if token == x",
            "token=",
            "max_tokens=5",
            "Bearer tokens",
            "the token is 5",
            "é=é ://@",
            "Bearer ",
        ] {
            assert_eq!(without_secrets(text), None, "{text}");
        }
    }

    #[test]
    fn repeated_parts_take_linear_time() {
        for unit in [
            "=", "token=", "://", "a@", "bearer ", "token='", "a ", "é:", "token=\"",
        ] {
            let text = unit.repeat(200_000 / unit.len());
            let shown = without_secrets(&text).unwrap_or_default();
            assert!(shown.len() < 3 * text.len(), "{unit}");
        }
    }
}
