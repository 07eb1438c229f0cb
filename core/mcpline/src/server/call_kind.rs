//! The kinds of features that are called.

/// Kind of feature that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallKind {
    /// `tools/call`
    Tool,
    /// `resources/read`, of a resource or a resource template.
    Resource,
    /// `prompts/get`
    Prompt,
    /// `completion/complete`
    Completion,
    /// `resources/list`, for the resources of a resource template.
    ResourceList,
    /// A custom request.
    Request,
    /// A custom notification. The result of its handler is ignored.
    Notification,
    /// An event of a session ([`ClientNotification`](super::ClientNotification)), outside any request. The result of its handler is ignored.
    Event,
    /// A request at a middleware ([`Server::middleware`](super::Server::middleware)) of another language.
    Middleware,
    /// A request to shared state ([`sharing`](crate::sharing)) in another language, outside any session.
    Sharing,
    /// A request to an imported HTTP API, for an HTTP client of another language
    /// ([`OpenApi::with_http_client`](crate::openapi::OpenApi::with_http_client)).
    #[cfg(feature = "openapi")]
    HttpClient,
    /// A credential for an imported HTTP API, from a function of another language
    /// ([`OpenApi::with_credential_provider`](crate::openapi::OpenApi::with_credential_provider)).
    #[cfg(feature = "openapi")]
    Credential,
    /// A request to a route ([`Route`](super::Route)), outside any session.
    #[cfg(feature = "routes")]
    Route,
}

impl CallKind {
    /// All kinds.
    pub const ALL: &'static [Self] = &[
        Self::Tool,
        Self::Resource,
        Self::Prompt,
        Self::Completion,
        Self::ResourceList,
        Self::Request,
        Self::Notification,
        Self::Event,
        Self::Middleware,
        Self::Sharing,
        #[cfg(feature = "openapi")]
        Self::HttpClient,
        #[cfg(feature = "openapi")]
        Self::Credential,
        #[cfg(feature = "routes")]
        Self::Route,
    ];

    /// Returns the name of the kind: that of its variant, in snake case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
            Self::Completion => "completion",
            Self::ResourceList => "resource_list",
            Self::Request => "request",
            Self::Notification => "notification",
            Self::Event => "event",
            Self::Middleware => "middleware",
            Self::Sharing => "sharing",
            #[cfg(feature = "openapi")]
            Self::HttpClient => "http_client",
            #[cfg(feature = "openapi")]
            Self::Credential => "credential",
            #[cfg(feature = "routes")]
            Self::Route => "route",
        }
    }
}
