//! The lists of a server: the methods that return them, and the notifications of their changes.

use crate::methods::Method;
use crate::vocabulary::{ListCapability, ServerCapabilities, SubscriptionFilter};

/// A list of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListMethod {
    /// `tools/list`
    Tools,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    ResourceTemplates,
    /// `prompts/list`
    Prompts,
}

impl ListMethod {
    /// All lists.
    pub const ALL: &'static [Self] = &[
        Self::Tools,
        Self::Resources,
        Self::ResourceTemplates,
        Self::Prompts,
    ];

    /// The list that this method returns.
    pub fn of(method: &Method) -> Option<Self> {
        match method {
            Method::ToolsList => Some(Self::Tools),
            Method::ResourcesList => Some(Self::Resources),
            Method::ResourcesTemplatesList => Some(Self::ResourceTemplates),
            Method::PromptsList => Some(Self::Prompts),
            _ => None,
        }
    }

    /// The method that returns a page of it.
    pub fn method(self) -> &'static Method {
        static TOOLS: Method = Method::ToolsList;
        static RESOURCES: Method = Method::ResourcesList;
        static RESOURCE_TEMPLATES: Method = Method::ResourcesTemplatesList;
        static PROMPTS: Method = Method::PromptsList;
        match self {
            Self::Tools => &TOOLS,
            Self::Resources => &RESOURCES,
            Self::ResourceTemplates => &RESOURCE_TEMPLATES,
            Self::Prompts => &PROMPTS,
        }
    }

    /// The method's name on the wire.
    pub fn as_str(self) -> &'static str {
        self.method().as_str()
    }

    /// The member of a page that contains its items.
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }
}

/// A change of a server's lists that a client may subscribe to. Resources and templates change together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListChange {
    /// `notifications/tools/list_changed`
    Tools,
    /// `notifications/prompts/list_changed`
    Prompts,
    /// `notifications/resources/list_changed`
    Resources,
}

impl ListChange {
    /// All changes.
    pub const ALL: &'static [Self] = &[Self::Tools, Self::Prompts, Self::Resources];

    /// The notification that announces it.
    pub fn method(self) -> &'static Method {
        static TOOLS: Method = Method::NotificationsToolsListChanged;
        static PROMPTS: Method = Method::NotificationsPromptsListChanged;
        static RESOURCES: Method = Method::NotificationsResourcesListChanged;
        match self {
            Self::Tools => &TOOLS,
            Self::Prompts => &PROMPTS,
            Self::Resources => &RESOURCES,
        }
    }

    /// The notification's name on the wire.
    pub fn as_str(self) -> &'static str {
        self.method().as_str()
    }

    /// Whether a filter of `subscriptions/listen` includes it.
    pub fn is_in(self, filter: &SubscriptionFilter) -> bool {
        let wanted = match self {
            Self::Tools => filter.tools_list_changed,
            Self::Prompts => filter.prompts_list_changed,
            Self::Resources => filter.resources_list_changed,
        };
        wanted == Some(true)
    }

    /// Adds it to a filter of `subscriptions/listen`.
    pub fn add_to(self, filter: &mut SubscriptionFilter) {
        let wanted = match self {
            Self::Tools => &mut filter.tools_list_changed,
            Self::Prompts => &mut filter.prompts_list_changed,
            Self::Resources => &mut filter.resources_list_changed,
        };
        *wanted = Some(true);
    }

    /// Its member in a filter.
    pub fn filter_member(self) -> &'static str {
        match self {
            Self::Tools => "toolsListChanged",
            Self::Prompts => "promptsListChanged",
            Self::Resources => "resourcesListChanged",
        }
    }

    /// Whether a server with these capabilities announces it.
    pub fn is_declared(self, capabilities: &ServerCapabilities) -> bool {
        let of_list =
            |list: &Option<ListCapability>| list.as_ref().and_then(|list| list.list_changed);
        let declared = match self {
            Self::Tools => of_list(&capabilities.tools),
            Self::Prompts => of_list(&capabilities.prompts),
            Self::Resources => {
                let resources = capabilities.resources.as_ref();
                resources.and_then(|resources| resources.list_changed)
            }
        };
        declared == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::vocabulary::ResourcesCapability;

    #[test]
    fn the_lists_are_those_of_the_method_table() {
        let mut lists = Vec::new();
        for method in Method::KNOWN {
            let list = ListMethod::of(method);
            assert_eq!(list.is_some(), method.is(|spec| spec.is_list), "{method}");
            if let Some(list) = list {
                assert_eq!(list.method(), method);
                lists.push(list);
            }
        }
        assert_eq!(lists.len(), ListMethod::ALL.len());
    }

    #[test]
    fn changes_make_the_lists_of_the_method_table_outdated() {
        let mut invalidated = Vec::new();
        for change in ListChange::ALL {
            let spec = change.method().spec().expect("a row");
            invalidated.extend(spec.invalidates.iter().filter_map(ListMethod::of));
        }
        assert_eq!(invalidated.len(), ListMethod::ALL.len());
        assert!(
            ListMethod::ALL
                .iter()
                .all(|list| invalidated.contains(list))
        );
    }

    #[test]
    fn a_change_is_added_under_its_member() {
        let list = ListCapability::default().with_list_changed(true);
        let resources = ResourcesCapability::default().with_list_changed(true);
        for change in ListChange::ALL {
            let mut filter = SubscriptionFilter::default();
            assert!(!change.is_in(&filter));
            change.add_to(&mut filter);
            assert!(change.is_in(&filter));
            let json = serde_json::to_value(&filter).expect("JSON");
            assert_eq!(json, json!({change.filter_member(): true}));
            let mut capabilities = ServerCapabilities::default();
            assert!(!change.is_declared(&capabilities));
            capabilities = match change {
                ListChange::Tools => capabilities.with_tools(list.clone()),
                ListChange::Prompts => capabilities.with_prompts(list.clone()),
                ListChange::Resources => capabilities.with_resources(resources.clone()),
            };
            for other in ListChange::ALL {
                assert_eq!(other.is_declared(&capabilities), other == change);
            }
        }
    }
}
