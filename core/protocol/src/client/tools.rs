//! What a client has learnt of a server's tools from their lists, and needs when it calls them.

use std::collections::HashMap;

use serde_json::Value;

use crate::schema::CompiledSchema;
use crate::vocabulary::ToolAnnotations;
use crate::wire::Raw;
use crate::wire::header::ParamHeaders;

/// Most tools remembered of one server: past that, calls go out without what the list says of them.
pub const MAX_KNOWN_TOOLS: usize = 10_000;

/// The tools of one server, by name.
#[derive(Debug, Default)]
pub struct ToolBook {
    tools: HashMap<String, KnownTool>,
}

/// What is known of one tool.
#[derive(Debug, Default)]
struct KnownTool {
    headers: ParamHeaders,
    output: Output,
    annotations: ToolAnnotations,
}

/// The schema of a tool's structured content.
#[derive(Debug, Default)]
enum Output {
    /// It has none.
    #[default]
    None,
    /// It has this one; compiled when the tool is first called.
    Raw(Raw),
    Compiled(Box<CompiledSchema>),
    /// It has one that can't be used.
    Unusable(String),
}

/// What was learnt from a page of `tools/list`.
#[derive(Debug, Default, PartialEq)]
pub struct Learnt {
    /// The page without the tools that are left out; `None` if all stay.
    pub page: Option<Raw>,
    /// Why tools were left out, or can't be checked, for a log.
    pub warnings: Vec<String>,
}

impl ToolBook {
    /// Nothing known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Learns from a page of `tools/list`. With `mirrored`, where parameters are repeated as headers, tools whose
    /// `x-mcp-header` breaks a rule are left out (2026-07-28, `basic/transports/streamable-http`).
    ///
    /// # Errors
    /// What is wrong with a page that is none.
    pub fn learn(&mut self, page: &Raw, mirrored: bool) -> Result<Learnt, String> {
        let tools = page.member("tools").ok_or("it has no tools")?;
        let tools: Vec<Raw> = tools.elements().ok_or("tools is no array")?.collect();
        let mut learnt = Learnt::default();
        let mut kept = Vec::with_capacity(tools.len());
        for tool in &tools {
            let name = tool.member("name");
            let Some(name) = name.as_ref().and_then(Raw::string_value) else {
                return Err("a tool has no name".to_owned());
            };
            let schema = tool.member("inputSchema");
            let Some(schema) = schema.filter(|schema| schema.members().is_some()) else {
                return Err(format!("the tool {name:?} has no input schema"));
            };
            let headers = match headers_of(&schema, mirrored) {
                Ok(headers) => headers,
                Err(problem) => {
                    let warning = format!("the tool {name:?} is left out: {problem}");
                    learnt.warnings.push(warning);
                    self.tools.remove(&*name);
                    continue;
                }
            };
            kept.push(tool);
            self.enter(name.into_owned(), tool, headers);
        }
        if kept.len() < tools.len() {
            learnt.page = Some(with_tools(page, &kept));
        }
        Ok(learnt)
    }

    fn enter(&mut self, name: String, tool: &Raw, headers: ParamHeaders) {
        if self.tools.len() >= MAX_KNOWN_TOOLS && !self.tools.contains_key(&name) {
            return;
        }
        let output = match tool
            .member("outputSchema")
            .filter(|schema| !schema.is_null())
        {
            // A slice would hold the whole page.
            Some(schema) => Output::Raw(Raw::from_trusted(schema.as_bytes().to_vec())),
            None => Output::None,
        };
        let annotations = tool.member("annotations");
        let known = KnownTool {
            headers,
            output,
            annotations: annotations
                .and_then(|annotations| annotations.decode().ok())
                .unwrap_or_default(),
        };
        self.tools.insert(name, known);
    }

    /// Forgets everything: the list is to be fetched anew.
    pub fn clear(&mut self) {
        self.tools.clear();
    }

    /// The `Mcp-Param-…` headers of a call.
    pub fn headers(&self, tool: &str, arguments: Option<&Raw>) -> Vec<(String, String)> {
        let known = self
            .tools
            .get(tool)
            .filter(|known| !known.headers.is_empty());
        let Some((known, arguments)) = known.zip(arguments) else {
            return Vec::new();
        };
        let headers = known.headers.headers(arguments);
        let owned = |(name, value): (&str, String)| (name.to_owned(), value);
        headers.into_iter().map(owned).collect()
    }

    /// Whether calling the tool twice does no more than calling it once, as far as it says itself.
    pub fn is_repeatable(&self, tool: &str) -> bool {
        self.tools.get(tool).is_some_and(|known| {
            let hints = &known.annotations;
            hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
        })
    }

    /// Holds the result of a call against the tool's output schema, if it has one.
    ///
    /// # Errors
    /// Why the result doesn't fit.
    pub fn check_output(&mut self, tool: &str, result: &Raw) -> Result<(), String> {
        let Some(known) = self.tools.get_mut(tool) else {
            return Ok(());
        };
        if matches!(known.output, Output::None) {
            return Ok(());
        }
        let is_error = result
            .member("isError")
            .is_some_and(|flag| flag.as_str() == "true");
        if is_error {
            return Ok(());
        }
        if let Output::Raw(schema) = &known.output {
            known.output = compiled(schema);
        }
        let content = result.member("structuredContent");
        let content = content.filter(|content| !content.is_null());
        match (&known.output, content) {
            (Output::Compiled(schema), Some(content)) => schema
                .validate(&content)
                .map_err(|violation| format!("the structured content of {tool:?}: {violation}")),
            (Output::Compiled(_), None) => Err(format!(
                "the tool {tool:?} has an output schema, and its result no structured content"
            )),
            (Output::Unusable(why), _) => Err(format!("the output schema of {tool:?}: {why}")),
            (Output::None | Output::Raw(_), _) => Ok(()),
        }
    }
}

fn compiled(schema: &Raw) -> Output {
    let value: Value = match schema.decode() {
        Ok(value) => value,
        Err(error) => return Output::Unusable(error.to_string()),
    };
    match CompiledSchema::compile(&value) {
        Ok(schema) => Output::Compiled(Box::new(schema)),
        Err(error) => Output::Unusable(error.to_string()),
    }
}

fn headers_of(schema: &Raw, mirrored: bool) -> Result<ParamHeaders, String> {
    // Most schemas mirror nothing and need no parsing.
    if !mirrored || !schema.as_str().contains("x-mcp-header") {
        return Ok(ParamHeaders::default());
    }
    let value: Value = schema.decode().map_err(|error| error.to_string())?;
    ParamHeaders::compile(&value).map_err(|error| error.to_string())
}

/// The page with only these tools.
fn with_tools(page: &Raw, tools: &[&Raw]) -> Raw {
    let mut out = String::from("{");
    for (index, (name, value)) in page.members().into_iter().flatten().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(Raw::string(&name).as_str());
        out.push(':');
        if name == "tools" {
            let tools: Vec<&str> = tools.iter().map(|tool| tool.as_str()).collect();
            out.push('[');
            out.push_str(&tools.join(","));
            out.push(']');
        } else {
            out.push_str(value.as_str());
        }
    }
    out.push('}');
    Raw::from_trusted(out)
}
