//! Routes in foreign code: the head of a request as JSON, and its body as bytes. [`http_response`](super::http_response) makes
//! the response of its parts.

use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::server::{Context, PathVariables, Route};

use super::http_parts::header_pairs;
use super::options::RouteDefinition;

/// Converts the definition of a route.
pub(super) fn read_route(definition: RouteDefinition, scopes: Vec<String>) -> Result<Route, Error> {
    let mut route = Route::new(definition.path)
        .with_scopes(scopes)
        .with_public(definition.public);
    if let Some(methods) = definition.methods {
        let methods = methods.iter().map(|name| method(name));
        route = route.with_methods(methods.collect::<Result<Vec<_>, Error>>()?);
    }
    Ok(route)
}

/// Reads a method. Methods are case-sensitive, and all that servers know are in upper case (RFC 9110, section 9.1).
fn method(name: &str) -> Result<Method, Error> {
    Method::from_bytes(name.to_ascii_uppercase().as_bytes())
        .map_err(|_| Error::usage(format!("{name:?} is not an HTTP method")))
}

/// Returns the request of a route: its head as JSON, and its body. `None` for a call of another feature.
///
/// The head has `method`, `path`, `query` (without the question mark), `headers` (pairs of name, in lower case, and value)
/// and `variables` (an object). Bytes of headers that are not ASCII are characters of Latin-1.
pub fn route_request(context: &Context) -> Option<(String, Bytes)> {
    let request = context.http_request()?;
    Some((head(request).to_string(), request.body().clone()))
}

fn head(request: &Request<Bytes>) -> Value {
    let headers = header_pairs(request.headers());
    let variables = request.extensions().get::<PathVariables>();
    let variables: Map<String, Value> = variables
        .into_iter()
        .flat_map(PathVariables::iter)
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    json!({
        "method": request.method().as_str(),
        "path": request.uri().path(),
        "query": request.uri().query().unwrap_or_default(),
        "headers": headers,
        "variables": variables,
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn heads_have_everything_but_the_body() {
        let mut request = Request::new(Bytes::from_static(b"body"));
        *request.uri_mut() = "/a/b%20c?d=e%26".parse().expect("a URI");
        *request.method_mut() = Method::PUT;
        for value in ["one", "two"] {
            let value = HeaderValue::from_static(value);
            request.headers_mut().append("x-a", value);
        }
        let latin1 = HeaderValue::from_bytes(b"\xe9").expect("a value");
        request.headers_mut().append("x-b", latin1);
        assert_eq!(
            head(&request),
            json!({
                "method": "PUT",
                "path": "/a/b%20c",
                "query": "d=e%26",
                "headers": [["x-a", "one"], ["x-a", "two"], ["x-b", "\u{e9}"]],
                "variables": {},
            })
        );
    }

    #[test]
    fn methods_are_read_in_either_case() {
        let definition = |methods: &[&str]| RouteDefinition {
            path: "/a".to_owned(),
            methods: Some(methods.iter().map(|&name| name.to_owned()).collect()),
            public: false,
        };
        read_route(definition(&["post", "GET"]), Vec::new()).expect("two methods");
        read_route(definition(&["a b"]), Vec::new()).expect_err("no method");
    }
}
