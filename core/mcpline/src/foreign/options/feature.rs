//! Options of a server's features, and the definitions of those that the specification has no type for.

use serde_json::Value;

use super::options_macro::options;

options! {
    /// Who may use a feature, and how its handler is run. Options that a kind of feature does not have are ignored.
    #[derive(Debug, Default)]
    pub struct FeatureOptions {
        /// Scopes that a caller needs, all of them.
        pub scopes: Vec<String>,
        /// Words by which features are selected to be enabled or disabled. Tools, resources, templates and prompts.
        pub tags: Vec<String>,
        /// Never run the handler again for a retried request. Tools and custom requests.
        pub run_once: bool,
        /// The handler validates its arguments while it decodes them. Tools.
        pub decodes_itself: bool,
        /// Calls that the whole server accepts: per second, and at once within that rate. Tools.
        pub rate: Option<(u32, u32)>,
        /// How many seconds a handler may run. Tools.
        pub timeout: Option<f64>,
        /// Variables that may have any value. Resource templates.
        pub unchecked_variables: Vec<String>,
        /// How long clients may cache the contents, in milliseconds, and whether shared caches may. Resources and templates.
        pub cache: Option<(u64, bool)>,
        /// Identifier of the extension that the feature belongs to. Custom methods.
        pub extension: Option<String>,
    }
}

options! {
    /// A custom method, or the method that reports an event.
    #[derive(Debug, Default)]
    pub struct MethodDefinition {
        /// The method.
        pub method: String,
        /// JSON Schema of its parameters. `None`: any.
        pub params_schema: Option<Value>,
    }
    needs method;
}

#[cfg(feature = "routes")]
options! {
    /// A path of the author's own at the HTTP server.
    #[derive(Debug, Default)]
    pub struct RouteDefinition {
        /// The path, with variables.
        pub path: String,
        /// The methods of the requests. `None`: GET.
        pub methods: Option<Vec<String>>,
        /// Whether any client may request it.
        pub public: bool,
    }
    needs path;
}

options! {
    /// The requests that a middleware sees. Members that are absent allow all.
    #[derive(Debug, Default)]
    pub struct MiddlewareDefinition {
        /// Methods.
        pub methods: Option<Vec<String>>,
        /// Kinds of features: `tool`, `resource` and `prompt`.
        pub kinds: Option<Vec<String>>,
        /// Names of features.
        pub names: Option<Vec<String>>,
        /// Tags of features.
        pub tags: Option<Vec<String>>,
    }
}

options! {
    /// The argument that a completion is for.
    #[derive(Debug, Default)]
    pub struct CompletionDefinition {
        /// The name of a prompt, or a URI template.
        pub reference: String,
        /// The name of its argument or variable.
        pub argument: String,
    }
    needs reference, argument;
}

options! {
    /// The resource template that a list is for.
    #[derive(Debug, Default)]
    pub struct ResourceListDefinition {
        /// The URI template.
        pub uri_template: String,
    }
    needs uri_template;
}

impl CompletionDefinition {
    /// Returns the name of the completion among those of a server. Neither part contains a line break.
    pub(crate) fn key(&self) -> String {
        format!("{}\n{}", self.reference, self.argument)
    }
}
