//! The table of features agrees with the published schema of every revision, as far as schemas define it.
//!
//! The schemas are read from `../shared/spec` beside the repository. If that is absent, the tests print a note and
//! pass.

use std::fs;
use std::path::Path;

use mcpline_protocol::methods::Sender;
use mcpline_protocol::revision::{BatchRule, Revision, RevisionFeatures, StructuredContent};
use mcpline_protocol::wire::Method;
use serde_json::Value;

/// Returns the definitions of a revision's schema.
fn definitions(revision: Revision) -> Option<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec");
    let Ok(text) = fs::read(root.join(revision.as_str()).join("schema.json")) else {
        eprintln!("skipped: no ../shared/spec beside the repository");
        return None;
    };
    let mut schema: Value = serde_json::from_slice(&text).expect("JSON");
    let definitions = ["definitions", "$defs"]
        .into_iter()
        .find(|name| schema.get(name).is_some());
    Some(schema[definitions.expect("definitions")].take())
}

/// Returns each revision with its definitions and its row of the table.
fn revisions() -> impl Iterator<Item = (Revision, Value, &'static RevisionFeatures)> {
    Revision::ALL
        .iter()
        .filter_map(|&revision| Some((revision, definitions(revision)?, revision.features())))
}

/// Returns whether a definition exists and has a property.
fn has(definitions: &Value, definition: &str, property: &str) -> bool {
    !definitions[definition]["properties"][property].is_null()
}

/// Returns whether the parameters of a request have a property. Older schemas have no separate definitions of
/// parameters.
fn takes(definitions: &Value, request: &str, property: &str) -> bool {
    has(definitions, &format!("{request}Params"), property)
        || !definitions[request]["properties"]["params"]["properties"][property].is_null()
}

fn defines(definitions: &Value, definition: &str) -> bool {
    !definitions[definition].is_null()
}

/// Returns the methods that a schema defines.
fn methods(definitions: &Value) -> Vec<&str> {
    let definitions = definitions
        .as_object()
        .into_iter()
        .flat_map(|all| all.values());
    definitions
        .filter_map(|definition| definition["properties"]["method"]["const"].as_str())
        .collect()
}

#[test]
fn knows_every_method_of_every_schema() {
    for (revision, definitions, _) in revisions() {
        for name in methods(&definitions) {
            assert!(
                !matches!(Method::parse(name), Method::Other(_)),
                "{name} of {revision}"
            );
        }
    }
}

/// Returns the methods in one of the schema's unions of messages, such as `OutgoingClientRequest`.
fn senders<'d>(definitions: &'d Value, union: &str) -> Vec<&'d str> {
    let members = definitions[union]["anyOf"].as_array().into_iter().flatten();
    members
        .filter_map(|member| member["$ref"].as_str()?.rsplit('/').next())
        .filter_map(|name| definitions[name]["properties"]["method"]["const"].as_str())
        .collect()
}

#[test]
fn methods_exist_where_the_table_says() {
    for (revision, definitions, _) in revisions() {
        let defined = methods(&definitions);
        for method in Method::KNOWN {
            let spec = method.spec().expect("a row");
            assert_eq!(
                defined.contains(&method.as_str()),
                spec.is_in(revision),
                "{method} in {revision}"
            );
        }
    }
}

#[test]
fn methods_have_the_senders_in_the_table() {
    for (revision, definitions, _) in revisions() {
        for (sender, unions) in [
            (
                Sender::Client,
                ["OutgoingClientRequest", "ClientNotification"],
            ),
            (Sender::Server, ["ServerRequest", "ServerNotification"]),
        ] {
            let sent: Vec<&str> = unions
                .iter()
                .flat_map(|union| senders(&definitions, union))
                .collect();
            for method in &sent {
                let spec = Method::parse(method).spec().expect("a row");
                assert!(
                    spec.sender == sender || spec.sender == Sender::Both,
                    "{method} of {revision}"
                );
            }
        }
    }
}

