//! The page that the browser ends on. It loads nothing, runs no scripts and is not cached.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use sha2::{Digest, Sha256};

/// The longest client name that is shown, in characters.
const NAME: usize = 60;

/// The longest reason that is shown, in characters.
const REASON: usize = 300;

const STYLE: &str = "\
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--text:#1b1f24;--quiet:#57606a;--edge:#d8dee4;--good:#1a7f37;--bad:#b42318}
@media (prefers-color-scheme:dark){:root{--page:#0d1117;--card:#161b22;--text:#e6edf3;--quiet:#9da7b1;--edge:#30363d;--good:#56d364;--bad:#ff8a80}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1.5rem;background:var(--page);color:var(--text);font:1.0625rem/1.6 system-ui,sans-serif}
main{width:100%;max-width:32rem;padding:2.5rem;background:var(--card);border:1px solid var(--edge);border-radius:.75rem;overflow-wrap:anywhere}
svg{display:block;width:3rem;height:3rem;margin:0 0 1.25rem;fill:none;stroke:currentColor;stroke-width:2;stroke-linecap:round;stroke-linejoin:round}
.good svg{color:var(--good)}
.bad svg{color:var(--bad)}
h1{margin:0 0 .75rem;font-size:1.5rem;line-height:1.25}
p{margin:0 0 .75rem}
p:last-child{margin:0;color:var(--quiet)}
@media (forced-colors:active){.good svg,.bad svg{color:CanvasText}}";

/// The content of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message<'a> {
    /// The client is authorized.
    Accepted,
    /// It is not, for this reason.
    Refused(&'a str),
    /// The outcome is not known in time.
    Unknown,
    /// The request is not the authorization server's response.
    NotTheAnswer,
    /// Another response was accepted before.
    Answered,
}

/// A response with a page that shows `message` about the client called `name`.
pub(super) fn page(message: Message<'_>, name: Option<&str>) -> Response<Full<Bytes>> {
    let status = match message {
        Message::Accepted | Message::Refused(_) | Message::Unknown => StatusCode::OK,
        Message::NotTheAnswer => StatusCode::BAD_REQUEST,
        Message::Answered => StatusCode::CONFLICT,
    };
    let mut response = with_security_headers(status, Bytes::from(html(message, name)));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    response
}

/// A response without a page, for requests that are not the user's.
pub(super) fn plain(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = with_security_headers(status, Bytes::new());
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response
            .headers_mut()
            .insert(header::ALLOW, HeaderValue::from_static("GET"));
    }
    response
}

fn with_security_headers(status: StatusCode, body: Bytes) -> Response<Full<Bytes>> {
    static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
        let style = STANDARD.encode(Sha256::digest(STYLE));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'"
        );
        // Contains only the characters above and base64.
        HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
    });
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn html(message: Message<'_>, name: Option<&str>) -> String {
    // A name may be written from right to left; `bdi` isolates it from the text around it.
    let subject = name.map_or("The application".to_owned(), |name| {
        format!("<bdi>{}</bdi>", escaped(name, NAME))
    });
    let back = name.map_or("the application".to_owned(), |_| subject.clone());
    let (class, title, text, next) = match message {
        Message::Accepted => (
            "good",
            "You are signed in",
            format!("{subject} has been authorized."),
            format!("You can close this tab and go back to {back}."),
        ),
        Message::Refused(reason) => (
            "bad",
            "You are not signed in",
            format!(
                "{subject} has not been authorized. <bdi>{}</bdi>",
                escaped(&sentence(reason), REASON)
            ),
            format!("Close this tab, go back to {back} and try again."),
        ),
        Message::Unknown => (
            "bad",
            "Not finished yet",
            format!("{subject} has received your response, but has not reported its result yet."),
            format!("Close this tab and see in {back} whether you are signed in."),
        ),
        Message::NotTheAnswer => (
            "bad",
            "This is not the response to the current sign-in",
            format!("The address of this page does not belong to the current sign-in of {back}."),
            format!("Close this tab, go back to {back} and use the address that it gives you."),
        ),
        Message::Answered => (
            "bad",
            "This sign-in already has a response",
            format!("{subject} accepts only the first response."),
            format!("Close this tab and see in {back} whether you are signed in."),
        ),
    };
    let drawing = if class == "good" {
        "<circle cx=\"12\" cy=\"12\" r=\"10\"/><path d=\"m7.5 12.5 3 3 6-6.5\"/>"
    } else {
        "<circle cx=\"12\" cy=\"12\" r=\"10\"/><path d=\"M12 7v6m0 3.5v.01\"/>"
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main class=\"{class}\">\n\
         <svg viewBox=\"0 0 24 24\" aria-hidden=\"true\">{drawing}</svg>\n\
         <h1>{title}</h1>\n<p>{text}</p>\n<p>{next}</p>\n</main>\n</body>\n</html>\n"
    )
}

