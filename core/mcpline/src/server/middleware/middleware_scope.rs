//! Which requests a middleware sees.

use std::collections::BTreeSet;

use mcpline_protocol::InputMethod;
use mcpline_protocol::methods::MethodHandledBy;
use mcpline_protocol::similar_names::nearest;
use mcpline_protocol::wire::Method;

use super::super::feature_selection::FeatureSelection;
use crate::error::Error;

/// What a [middleware](crate::middleware::Middleware) sees: all requests of clients, those of some methods, those for some
/// features, or both; and other messages whose methods it names.
///
/// ```
/// use mcpline::server::{FeatureSelection, MiddlewareScope};
///
/// let calls = MiddlewareScope::all().with_methods(["tools/call"]);
/// let admin = MiddlewareScope::all().with_features(FeatureSelection::all().with_tags(["admin"]));
/// # let _ = (calls, admin);
/// ```
#[derive(Debug, Clone, Default)]
pub struct MiddlewareScope {
    methods: Option<BTreeSet<String>>,
    features: Option<FeatureSelection>,
}

impl MiddlewareScope {
    /// Every request.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only messages of these methods: requests of clients, such as `tools/call`; input requests of handlers, such as
    /// `elicitation/create`; notifications of handlers, such as `notifications/message`; and notifications of clients for
    /// which the server has a handler, such as `notifications/roots/list_changed`. Custom methods, too.
    /// [`MiddlewareRequest::kind`](crate::middleware::MiddlewareRequest::kind) tells them apart.
    #[must_use]
    pub fn with_methods<S: Into<String>>(mut self, methods: impl IntoIterator<Item = S>) -> Self {
        self.methods = Some(methods.into_iter().map(Into::into).collect());
        self
    }

    /// Only requests for these features: calls of tools, reads of resources, requests for prompts, and completions for
    /// prompts and resource templates. Lists and custom requests are for none.
    #[must_use]
    pub fn with_features(mut self, features: FeatureSelection) -> Self {
        self.features = Some(features);
        self
    }

    /// Refuses methods that no middleware sees, and those of messages that are for no feature beside features. `is_custom` says
    /// whether a method has a handler of the author.
    pub(crate) fn check(&self, is_custom: impl Fn(&str) -> bool) -> Result<(), Error> {
        for name in self.methods.iter().flatten() {
            let method = Method::parse(name);
            let is_request = method.spec().is_none_or(|spec| {
                spec.handled_by == MethodHandledBy::Features || spec.may_be_custom
            });
            let is_message = is_message(&method);
            if method.spec().is_none() && !is_custom(name) {
                check_custom(name)?;
            }
            if !is_request && !is_message {
                return Err(Error::usage(format!(
                    "the scope of a middleware has the method {name:?}: middleware sees lists, calls, completions, input requests, \
                     custom requests, and notifications of handlers and to handlers only"
                )));
            }
            if is_message && self.features.is_some() {
                return Err(Error::usage(format!(
                    "the scope of a middleware has features and the method {name:?}: such messages are for no feature"
                )));
            }
        }
        Ok(())
    }

    pub(super) fn is_all(&self) -> bool {
        self.methods.is_none() && self.features.is_none()
    }

    /// Whether it names methods that may be those of other messages than requests of clients.
    pub(super) fn has_messages(&self) -> bool {
        let mut methods = self
            .methods
            .iter()
            .flatten()
            .map(|name| Method::parse(name));
        self.features.is_none()
            && methods.any(|method| is_message(&method) || method.spec().is_none())
    }

    /// Whether the middleware sees a message other than a request of a client.
    pub(super) fn names(&self, method: &str) -> bool {
        let methods = self.methods.as_ref();
        self.features.is_none() && methods.is_some_and(|methods| methods.contains(method))
    }

    pub(crate) fn has_method(&self, method: &str) -> bool {
        self.methods
            .as_ref()
            .is_none_or(|methods| methods.contains(method))
    }

    pub(crate) fn features(&self) -> Option<&FeatureSelection> {
        self.features.as_ref()
    }
}

/// The requests of clients in the protocol that middleware sees.
fn requests() -> impl Iterator<Item = &'static str> {
    let of_features = Method::KNOWN.iter().filter(|method| {
        method
            .spec()
            .is_some_and(|spec| spec.handled_by == MethodHandledBy::Features)
    });
    of_features.map(Method::as_str)
}

/// Refuses a method that neither a revision defines nor the author handles, if it is like one that middleware sees, or has its
/// first segment: no request would ever meet the middleware.
fn check_custom(name: &str) -> Result<(), Error> {
    let messages = Method::KNOWN.iter().filter(|method| is_message(method));
    let mut seen = requests().chain(messages.map(Method::as_str));
    // At most a fifth of the characters differ.
    let hint = if let Some(meant) = nearest(name, &mut seen, 5) {
        format!("did you mean {meant:?}?")
    } else {
        let first = |name: &str| name.split_once('/').map(|(first, _)| first.to_owned());
        let own = first(name);
        if own.is_none() || !requests().any(|known| first(known) == own) {
            return Ok(());
        }
        let known: Vec<_> = requests().collect();
        format!(
            "there are {}; register the handler of a custom method before the middleware",
            known.join(", ")
        )
    };
    Err(Error::usage(format!(
        "the scope of a middleware has the method {name:?}, which does not exist; {hint}"
    )))
}

/// Whether a method of the protocol is one of input requests, of notifications of handlers, or of clients' notifications that
/// have handlers.
fn is_message(method: &Method) -> bool {
    InputMethod::parse(method.as_str()).is_some()
        || matches!(
            method,
            Method::NotificationsMessage
                | Method::NotificationsProgress
                | Method::NotificationsInitialized
                | Method::NotificationsRootsListChanged
        )
}
