//! Questions to a client: elicitation and sampling in the words of its revision, where it has any.

use std::borrow::Cow;

use super::content::audio_note;
use crate::revision::{Features, Revision};
use crate::vocabulary::{
    CreateMessageParams, ElicitMode, ElicitParams, FieldSchema, SamplingContent, SamplingContents,
    SamplingMessage,
};

/// A question that the client's revision has no words for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotAsk {
    /// The revision has no elicitation.
    #[error("the client's protocol revision has no elicitation")]
    Elicitation,
    /// The revision cannot send a user to a URL.
    #[error("the client's protocol revision has no URL elicitation")]
    Url,
    /// The revision has no forms with multiple choice.
    #[error("the client's protocol revision has no multiple choice in forms")]
    MultipleChoice,
    /// The revision has no tools in sampling.
    #[error("the client's protocol revision has no tools in sampling")]
    SamplingTools,
}

/// The parameters of `elicitation/create` as a client of `revision` reads them.
///
/// Before 2025-11-25 the mode is left out, titled choices are written with `enumNames`, and default
/// values of all but booleans are left out.
///
/// # Errors
/// When the revision cannot express the question.
pub fn elicit_params(
    params: &ElicitParams,
    revision: Revision,
) -> Result<Cow<'_, ElicitParams>, CannotAsk> {
    let features = revision.features();
    if !features.elicitation {
        return Err(CannotAsk::Elicitation);
    }
    if params.is_url() && !features.url_elicitation {
        return Err(CannotAsk::Url);
    }
    let mut adapted = params.clone();
    if !features.url_elicitation && params.mode == Some(ElicitMode::Form) {
        adapted.mode = None;
    }
    if !features.elicitation_complete {
        adapted.elicitation_id = None;
    }
    let fields = adapted
        .requested_schema
        .iter_mut()
        .flat_map(|schema| &mut schema.properties.0);
    for (_, schema) in fields {
        field(schema, features)?;
    }
    Ok(if adapted == *params {
        Cow::Borrowed(params)
    } else {
        Cow::Owned(adapted)
    })
}

fn field(field: &mut FieldSchema, features: &Features) -> Result<(), CannotAsk> {
    if !features.elicitation_enums {
        if field.items.is_some() {
            return Err(CannotAsk::MultipleChoice);
        }
        if let Some(choices) = field.one_of.take() {
            let (values, titles) = choices
                .into_iter()
                .map(|choice| (choice.value, choice.title))
                .unzip();
            (field.values, field.enum_names) = (Some(values), Some(titles));
        }
    }
    if !features.elicitation_defaults && field.kind.as_deref() != Some("boolean") {
        field.default = None;
    }
    Ok(())
}

