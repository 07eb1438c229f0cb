//! Replaces values in results and arguments.

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

use mcpline_protocol::RpcError;
use mcpline_protocol::limits::MAX_INLINE_DECODED_BYTES;
use mcpline_protocol::wire::{Kind, Method, Raw, json_string};
use regex::{NoExpand, Regex, RegexBuilder};

use crate::error::Error;
use crate::offload;
use crate::sync::Arc;
use crate::turn_queue::PeerId;

use super::json_redaction::{REDACTED, RedactionRules, redacted_json, redacted_text};
use super::{Middleware, MiddlewareFuture, MiddlewareOutcome, MiddlewareRequest, Next};

/// Maximum size of a compiled pattern in bytes, and of the states that it keeps while it searches: enough for some thousand
/// alternatives.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;

/// Maximum depth of groups in a pattern: people write no deeper ones, and its parser is recursive.
const MAX_PATTERN_DEPTH: u32 = 100;

/// A [`Middleware`] that replaces values in the results of tools, in the texts of resources and in the messages of prompts; if it is
/// told to, also in their arguments.
///
/// ```
/// use std::sync::Arc;
///
/// use mcpline::Server;
/// use mcpline::middleware::Redaction;
/// use mcpline::server::MiddlewareScope;
///
/// let server = Server::new("customers", "1.0.0");
/// let redaction = Redaction::new()
///     .with_members(["iban", "birthday"])
///     .with_patterns([r"\b\d{3}-\d{2}-\d{4}\b"])?;
/// server.add_middleware(MiddlewareScope::all(), Arc::new(redaction))?;
/// # Ok::<(), mcpline::Error>(())
/// ```
///
/// - **Members** are replaced at any depth of structured content, and of texts that are themselves a JSON object or array. Their
///   names are compared without regard to case. The whole value is replaced, whatever it is.
/// - **Patterns** replace what they match in the texts of content and embedded resources, in titles and descriptions of links to
///   resources, in the strings of structured content, in the description of a prompt's messages, and in the messages of errors. In
///   structured content they replace neither numbers nor names of members; in texts that are JSON they do, so that such a text may
///   no longer be JSON.
///
/// All else stays as it is: types, URIs, names, `_meta`, annotations, images, sound and other blobs, the data of errors, lists,
/// completions, custom requests, notifications, and input requests to the client. Scopes select the requests that are redacted.
///
/// The server checks structured content against the output schema before this. If a replaced value has another type than
/// the schema requires, the client gets a result that does not match it, and may refuse it: let such members be strings, too.
/// Arguments are replaced before they are checked, so that a tool may refuse what replaced them.
///
/// An [`AuditLog`](super::AuditLog) that was added before this contains redacted results, and one that was added after it
/// contains redacted arguments. Large values are redacted on a thread of their own.
#[derive(Debug, Clone)]
pub struct Redaction {
    rules: Arc<Rules>,
    redacts_arguments: bool,
}

#[derive(Debug, Clone)]
struct Rules {
    /// In lower case.
    members: Vec<String>,
    patterns: Vec<Regex>,
    replacement: String,
}

impl Redaction {
    /// Creates a redaction that replaces nothing yet.
    pub fn new() -> Self {
        Self {
            rules: Arc::new(Rules {
                members: Vec::new(),
                patterns: Vec::new(),
                replacement: REDACTED.to_owned(),
            }),
            redacts_arguments: false,
        }
    }

