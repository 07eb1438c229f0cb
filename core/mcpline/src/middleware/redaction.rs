//! Replaces values in results, in messages to the client and in arguments.

#[cfg(feature = "server")]
mod server;

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcpline_protocol::limits::MAX_INLINE_DECODED_BYTES;
use mcpline_protocol::wire::{JsonKind, Method, Raw, json_string};
use mcpline_runtime::clock;
use regex::{Regex, RegexBuilder};

use crate::error::Error;
use crate::fair_queue::PeerId;
use crate::offload;
use crate::sync::Arc;

use super::json_redaction::{REDACTED, RedactionRules, redacted_json, redacted_text};

/// Maximum size of a compiled pattern in bytes, and of the states that it keeps while it searches: enough for some thousand
/// alternatives.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;

/// Maximum depth of groups in a pattern: people write no deeper ones, and its parser is recursive.
const MAX_PATTERN_DEPTH: u32 = 100;

/// How long a value may be redacted on the thread that serves the connection. One search of a pattern is linear in the text, but
/// searches for all of its matches together may be quadratic, if each reads on to the end.
const MAX_INLINE_TIME: Duration = Duration::from_millis(10);

/// How long a value may be redacted on a thread of its own, which occupies a processor. A megabyte takes a fraction of a second with
/// ordinary patterns.
const MAX_TIME: Duration = Duration::from_secs(5);

/// A middleware of servers and of clients that replaces values in the results of tools, in the texts of resources and in the messages of
/// prompts; of servers also in the notifications and input requests of handlers; optionally also in arguments.
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
/// - **Members** are replaced at any depth of structured content, and of texts that are themselves a JSON object, array or string.
///   Their names are compared without regard to case. The whole value is replaced, whatever it is.
/// - **Patterns** replace what they match in the texts of content and embedded resources, in titles and descriptions of links to
///   resources, in the strings of structured content, in the description of a prompt's messages, and in the messages of errors. In
///   structured content they replace neither numbers nor names of members; in texts that are JSON they do, so that such a text may
///   no longer be JSON.
/// - With a scope that has neither methods nor features, or names their methods, both also apply to log messages, to the text of a
///   progress notification and of an elicitation, to the messages and the system prompt of sampling, and to custom notifications
///   and input requests.
/// - Both also apply to the results of custom requests, which may be those of tools: an extension's `tasks/get` returns
///   them. Of these results only `_meta`, `resultType` and what asks for input stay.
///
/// All else stays as it is: types, URIs, names, `_meta`, annotations, images, sound and other blobs, the data of errors, lists,
/// completions, and the forms of elicitations. Scopes select what is redacted.
///
/// The server checks structured content against the output schema before this. If a replaced value has another type than
/// the schema requires, the client gets a result that does not match it, and may refuse it: let such members be strings, too.
/// Arguments are replaced before they are checked, so that a tool may refuse what replaced them.
///
/// Texts that are not JSON as a whole have no members: a [`ResponseSizeLimit`](super::ResponseSizeLimit) that cuts results before this
/// sees them is refused. Add it first, also to the server that this one is mounted in.
///
/// At a client, results are replaced before the caller gets them, and arguments before they leave the host. The client checks structured
/// content and keeps results in its cache before this. The hooks for tool calls come after it: they get the replaced arguments, and the
/// result that the server sent. Input requests and notifications of the server stay as they are, and so do the parameters of custom requests.
///
/// An [`AuditLog`](super::AuditLog) that was added before this contains redacted results, and one that was added after it
/// contains redacted arguments. Large values are redacted on a thread of their own.
#[derive(Debug, Clone)]
pub struct Redaction {
    rules: Arc<RedactionSettings>,
    redacts_arguments: bool,
}

#[derive(Debug, Clone)]
struct RedactionSettings {
    /// In lower case.
    members: Vec<String>,
    patterns: Vec<Regex>,
    replacement: String,
}

