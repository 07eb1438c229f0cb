//! The methods of every revision.

use std::fmt;

macro_rules! methods {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// The method of a request or notification: those that any revision defines, and all others.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Method {
            $(#[doc = concat!("`", $name, "`")] $(#[$doc])* $variant,)+
            /// A method that no revision defines: an extension's, or a mistake.
            Other(Box<str>),
        }

        impl Method {
            /// Every method that some revision defines.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant),+];

            /// The method of that name.
            pub fn parse(name: &str) -> Self {
                Self::known(name.as_bytes()).unwrap_or_else(|| Self::Other(name.into()))
            }

            /// The method of that name, if some revision defines it.
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
        }
    };
}

methods! {
    ToolsCall = "tools/call",
    ToolsList = "tools/list",
    ResourcesRead = "resources/read",
    ResourcesList = "resources/list",
    ResourcesTemplatesList = "resources/templates/list",
    ResourcesSubscribe = "resources/subscribe",
    ResourcesUnsubscribe = "resources/unsubscribe",
    PromptsGet = "prompts/get",
    PromptsList = "prompts/list",
    CompletionComplete = "completion/complete",
    LoggingSetLevel = "logging/setLevel",
    Ping = "ping",
    Initialize = "initialize",
    ServerDiscover = "server/discover",
    SubscriptionsListen = "subscriptions/listen",
    SamplingCreateMessage = "sampling/createMessage",
    ElicitationCreate = "elicitation/create",
    RootsList = "roots/list",
    TasksGet = "tasks/get",
    TasksResult = "tasks/result",
    TasksList = "tasks/list",
    TasksCancel = "tasks/cancel",
    /// (the extension of 2026-07-28)
    TasksUpdate = "tasks/update",
    NotificationsInitialized = "notifications/initialized",
    NotificationsCancelled = "notifications/cancelled",
    NotificationsProgress = "notifications/progress",
    NotificationsMessage = "notifications/message",
    NotificationsToolsListChanged = "notifications/tools/list_changed",
    NotificationsResourcesListChanged = "notifications/resources/list_changed",
    NotificationsResourcesUpdated = "notifications/resources/updated",
    NotificationsPromptsListChanged = "notifications/prompts/list_changed",
    NotificationsRootsListChanged = "notifications/roots/list_changed",
    NotificationsElicitationComplete = "notifications/elicitation/complete",
    NotificationsSubscriptionsAcknowledged = "notifications/subscriptions/acknowledged",
    NotificationsTasksStatus = "notifications/tasks/status",
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
    fn every_name_leads_back_to_its_method() {
        for method in Method::KNOWN {
            assert_eq!(&Method::parse(method.as_str()), method);
        }
        assert_eq!(Method::parse("x/y").as_str(), "x/y");
    }
}
