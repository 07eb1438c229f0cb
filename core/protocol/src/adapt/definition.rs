//! Definitions, identities and capabilities: members that a revision does not have are left out.

use std::borrow::Cow;

use super::schema::{wrap_schema, wraps_output};
use crate::revision::{Revision, RevisionFeatures, StructuredContent};
use crate::vocabulary::{
    Annotations, ClientCapabilities, Extra, Icon, Implementation, Progress, Prompt, Resource,
    ResourceTemplate, ServerCapabilities, Tool,
};

/// A tool's definition as a peer of `revision` reads it.
///
/// Its title moves into the annotations where there is no other place for it, and an output schema
/// that is not of type object is wrapped as [`wraps_output`] says.
pub fn tool(tool: &Tool, revision: Revision) -> Cow<'_, Tool> {
    let features = revision.features();
    let mut adapted = Cow::Borrowed(tool);
    if !features.titles
        && let Some(title) = &tool.title
    {
        let adapted = adapted.to_mut();
        adapted.title = None;
        if features.tool_annotations {
            adapted
                .annotations
                .get_or_insert_default()
                .title
                .get_or_insert_with(|| title.clone());
        }
    }
    if !features.tool_annotations && tool.annotations.is_some() {
        adapted.to_mut().annotations = None;
    }
    if !features.icons && tool.icons.is_some() {
        adapted.to_mut().icons = None;
    }
    if !features.object_meta && tool.meta.is_some() {
        adapted.to_mut().meta = None;
    }
    if !features.tasks && tool.execution.is_some() {
        adapted.to_mut().execution = None;
    }
    if let Some(schema) = &tool.output_schema {
        match features.structured_content {
            _ if !features.output_schema => adapted.to_mut().output_schema = None,
            StructuredContent::Object if wraps_output(schema) => {
                adapted.to_mut().output_schema = Some(wrap_schema(schema));
            }
            _ => {}
        }
    }
    adapted
}

/// A resource's definition, or a link to it, as a peer of `revision` reads it.
pub fn resource(resource: &Resource, revision: Revision) -> Cow<'_, Resource> {
    let features = revision.features();
    let kept = has_all_members(
        features,
        resource.title.is_some(),
        &resource.icons,
        &resource.meta,
    ) && keeps_annotations(features, resource.annotations.as_ref());
    if kept {
        return Cow::Borrowed(resource);
    }
    let mut adapted = resource.clone();
    strip(
        features,
        &mut adapted.title,
        &mut adapted.icons,
        &mut adapted.meta,
    );
    strip_annotations(features, adapted.annotations.as_mut());
    Cow::Owned(adapted)
}

/// A resource template's definition as a peer of `revision` reads it.
pub fn resource_template(
    template: &ResourceTemplate,
    revision: Revision,
) -> Cow<'_, ResourceTemplate> {
    let features = revision.features();
    let kept = has_all_members(
        features,
        template.title.is_some(),
        &template.icons,
        &template.meta,
    ) && keeps_annotations(features, template.annotations.as_ref());
    if kept {
        return Cow::Borrowed(template);
    }
    let mut adapted = template.clone();
    strip(
        features,
        &mut adapted.title,
        &mut adapted.icons,
        &mut adapted.meta,
    );
    strip_annotations(features, adapted.annotations.as_mut());
    Cow::Owned(adapted)
}

/// A prompt's definition as a peer of `revision` reads it.
pub fn prompt(prompt: &Prompt, revision: Revision) -> Cow<'_, Prompt> {
    let features = revision.features();
    let arguments = prompt.arguments.iter().flatten();
    let titled =
        prompt.title.is_some() || arguments.clone().any(|argument| argument.title.is_some());
    if has_all_members(features, titled, &prompt.icons, &prompt.meta) {
        return Cow::Borrowed(prompt);
    }
    let mut adapted = prompt.clone();
    strip(
        features,
        &mut adapted.title,
        &mut adapted.icons,
        &mut adapted.meta,
    );
    if !features.titles {
        adapted
            .arguments
            .iter_mut()
            .flatten()
            .for_each(|argument| argument.title = None);
    }
    Cow::Owned(adapted)
}

/// A client's or server's identity as a peer of `revision` reads it.
pub fn implementation(
    implementation: &Implementation,
    revision: Revision,
) -> Cow<'_, Implementation> {
    let features = revision.features();
    let extras = implementation.description.is_some() || implementation.website_url.is_some();
    let kept = has_all_members(
        features,
        implementation.title.is_some(),
        &implementation.icons,
        &None,
    ) && (features.implementation_extras || !extras);
    if kept {
        return Cow::Borrowed(implementation);
    }
    let mut adapted = implementation.clone();
    strip(features, &mut adapted.title, &mut adapted.icons, &mut None);
    if !features.implementation_extras {
        adapted.description = None;
        adapted.website_url = None;
    }
    Cow::Owned(adapted)
}