    /// Sets the names of members whose values are replaced.
    #[must_use]
    pub fn with_members<S: AsRef<str>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        let names = names.into_iter().map(|name| name.as_ref().to_lowercase());
        Arc::make_mut(&mut self.rules).members = names.collect();
        self
    }

    /// Sets regular expressions whose matches are replaced, one after the other. Their syntax is that of the crate `regex`, which
    /// matches in linear time: it has no look-around and no back references.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a pattern is invalid, takes more than a megabyte, or matches the empty
    /// text.
    pub fn with_patterns<S: AsRef<str>>(
        mut self,
        patterns: impl IntoIterator<Item = S>,
    ) -> Result<Self, Error> {
        let patterns = patterns
            .into_iter()
            .map(|pattern| compiled(pattern.as_ref()));
        Arc::make_mut(&mut self.rules).patterns = patterns.collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// Sets what takes the place of a value or match. Default: `[redacted]`.
    #[must_use]
    pub fn with_replacement(mut self, replacement: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.rules).replacement = replacement.into();
        self
    }

    /// Sets whether the arguments of tools and prompts are redacted as well, before the handler gets them. Default: `false`.
    #[must_use]
    pub fn with_arguments(mut self, arguments: bool) -> Self {
        self.redacts_arguments = arguments;
        self
    }
}

impl Default for Redaction {
    fn default() -> Self {
        Self::new()
    }
}

fn compiled(pattern: &str) -> Result<Regex, Error> {
    let mut builder = RegexBuilder::new(pattern);
    builder
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_PATTERN_BYTES)
        .nest_limit(MAX_PATTERN_DEPTH);
    let regex = builder
        .build()
        .map_err(|error| Error::usage(format!("the pattern {pattern:?} is invalid: {error}")))?;
    match regex.is_match("") {
        true => Err(Error::usage(format!(
            "the pattern {pattern:?} matches the empty text"
        ))),
        false => Ok(regex),
    }
}

impl RedactionRules for Rules {
    fn replacement(&self) -> &str {
        &self.replacement
    }

    fn hides<'v>(&self, name: &str, _: impl FnOnce() -> &'v str) -> bool {
        !self.members.is_empty() && self.members.contains(&name.to_lowercase())
    }

    fn replaced(&self, text: &str) -> Option<String> {
        let mut current = Cow::Borrowed(text);
        for pattern in &self.patterns {
            if let Cow::Owned(replaced) = pattern.replace_all(&current, NoExpand(&self.replacement))
            {
                current = Cow::Owned(replaced);
            }
        }
        match current {
            Cow::Borrowed(_) => None,
            Cow::Owned(replaced) => Some(replaced),
        }
    }
}

impl Rules {
    /// Whether a value takes too long for the thread that serves the connection. Each pattern reads the value.
    fn is_large(&self, value: &Raw) -> bool {
        value.as_bytes().len() * (1 + self.patterns.len()) > MAX_INLINE_DECODED_BYTES
    }

    /// Returns a result of this method without what is to be replaced; `None` if there is nothing.
    fn result(&self, method: &Method, result: &Raw) -> Option<Raw> {
        match method {
            Method::ToolsCall => changed_members(result, |name, value| match name {
                "content" => changed_elements(value, |block| self.content(block)),
                "structuredContent" => self.json(value),
                _ => None,
            }),
            Method::ResourcesRead => changed_members(result, |name, value| match name {
                "contents" => changed_elements(value, |contents| self.content(contents)),
                _ => None,
            }),
            Method::PromptsGet => changed_members(result, |name, value| match name {
                "description" => self.string(value),
                "messages" => changed_elements(value, |message| {
                    changed_members(message, |name, value| match name {
                        "content" => self.content(value),
                        _ => None,
                    })
                }),
                _ => None,
            }),
            _ => None,
        }
    }

    /// Redacts a content block, or the contents of a resource. Members of types that are not known yet have the same names.
    fn content(&self, content: &Raw) -> Option<Raw> {
        changed_members(content, |name, value| match name {
            "text" | "title" | "description" => self.string(value),
            "resource" => changed_members(value, |name, value| match name {
                "text" => self.string(value),
                _ => None,
            }),
            _ => None,
        })
    }

    fn string(&self, value: &Raw) -> Option<Raw> {
        let text = value.string_value()?;
        redacted_text(&text, self).map(|text| Raw::string(&text))
    }

    fn json(&self, value: &Raw) -> Option<Raw> {
        redacted_json(value.as_str(), self).map(Raw::from_trusted)
    }
}

