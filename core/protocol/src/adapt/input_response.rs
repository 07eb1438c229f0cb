//! Adapts responses to input requests, of sampling, elicitation and roots, to the revision of a server.

use serde_json::{Value, json};

use super::content;
use crate::input_method::InputMethod;
use crate::revision::{Revision, RevisionFeatures};
use crate::vocabulary::JsonObject;
use crate::wire::Raw;

/// A response that the server's revision cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InexpressibleInputResponse {
    /// The revision has no tools in sampling.
    #[error("`content`: protocol revision {0} has no tools in sampling")]
    SamplingTools(Revision),
    /// The revision allows one block of content in the response to a sampling request.
    #[error(
        "`content`: protocol revision {0} has one block in an answer, and these can't be joined: return text alone, or one block"
    )]
    SeveralBlocks(Revision),
    /// The revision has no fields with several values in forms.
    #[error("`content`: protocol revision {0} has no multiple choice in forms")]
    MultipleChoice(Revision),
}

/// Adapts a client's response to a server's request of this method to a server of `revision`.
///
/// - `sampling/createMessage`: before 2025-11-25 content is one block, so a list of text blocks becomes one; before
///   2025-03-26 audio becomes a note in text.
/// - `_meta` of roots and of content blocks is left out before 2025-06-18, and so is `lastModified`.
///
/// A response of another shape stays as it is, and so do the bytes of a response that needs no change.
///
/// # Errors
/// When the revision can't express the response.
pub fn input_response(
    method: &str,
    answer: Raw,
    revision: Revision,
) -> Result<Raw, InexpressibleInputResponse> {
    let Some(input) = InputMethod::parse(method) else {
        return Ok(answer);
    };
    if !needs_adapting(method, revision) {
        return Ok(answer);
    }
    let Ok(mut members) = answer.decode::<JsonObject>() else {
        return Ok(answer);
    };
    let changed = match input {
        InputMethod::Sample => create_message_result(&mut members, revision)?,
        InputMethod::Elicit => return check_elicit_result(&members, revision).map(|()| answer),
        InputMethod::ListRoots => list_roots_result(&mut members),
    };
    match changed {
        true => Ok(Raw::from_serialize(&members).unwrap_or(answer)),
        false => Ok(answer),
    }
}

/// Whether responses to this method may have to be changed for a server of `revision`.
pub fn needs_adapting(method: &str, revision: Revision) -> bool {
    let features = revision.features();
    match InputMethod::parse(method) {
        Some(InputMethod::Sample) => !features.sampling_tools,
        Some(InputMethod::Elicit) => !features.elicitation_enums,
        Some(InputMethod::ListRoots) => !features.object_meta,
        None => false,
    }
}

fn create_message_result(
    result: &mut JsonObject,
    revision: Revision,
) -> Result<bool, InexpressibleInputResponse> {
    let features = revision.features();
    let Some(content) = result.get_mut("content") else {
        return Ok(false);
    };
    match content {
        Value::Array(blocks) => {
            for block in blocks.iter_mut() {
                single_block(block, features, revision)?;
            }
            *content = join_blocks(std::mem::take(blocks), revision)?;
            Ok(true)
        }
        block => single_block(block, features, revision),
    }
}

/// Changes one block and returns whether it did.
fn single_block(
    block: &mut Value,
    features: &RevisionFeatures,
    revision: Revision,
) -> Result<bool, InexpressibleInputResponse> {
    let mut changed = false;
    match block.get("type").and_then(Value::as_str) {
        Some("tool_use" | "tool_result") => {
            return Err(InexpressibleInputResponse::SamplingTools(revision));
        }
        Some("audio") if !features.audio => {
            content::adapt_block(block, features);
            changed = true;
        }
        _ => {}
    }
    if let Some(block) = block.as_object_mut() {
        changed |= !features.object_meta && block.shift_remove("_meta").is_some();
        let annotations = block.get_mut("annotations").and_then(Value::as_object_mut);
        changed |= !features.last_modified
            && annotations.is_some_and(|it| it.shift_remove("lastModified").is_some());
    }
    Ok(changed)
}

/// Joins several blocks into one.
fn join_blocks(
    mut blocks: Vec<Value>,
    revision: Revision,
) -> Result<Value, InexpressibleInputResponse> {
    if blocks.len() == 1 {
        return Ok(blocks.swap_remove(0));
    }
    let texts = blocks.iter().map(|block| {
        let is_text = block.get("type").and_then(Value::as_str) == Some("text");
        block
            .get("text")
            .and_then(Value::as_str)
            .filter(|_| is_text)
    });
    match texts.collect::<Option<Vec<_>>>() {
        Some(texts) => Ok(json!({"type": "text", "text": texts.join("\n")})),
        None => Err(InexpressibleInputResponse::SeveralBlocks(revision)),
    }
}

fn check_elicit_result(
    result: &JsonObject,
    revision: Revision,
) -> Result<(), InexpressibleInputResponse> {
    let fields = result.get("content").and_then(Value::as_object);
    match fields.is_some_and(|fields| fields.values().any(Value::is_array)) {
        true => Err(InexpressibleInputResponse::MultipleChoice(revision)),
        false => Ok(()),
    }
}