impl Redaction {
    /// Creates a redaction that replaces nothing yet.
    pub fn new() -> Self {
        Self {
            rules: Arc::new(RedactionSettings {
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

    /// Sets regular expressions whose matches are replaced, one after the other. Their syntax is that of the crate `regex`: it has no
    /// look-around and no back references. Finding one match takes time that is linear in the text. All matches together may take
    /// longer if the pattern reads far beyond each; a value that takes more than five seconds is not sent, and the client gets an
    /// internal error. At a client, the request fails with the kind [`LimitExceeded`](crate::ErrorKind::LimitExceeded).
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

impl Redaction {
    /// Returns the arguments of a tool or prompt, if they are to be redacted and change.
    pub(crate) async fn changed_arguments(
        &self,
        peer: PeerId,
        arguments: Option<Raw>,
    ) -> Result<Option<Raw>, RedactionTimeout> {
        let arguments = arguments.filter(|arguments| arguments.kind() == JsonKind::Object);
        let Some(arguments) = arguments.filter(|_| self.redacts_arguments) else {
            return Ok(None);
        };
        let before = arguments.clone();
        let redacted =
            redact_or_offload(&self.rules, peer, arguments, |run, value| run.json(value)).await?;
        Ok((redacted != before).then_some(redacted))
    }

    /// Redacts a result of this method.
    pub(crate) async fn redacted_result(
        &self,
        peer: PeerId,
        method: Method,
        result: Raw,
    ) -> Result<Raw, RedactionTimeout> {
        let redact = move |run: &Run<'_>, result: &Raw| run.result(&method, result);
        redact_or_offload(&self.rules, peer, result, redact).await
    }

    /// Redacts a text by patterns alone.
    pub(crate) async fn redacted_text(
        &self,
        peer: PeerId,
        text: &str,
    ) -> Result<String, RedactionTimeout> {
        let text = Raw::string(text);
        let redacted =
            redact_or_offload(&self.rules, peer, text, |run, value| run.text(value)).await?;
        Ok(redacted.string_value().unwrap_or_default().into_owned())
    }

    /// Returns a value of a record, such as a span; `None` if that takes too long for the thread that serves the connection, or
    /// until after this time on the monotonic clock.
    pub(crate) fn redacted_record(&self, value: &Raw, until: Duration) -> Option<Raw> {
        let max_time = until.saturating_sub(clock::now());
        if max_time.is_zero() || self.rules.is_large(value) {
            return None;
        }
        let redact = |run: &Run<'_>, value: &Raw| run.json(value);
        self.rules
            .redacted(value, &AtomicBool::new(false), max_time, redact)
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

/// The redaction of one value.
struct Run<'a> {
    rules: &'a RedactionSettings,
    interrupt: &'a AtomicBool,
    /// On the monotonic clock.
    until: Duration,
    /// Whether it was interrupted or took too long: what it returns is not used then.
    is_given_up: Cell<bool>,
}

impl RedactionRules for Run<'_> {
    fn replacement(&self) -> &str {
        &self.rules.replacement
    }

    fn hides<'v>(&self, name: &str, _: impl FnOnce() -> &'v str) -> bool {
        let members = &self.rules.members;
        !members.is_empty() && members.contains(&name.to_lowercase())
    }

    fn replaced(&self, text: &str) -> Option<String> {
        let mut current: Option<String> = None;
        for pattern in &self.rules.patterns {
            let replaced = self.matches_replaced(pattern, current.as_deref().unwrap_or(text));
            current = replaced.or(current);
        }
        current
    }
}

impl Run<'_> {
    fn matches_replaced(&self, pattern: &Regex, text: &str) -> Option<String> {
        let mut out = None;
        let mut end = 0;
        for found in pattern.find_iter(text) {
            if self.check_deadline() {
                return None;
            }
            let out = out.get_or_insert_with(String::new);
            out.push_str(&text[end..found.start()]);
            out.push_str(&self.rules.replacement);
            end = found.end();
        }
        let mut out = out?;
        out.push_str(&text[end..]);
        Some(out)
    }

    fn check_deadline(&self) -> bool {
        if self.interrupt.load(Ordering::Relaxed) || clock::now() > self.until {
            self.is_given_up.set(true);
        }
        self.is_given_up.get()
    }
}

impl RedactionSettings {
    /// Redacts a value; `None` if it was interrupted or took longer than it may.
    fn redacted(
        &self,
        value: &Raw,
        interrupt: &AtomicBool,
        max_time: Duration,
        redact: impl FnOnce(&Run<'_>, &Raw) -> Option<Raw>,
    ) -> Option<Raw> {
        let run = Run {
            rules: self,
            interrupt,
            until: clock::now().saturating_add(max_time),
            is_given_up: Cell::new(false),
        };
        let redacted = redact(&run, value);
        (!run.is_given_up.get()).then(|| redacted.unwrap_or_else(|| value.clone()))
    }

    /// Whether a value takes too long for the thread that serves the connection. Each pattern reads the value.
    fn is_large(&self, value: &Raw) -> bool {
        value.as_bytes().len() * (1 + self.patterns.len()) > MAX_INLINE_DECODED_BYTES
    }
}

impl Run<'_> {
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
            method if is_custom(method) => changed_members(result, |name, value| match name {
                "_meta" | "resultType" | "inputRequests" | "requestState" => None,
                name => self.member(name, value),
            }),
            _ => None,
        }
    }

    /// Redacts a member of an object whose form is not known.
    fn member(&self, name: &str, value: &Raw) -> Option<Raw> {
        match self.hides(name, || value.as_str()) {
            true => Some(Raw::string(self.replacement())),
            false => self.json(value),
        }
    }

    /// Returns the parameters of a handler's input request or notification without what is to be replaced; `None` if there is
    /// nothing. The schema of a form names members, and keeps them.
    #[cfg(feature = "server")]
    fn sent_params(&self, method: &Method, params: &Raw) -> Option<Raw> {
        changed_members(params, |name, value| match (method, name) {
            (Method::NotificationsMessage, "data") => self.json(value),
            (Method::NotificationsProgress | Method::ElicitationCreate, "message")
            | (Method::SamplingCreateMessage, "systemPrompt") => self.string(value),
            (Method::SamplingCreateMessage, "messages") => changed_elements(value, |message| {
                changed_members(message, |name, value| match name {
                    "content" if value.kind() == JsonKind::Array => {
                        changed_elements(value, |block| self.content(block))
                    }
                    "content" => self.content(value),
                    _ => None,
                })
            }),
            (_, "_meta") => None,
            (Method::Other(_), name) => self.member(name, value),
            _ => None,
        })
    }

    /// Redacts a content block, or the contents of a resource. Members of types that are not known yet have the same names.
    fn content(&self, content: &Raw) -> Option<Raw> {
        changed_members(content, |name, value| match name {
            "text" | "title" | "description" => self.string(value),
            // Of calls of tools in the messages of sampling, and of their results.
            "input" | "structuredContent" => self.json(value),
            "content" => changed_elements(value, |block| self.content(block)),
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

    /// Redacts a string by patterns alone.
    fn text(&self, value: &Raw) -> Option<Raw> {
        let text = value.string_value()?;
        self.replaced(&text).map(|text| Raw::string(&text))
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

/// Redacts a value here, or on a thread of its own if it takes long.
async fn redact_or_offload(
    rules: &Arc<RedactionSettings>,
    peer: PeerId,
    value: Raw,
    redact: impl Fn(&Run<'_>, &Raw) -> Option<Raw> + Send + 'static,
) -> Result<Raw, RedactionTimeout> {
    let interrupt = Arc::new(AtomicBool::new(false));
    if !rules.is_large(&value)
        && let Some(redacted) = rules.redacted(&value, &interrupt, MAX_INLINE_TIME, &redact)
    {
        return Ok(redacted);
    }
    let rules = rules.clone();
    let redacting = offload::compute(peer, interrupt, move |interrupt| {
        rules.redacted(&value, interrupt, MAX_TIME, redact)
    });
    redacting.await.flatten().ok_or(RedactionTimeout)
}

/// A value could not be redacted in time. It must not be passed on.
pub(crate) struct RedactionTimeout;

/// Whether requests of this method have results with content.
pub(crate) fn returns_content(method: &Method) -> bool {
    matches!(
        method,
        Method::ToolsCall | Method::ResourcesRead | Method::PromptsGet
    )
}

/// Whether authors and extensions may define requests of this method, with results of any form.
pub(crate) fn is_custom(method: &Method) -> bool {
    method.spec().is_none_or(|spec| spec.may_be_custom)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rules() -> Arc<RedactionSettings> {
        let redaction = Redaction::new()
            .with_members(["PIN"])
            .with_patterns(["ann|bob", r"\d{4}"])
            .expect("patterns");
        redaction.rules
    }

    fn redacted(method: Method, result: &Value) -> Option<Value> {
        let result = Raw::from_serialize(result).expect("JSON");
        let (rules, never) = (rules(), AtomicBool::new(false));
        let redact = |run: &Run<'_>, result: &Raw| run.result(&method, result);
        let redacted = rules.redacted(&result, &never, MAX_TIME, redact);
        let redacted = redacted.expect("in time");
        (redacted != result).then(|| redacted.decode().expect("JSON"))
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
    fn a_redaction_ends_when_it_is_interrupted_or_takes_too_long() {
        let value = Raw::string("ann and bob");
        let redact = |run: &Run<'_>, value: &Raw| run.json(value);
        let rules = rules();
        let redacted = |is_interrupted: bool, max_time: Duration| {
            let interrupt = AtomicBool::new(is_interrupted);
            rules.redacted(&value, &interrupt, max_time, redact)
        };
        let expected = Raw::string("[redacted] and [redacted]");
        assert_eq!(redacted(false, MAX_TIME), Some(expected));
        assert_eq!(redacted(true, MAX_TIME), None);
        assert_eq!(redacted(false, Duration::ZERO), None);
        let redaction = Redaction::new().with_members(["pin"]);
        let now = clock::now();
        assert_eq!(redaction.redacted_record(&value, now), None);
        let later = now.saturating_add(MAX_TIME);
        assert_eq!(redaction.redacted_record(&value, later), Some(value));
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
