//! The method table: one row for each request and notification that some revision defines.
//!
//! A row says who sends the method, which revisions have it, which capability it needs, which headers repeat it, and
//! how a client treats its results. Admission, HTTP headers, caching, retries and capability checks read the table, so
//! a new method needs a new row and the code that handles it. Methods that no revision defines are [`Method::Other`].

use std::fmt;

use crate::limits::MAX_METHOD;
use crate::revision::{Revision, RevisionFeatures};

/// Who sends a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sender {
    /// Only the client.
    Client,
    /// Only the server.
    Server,
    /// Either side.
    Both,
}

/// Which part of the server answers a client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MethodHandledBy {
    /// The session itself.
    Session,
    /// The server's tools, resources, prompts or completions.
    Features,
    /// No part of this library.
    Nothing,
}

/// Whether a client may send a request again although the server may have processed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetrySafety {
    /// It only reads, or repeating it has no further effect.
    Safe,
    /// The called tool's annotations decide.
    ByTool,
    /// It may have an effect each time.
    Unsafe,
}

/// A server capability that methods require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerCapability {
    /// `tools`
    Tools,
    /// `resources`
    Resources,
    /// `resources.subscribe`
    ResourcesSubscribe,
    /// `prompts`
    Prompts,
    /// `completions`
    Completions,
    /// `logging`
    Logging,
    /// `tasks`
    Tasks,
    /// `tasks.list`
    TasksList,
    /// `tasks.cancel`
    TasksCancel,
}

impl ServerCapability {
    /// Its path in `capabilities`.
    pub fn path(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::ResourcesSubscribe => "resources.subscribe",
            Self::Prompts => "prompts",
            Self::Completions => "completions",
            Self::Logging => "logging",
            Self::Tasks => "tasks",
            Self::TasksList => "tasks.list",
            Self::TasksCancel => "tasks.cancel",
        }
    }
}

/// A row of the method table.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MethodSpec {
    /// Who sends it.
    pub sender: Sender,
    /// Whether it is a notification, which gets no response.
    pub is_notification: bool,
    /// Whether a revision has it.
    is_in: fn(&RevisionFeatures) -> bool,
    /// The capability that a server must declare before a client may send it.
    capability: Option<ServerCapability>,
    /// Which part of the server answers it.
    pub handled_by: MethodHandledBy,
    /// The parameter that the header `Mcp-Name` repeats (2026-07-28, `basic/transports`, standard headers; the extension
    /// `tasks`, routing headers).
    pub name_param: Option<&'static str>,
    /// Whether its result may request input (2026-07-28, `basic/patterns/mrtr`, supported requests).
    pub may_require_input: bool,
    /// Whether its result is a page of a list.
    pub is_list: bool,
    /// Whether a client may cache its result (2026-07-28, `server/utilities/caching`).
    pub is_cacheable: bool,
    /// Whether its result is ignored, so that a client accepts any.
    pub has_empty_result: bool,
    /// Whether a client may send it again.
    pub repeat: RetrySafety,
    /// Whether it changes the state of a session, which all processes of a server must learn.
    pub changes_session: bool,
    /// Whether authors may handle and send it as a custom request in revisions that don't have it: there an extension
    /// defines it, and this library itself neither handles nor sends it.
    pub may_be_custom: bool,
    /// Whether it has a parameter `inputResponses` of its own, so that a retry can't be distinguished from a first
    /// request: its handler cannot request input in revisions where that takes a retry.
    pub has_own_input_responses: bool,
    /// Whether it concerns a request that may be in flight in another process of the server.
    pub concerns_request: bool,
    /// The methods whose cached results are outdated once a client receives it.
    pub invalidates: &'static [Method],
}

/// Checks the name of a result type (`resultType`) that an extension defines (2026-07-28, `basic`, ResultType).
///
/// # Errors
///
/// If the protocol defines the type.
pub fn check_custom_result_type(name: &str) -> Result<(), &'static str> {
    match name {
        "complete" | "input_required" => Err("the protocol defines it"),
        _ => Ok(()),
    }
}

/// Checks the name of a custom notification: a method that no revision defines, which an author handles or sends.
///
/// # Errors
///
/// The reason, for an error message that names the method.
pub fn check_custom_notification(method: &str) -> Result<(), &'static str> {
    check_custom_method(method, |_| false)
}

/// Checks the name of a custom request: a method that no revision defines, or that some revisions leave to extensions
/// ([`MethodSpec::may_be_custom`]).
///
/// # Errors
///
/// The reason, for an error message that names the method.
pub fn check_custom_request(method: &str) -> Result<(), &'static str> {
    match method.starts_with("notifications/") {
        true => Err("names that begin with `notifications/` are those of notifications"),
        false => check_custom_method(method, |spec| spec.may_be_custom),
    }
}

