//! Routes: handlers of plain HTTP requests, at paths of the author's own beside the MCP endpoint.
//!
//! A [`Route`] is registered with the [`Server`]; the [`table`] finds it for a request. The HTTP transport reads the body,
//! and a [`call`] passes the whole request to the handler, as calls of other features are passed.

mod call;
mod route;
mod table;

use std::future::Future;

use bytes::Bytes;
use http::{Request, Response};

use crate::error::Error;
use crate::sync::Arc;

use super::call::Call;
use super::context::Context;
use super::handler::{Handler, handler};
use super::reply::{HandlerError, Reply};
use super::{Inner, Server};

pub(super) use call::ended;
pub(crate) use call::{RouteCall, RouteOutcome};
pub(crate) use route::RouteEntry;
pub use route::{PathVariables, Route};
pub(crate) use table::{RouteMatch, RouteMismatch, RouteTable};

/// Routes: requests that are not the protocol's.
impl Server {
    /// Adds a route with an async function or closure over the request and the context, which returns the response.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use http::{Method, Request, Response};
    /// use mcpline::server::{PathVariables, Route};
    /// use mcpline::{Context, Server};
    ///
    /// let server = Server::new("shop", "1.0.0").route(
    ///     Route::new("/webhooks/{source}").with_methods([Method::POST]).with_public(true),
    ///     |request: Request<Bytes>, _: Context| async move {
    ///         let variables = request.extensions().get::<PathVariables>();
    ///         let source = variables.and_then(|variables| variables.get("source"));
    ///         Response::new(format!("{} bytes of {source:?}", request.body().len()))
    ///     },
    /// );
    /// ```
    ///
    /// # Panics
    ///
    /// If [`Server::add_route`] returns an error.
    #[must_use]
    pub fn route<F, Fut, B>(self, route: Route, run: F) -> Self
    where
        F: Fn(Request<Bytes>, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Response<B>> + Send + 'static,
        B: Into<Bytes>,
    {
        match self.add_route(route, route_handler(run)) {
            Ok(()) => self,
            Err(error) => panic!("{error}"),
        }
    }

    /// Adds a route. It is served by every HTTP transport of the server, standalone and mounted, from the next request on.
    ///
    /// The handler gets the request by [`Call::http_request`] and answers with [`Reply::Http`]. If it fails, the client gets
    /// status 500 without the reason, which is logged; if it returns
    /// [`Context::require_scopes`]' error, status 403 with the challenge. Its context has the caller and the headers, but no
    /// session: nothing can be sent to an MCP client.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the path does not begin with a slash, its variables are malformed, a
    /// method of it has a route, or another route has the same form (`/a/{b}` and `/a/{c}`); there is no method; or a scope is
    /// invalid.
    pub fn add_route(&self, route: Route, handler: Arc<dyn Handler>) -> Result<(), Error> {
        let entry = Arc::new(RouteEntry::new(route, handler)?);
        let mut outcome = Ok(());
        self.inner.change_registry(|registry| {
            outcome = registry.routes.add(&entry);
            outcome.is_ok()
        });
        outcome
    }
}

impl Inner {
    /// Finds the route for a request.
    pub(crate) fn find_route(&self, method: &http::Method, path: &str) -> RouteMatch {
        self.registry().routes.find(method, path)
    }

    /// Returns the paths of all routes, as registered.
    pub(crate) fn route_paths(&self) -> Vec<String> {
        self.registry().routes.paths()
    }
}

/// Makes the handler of a route from an async function or closure, for [`Server::add_route`].
pub fn route_handler<F, Fut, B>(run: F) -> Arc<dyn Handler>
where
    F: Fn(Request<Bytes>, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Response<B>> + Send + 'static,
    B: Into<Bytes>,
{
    handler(move |call: &Call| {
        let running = call
            .http_request()
            .map(|request| run(request.clone(), call.context()));
        async move {
            match running {
                Some(running) => Ok(Reply::Http(Box::new(running.await.map(Into::into)))),
                None => Err(HandlerError::Internal(
                    "the handler of a route serves nothing but routes".into(),
                )),
            }
        }
    })
}