/// A server's capabilities as a client of `revision` reads them.
pub fn server_capabilities(
    capabilities: &ServerCapabilities,
    revision: Revision,
) -> Cow<'_, ServerCapabilities> {
    let features = revision.features();
    let mut adapted = Cow::Borrowed(capabilities);
    if !features.completions_capability && capabilities.completions.is_some() {
        adapted.to_mut().completions = None;
    }
    if !features.tasks && capabilities.tasks.is_some() {
        adapted.to_mut().tasks = None;
    }
    adapted
}

/// A client's capabilities as a server of `revision` reads them.
pub fn client_capabilities(
    capabilities: &ClientCapabilities,
    revision: Revision,
) -> Cow<'_, ClientCapabilities> {
    let features = revision.features();
    let mut adapted = capabilities.clone();
    if !features.roots_list_changed
        && let Some(roots) = &mut adapted.roots
    {
        roots.list_changed = None;
    }
    if !features.sampling_tools
        && let Some(sampling) = &mut adapted.sampling
    {
        (sampling.tools, sampling.context) = (None, None);
    }
    // Without modes, only form elicitation can be declared.
    if !features.elicitation || (!features.url_elicitation && !capabilities.has_form_elicitation())
    {
        adapted.elicitation = None;
    }
    if !features.url_elicitation
        && let Some(elicitation) = &mut adapted.elicitation
    {
        (elicitation.form, elicitation.url) = (None, None);
    }
    if !features.tasks {
        adapted.tasks = None;
    }
    if adapted == *capabilities {
        Cow::Borrowed(capabilities)
    } else {
        Cow::Owned(adapted)
    }
}

/// A progress notification as a peer of `revision` reads it.
pub fn progress(progress: &Progress, revision: Revision) -> Cow<'_, Progress> {
    if revision.features().progress_message || progress.message.is_none() {
        return Cow::Borrowed(progress);
    }
    Cow::Owned(Progress {
        message: None,
        ..progress.clone()
    })
}

fn has_all_members(
    features: &RevisionFeatures,
    titled: bool,
    icons: &Option<Vec<Icon>>,
    meta: &Option<Extra>,
) -> bool {
    (features.titles || !titled)
        && (features.icons || icons.is_none())
        && (features.object_meta || meta.is_none())
}

fn strip(
    features: &RevisionFeatures,
    title: &mut Option<String>,
    icons: &mut Option<Vec<Icon>>,
    meta: &mut Option<Extra>,
) {
    if !features.titles {
        *title = None;
    }
    if !features.icons {
        *icons = None;
    }
    if !features.object_meta {
        *meta = None;
    }
}

fn keeps_annotations(features: &RevisionFeatures, annotations: Option<&Annotations>) -> bool {
    features.last_modified
        || annotations.is_none_or(|annotations| annotations.last_modified.is_none())
}