/// Checks the name of a custom method: it has no row in the table, or one that `may` be custom.
fn check_custom_method(
    method: &str,
    may: impl FnOnce(&MethodSpec) -> bool,
) -> Result<(), &'static str> {
    if method.is_empty() || method.len() > MAX_METHOD {
        return Err("a name has 1 to 1024 bytes");
    }
    // The header `Mcp-Method` repeats it (2026-07-28, `basic/transports`, standard headers).
    if !method.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a name is visible ASCII without spaces");
    }
    if method.starts_with("rpc.") {
        return Err("JSON-RPC reserves names that begin with `rpc.`");
    }
    match Method::parse(method).spec().is_none_or(may) {
        true => Ok(()),
        false => Err("the protocol defines it"),
    }
}

impl MethodSpec {
    /// Whether a revision has the method.
    pub fn is_in(&self, revision: Revision) -> bool {
        (self.is_in)(revision.features())
    }

    /// Whether the method is a custom one in this revision.
    pub fn is_custom_in(&self, revision: Revision) -> bool {
        self.may_be_custom && !self.is_in(revision)
    }

    /// The capability that a server of this revision must declare before a client may send the method.
    pub fn capability(&self, revision: Revision) -> Option<ServerCapability> {
        // 2024-11-05 has completion but no capability for it.
        self.capability.filter(|capability| {
            *capability != ServerCapability::Completions
                || revision.features().completions_capability
        })
    }
}

/// A client's request that this library does not handle, unless the row says otherwise.
const REQUEST: MethodSpec = MethodSpec {
    sender: Sender::Client,
    is_notification: false,
    is_in: |_| true,
    capability: None,
    handled_by: MethodHandledBy::Nothing,
    name_param: None,
    may_require_input: false,
    is_list: false,
    is_cacheable: false,
    has_empty_result: false,
    repeat: RetrySafety::Unsafe,
    changes_session: false,
    may_be_custom: false,
    has_own_input_responses: false,
    concerns_request: false,
    invalidates: &[],
};

/// A client's request for a feature of the server.
const fn feature(capability: ServerCapability) -> MethodSpec {
    MethodSpec {
        capability: Some(capability),
        handled_by: MethodHandledBy::Features,
        ..REQUEST
    }
}

/// A request for a page of a list.
const fn list(capability: ServerCapability) -> MethodSpec {
    MethodSpec {
        is_list: true,
        is_cacheable: true,
        repeat: RetrySafety::Safe,
        ..feature(capability)
    }
}

/// A request about a task of the other side (2025-11-25, experimental). Later revisions have tasks as an extension.
const fn task(capability: ServerCapability, repeat: RetrySafety) -> MethodSpec {
    MethodSpec {
        sender: Sender::Both,
        is_in: |revision| revision.tasks,
        capability: Some(capability),
        repeat,
        may_be_custom: true,
        ..REQUEST
    }
}

/// A request that changes a setting of the session.
const SETTING: MethodSpec = MethodSpec {
    handled_by: MethodHandledBy::Session,
    has_empty_result: true,
    repeat: RetrySafety::Safe,
    changes_session: true,
    ..REQUEST
};

const SUBSCRIPTION: MethodSpec = MethodSpec {
    is_in: |revision| revision.resource_subscribe,
    capability: Some(ServerCapability::ResourcesSubscribe),
    ..SETTING
};

/// A request that a server sends: its own message up to 2025-11-25, part of a result since 2026-07-28.
const SERVER_REQUEST: MethodSpec = MethodSpec {
    sender: Sender::Server,
    ..REQUEST
};

const CLIENT_NOTIFICATION: MethodSpec = MethodSpec {
    is_notification: true,
    ..REQUEST
};

const SERVER_NOTIFICATION: MethodSpec = MethodSpec {
    sender: Sender::Server,
    ..CLIENT_NOTIFICATION
};

/// A notification that a list has changed.
const fn list_changed(invalidates: &'static [Method]) -> MethodSpec {
    MethodSpec {
        invalidates,
        ..SERVER_NOTIFICATION
    }
}