#[test]
fn properties_exist_where_the_table_says() {
    for (revision, all, features) in revisions() {
        let has = |definition, property| has(&all, definition, property);
        let takes = |request, property| takes(&all, request, property);
        for (what, found, expected) in [
            (
                "request meta",
                has(
                    "RequestMetaObject",
                    "io.modelcontextprotocol/protocolVersion",
                ),
                features.request_meta,
            ),
            (
                "log level",
                has("RequestMetaObject", "io.modelcontextprotocol/logLevel"),
                features.request_log_level,
            ),
            (
                "server info",
                has("ResultMetaObject", "io.modelcontextprotocol/serverInfo"),
                features.meta_server_info,
            ),
            (
                "result type",
                has("CallToolResult", "resultType"),
                features.result_type,
            ),
            (
                "cache hints",
                has("ListToolsResult", "ttlMs"),
                features.cache_hints,
            ),
            (
                "cache hints",
                has("ReadResourceResult", "cacheScope"),
                features.cache_hints,
            ),
            (
                "input required",
                defines(&all, "InputRequiredResult"),
                features.mrtr,
            ),
            ("tasks", has("ServerCapabilities", "tasks"), features.tasks),
            ("tool execution", has("Tool", "execution"), features.tasks),
            (
                "completions",
                has("ServerCapabilities", "completions"),
                features.completions_capability,
            ),
            (
                "completion context",
                takes("CompleteRequest", "context"),
                features.completion_context,
            ),
            (
                "progress message",
                takes("ProgressNotification", "message"),
                features.progress_message,
            ),
            (
                "tool annotations",
                has("Tool", "annotations"),
                features.tool_annotations,
            ),
            (
                "output schema",
                has("Tool", "outputSchema"),
                features.output_schema,
            ),
            ("icons of a tool", has("Tool", "icons"), features.icons),
            ("icons of a prompt", has("Prompt", "icons"), features.icons),
            (
                "icons of a resource",
                has("Resource", "icons"),
                features.icons,
            ),
            (
                "icons of a server",
                has("Implementation", "icons"),
                features.icons,
            ),
            (
                "description of a server",
                has("Implementation", "description"),
                features.implementation_extras,
            ),
            (
                "site of a server",
                has("Implementation", "websiteUrl"),
                features.implementation_extras,
            ),
            ("meta of a tool", has("Tool", "_meta"), features.object_meta),
            (
                "meta of a resource",
                has("Resource", "_meta"),
                features.object_meta,
            ),
            (
                "meta of text",
                has("TextContent", "_meta"),
                features.object_meta,
            ),
            (
                "last modified",
                has("Annotations", "lastModified"),
                features.last_modified,
            ),
            ("audio", defines(&all, "AudioContent"), features.audio),
            (
                "resource link",
                defines(&all, "ResourceLink"),
                features.resource_link,
            ),
            (
                "elicitation",
                has("ClientCapabilities", "elicitation"),
                features.elicitation,
            ),
            (
                "URL elicitation",
                defines(&all, "ElicitRequestURLParams"),
                features.url_elicitation,
            ),
            (
                "elicitation id",
                has("ElicitRequestURLParams", "elicitationId"),
                features.elicitation_complete,
            ),
            (
                "defaults of strings",
                has("StringSchema", "default"),
                features.elicitation_defaults,
            ),
            (
                "titled enums",
                defines(&all, "TitledSingleSelectEnumSchema"),
                features.elicitation_enums,
            ),
            (
                "multiple choice",
                defines(&all, "TitledMultiSelectEnumSchema"),
                features.elicitation_enums,
            ),
            (
                "sampling tools",
                takes("CreateMessageRequest", "tools"),
                features.sampling_tools,
            ),
            (
                "sampling tools",
                defines(&all, "ToolUseContent"),
                features.sampling_tools,
            ),
            (
                "roots list changed",
                has_nested(&all, "ClientCapabilities", "roots", "listChanged"),
                features.roots_list_changed,
            ),
        ] {
            assert_eq!(found, expected, "{what} in {revision}");
        }
        for definition in [
            "BaseMetadata",
            "Implementation",
            "Prompt",
            "PromptArgument",
            "Resource",
            "Tool",
        ] {
            if defines(&all, definition) {
                assert_eq!(
                    has(definition, "title"),
                    features.titles,
                    "title of {definition} in {revision}"
                );
            }
        }
    }
}

fn has_nested(definitions: &Value, definition: &str, property: &str, inner: &str) -> bool {
    !definitions[definition]["properties"][property]["properties"][inner].is_null()
}

#[test]
fn servers_send_requests_where_the_table_says() {
    for (revision, definitions, features) in revisions() {
        assert_eq!(
            defines(&definitions, "ServerRequest"),
            features.server_requests,
            "{revision}"
        );
    }
}

#[test]
fn structured_content_has_the_type_in_the_table() {
    for (revision, definitions, features) in revisions() {
        let property = &definitions["CallToolResult"]["properties"]["structuredContent"];
        let found = match (property.is_null(), property["type"].as_str()) {
            (true, _) => StructuredContent::None,
            (false, Some("object")) => StructuredContent::Object,
            (false, _) => StructuredContent::Any,
        };
        assert_eq!(found, features.structured_content, "{revision}");
        let any = definitions["Tool"]["properties"]["outputSchema"]["properties"]["type"].is_null();
        assert_eq!(
            any && features.output_schema,
            found == StructuredContent::Any,
            "{revision}"
        );
    }
}

#[test]
fn only_the_revision_that_requires_batches_defines_them() {
    for (revision, definitions, features) in revisions() {
        let found = defines(&definitions, "JSONRPCBatchRequest");
        assert_eq!(
            found,
            features.batches == BatchRule::MustReceive,
            "{revision}"
        );
    }
}

#[test]
fn error_codes_match_the_schema() {
    for (revision, definitions, features) in revisions() {
        let found = defines(&definitions, "URLElicitationRequiredError");
        assert_eq!(
            found,
            features.url_elicitation_required_code.is_some(),
            "{revision}"
        );
    }
}