fn strip_annotations(features: &RevisionFeatures, annotations: Option<&mut Annotations>) {
    if !features.last_modified
        && let Some(annotations) = annotations
    {
        annotations.last_modified = None;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::vocabulary::{ElicitationCapability, PromptArgument, ToolAnnotations};

    fn rich_tool() -> Tool {
        let mut tool = Tool::new("t", json!({"type": "object"}))
            .with_title("Title")
            .with_output_schema(json!({"type": "array"}))
            .with_annotations(ToolAnnotations::default().with_read_only_hint(true))
            .with_icons(vec![Icon::new("data:,")])
            .with_meta(Extra::new());
        tool.extra.insert("x".into(), json!(1));
        tool
    }

    fn written(value: impl serde::Serialize) -> Value {
        serde_json::to_value(value).expect("JSON")
    }

    #[test]
    fn tool_keeps_members_of_the_revision() {
        let tool = rich_tool();
        let keys = |revision| {
            let value = written(super::tool(&tool, revision));
            value
                .as_object()
                .expect("object")
                .keys()
                .cloned()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(keys(Revision::V2024_11_05), "name inputSchema x");
        assert_eq!(
            keys(Revision::V2025_03_26),
            "name inputSchema annotations x"
        );
        assert_eq!(
            keys(Revision::V2025_06_18),
            "name title inputSchema outputSchema annotations _meta x"
        );
        assert_eq!(
            keys(Revision::V2025_11_25),
            "name title inputSchema outputSchema annotations icons _meta x"
        );
        assert!(matches!(
            super::tool(&tool, Revision::V2026_07_28),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn a_title_moves_into_the_annotations_where_only_they_can_hold_it() {
        let adapted = tool(&rich_tool(), Revision::V2025_03_26).into_owned();
        assert_eq!(
            adapted.annotations.expect("annotations").title.as_deref(),
            Some("Title")
        );
    }

    #[test]
    fn an_output_schema_is_wrapped_until_any_schema_is_allowed() {
        let old = tool(&rich_tool(), Revision::V2025_11_25)
            .into_owned()
            .output_schema
            .expect("schema");
        assert_eq!(old["properties"]["result"], json!({"type": "array"}));
        let new = tool(&rich_tool(), Revision::V2026_07_28)
            .into_owned()
            .output_schema
            .expect("schema");
        assert_eq!(new, json!({"type": "array"}));
    }

    #[test]
    fn resources_prompts_and_identities_lose_unknown_members() {
        let annotations = Annotations::default()
            .with_priority(1.0)
            .with_last_modified("2025-01-01");
        let resource = Resource::new("file:///x", "x")
            .with_title("X")
            .with_annotations(annotations.clone());
        assert_eq!(
            written(super::resource(&resource, Revision::V2025_03_26)),
            json!({"uri": "file:///x", "name": "x", "annotations": {"priority": 1}})
        );
        assert!(matches!(
            super::resource(&resource, Revision::V2025_06_18),
            Cow::Borrowed(_)
        ));
        let template = ResourceTemplate::new("file:///{x}", "x")
            .with_icons(vec![])
            .with_annotations(annotations);
        assert_eq!(
            written(resource_template(&template, Revision::V2024_11_05)),
            json!({"uriTemplate": "file:///{x}", "name": "x", "annotations": {"priority": 1}})
        );
        let prompt =
            Prompt::new("p").with_arguments(vec![PromptArgument::new("a").with_title("A")]);
        assert_eq!(
            written(super::prompt(&prompt, Revision::V2024_11_05)),
            json!({"name": "p", "arguments": [{"name": "a"}]})
        );
        let who = Implementation::new("n", "1")
            .with_title("N")
            .with_description("d")
            .with_website_url("https://x");
        assert_eq!(
            written(implementation(&who, Revision::V2025_03_26)),
            json!({"name": "n", "version": "1"})
        );
        assert_eq!(
            written(implementation(&who, Revision::V2025_06_18)),
            json!({"name": "n", "version": "1", "title": "N"})
        );
        assert!(matches!(
            implementation(&who, Revision::V2025_11_25),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn capabilities_lose_unknown_members() {
        let server: ServerCapabilities = serde_json::from_value(json!({
            "tools": {"listChanged": true}, "completions": {}, "extensions": {"a/b": {}},
        }))
        // Extensions are kept on every revision, so that both sides find each other: additional members are allowed.
        .expect("capabilities");
        assert_eq!(
            written(server_capabilities(&server, Revision::V2024_11_05)),
            json!({"tools": {"listChanged": true}, "extensions": {"a/b": {}}})
        );
        assert!(matches!(
            server_capabilities(&server, Revision::V2026_07_28),
            Cow::Borrowed(_)
        ));

        let client: ClientCapabilities = serde_json::from_value(json!({
            "roots": {"listChanged": true}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}},
            "extensions": {"a/b": {}},
        }))
        .expect("capabilities");
        let adapted = |revision| written(client_capabilities(&client, revision));
        assert_eq!(
            adapted(Revision::V2024_11_05),
            json!({"roots": {"listChanged": true}, "sampling": {}, "extensions": {"a/b": {}}})
        );
        assert_eq!(
            adapted(Revision::V2025_06_18),
            json!({
                "roots": {"listChanged": true}, "sampling": {}, "elicitation": {},
                "extensions": {"a/b": {}},
            })
        );
        assert_eq!(
            adapted(Revision::V2026_07_28),
            json!({
                "roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}},
                "extensions": {"a/b": {}},
            })
        );
    }

    #[test]
    fn url_only_client_declares_no_elicitation_before_modes_exist() {
        let url = ElicitationCapability::default().with_url(Extra::new());
        let client = ClientCapabilities::default().with_elicitation(url);
        assert_eq!(
            client_capabilities(&client, Revision::V2025_06_18).elicitation,
            None
        );
    }

    #[test]
    fn the_first_revision_gets_no_progress_messages() {
        let note = Progress::new(1.into(), 1.0).with_message("m");
        assert_eq!(progress(&note, Revision::V2024_11_05).message, None);
        assert_eq!(
            progress(&note, Revision::V2025_03_26).message.as_deref(),
            Some("m")
        );
    }
}
