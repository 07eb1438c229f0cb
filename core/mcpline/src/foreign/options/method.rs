//! How the handler of a custom method is registered.

use serde_json::Value;

use crate::server::MethodOptions;

use super::definition::options;

options! {
    /// [`MethodOptions`] as foreign code gives them.
    #[derive(Debug, Default)]
    pub struct CustomMethodOptions {
        params_schema: Option<Value>,
        scopes: Vec<String>,
        /// The identifier of the extension that the method belongs to.
        extension: Option<String>,
        run_once: bool,
    }
}

impl CustomMethodOptions {
    /// The options.
    pub fn options(self) -> MethodOptions {
        let mut options = MethodOptions::default().with_scopes(self.scopes);
        options.params_schema = self.params_schema;
        options.extension = self.extension;
        options.run_once = self.run_once;
        options
    }
}
