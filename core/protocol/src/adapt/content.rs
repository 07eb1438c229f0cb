//! Results: content blocks and structured content, as raw JSON.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::revision::{Revision, RevisionFeatures, StructuredContent};
use crate::wire::{JsonKind, Raw, json_string};

/// The two forms of a tool's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput<'r> {
    /// The blocks for the model: a JSON array.
    pub content: Cow<'r, Raw>,
    /// The value for programs.
    pub structured: Option<Cow<'r, Raw>>,
}

/// A tool's output as a client of `revision` reads it.
///
/// - Structured content without any other is given as text, too, in every revision ("Tools",
///   Structured Content).
/// - It is wrapped as `{"result": …}` where it must be an object and is not, or where `wrap` says that
///   the tool's schema was ([`wraps_output`](super::wraps_output)).
/// - It is left out where the revision has none.
/// - Blocks are rewritten as [`content_blocks`] says.
pub fn tool_output<'r>(
    content: &'r Raw,
    structured: Option<&'r Raw>,
    wrap: bool,
    revision: Revision,
) -> ToolOutput<'r> {
    let features = revision.features();
    let Some(structured) = structured else {
        return ToolOutput {
            content: content_blocks(content, revision),
            structured: None,
        };
    };
    let empty = content
        .elements()
        .is_some_and(|mut blocks| blocks.next().is_none());
    let content = if empty {
        Cow::Owned(json_text(structured))
    } else {
        content_blocks(content, revision)
    };
    let structured = match features.structured_content {
        StructuredContent::None => None,
        StructuredContent::Object if wrap || structured.kind() != JsonKind::Object => {
            Some(Cow::Owned(wrap_result(structured)))
        }
        StructuredContent::Object | StructuredContent::Any => Some(Cow::Borrowed(structured)),
    };
    ToolOutput {
        content,
        structured,
    }
}

/// A JSON array of content blocks as a peer of `revision` reads it.
///
/// Audio becomes a note in text before 2025-03-26, and a resource link becomes text with its URI before
/// 2025-06-18. Everything else stays as it is.
pub fn content_blocks(content: &Raw, revision: Revision) -> Cow<'_, Raw> {
    let features = revision.features();
    let unreadable = |block: Raw| is_unreadable(&block, features);
    if features.audio && features.resource_link
        || !content
            .elements()
            .is_some_and(|mut blocks| blocks.any(unreadable))
    {
        return Cow::Borrowed(content);
    }
    let adapted = map_elements(content, |blocks| {
        blocks.iter_mut().for_each(|one| adapt_block(one, features));
    });
    adapted.map_or(Cow::Borrowed(content), Cow::Owned)
}

/// A JSON array of prompt messages as a peer of `revision` reads it; their content is rewritten as
/// [`content_blocks`] says.
pub fn prompt_messages(messages: &Raw, revision: Revision) -> Cow<'_, Raw> {
    let features = revision.features();
    let unreadable = |message: Raw| {
        message
            .member("content")
            .is_some_and(|block| is_unreadable(&block, features))
    };
    if features.audio && features.resource_link
        || !messages
            .elements()
            .is_some_and(|mut messages| messages.any(unreadable))
    {
        return Cow::Borrowed(messages);
    }
    let adapted = map_elements(messages, |messages| {
        let contents = messages
            .iter_mut()
            .map(|message| message.get_mut("content"));
        contents
            .flatten()
            .for_each(|one| adapt_block(one, features));
    });
    adapted.map_or(Cow::Borrowed(messages), Cow::Owned)
}

/// Changes the elements of a JSON array.
fn map_elements(list: &Raw, change: impl FnOnce(&mut Vec<Value>)) -> Option<Raw> {
    let mut list: Value = list.decode().ok()?;
    change(list.as_array_mut()?);
    Raw::from_serialize(&list).ok()
}

fn is_unreadable(block: &Raw, features: &RevisionFeatures) -> bool {
    let kind = block.member("type");
    let kind = kind.as_ref().and_then(Raw::string_value);
    match kind.as_deref() {
        Some("audio") => !features.audio,
        Some("resource_link") => !features.resource_link,
        _ => false,
    }
}

/// Adapts one block to a peer with these features. A block whose shape does not match its type stays as it is.
pub(super) fn adapt_block(block: &mut Value, features: &RevisionFeatures) {
    let text = |name| block.get(name).and_then(Value::as_str);
    let note = match text("type") {
        Some("audio") if !features.audio => {
            text("mimeType").map(|kind| format!("[audio left out: {kind}]"))
        }
        Some("resource_link") if !features.resource_link => {
            let name = text("title").or(text("name"));
            name.zip(text("uri")).map(|(name, uri)| {
                let description = text("description").map(|text| format!("\n{text}"));
                format!("[{name}]({uri}){}", description.unwrap_or_default())
            })
        }
        _ => None,
    };
    if let Some(note) = note {
        let mut as_text = json!({ "type": "text", "text": note });
        for name in ["annotations", "_meta"] {
            if let Some(kept) = block.get_mut(name).filter(|kept| !kept.is_null()) {
                as_text[name] = kept.take();
            }
        }
        *block = as_text;
    }
}

