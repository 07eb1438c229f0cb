//! Options of a custom method's handler.

use serde_json::Value;

use crate::server::MethodOptions;

use super::options_macro::options;

options! {
    /// [`MethodOptions`] from foreign code.
    #[derive(Debug, Default)]
    pub struct CustomMethodOptions {
        params_schema: Option<Value>,
        scopes: Vec<String>,
        /// Identifier of the extension that the method belongs to.
        extension: Option<String>,
        run_once: bool,
    }
}

impl CustomMethodOptions {
    /// Converts into the core's options.
    pub fn options(self) -> MethodOptions {
        let mut options = MethodOptions::default().with_scopes(self.scopes);
        options.params_schema = self.params_schema;
        options.extension = self.extension;
        options.run_once = self.run_once;
        options
    }
}
