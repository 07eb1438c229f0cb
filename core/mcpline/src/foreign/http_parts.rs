//! HTTP messages in foreign code: headers as pairs of texts, and a response from its parts.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use crate::error::Error;
use crate::server::Reply;

/// Returns headers as JSON: pairs of name, in lower case, and value. Bytes that are not ASCII are characters of Latin-1.
pub(super) fn header_pairs(headers: &HeaderMap) -> Value {
    let latin1 = |value: &HeaderValue| -> String {
        value.as_bytes().iter().copied().map(char::from).collect()
    };
    headers
        .iter()
        .map(|(name, value)| json!([name.as_str(), latin1(value)]))
        .collect()
}

/// Returns the reply of a route or an HTTP client. Characters of header values are those of Latin-1.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the status is not one from 200 to 599, or a header has an invalid name or
/// value.
pub fn http_response(
    status: u16,
    headers: &[(String, String)],
    body: Bytes,
) -> Result<Reply, Error> {
    let status = StatusCode::from_u16(status)
        .ok()
        .filter(|status| (200..600).contains(&status.as_u16()))
        .ok_or_else(|| Error::usage(format!("{status} is not the status of a response")))?;
    let mut response = Response::new(body);
    *response.status_mut() = status;
    for (name, value) in headers {
        // The value may be a secret, so the error does not repeat it.
        let invalid = || Error::usage(format!("the header {name:?} has an invalid name or value"));
        let value = latin1(value).ok_or_else(invalid)?;
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        let value = HeaderValue::from_bytes(&value).map_err(|_| invalid())?;
        response.headers_mut().append(header, value);
    }
    Ok(Reply::Http(Box::new(response)))
}

fn latin1(text: &str) -> Option<Vec<u8>> {
    text.chars()
        .map(|character| u8::try_from(u32::from(character)).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_that_http_cannot_express_are_refused() {
        let refused = |status, name: &str, value: &str| {
            let headers = [(name.to_owned(), value.to_owned())];
            http_response(status, &headers, Bytes::new()).map(|_| ())
        };
        refused(200, "x-a", "\u{e9}").expect("Latin-1");
        for (status, name, value) in [
            (99, "x-a", "b"),
            (101, "x-a", "b"),
            (600, "x-a", "b"),
            (200, "x a", "b"),
            (200, "x-a", "b\r\nx-c: d"),
            (200, "x-a", "\u{20ac}"),
        ] {
            refused(status, name, value).expect_err(name);
        }
    }
}