/// Returns an object with those members that `change` returns; `None` if it is no object or nothing has changed.
fn changed_members(object: &Raw, change: impl Fn(&str, &Raw) -> Option<Raw>) -> Option<Raw> {
    let mut out = vec![b'{'];
    let mut has_changed = false;
    for (name, value) in object.members()? {
        if out.len() > 1 {
            out.push(b',');
        }
        json_string(&mut out, &name);
        out.push(b':');
        let changed = change(&name, &value);
        has_changed |= changed.is_some();
        out.extend_from_slice(changed.as_ref().unwrap_or(&value).as_bytes());
    }
    out.push(b'}');
    has_changed.then(|| Raw::from_trusted(out))
}

/// Returns an array with those elements that `change` returns; `None` if it is no array or nothing has changed.
fn changed_elements(array: &Raw, change: impl Fn(&Raw) -> Option<Raw>) -> Option<Raw> {
    let mut out = vec![b'['];
    let mut has_changed = false;
    for element in array.elements()? {
        if out.len() > 1 {
            out.push(b',');
        }
        let changed = change(&element);
        has_changed |= changed.is_some();
        out.extend_from_slice(changed.as_ref().unwrap_or(&element).as_bytes());
    }
    out.push(b']');
    has_changed.then(|| Raw::from_trusted(out))
}

/// Redacts a value here, or on a thread of its own if it is large.
async fn computed(
    rules: &Arc<Rules>,
    peer: PeerId,
    value: Raw,
    redact: impl FnOnce(&Rules, &Raw) -> Option<Raw> + Send + 'static,
) -> Result<Raw, RpcError> {
    if !rules.is_large(&value) {
        return Ok(redact(rules, &value).unwrap_or(value));
    }
    let rules = rules.clone();
    let never = Arc::new(AtomicBool::new(false));
    let redacting = offload::compute(peer, never, move |_| {
        redact(&rules, &value).unwrap_or(value)
    });
    // What could not be redacted must not be sent.
    let failed = || RpcError::internal_error("the request could not be redacted");
    redacting.await.ok_or_else(failed)
}

async fn run(
    rules: Arc<Rules>,
    redacts_arguments: bool,
    mut request: MiddlewareRequest,
    next: Next,
) -> MiddlewareOutcome {
    let (method, peer) = (request.protocol_method().clone(), request.peer());
    if redacts_arguments
        && let Some(arguments) = request.arguments()
        && arguments.kind() == Kind::Object
    {
        let before = arguments.clone();
        let redacted = computed(&rules, peer, arguments, Rules::json).await?;
        if redacted != before {
            request
                .set_arguments(redacted)
                .map_err(|error| RpcError::internal_error(error.to_string()))?;
        }
    }
    match next.run(request).await {
        Ok(result) => {
            let redact = move |rules: &Rules, result: &Raw| rules.result(&method, result);
            computed(&rules, peer, result, redact).await
        }
        Err(mut error) => {
            if let Some(message) = rules.replaced(&error.message) {
                error.message = message.into();
            }
            Err(error)
        }
    }
}