/// A text block with a value as JSON.
fn json_text(value: &Raw) -> Raw {
    let mut out = br#"[{"type":"text","text":"#.to_vec();
    // A string is nicer to read without quotes and escapes.
    match value.string_value() {
        Some(text) => json_string(&mut out, &text),
        None => json_string(&mut out, value.as_str()),
    }
    out.extend_from_slice(b"}]");
    Raw::from_trusted(out)
}

fn wrap_result(value: &Raw) -> Raw {
    let mut out = br#"{"result":"#.to_vec();
    out.extend_from_slice(value.as_bytes());
    out.push(b'}');
    Raw::from_trusted(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &'static str) -> Raw {
        Raw::parse(text).expect("JSON")
    }

    const MIXED: &str = concat!(
        r#"[{"type":"text","text":"x","new":1},"#,
        r#"{"type":"audio","data":"AAAA","mimeType":"audio/wav","annotations":{"priority":0.5}},"#,
        r#"{"type":"resource_link","uri":"file:///a","name":"a","title":"A","description":"d"},"#,
        r#"{"type":"video","x":1}]"#
    );

    #[test]
    fn blocks_that_a_revision_lacks_become_text() {
        let mixed = raw(MIXED);
        let first = content_blocks(&mixed, Revision::V2024_11_05);
        assert_eq!(
            first.as_str(),
            concat!(
                r#"[{"type":"text","text":"x","new":1},"#,
                r#"{"type":"text","text":"[audio left out: audio/wav]","annotations":{"priority":0.5}},"#,
                r#"{"type":"text","text":"[A](file:///a)\nd"},"#,
                r#"{"type":"video","x":1}]"#
            )
        );
        let second = content_blocks(&mixed, Revision::V2025_03_26);
        assert!(
            second.as_str().contains("audio/wav\"") && !second.as_str().contains("resource_link")
        );
    }

    #[test]
    fn content_that_the_peer_can_read_is_not_touched() {
        for (text, revision) in [
            (MIXED, Revision::V2025_06_18),
            (
                r#"[ {"type" : "text","text":"audio"} ]"#,
                Revision::V2024_11_05,
            ),
            ("[]", Revision::V2024_11_05),
            ("5", Revision::V2024_11_05),
        ] {
            let before = raw(text);
            let address = before.as_bytes().as_ptr();
            let after = content_blocks(&before, revision);
            assert_eq!((after.as_bytes().as_ptr(), after.as_str()), (address, text));
        }
    }

    #[test]
    fn messages_of_prompts_are_adapted_alike() {
        let messages = raw(
            r#"[{"role":"user","content":{"type":"audio","data":"","mimeType":"audio/x"},"n":1}]"#,
        );
        assert_eq!(
            prompt_messages(&messages, Revision::V2024_11_05).as_str(),
            r#"[{"role":"user","content":{"type":"text","text":"[audio left out: audio/x]"},"n":1}]"#
        );
        assert_eq!(*prompt_messages(&messages, Revision::V2025_03_26), messages);
    }

    #[test]
    fn structured_content_appears_as_text_when_there_is_no_other_content() {
        for revision in Revision::ALL {
            let (content, structured) = (raw("[]"), raw(r#"{"a":"b"}"#));
            let output = tool_output(&content, Some(&structured), false, *revision);
            assert_eq!(
                output.content.as_str(),
                r#"[{"type":"text","text":"{\"a\":\"b\"}"}]"#
            );
        }
        let text = raw(r#"[{"type":"text","text":"x"}]"#);
        let structured = raw("{}");
        let output = tool_output(&text, Some(&structured), false, Revision::V2025_06_18);
        assert_eq!(*output.content, text);
    }

    #[test]
    fn structured_content_has_the_form_that_its_revision_allows() {
        let structured = |text: &'static str, wrap, revision| {
            let (content, structured) = (raw("[]"), raw(text));
            let output = tool_output(&content, Some(&structured), wrap, revision);
            output
                .structured
                .map(|structured| structured.as_str().to_owned())
        };
        assert_eq!(structured("{}", false, Revision::V2025_03_26), None);
        assert_eq!(
            structured("{}", false, Revision::V2025_06_18).as_deref(),
            Some("{}")
        );
        assert_eq!(
            structured("[1]", false, Revision::V2025_11_25).as_deref(),
            Some(r#"{"result":[1]}"#)
        );
        assert_eq!(
            structured("{}", true, Revision::V2025_11_25).as_deref(),
            Some(r#"{"result":{}}"#)
        );
        assert_eq!(
            structured("[1]", true, Revision::V2026_07_28).as_deref(),
            Some("[1]")
        );
        assert_eq!(
            structured("null", true, Revision::V2026_07_28).as_deref(),
            Some("null")
        );
    }
}