macro_rules! methods {
    ($($(#[$doc:meta])* $variant:ident = $name:literal: $spec:expr),+ $(,)?) => {
        /// The method of a request or notification, defined by a revision or not.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $(#[doc = concat!("`", $name, "`")] $(#[$doc])* $variant,)+
            /// A method that no revision defines: from an extension, or a mistake.
            Other(Box<str>),
        }

        impl Method {
            /// Every method that a revision defines.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant),+];

            /// The method of that name.
            pub fn parse(name: &str) -> Self {
                Self::known(name.as_bytes()).unwrap_or_else(|| Self::Other(name.into()))
            }

            /// The method of that name, if a revision defines it.
            pub(crate) fn known(name: &[u8]) -> Option<Self> {
                const fn bytes(name: &str) -> &[u8] {
                    name.as_bytes()
                }
                $(if name == const { bytes($name) } { return Some(Self::$variant); })+
                None
            }

            /// The name on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)+
                    Self::Other(name) => name,
                }
            }

            /// Its row in the table; `None` for a method that no revision defines.
            pub fn spec(&self) -> Option<&'static MethodSpec> {
                match self {
                    $(Self::$variant => {
                        static SPEC: MethodSpec = $spec;
                        Some(&SPEC)
                    })+
                    Self::Other(_) => None,
                }
            }
        }
    };
}

// Ordered by how often they are received: `known` compares them one by one.
methods! {
    ToolsCall = "tools/call": MethodSpec {
        name_param: Some("name"),
        may_require_input: true,
        repeat: RetrySafety::ByTool,
        ..feature(ServerCapability::Tools)
    },
    ToolsList = "tools/list": list(ServerCapability::Tools),
    ResourcesRead = "resources/read": MethodSpec {
        name_param: Some("uri"),
        may_require_input: true,
        is_cacheable: true,
        repeat: RetrySafety::Safe,
        ..feature(ServerCapability::Resources)
    },
    ResourcesList = "resources/list": list(ServerCapability::Resources),
    ResourcesTemplatesList = "resources/templates/list": list(ServerCapability::Resources),
    ResourcesSubscribe = "resources/subscribe": SUBSCRIPTION,
    ResourcesUnsubscribe = "resources/unsubscribe": SUBSCRIPTION,
    PromptsGet = "prompts/get": MethodSpec {
        name_param: Some("name"),
        may_require_input: true,
        repeat: RetrySafety::Safe,
        ..feature(ServerCapability::Prompts)
    },
    PromptsList = "prompts/list": list(ServerCapability::Prompts),
    CompletionComplete = "completion/complete": MethodSpec {
        repeat: RetrySafety::Safe,
        ..feature(ServerCapability::Completions)
    },
    LoggingSetLevel = "logging/setLevel": MethodSpec {
        is_in: |revision| revision.set_level,
        capability: Some(ServerCapability::Logging),
        ..SETTING
    },
    Ping = "ping": MethodSpec {
        sender: Sender::Both,
        is_in: |revision| revision.ping,
        handled_by: MethodHandledBy::Session,
        has_empty_result: true,
        repeat: RetrySafety::Safe,
        ..REQUEST
    },
    Initialize = "initialize": MethodSpec {
        is_in: |revision| revision.handshake,
        handled_by: MethodHandledBy::Session,
        changes_session: true,
        ..REQUEST
    },
    ServerDiscover = "server/discover": MethodSpec {
        is_in: |revision| revision.discover,
        handled_by: MethodHandledBy::Session,
        repeat: RetrySafety::Safe,
        ..REQUEST
    },
    SubscriptionsListen = "subscriptions/listen": MethodSpec {
        is_in: |revision| revision.listen,
        handled_by: MethodHandledBy::Session,
        ..REQUEST
    },
    SamplingCreateMessage = "sampling/createMessage": SERVER_REQUEST,
    ElicitationCreate = "elicitation/create": MethodSpec {
        is_in: |revision| revision.elicitation,
        ..SERVER_REQUEST
    },
    RootsList = "roots/list": SERVER_REQUEST,
    TasksGet = "tasks/get": MethodSpec {
        name_param: Some("taskId"),
        ..task(ServerCapability::Tasks, RetrySafety::Safe)
    },
    TasksResult = "tasks/result": task(ServerCapability::Tasks, RetrySafety::Safe),
    TasksList = "tasks/list": task(ServerCapability::TasksList, RetrySafety::Safe),
    TasksCancel = "tasks/cancel": MethodSpec {
        name_param: Some("taskId"),
        ..task(ServerCapability::TasksCancel, RetrySafety::Unsafe)
    },
    /// (the extension of 2026-07-28)
    TasksUpdate = "tasks/update": MethodSpec {
        is_in: |_| false,
        name_param: Some("taskId"),
        may_be_custom: true,
        has_own_input_responses: true,
        ..REQUEST
    },
    NotificationsInitialized = "notifications/initialized": MethodSpec {
        is_in: |revision| revision.handshake,
        changes_session: true,
        ..CLIENT_NOTIFICATION
    },
    NotificationsCancelled = "notifications/cancelled": MethodSpec {
        sender: Sender::Both,
        concerns_request: true,
        ..CLIENT_NOTIFICATION
    },
    NotificationsProgress = "notifications/progress": MethodSpec {
        sender: Sender::Both,
        concerns_request: true,
        ..CLIENT_NOTIFICATION
    },
    NotificationsMessage = "notifications/message": SERVER_NOTIFICATION,
    NotificationsToolsListChanged = "notifications/tools/list_changed": list_changed(&[Method::ToolsList]),
    NotificationsResourcesListChanged = "notifications/resources/list_changed":
        list_changed(&[Method::ResourcesList, Method::ResourcesTemplatesList]),
    NotificationsResourcesUpdated = "notifications/resources/updated": SERVER_NOTIFICATION,
    NotificationsPromptsListChanged = "notifications/prompts/list_changed": list_changed(&[Method::PromptsList]),
    NotificationsRootsListChanged = "notifications/roots/list_changed": MethodSpec {
        is_in: |revision| revision.roots_list_changed,
        ..CLIENT_NOTIFICATION
    },
    NotificationsElicitationComplete = "notifications/elicitation/complete": MethodSpec {
        is_in: |revision| revision.elicitation_complete,
        ..SERVER_NOTIFICATION
    },
    NotificationsSubscriptionsAcknowledged = "notifications/subscriptions/acknowledged": MethodSpec {
        is_in: |revision| revision.listen,
        ..SERVER_NOTIFICATION
    },
    NotificationsTasksStatus = "notifications/tasks/status": MethodSpec {
        sender: Sender::Both,
        is_in: |revision| revision.tasks,
        ..CLIENT_NOTIFICATION
    },
}

