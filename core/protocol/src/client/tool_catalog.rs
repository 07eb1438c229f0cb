//! What a client knows about a server's tools from `tools/list` and needs to call them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::limits::MAX_INLINE_DECODED_BYTES;
use crate::vocabulary::ToolAnnotations;
use crate::wire::Raw;
use crate::wire::header::ParamHeaders;

use super::output_check::{OutputCheck, OutputSchema};

/// The largest number of tools that is remembered per server: calls of further tools do without the listed information.
pub const MAX_KNOWN_TOOLS: usize = 10_000;

/// The largest size of names, schemas and headers that is remembered per server, in bytes, for the same reason: as much
/// as a client accepts of a list.
pub const MAX_KNOWN_TOOLS_BYTES: usize = 32 * 1024 * 1024;

/// The largest number of left-out tools of a page that warnings name: a log is for people.
const MAX_WARNINGS_PER_PAGE: usize = 16;

/// The largest number of characters of a tool's name in an error or a warning: a server may send names of many
/// megabytes.
const MAX_SHOWN_NAME_CHARS: usize = 200;

/// The tools of one server, by name.
#[derive(Debug, Default)]
pub struct ToolCatalog {
    tools: HashMap<String, CatalogEntry>,
    bytes: usize,
}

/// The listed information about a tool.
#[derive(Debug, Default)]
struct CatalogEntry {
    headers: ParamHeaders,
    output: Option<Arc<OutputSchema>>,
    annotations: ToolAnnotations,
    requires_task: bool,
    /// Its approximate size.
    bytes: usize,
}

/// The size of an entry besides its name and its output schema; its headers are few.
const CATALOG_ENTRY_BYTES: usize = 256;

/// A page of `tools/list` after invalid tools were left out.
#[derive(Debug, Default, PartialEq)]
pub struct FilteredToolPage {
    /// The page without the tools that are left out; `None` if all stay.
    pub page: Option<Raw>,
    /// Why tools were left out, or can't be checked, for a log.
    pub warnings: Vec<String>,
}

/// Whether a client may know a tool that its server lists.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolAdmission {
    /// It may.
    Admitted,
    /// The tool is left out of the list without a warning: the host does not want it.
    Hidden,
    /// The tool is left out of the list, with a warning that gives this reason.
    Refused(String),
}

/// Decides about a tool, by its name and definition.
pub type ToolFilter<'a> = &'a dyn Fn(&str, &Raw) -> ToolAdmission;

/// A parsed page of `tools/list`, with the information to remember.
///
/// Parsing is separate from the [`ToolCatalog`], so that no lock is held in the meantime.
#[derive(Debug, Default)]
pub struct ToolPage {
    /// The tools by name, in the order of the page; `None` for those that are left out.
    tools: Vec<(String, Option<CatalogEntry>)>,
    filtered: FilteredToolPage,
    left_out: usize,
}

impl ToolPage {
    /// Parses a page if that is quick; `None` if it may take longer. `admit` decides which tools stay. With `has_param_headers`, where parameters are
    /// repeated as headers, tools whose `x-mcp-header` breaks a rule are left out (2026-07-28,
    /// `basic/transports/streamable-http`).
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_inline(
        page: &Raw,
        has_param_headers: bool,
        admit: ToolFilter<'_>,
    ) -> Option<Result<Self, String>> {
        let is_small = page.as_bytes().len() <= MAX_INLINE_DECODED_BYTES;
        is_small.then(|| Self::read(page, has_param_headers, admit, &AtomicBool::new(false)))
    }

    /// Parses a page. Setting `interrupt` ends that with an error.
    ///
    /// # Errors
    /// What is wrong with an invalid page.
    pub fn read(
        page: &Raw,
        has_param_headers: bool,
        admit: ToolFilter<'_>,
        interrupt: &AtomicBool,
    ) -> Result<Self, String> {
        let mut read = Self::default();
        let tools = page.member("tools").ok_or("`tools` is missing")?;
        let tools: Vec<Raw> = tools
            .elements()
            .ok_or("`tools` must be an array")?
            .collect();
        let mut kept = Vec::with_capacity(tools.len());
        for tool in &tools {
            if interrupt.load(Ordering::Relaxed) {
                return Err("reading it was given up".to_owned());
            }
            let name = tool.member("name");
            let Some(name) = name.as_ref().and_then(Raw::string_value) else {
                return Err("a tool has no name".to_owned());
            };
            let schema = tool.member("inputSchema");
            let Some(schema) = schema.filter(|schema| schema.members().is_some()) else {
                let shown: String = name.chars().take(MAX_SHOWN_NAME_CHARS).collect();
                return Err(format!("the tool {shown:?} has no input schema"));
            };
            let headers = match compile_headers(&schema, has_param_headers) {
                Ok(headers) => headers,
                Err(problem) => {
                    read.leave_out(name.into_owned(), &problem);
                    continue;
                }
            };
            match admit(&name, tool) {
                ToolAdmission::Admitted => {}
                ToolAdmission::Hidden => {
                    read.forget(name.into_owned());
                    continue;
                }
                ToolAdmission::Refused(reason) => {
                    read.leave_out(name.into_owned(), &reason);
                    continue;
                }
            }
            kept.push(tool);
            // More than that is not remembered.
            if read.tools.len() < MAX_KNOWN_TOOLS {
                let known = CatalogEntry::new(&name, tool, headers);
                read.tools.push((name.into_owned(), Some(known)));
            }
        }
        if kept.len() < tools.len() {
            read.filtered.page = Some(with_tools(page, &kept));
        }
        if read.left_out > MAX_WARNINGS_PER_PAGE {
            let more = read.left_out - MAX_WARNINGS_PER_PAGE;
            read.filtered
                .warnings
                .push(format!("{more} more tools are left out"));
        }
        Ok(read)
    }