/// Turns the text of an error into a sentence.
fn sentence(reason: &str) -> String {
    let mut chars = reason.trim().chars();
    let mut written: String = chars
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    written.push_str(chars.as_str());
    if written.ends_with(|char: char| char.is_alphanumeric() || char == ')') {
        written.push('.');
    }
    written
}

/// Escapes text for HTML and truncates it to `limit` characters.
fn escaped(text: &str, limit: usize) -> String {
    let mut written = String::with_capacity(text.len());
    for (index, char) in text.chars().filter(|char| !char.is_control()).enumerate() {
        if index == limit {
            written.push('…');
            break;
        }
        match char {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            '\'' => written.push_str("&#39;"),
            char => written.push(char),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_reasons_are_shown_as_text() {
        let shown = html(
            Message::Refused("<img src=x onerror='1'>"),
            Some("A & <b>B</b>\u{1b}"),
        );
        assert!(
            shown.contains("<bdi>A &amp; &lt;b&gt;B&lt;/b&gt;</bdi>"),
            "{shown}"
        );
        assert!(
            shown.contains("&lt;img src=x onerror=&#39;1&#39;&gt;"),
            "{shown}"
        );
        assert!(!shown.contains("<img") && !shown.contains('\u{1b}'));
        let long = html(Message::Accepted, Some(&"n".repeat(1000)));
        assert!(long.contains(&format!("{}…", "n".repeat(NAME))));
        assert!(!long.contains(&"n".repeat(NAME + 1)));
    }

    #[test]
    fn reason_is_shown_as_a_sentence() {
        for (reason, expected) in [
            (
                "the server refused: no (really)",
                "The server refused: no (really).",
            ),
            ("It is late.", "It is late."),
            ("", ""),
        ] {
            let shown = html(Message::Refused(reason), None);
            assert!(shown.contains(&format!("<bdi>{expected}</bdi>")), "{shown}");
        }
    }

    #[test]
    fn page_loads_nothing_and_runs_nothing() {
        for message in [
            Message::Accepted,
            Message::Refused("why"),
            Message::Unknown,
            Message::NotTheAnswer,
            Message::Answered,
        ] {
            let shown = html(message, None);
            for banned in [
                "<script", "http:", "https:", "url(", "src=", "href=", " style=",
            ] {
                assert!(!shown.contains(banned), "{banned} in {shown}");
            }
            let response = page(message, None);
            let headers = response.headers();
            assert_eq!(headers["cache-control"], "no-store");
            assert_eq!(headers["referrer-policy"], "no-referrer");
            let policy = headers["content-security-policy"].to_str().expect("text");
            assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"));
        }
    }

    #[test]
    fn page_says_what_to_do_next() {
        assert!(html(Message::Accepted, Some("Ink")).contains("go back to <bdi>Ink</bdi>."));
        assert!(html(Message::Refused("No."), None).contains("go back to the application and try"));
    }
}