/// The parameters of `sampling/createMessage` as a client of `revision` reads them.
///
/// Before 2025-11-25 a message has one block, so a list becomes several messages of the same role; before
/// 2025-03-26 audio becomes a note in text.
///
/// # Errors
/// When tools take part and the revision has none in sampling.
pub fn create_message_params(
    params: &CreateMessageParams,
    revision: Revision,
) -> Result<Cow<'_, CreateMessageParams>, CannotAsk> {
    let features = revision.features();
    if features.sampling_tools {
        return Ok(Cow::Borrowed(params));
    }
    let with_tools = |message: &SamplingMessage| {
        let mut blocks = message.content.blocks().iter();
        blocks.any(|block| {
            matches!(
                block,
                SamplingContent::ToolUse(_) | SamplingContent::ToolResult(_)
            )
        })
    };
    if params.tools.as_ref().is_some_and(|tools| !tools.is_empty())
        || params.messages.iter().any(with_tools)
    {
        return Err(CannotAsk::SamplingTools);
    }
    let messages = params.messages.iter().flat_map(|message| {
        let blocks = message.content.blocks().iter().cloned();
        blocks.map(|block| {
            let content = match block {
                SamplingContent::Audio(audio) if !features.audio => {
                    SamplingContent::Text(audio_note(audio))
                }
                other => other,
            };
            SamplingMessage {
                content: SamplingContents::One(content),
                ..message.clone()
            }
        })
    });
    let adapted = CreateMessageParams {
        messages: messages.collect(),
        tools: None,
        tool_choice: None,
        ..params.clone()
    };
    Ok(if adapted == *params {
        Cow::Borrowed(params)
    } else {
        Cow::Owned(adapted)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::vocabulary::{AudioContent, Choice, FormSchema, Role, Tool, ToolUseContent};

    fn form() -> ElicitParams {
        let schema = FormSchema::new()
            .with_required("name", FieldSchema::string().with_default("x"))
            .with_required("agree", FieldSchema::boolean().with_default(true))
            .with_optional(
                "color",
                FieldSchema::titled_choice(vec![Choice::new("r", "Red")]),
            );
        ElicitParams::form("?", schema).with_mode(ElicitMode::Form)
    }

    #[test]
    fn a_form_is_written_in_the_words_of_the_revision() {
        let old = elicit_params(&form(), Revision::V2025_06_18)
            .expect("has forms")
            .into_owned();
        assert_eq!(
            serde_json::to_value(old).expect("JSON"),
            json!({
                "message": "?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "agree": {"type": "boolean", "default": true},
                        "color": {"type": "string", "enum": ["r"], "enumNames": ["Red"]},
                    },
                    "required": ["name", "agree"],
                },
            })
        );
        assert!(matches!(
            elicit_params(&form(), Revision::V2025_11_25),
            Ok(Cow::Borrowed(_))
        ));
    }

    #[test]
    fn what_a_revision_cannot_ask_is_an_error() {
        let url = ElicitParams::url("?", "https://example.com").with_elicitation_id("1");
        let many = FormSchema::new().with_optional("m", FieldSchema::multiple_choice(["a"]));
        let many = ElicitParams::form("?", many);
        assert_eq!(
            elicit_params(&form(), Revision::V2025_03_26),
            Err(CannotAsk::Elicitation)
        );
        assert_eq!(
            elicit_params(&url, Revision::V2025_06_18),
            Err(CannotAsk::Url)
        );
        assert_eq!(
            elicit_params(&many, Revision::V2025_06_18),
            Err(CannotAsk::MultipleChoice)
        );
        assert_eq!(
            elicit_params(&url, Revision::V2025_11_25)
                .expect("has URLs")
                .elicitation_id
                .as_deref(),
            Some("1")
        );
        assert_eq!(
            elicit_params(&url, Revision::V2026_07_28)
                .expect("has URLs")
                .elicitation_id,
            None
        );
    }

    #[test]
    fn a_list_of_blocks_becomes_messages_of_one_block() {
        let blocks = vec![
            SamplingContent::text("a"),
            SamplingContent::Audio(AudioContent::new("", "audio/x")),
        ];
        let params = CreateMessageParams::new(vec![SamplingMessage::new(Role::User, blocks)], 10);
        let old = create_message_params(&params, Revision::V2024_11_05)
            .expect("no tools")
            .into_owned();
        let texts: Vec<_> = old
            .messages
            .iter()
            .map(|message| serde_json::to_value(message).expect("JSON"))
            .collect();
        assert_eq!(
            texts,
            [
                json!({"role": "user", "content": {"type": "text", "text": "a"}}),
                json!({"role": "user", "content": {"type": "text", "text": "[audio left out: audio/x]"}}),
            ]
        );
        assert!(matches!(
            create_message_params(&params, Revision::V2025_11_25),
            Ok(Cow::Borrowed(_))
        ));
    }

    #[test]
    fn sampling_with_tools_needs_a_revision_that_has_it() {
        let with_tools =
            CreateMessageParams::new(vec![], 1).with_tools(vec![Tool::new("t", json!({}))]);
        let used = SamplingContent::ToolUse(ToolUseContent::default());
        let with_use =
            CreateMessageParams::new(vec![SamplingMessage::new(Role::Assistant, used)], 1);
        for params in [with_tools, with_use] {
            assert_eq!(
                create_message_params(&params, Revision::V2025_06_18),
                Err(CannotAsk::SamplingTools)
            );
            assert!(create_message_params(&params, Revision::V2025_11_25).is_ok());
        }
    }
}