    fn leave_out(&mut self, name: String, problem: &str) {
        self.left_out += 1;
        if self.left_out <= MAX_WARNINGS_PER_PAGE {
            let shown: String = name.chars().take(MAX_SHOWN_NAME_CHARS).collect();
            let problem: String = problem.chars().take(MAX_SHOWN_NAME_CHARS).collect();
            let warning = format!("the tool {shown:?} is left out: {problem}");
            self.filtered.warnings.push(warning);
        }
        self.forget(name);
    }

    fn forget(&mut self, name: String) {
        if self.tools.len() < MAX_KNOWN_TOOLS {
            self.tools.push((name, None));
        }
    }
}

impl CatalogEntry {
    fn new(name: &str, tool: &Raw, headers: ParamHeaders) -> Self {
        let mut kept = name.len();
        let output = tool
            .member("outputSchema")
            .filter(|schema| !schema.is_null())
            .map(|schema| {
                kept += schema.as_bytes().len();
                Arc::new(OutputSchema::new(&schema))
            });
        let execution = tool.member("execution");
        let support = execution.and_then(|execution| execution.member("taskSupport"));
        let annotations = tool.member("annotations");
        kept += annotations
            .as_ref()
            .map_or(0, |annotations| annotations.as_bytes().len());
        Self {
            headers,
            output,
            annotations: annotations
                .and_then(|annotations| annotations.decode().ok())
                .unwrap_or_default(),
            requires_task: support
                .is_some_and(|support| support.string_value().as_deref() == Some("required")),
            bytes: CATALOG_ENTRY_BYTES + kept,
        }
    }
}

impl ToolCatalog {
    /// An empty catalog.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses a page of `tools/list` and remembers its tools.
    ///
    /// # Errors
    /// As for [`ToolPage::read`].
    pub fn add_raw_page(
        &mut self,
        page: &Raw,
        has_param_headers: bool,
    ) -> Result<FilteredToolPage, String> {
        let admit = |_: &str, _: &Raw| ToolAdmission::Admitted;
        let page = ToolPage::read(page, has_param_headers, &admit, &AtomicBool::new(false))?;
        Ok(self.add_page(page))
    }

    /// Remembers the tools of a page.
    pub fn add_page(&mut self, page: ToolPage) -> FilteredToolPage {
        for (name, known) in page.tools {
            match known {
                Some(known) => self.add_tool(name, known),
                None => self.remove(&name),
            }
        }
        page.filtered
    }

    fn add_tool(&mut self, name: String, known: CatalogEntry) {
        if self.tools.len() >= MAX_KNOWN_TOOLS && !self.tools.contains_key(&name) {
            return;
        }
        self.remove(&name);
        let bytes = known.bytes;
        if self.bytes + bytes <= MAX_KNOWN_TOOLS_BYTES {
            self.bytes += bytes;
            self.tools.insert(name, known);
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some(known) = self.tools.remove(name) {
            self.bytes -= known.bytes;
        }
    }

    /// Removes everything. The list has to be fetched again.
    pub fn clear(&mut self) {
        self.tools.clear();
        self.bytes = 0;
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

    /// The listed annotations of a tool.
    pub fn annotations(&self, tool: &str) -> Option<ToolAnnotations> {
        self.tools.get(tool).map(|known| known.annotations.clone())
    }

    /// Whether calling the tool twice has the same effect as calling it once, according to its annotations.
    pub fn is_repeatable(&self, tool: &str) -> bool {
        self.tools.get(tool).is_some_and(|known| {
            let hints = &known.annotations;
            hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
        })
    }

    /// Whether the tool can only be called as a task (2025-11-25, `basic/utilities/tasks`, tool-level negotiation).
    pub fn requires_task(&self, tool: &str) -> bool {
        self.tools
            .get(tool)
            .is_some_and(|known| known.requires_task)
    }

    /// The check of a call's result, if the tool has an output schema.
    pub fn output_check(&self, tool: &str, result: &Raw) -> Option<OutputCheck> {
        let schema = self.tools.get(tool)?.output.as_ref()?;
        OutputCheck::of(tool, schema, result)
    }
}

fn compile_headers(schema: &Raw, has_param_headers: bool) -> Result<ParamHeaders, String> {
    // Most schemas mirror nothing and need no parsing.
    if !has_param_headers || !schema.as_str().contains("x-mcp-header") {
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
