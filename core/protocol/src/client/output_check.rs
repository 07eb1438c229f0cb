//! Checks a tool's structured content against the output schema from `tools/list`.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::limits::MAX_INLINE_SCHEMA_BYTES;
use crate::schema::{CompiledSchema, SchemaError};
use crate::wire::Raw;

/// The output schema of a tool. It is compiled on the tool's first call.
#[derive(Debug)]
pub(super) struct OutputSchema {
    listed: Raw,
    /// The compiled schema, or why it can't be used.
    compiled: OnceLock<Result<CompiledSchema, String>>,
}

/// A result with the schema that its structured content must match.
///
/// The check runs apart from the [`ToolCatalog`](super::ToolCatalog) that holds the schema, so that no lock is held in
/// the meantime.
#[derive(Debug)]
pub struct OutputCheck {
    tool: String,
    schema: Arc<OutputSchema>,
    content: Option<Raw>,
}

impl OutputSchema {
    /// Takes the schema from a page of `tools/list`.
    pub(super) fn new(listed: &Raw) -> Self {
        Self {
            // A slice would keep the whole page in memory.
            listed: listed.detached(),
            compiled: OnceLock::new(),
        }
    }

    /// Returns the compiled schema, and compiles it first if necessary. Reaching a limit is not remembered.
    fn compiled(
        &self,
        compile: impl FnOnce(&Value) -> Result<CompiledSchema, SchemaError>,
    ) -> Result<&Result<CompiledSchema, String>, SchemaError> {
        if let Some(compiled) = self.compiled.get() {
            return Ok(compiled);
        }
        let compiled = match self.listed.decode() {
            Ok(schema) => match compile(&schema) {
                Err(SchemaError::Limit) => return Err(SchemaError::Limit),
                compiled => compiled.map_err(|error| error.to_string()),
            },
            Err(error) => Err(error.to_string()),
        };
        Ok(self.compiled.get_or_init(|| compiled))
    }
}

impl OutputCheck {
    /// The check of a result; `None` if the result is an error, which has no structured content.
    pub(super) fn of(tool: &str, schema: &Arc<OutputSchema>, result: &Raw) -> Option<Self> {
        let is_error = result
            .member("isError")
            .is_some_and(|flag| flag.as_str() == "true");
        let content = result.member("structuredContent");
        (!is_error).then(|| Self {
            tool: tool.to_owned(),
            schema: schema.clone(),
            content,
        })
    }

    /// Checks the result if that is quick; `None` if it may take longer.
    pub fn run_inline(&self) -> Option<Result<(), String>> {
        let is_compiled = self.schema.compiled.get().is_some();
        if !is_compiled && self.schema.listed.as_bytes().len() > MAX_INLINE_SCHEMA_BYTES {
            return None;
        }
        let compile = |schema: &Value| {
            CompiledSchema::compile_inline(schema).unwrap_or(Err(SchemaError::Limit))
        };
        let compiled = self.schema.compiled(compile).ok()?;
        match (compiled, &self.content) {
            (Ok(schema), Some(content)) => {
                let outcome = schema.validate_inline(content)?;
                Some(outcome.map_err(|violation| self.refusal(&violation.to_string())))
            }
            (compiled, _) => Some(Err(self.refusal_without_content(compiled))),
        }
    }

    /// Checks the result. Setting `interrupt` ends the check with an error.
    ///
    /// # Errors
    /// Why the result doesn't match the schema.
    pub fn run(&self, interrupt: &AtomicBool) -> Result<(), String> {
        let compile = |schema: &Value| CompiledSchema::compile_until(schema, Some(interrupt));
        let compiled = self
            .schema
            .compiled(compile)
            .map_err(|error| self.unusable(&error.to_string()))?;
        match (compiled, &self.content) {
            (Ok(schema), Some(content)) => schema
                .validate_until(content, Some(interrupt))
                .map_err(|violation| self.refusal(&violation.to_string())),
            (compiled, _) => Err(self.refusal_without_content(compiled)),
        }
    }

    fn refusal(&self, why: &str) -> String {
        format!("the structured content of {:?}: {why}", self.tool)
    }

    fn refusal_without_content(&self, compiled: &Result<CompiledSchema, String>) -> String {
        match compiled {
            Ok(_) => format!(
                "the tool {:?} has an output schema, and its result no structured content",
                self.tool
            ),
            Err(why) => self.unusable(why),
        }
    }

    fn unusable(&self, why: &str) -> String {
        format!("the output schema of {:?}: {why}", self.tool)
    }
}
