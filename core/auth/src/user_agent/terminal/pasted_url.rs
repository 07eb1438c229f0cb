//! The authorization response that a user pastes.

use super::super::query;

/// An authorization response as a URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PastedUrl(String);

impl PastedUrl {
    /// Parses a line; `None` if it is empty. The error says why it is not a response to `redirect_uri`.
    pub(super) fn read(line: &str, redirect_uri: &str) -> Result<Option<Self>, &'static str> {
        // Terminals and chats tend to put text in quotes or angle brackets.
        let text = line.trim().trim_matches(['"', '\'', '<', '>']);
        if text.is_empty() {
            return Ok(None);
        }
        let url = if text.contains("://") {
            if !is_at(text, redirect_uri) {
                return Err(
                    "This is not the redirect URL: copy the address that the browser shows after signing in",
                );
            }
            text.to_owned()
        } else {
            let separator = if redirect_uri.contains('?') { '&' } else { '?' };
            let words: Vec<_> = text.split_whitespace().collect();
            let query = match *words {
                [query] if query.contains('=') => query.trim_start_matches('?').to_owned(),
                [code, state] => format!(
                    "code={}&state={}",
                    query::encoded(code),
                    query::encoded(state)
                ),
                _ => {
                    return Err(
                        "Paste the redirect URL, or the code and the state separated by a space",
                    );
                }
            };
            format!("{redirect_uri}{separator}{query}")
        };
        let is_answer =
            query::value(&url, "code").is_some() || query::value(&url, "error").is_some();
        if !is_answer {
            return Err(
                "The address has no `code`: copy the whole address that the browser shows after signing in",
            );
        }
        if url
            .chars()
            .any(|char| char.is_whitespace() || char.is_control())
        {
            return Err(
                "The address contains a space or a control character: paste it in one line",
            );
        }
        Ok(Some(Self(url)))
    }

    pub(super) fn into_url(self) -> String {
        self.0
    }
}

/// Whether `url` is `redirect_uri` with an extended query.
fn is_at(url: &str, redirect_uri: &str) -> bool {
    let (place, query) = redirect_uri.split_once('?').unwrap_or((redirect_uri, ""));
    let Some(found) = url
        .strip_prefix(place)
        .and_then(|rest| rest.strip_prefix('?'))
    else {
        return false;
    };
    found.starts_with(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: &str = "http://127.0.0.1:1/cb";

    fn read(line: &str) -> Result<Option<String>, &'static str> {
        PastedUrl::read(line, PLACE).map(|entry| entry.map(PastedUrl::into_url))
    }

    #[test]
    fn reads_response_in_every_form() {
        let whole = "http://127.0.0.1:1/cb?code=a%2Fb&state=s";
        for line in [
            whole.to_owned(),
            format!("  \"{whole}\"\r"),
            "code=a%2Fb&state=s".to_owned(),
            "?code=a%2Fb&state=s".to_owned(),
            "a/b  s".to_owned(),
        ] {
            assert_eq!(read(&line), Ok(Some(whole.to_owned())), "{line}");
        }
        let denied = "http://127.0.0.1:1/cb?error=access_denied&state=s";
        assert_eq!(read(denied), Ok(Some(denied.to_owned())));
        let longer = PastedUrl::read("c s", "https://h.example/cb?x=1").expect("an answer");
        assert_eq!(
            longer.map(PastedUrl::into_url).as_deref(),
            Some("https://h.example/cb?x=1&code=c&state=s")
        );
    }

    #[test]
    fn empty_lines_give_none() {
        for line in ["", "  ", "\"\"", "\n"] {
            assert_eq!(read(line), Ok(None));
        }
    }

    #[test]
    fn rejects_text_without_a_response() {
        for line in [
            "https://as.example/authorize?code=c&state=s",
            "http://127.0.0.1:10/cb?code=c&state=s",
            "http://127.0.0.1:1/cb/more?code=c&state=s",
            "http://127.0.0.1:1/cb",
            "http://127.0.0.1:1/cb?state=s",
            "http://127.0.0.1:1/cb?code=c&state=s and more",
            "acode",
            "one two three",
            "state=s",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
