//! Finds the route for a request, by its path and method.

use http::Method;
use matchit::Router;
use mcpline_protocol::checks;
use percent_encoding::percent_decode_str;

use crate::error::Error;
use crate::sync::Arc;

use super::{PathVariables, RouteEntry};

/// The routes of a server.
#[derive(Clone, Default)]
pub(crate) struct RouteTable {
    /// Positions in `groups`, by path.
    paths: Router<usize>,
    /// The routes of each path, with distinct methods.
    groups: Vec<Vec<Arc<RouteEntry>>>,
}

/// What the table has for a request.
pub(crate) enum RouteMatch {
    Found(Arc<RouteEntry>, PathVariables),
    /// Routes have the path, but none serves the request.
    Refused {
        reason: RouteMismatch,
        /// Whether all routes of the path are public: else only an admitted caller may learn the reason.
        is_public: bool,
    },
    Nothing,
}

/// Why no route of a path serves a request.
#[derive(Debug)]
pub(crate) enum RouteMismatch {
    /// None has the method: those that they have, for `Allow`.
    OtherMethods(String),
    /// A variable of the path is not safe as a part of a path.
    UnsafePath(String),
}

impl RouteTable {
    /// Adds a route.
    pub(super) fn add(&mut self, entry: &Arc<RouteEntry>) -> Result<(), Error> {
        let path = &entry.path;
        let is_same = |group: &&mut Vec<Arc<RouteEntry>>| group[0].path == *path;
        let group = self.groups.iter_mut().find(is_same);
        let mut others = group.iter().flat_map(|group| group.iter());
        let taken = others.find_map(|own| own.methods.iter().find(|own| entry.serves(own)));
        if let Some(method) = taken {
            return Err(Error::usage(format!(
                "there is a route for {method} {path} already"
            )));
        }
        if let Some(group) = group {
            group.push(entry.clone());
            return Ok(());
        }
        self.paths
            .insert(path.as_str(), self.groups.len())
            .map_err(|error| Error::usage(format!("the route {path:?}: {error}")))?;
        self.groups.push(vec![entry.clone()]);
        Ok(())
    }

    pub(super) fn paths(&self) -> Vec<String> {
        let paths = self.groups.iter().map(|group| group[0].path.clone());
        paths.collect()
    }

    pub(super) fn find(&self, method: &Method, path: &str) -> RouteMatch {
        let Ok(matched) = self.paths.at(path) else {
            return RouteMatch::Nothing;
        };
        let group = &self.groups[*matched.value];
        // A variable has at least one character, also within a path.
        if matched.params.iter().any(|(_, value)| value.is_empty()) {
            return RouteMatch::Nothing;
        }
        let serving = |method| group.iter().find(|entry| entry.serves(method));
        let is_head = method == Method::HEAD;
        let found = serving(method).or_else(|| serving(&Method::GET).filter(|_| is_head));
        let refused = |reason| RouteMatch::Refused {
            reason,
            is_public: group.iter().all(|entry| entry.is_public),
        };
        let Some(entry) = found else {
            return refused(RouteMismatch::OtherMethods(allowed(group)));
        };
        let mut variables = PathVariables::default();
        for (name, value) in matched.params.iter() {
            let is_rest = entry.path.ends_with(&format!("{{*{name}}}"));
            match decoded(value, is_rest) {
                Ok(value) => variables.0.push((name.to_owned(), value)),
                Err(problem) => {
                    let reason = format!("the variable `{name}` of the path must not {problem}");
                    return refused(RouteMismatch::UnsafePath(reason));
                }
            }
        }
        RouteMatch::Found(entry.clone(), variables)
    }
}

/// Returns the methods of a path's routes.
fn allowed(entries: &[Arc<RouteEntry>]) -> String {
    let mut methods: Vec<_> = entries.iter().flat_map(|entry| &entry.methods).collect();
    if methods.contains(&&Method::GET) && !methods.contains(&&Method::HEAD) {
        methods.push(&Method::HEAD);
    }
    let methods: Vec<_> = methods.into_iter().map(Method::as_str).collect();
    methods.join(", ")
}