fn list_roots_result(result: &mut JsonObject) -> bool {
    let roots = result.get_mut("roots").and_then(Value::as_array_mut);
    let mut changed = false;
    for root in roots.into_iter().flatten() {
        let root = root.as_object_mut();
        changed |= root.is_some_and(|root| root.shift_remove("_meta").is_some());
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapted(
        method: &str,
        answer: &Value,
        revision: Revision,
    ) -> Result<Value, InexpressibleInputResponse> {
        let answer = Raw::from_serialize(answer).expect("serializes");
        input_response(method, answer, revision).map(|raw| raw.decode().expect("JSON"))
    }

    fn sampled(content: Value, revision: Revision) -> Result<Value, InexpressibleInputResponse> {
        let answer = json!({"role": "assistant", "model": "m", "content": content});
        let mut adapted = adapted("sampling/createMessage", &answer, revision)?;
        Ok(adapted["content"].take())
    }

    const BEFORE_LISTS: [Revision; 3] = [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
    ];

    #[test]
    fn audio_becomes_a_note_where_the_revision_has_none() {
        let audio = json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
        let note = json!({"type": "text", "text": "[audio left out: audio/wav]"});
        assert_eq!(sampled(audio.clone(), Revision::V2024_11_05), Ok(note));
        for revision in &Revision::ALL[1..] {
            assert_eq!(sampled(audio.clone(), *revision), Ok(audio.clone()));
        }
    }

    #[test]
    fn a_list_of_blocks_becomes_one_block_before_2025_11_25() {
        let text = |text| json!({"type": "text", "text": text});
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        let mixed = json!([text("a"), image]);
        for revision in BEFORE_LISTS {
            assert_eq!(sampled(json!([image]), revision), Ok(image.clone()));
            assert_eq!(sampled(json!([]), revision), Ok(text("")));
            let two = json!([text("a"), text("b")]);
            assert_eq!(sampled(two, revision), Ok(text("a\nb")));
            assert_eq!(
                sampled(mixed.clone(), revision),
                Err(InexpressibleInputResponse::SeveralBlocks(revision))
            );
        }
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            assert_eq!(sampled(mixed.clone(), revision), Ok(mixed.clone()));
        }
    }

    #[test]
    fn tools_are_refused_where_sampling_has_none() {
        let uses = json!({"type": "tool_use", "id": "1", "name": "t", "input": {}});
        for content in [uses.clone(), json!([uses])] {
            for revision in BEFORE_LISTS {
                assert_eq!(
                    sampled(content.clone(), revision),
                    Err(InexpressibleInputResponse::SamplingTools(revision))
                );
            }
            assert_eq!(sampled(content.clone(), Revision::V2025_11_25), Ok(content));
        }
    }

    #[test]
    fn metadata_of_blocks_and_roots_is_left_out_before_2025_06_18() {
        let block = json!({"type": "text", "text": "a", "_meta": {"x": 1},
            "annotations": {"priority": 1, "lastModified": "2025-01-01T00:00:00Z"}});
        let plain = json!({"type": "text", "text": "a", "annotations": {"priority": 1}});
        let roots =
            json!({"roots": [{"uri": "file:///a", "name": "a", "_meta": {"x": 1}}], "_meta": {}});
        let bare = json!({"roots": [{"uri": "file:///a", "name": "a"}], "_meta": {}});
        for revision in Revision::ALL {
            let is_old = *revision < Revision::V2025_06_18;
            let (expected_block, expected_roots) = match is_old {
                true => (&plain, &bare),
                false => (&block, &roots),
            };
            assert_eq!(
                sampled(block.clone(), *revision).as_ref(),
                Ok(expected_block)
            );
            assert_eq!(
                adapted("roots/list", &roots, *revision).as_ref(),
                Ok(expected_roots)
            );
        }
    }

    #[test]
    fn several_values_of_a_field_are_refused_before_2025_11_25() {
        let answer = json!({"action": "accept", "content": {"colours": ["red", "blue"]}});
        let revision = Revision::V2025_06_18;
        assert_eq!(
            adapted("elicitation/create", &answer, revision),
            Err(InexpressibleInputResponse::MultipleChoice(revision))
        );
        assert!(adapted("elicitation/create", &answer, Revision::V2025_11_25).is_ok());
    }

    #[test]
    fn answers_that_need_no_change_keep_their_bytes() {
        for (method, text) in [
            (
                "sampling/createMessage",
                r#"{"role" : "assistant","model":"m","content":{"type":"text","text":"a"}}"#,
            ),
            ("elicitation/create", r#"{"action" : "decline"}"#),
            ("roots/list", r#"{"roots" : []}"#),
            ("roots/list", "5"),
        ] {
            let answer = Raw::parse(text).expect("JSON");
            let adapted = input_response(method, answer, Revision::V2024_11_05);
            assert_eq!(adapted.expect("fits").as_str(), text);
        }
    }
}