impl Middleware for Redaction {
    fn handle(&self, request: MiddlewareRequest, next: Next) -> MiddlewareFuture {
        match request.protocol_method() {
            Method::ToolsCall | Method::ResourcesRead | Method::PromptsGet => {}
            _ => return Box::pin(async move { next.run(request).await }),
        }
        let (rules, redacts_arguments) = (self.rules.clone(), self.redacts_arguments);
        Box::pin(run(rules, redacts_arguments, request, next))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rules() -> Arc<Rules> {
        let redaction = Redaction::new()
            .with_members(["PIN"])
            .with_patterns(["ann|bob", r"\d{4}"])
            .expect("patterns");
        redaction.rules
    }

    fn redacted(method: Method, result: &Value) -> Option<Value> {
        let result = Raw::from_serialize(result).expect("JSON");
        let redacted = rules().result(&method, &result)?;
        Some(redacted.decode().expect("JSON"))
    }

    #[test]
    fn content_of_tools_is_replaced_and_what_belongs_to_the_protocol_is_not() {
        let result = json!({
            "_meta": {"ann": "ann", "pin": 1},
            "content": [
                {"type": "text", "text": "ann and 12345", "annotations": {"audience": ["ann"]}},
                {"type": "text", "text": "{\"pin\": [1], \"b\": 2}", "_meta": {"pin": "ann"}},
                {"type": "image", "data": "ann1111", "mimeType": "image/ann"},
                {"type": "resource", "resource": {"uri": "a://ann", "mimeType": "ann", "text": "bob"}},
                {"type": "resource", "resource": {"uri": "a://ann", "blob": "annn"}},
                {"type": "resource_link", "uri": "a://ann", "name": "ann", "title": "ann", "description": "bob"},
            ],
            "structuredContent": {"ann": "ann", "Pin": {"a": 1}, "n": 12345, "list": [{"pin": null}, "2024"]},
            "isError": false,
        });
        let expected = json!({
            "_meta": {"ann": "ann", "pin": 1},
            "content": [
                {"type": "text", "text": "[redacted] and [redacted]5", "annotations": {"audience": ["ann"]}},
                {"type": "text", "text": "{\"pin\": \"[redacted]\", \"b\": 2}", "_meta": {"pin": "ann"}},
                {"type": "image", "data": "ann1111", "mimeType": "image/ann"},
                {"type": "resource", "resource": {"uri": "a://ann", "mimeType": "ann", "text": "[redacted]"}},
                {"type": "resource", "resource": {"uri": "a://ann", "blob": "annn"}},
                {"type": "resource_link", "uri": "a://ann", "name": "ann", "title": "[redacted]", "description": "[redacted]"},
            ],
            "structuredContent": {"ann": "[redacted]", "Pin": "[redacted]", "n": 12345, "list": [{"pin": "[redacted]"}, "[redacted]"]},
            "isError": false,
        });
        assert_eq!(redacted(Method::ToolsCall, &result), Some(expected));
    }

    #[test]
    fn resources_and_prompts_are_redacted() {
        let read = json!({"contents": [{"uri": "a://ann", "text": "[{\"pin\":1}]"}, {"uri": "a://b", "blob": "1234"}]});
        let expected = json!({"contents": [{"uri": "a://ann", "text": "[{\"pin\":\"[redacted]\"}]"}, {"uri": "a://b", "blob": "1234"}]});
        assert_eq!(redacted(Method::ResourcesRead, &read), Some(expected));
        let got = json!({"description": "of ann", "messages": [{"role": "user", "content": {"type": "text", "text": "bob"}}]});
        let expected = json!({"description": "of [redacted]", "messages": [{"role": "user", "content": {"type": "text", "text": "[redacted]"}}]});
        assert_eq!(redacted(Method::PromptsGet, &got), Some(expected));
    }

    #[test]
    fn what_has_nothing_to_replace_stays_the_same_value() {
        for (method, result) in [
            (
                Method::ToolsCall,
                json!({"content": [{"type": "text", "text": "fine"}]}),
            ),
            (
                Method::ToolsList,
                json!({"content": [{"type": "text", "text": "ann"}]}),
            ),
            (
                Method::ToolsCall,
                json!({"resultType": "input_required", "inputRequests": {"ann": {}}}),
            ),
        ] {
            assert_eq!(redacted(method, &result), None, "{result}");
        }
    }

    #[test]
    fn invalid_patterns_are_named() {
        for (pattern, part) in [
            ("(a", "unclosed group"),
            ("(?=a)", "look-around"),
            (r"(a)\1", "backreferences"),
            ("a*", "matches the empty text"),
            (r"(\w{100}){100}", "size limit"),
        ] {
            let error = Redaction::new()
                .with_patterns([pattern])
                .expect_err(pattern);
            let error = error.to_string();
            assert!(error.contains(&format!("{pattern:?}")), "{error}");
            assert!(error.contains(part), "{error}");
        }
    }
}