impl Method {
    /// Whether the method's row has this property; `false` for a method that no revision defines.
    pub fn is(&self, property: impl FnOnce(&MethodSpec) -> bool) -> bool {
        self.spec().is_some_and(property)
    }

    /// Whether the method is a custom one in this revision: no revision defines it, or this one leaves it to
    /// extensions.
    pub fn is_custom_in(&self, revision: Revision) -> bool {
        self.spec().is_none_or(|spec| spec.is_custom_in(revision))
    }

    /// Whether a client repeats the request with input responses (2026-07-28, `basic/patterns/mrtr`).
    pub fn is_retried_with_input(&self, revision: Revision) -> bool {
        revision.features().mrtr && !self.is(|spec| spec.has_own_input_responses)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<&str> for Method {
    fn from(name: &str) -> Self {
        Self::parse(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_names_round_trip() {
        for method in Method::KNOWN {
            assert_eq!(&Method::parse(method.as_str()), method);
        }
        assert_eq!(Method::parse("x/y").as_str(), "x/y");
    }

    #[test]
    fn methods_of_tasks_are_custom_where_the_revision_has_none() {
        for method in ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"] {
            check_custom_request(method).expect(method);
            check_custom_notification(method).expect_err(method);
            for revision in Revision::ALL {
                let is_custom = *revision != Revision::V2025_11_25;
                let method = Method::parse(method);
                assert_eq!(
                    method.is_custom_in(*revision),
                    is_custom,
                    "{method} {revision}"
                );
            }
        }
        check_custom_request("tasks/update").expect("an extension defines it");
        for revision in Revision::ALL {
            assert!(Method::TasksUpdate.is_custom_in(*revision));
            assert!(Method::parse("acme/a").is_custom_in(*revision));
            // Some revisions don't have them, but this library sends them.
            assert!(!Method::ElicitationCreate.is_custom_in(*revision));
            assert!(!Method::Ping.is_custom_in(*revision));
        }
        check_custom_request("elicitation/create").expect_err("of the protocol");
        check_custom_request("resources/subscribe").expect_err("of the protocol");
    }

    #[test]
    fn rows_are_consistent() {
        for method in Method::KNOWN {
            let spec = method.spec().expect("a row");
            let is_notification = method.as_str().starts_with("notifications/");
            assert_eq!(spec.is_notification, is_notification, "{method}");
            let is_of_server = spec.sender == Sender::Server;
            let is_served_here = spec.handled_by != MethodHandledBy::Nothing;
            assert!(
                !(is_of_server || is_notification) || !is_served_here,
                "{method}"
            );
            assert!(!spec.is_list || spec.is_cacheable, "{method}");
            // A method is custom only where this library doesn't handle it.
            let is_missing = |revision: &Revision| !spec.is_in(*revision);
            let is_foreign = !is_served_here && Revision::ALL.iter().any(is_missing);
            assert!(!spec.may_be_custom || is_foreign, "{method}");
            assert!(
                spec.invalidates
                    .iter()
                    .all(|kept| kept.is(|kept| kept.is_cacheable))
            );
            if spec.handled_by == MethodHandledBy::Features {
                assert!(spec.capability(Revision::V2026_07_28).is_some(), "{method}");
            }
        }
    }
}
