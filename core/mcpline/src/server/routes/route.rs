//! What a route is registered with, and what its handler gets besides the request.

use http::Method;
use mcpline_protocol::Scopes;

use crate::error::Error;
use crate::server::feature_options::{check_scopes, checked_scopes};
use crate::server::handler::Handler;
use crate::sync::Arc;

/// A path of the author's own at the HTTP server, such as a webhook or a page.
///
/// A route is protected as the MCP endpoint is: the `Host` must be an allowed one, requests of web pages need an allowed
/// origin, and with authorization a token is required. [`Route::with_public`] removes all three.
#[derive(Debug, Clone)]
pub struct Route {
    path: String,
    methods: Vec<Method>,
    scopes: Scopes,
    is_public: bool,
    /// A value given as a scope that is not a valid one. Kept to refuse the registration, which would lack protection.
    unusable_scope: Option<String>,
}

impl Route {
    /// Creates a route for GET requests to a path.
    ///
    /// The path begins with a slash. `{name}` is a variable for one segment or the end of one, `{*name}` one for the rest of
    /// the path; both match at least one character. Where several paths match, literal text comes before variables, and the
    /// routes of that path alone decide about the method: a POST to `/a/b` is refused if `/a/b` has a GET route only, although
    /// `/a/{c}` has one for POST. For a mounted server the path is below the
    /// [prefix](crate::transport::http::MountPrefix) of the mount.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            methods: vec![Method::GET],
            scopes: Scopes::new(),
            is_public: false,
            unusable_scope: None,
        }
    }

    /// Sets the methods, in place of GET. A route for GET also serves HEAD, without the body.
    /// A handler that leaves out the body for HEAD can state its length as `content-length`.
    #[must_use]
    pub fn with_methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.methods = methods.into_iter().collect();
        self
    }

    /// Sets the scopes that a caller needs, all of them: see [`ToolOptions::scopes`](super::super::ToolOptions::scopes).
    /// Others get status 403.
    #[must_use]
    pub fn with_scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        (self.scopes, self.unusable_scope) = checked_scopes(scopes);
        self
    }

    /// Sets whether any client may request it, without a token, under any `Host`, and from pages of any origin: for webhooks,
    /// which a signature protects, and for public content. Default: `false`.
    #[must_use]
    pub fn with_public(mut self, is_public: bool) -> Self {
        self.is_public = is_public;
        self
    }
}

/// The variables of a route's path, percent-decoded, in the request's extensions.
///
/// They are safe as parts of a path: requests whose variables contain NUL, a `..` segment or an absolute path, or a slash in
/// the variable for one segment, are refused with status 400.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathVariables(pub(super) Vec<(String, String)>);

impl PathVariables {
    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut variables = self.iter();
        variables.find_map(|(own, value)| (own == name).then_some(value))
    }

    /// Returns names and values, in the order of the path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.0.iter();
        pairs.map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// A registered route.
pub(crate) struct RouteEntry {
    pub(crate) path: String,
    pub(crate) methods: Vec<Method>,
    pub(crate) scopes: Scopes,
    pub(crate) is_public: bool,
    pub(crate) handler: Arc<dyn Handler>,
}

impl RouteEntry {
    /// Checks a registration.
    pub(super) fn new(route: Route, handler: Arc<dyn Handler>) -> Result<Self, Error> {
        let path = &route.path;
        check_scopes(route.unusable_scope.as_deref())?;
        if !path.starts_with('/') {
            return Err(Error::usage(format!(
                "the route {path:?} must begin with a slash"
            )));
        }
        if path.contains(['?', '#']) {
            return Err(Error::usage(format!(
                "the route {path:?} must be a path: the handler gets the query of each request"
            )));
        }
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::usage(format!(
                "the route {path:?} must be written as in a URL, with percent-encoded characters"
            )));
        }
        let unusable = [Method::CONNECT, Method::TRACE];
        if let Some(method) = route.methods.iter().find(|own| unusable.contains(own)) {
            return Err(Error::usage(format!(
                "the route {path:?} can't serve {method}: routes serve neither CONNECT nor TRACE"
            )));
        }
        if route.methods.is_empty() {
            return Err(Error::usage(format!("the route {path:?} has no method")));
        }
        if route.is_public && !route.scopes.is_empty() {
            return Err(Error::usage(format!(
                "the route {path:?} can't be public and require scopes"
            )));
        }
        Ok(Self {
            path: route.path,
            methods: route.methods,
            scopes: route.scopes,
            is_public: route.is_public,
            handler,
        })
    }

    /// Returns the name of the route: its methods and its path.
    pub(crate) fn name(&self) -> String {
        let methods: Vec<_> = self.methods.iter().map(Method::as_str).collect();
        format!("{} {}", methods.join(","), self.path)
    }

    /// Whether the route serves requests of a method.
    pub(super) fn serves(&self, method: &Method) -> bool {
        self.methods.contains(method)
    }
}