/// Decodes the value of a variable, and checks it.
fn decoded(value: &str, is_rest: bool) -> Result<String, &'static str> {
    let text = percent_decode_str(value)
        .decode_utf8()
        .map_err(|_| "contain bytes that are not UTF-8")?;
    if !is_rest && text.contains('/') {
        return Err("contain a slash");
    }
    checks::path_text(&text)?;
    Ok(text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::super::Route;
    use super::*;
    use crate::server::test_sink::FnHandler;

    fn entry(route: Route) -> Arc<RouteEntry> {
        let entry = RouteEntry::new(route, Arc::new(FnHandler(drop)));
        Arc::new(entry.expect("a route"))
    }

    fn table(routes: &[(&str, &[Method])]) -> RouteTable {
        let mut table = RouteTable::default();
        for (path, methods) in routes {
            let route = Route::new(*path).with_methods(methods.to_vec());
            table.add(&entry(route)).expect("a new route");
        }
        table
    }

    fn found(table: &RouteTable, method: &Method, path: &str) -> Result<(String, String), String> {
        match table.find(method, path) {
            RouteMatch::Found(entry, variables) => {
                let variables: Vec<_> = variables
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                Ok((entry.name(), variables.join(" ")))
            }
            RouteMatch::Refused { reason, .. } => Err(match reason {
                RouteMismatch::OtherMethods(methods) => format!("allowed: {methods}"),
                RouteMismatch::UnsafePath(reason) => reason,
            }),
            RouteMatch::Nothing => Err("nothing".into()),
        }
    }

    #[test]
    fn finds_routes_by_path_and_method() {
        let table = table(&[
            ("/hooks/{source}", &[Method::POST, Method::PUT]),
            ("/hooks/{source}", &[Method::GET]),
            ("/hooks/own", &[Method::GET]),
            ("/files/index", &[Method::GET]),
            ("/files/{*path}", &[Method::GET]),
            ("/files/{*path}", &[Method::PUT]),
            ("/a/{x}/b", &[Method::GET]),
        ]);
        let is = |method, path, name: &str, variables: &str| {
            let expected = Ok((name.to_owned(), variables.to_owned()));
            assert_eq!(found(&table, &method, path), expected);
        };
        is(
            Method::POST,
            "/hooks/a%20b",
            "POST,PUT /hooks/{source}",
            "source=a b",
        );
        is(Method::GET, "/hooks/a", "GET /hooks/{source}", "source=a");
        is(Method::HEAD, "/hooks/a", "GET /hooks/{source}", "source=a");
        is(Method::GET, "/hooks/own", "GET /hooks/own", "");
        is(Method::GET, "/files/a/b", "GET /files/{*path}", "path=a/b");
        is(Method::PUT, "/files/a/b", "PUT /files/{*path}", "path=a/b");
        for path in ["/hooks", "/hooks/", "/hooks/a/b", "/files/", "/a//b", "/"] {
            let nothing = found(&table, &Method::GET, path);
            assert_eq!(nothing, Err("nothing".to_owned()), "{path}");
        }
        let other = found(&table, &Method::DELETE, "/hooks/a");
        assert_eq!(other, Err("allowed: POST, PUT, GET, HEAD".to_owned()));
    }

    #[test]
    fn paths_that_leave_a_directory_are_refused() {
        let table = table(&[
            ("/files/{*path}", &[Method::GET]),
            ("/notes/{name}", &[Method::GET]),
        ]);
        for path in [
            "/files/../x",
            "/files/a/..%2Fx",
            "/files/%2e%2e/x",
            "/files//etc/passwd",
            "/files/C:/x",
            "/files/a%00",
            "/files/%ff",
            "/notes/a%2Fb",
            "/notes/..",
            "/notes/%252e%252e",
        ] {
            let error = found(&table, &Method::GET, path).expect_err(path);
            assert!(
                error.contains("must not contain") || error.contains("absolute"),
                "{error}"
            );
        }
    }

    #[test]
    fn routes_that_cannot_be_told_apart_are_refused_and_change_nothing() {
        let mut table = table(&[("/a/{b}", &[Method::GET])]);
        for path in [
            "/a/{b}",
            "/a/{c}",
            "/a/{*d}",
            "/x/{y}{z}",
            "/x/{}",
            "/x/{*y}/z",
        ] {
            let error = table.add(&entry(Route::new(path))).expect_err(path);
            assert!(error.to_string().contains(path), "{error}");
        }
        assert_eq!(table.paths(), ["/a/{b}"]);
        found(&table, &Method::GET, "/a/1").expect("the first one stays");
    }

    #[test]
    fn routes_that_protect_nothing_are_refused() {
        let refused = |route: Route| {
            let entry = RouteEntry::new(route, Arc::new(FnHandler(drop)));
            entry.map(|_| ()).expect_err("it is refused").to_string()
        };
        assert!(refused(Route::new("a")).contains("begin with a slash"));
        assert!(refused(Route::new("/a?b=c")).contains("query"));
        assert!(refused(Route::new("/a").with_methods([])).contains("no method"));
        assert!(refused(Route::new("/a b")).contains("percent-encoded"));
        let traced = Route::new("/a").with_methods([Method::TRACE]);
        assert!(refused(traced).contains("TRACE"));
        let public = Route::new("/a").with_public(true).with_scopes(["read"]);
        assert!(refused(public).contains("public"));
        assert!(refused(Route::new("/a").with_scopes(["a b\""])).contains("scope"));
    }
}
