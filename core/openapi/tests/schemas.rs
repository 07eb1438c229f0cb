//! Schemas of arguments and results: what is converted, what is left out, and how large they become.

use mcpline_openapi::{Document, ImportOptions, ImportedOperation};
use mcpline_schema::Validator;
use serde_json::{Value, json};

fn document(openapi: &str, operation: Value, components: Value) -> Document {
    Document::new(json!({
        "openapi": openapi,
        "info": {"title": "Test", "version": "1"},
        "paths": {"/things": {"post": operation}},
        "components": components,
    }))
    .expect("a document")
}

fn import(document: &Document) -> ImportedOperation {
    import_within(document, ImportOptions::default())
}

fn import_within(document: &Document, options: ImportOptions) -> ImportedOperation {
    let operations = document.operations().expect("operations");
    let imported = document
        .import(&operations[0], &options)
        .expect("an operation");
    Validator::compile(&imported.input_schema).expect("a valid schema of arguments");
    if let Some(schema) = &imported.output_schema {
        Validator::compile(schema).expect("a valid schema of results");
    }
    imported
}

/// The schema of the argument `value`, which a query has.
fn argument(openapi: &str, schema: Value, components: Value) -> (Value, Value) {
    let operation = json!({
        "parameters": [{"name": "value", "in": "query", "schema": schema}],
        "responses": {},
    });
    let imported = import(&document(openapi, operation, components));
    let definitions = imported
        .input_schema
        .get("$defs")
        .cloned()
        .unwrap_or_default();
    (
        imported.input_schema["properties"]["value"].clone(),
        definitions,
    )
}

fn response(schema: Value, components: Value) -> Option<Value> {
    let operation = json!({
        "responses": {"200": {"description": "", "content": {"application/json": {"schema": schema}}}},
    });
    import(&document("3.0.3", operation, components)).output_schema
}

#[test]
fn the_type_null_beside_alternatives_allows_null_in_addition() {
    // Vercel's document, which was converted from 3.0.
    let schema = json!({"type": "null", "oneOf": [{"type": "string"}, {"type": "number"}]});
    let (converted, _) = argument("3.1.0", schema, json!({}));
    assert_eq!(
        converted,
        json!({"anyOf": [{"anyOf": [{"type": "string"}, {"type": "number"}]}, {"type": "null"}]})
    );
}

#[test]
fn an_enumeration_without_a_value_of_its_type_can_be_met() {
    // Zoom's document has it for an identifier in paths.
    let numbers = json!({"type": "string", "enum": [1, 2]});
    let (converted, _) = argument("3.0.0", numbers.clone(), json!({}));
    assert_eq!(converted, json!({"enum": [1, 2]}));
    let object = json!({"type": "object", "properties": {"kind": numbers}});
    assert_eq!(
        response(object, json!({})).expect("a schema")["properties"],
        json!({"kind": {}})
    );
    // One value that has the type suffices.
    let mixed = json!({"type": "string", "enum": ["a", 1]});
    let (converted, _) = argument("3.0.0", mixed.clone(), json!({}));
    assert_eq!(converted, mixed);
}

#[test]
fn a_closed_object_requires_no_property_that_it_cannot_have() {
    // Jira's document has it for the screens of a screen scheme.
    let closed = json!({
        "type": "object",
        "properties": {"default": {"type": "integer"}},
        "required": ["defaultScreen"],
        "additionalProperties": false,
    });
    let (converted, _) = argument("3.0.1", closed, json!({}));
    assert_eq!(converted.get("required"), None);
    let open = json!({"type": "object", "required": ["defaultScreen"]});
    let (converted, _) = argument("3.0.1", open.clone(), json!({}));
    assert_eq!(converted, open);
}

#[test]
fn keywords_of_3_0_become_those_of_json_schema() {
    let letter = json!({"schemas": {"Letter": {"type": "string", "enum": ["a", "b"]}}});
    for (given, expected) in [
        (
            json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}),
            json!({"type": "integer", "exclusiveMinimum": 1, "maximum": 9}),
        ),
        (
            json!({"type": "string", "nullable": true, "enum": ["a"]}),
            json!({"type": ["string", "null"], "enum": ["a", null]}),
        ),
        (
            json!({"nullable": true, "allOf": [{"type": "string"}, {"minLength": 1}]}),
            json!({"anyOf": [{"allOf": [{"type": "string"}, {"minLength": 1}]}, {"type": "null"}]}),
        ),
        (
            json!({"nullable": true, "$ref": "#/components/schemas/Letter", "description": "d"}),
            json!({"description": "d", "anyOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "null"}]}),
        ),
        (
            json!({"type": "object", "not": {"required": ["a"]}, "unevaluatedProperties": false}),
            json!({"type": "object"}),
        ),
        (
            json!({"type": "string", "example": "x", "xml": {"name": "y"}, "x-go-type": "Z", "discriminator": {}}),
            json!({"type": "string", "examples": ["x"]}),
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}]}),
            json!({"type": "array", "prefixItems": [{"type": "string"}]}),
        ),
    ] {
        let (schema, _) = argument("3.0.3", given.clone(), letter.clone());
        assert_eq!(schema, expected, "{given}");
    }
}

#[test]
fn alternatives_that_overlap_are_accepted() {
    // The discriminator tells them apart, which JSON Schema does not know.
    let kind = json!({"type": "string", "enum": ["text", "json"]});
    let given = json!({
        "oneOf": [
            {"type": "object", "properties": {"type": kind, "text": {"type": "string"}}},
            {"type": "object", "properties": {"type": kind, "json": {"type": "object"}}},
        ],
        "discriminator": {"propertyName": "type"},
    });
    let (schema, _) = argument("3.0.3", given, json!({}));
    let validator = Validator::compile(&schema).expect("a schema");
    assert!(
        validator.validate(&json!({"type": "text"})).is_ok(),
        "{schema}"
    );
}

#[test]
fn keywords_with_values_that_no_validator_accepts_are_left_out() {
    let wrong = json!({
        "type": "string",
        "required": true,
        "enum": [],
        "pattern": "(",
        "minLength": -1,
        "multipleOf": 0,
        "minimum": "1",
        "format": 3,
        "examples": {"a": {"value": 1}},
        "properties": [],
        "allOf": {},
        "$id": "http://example.com/elsewhere",
        "$schema": "http://json-schema.org/draft-04/schema#",
    });
    assert_eq!(
        argument("3.1.0", wrong, json!({})).0,
        json!({"type": "string"})
    );
    let unknown = json!({"type": ["string", "any"], "description": "d"});
    assert_eq!(
        argument("3.1.0", unknown, json!({})).0,
        json!({"description": "d"})
    );
}

#[test]
fn a_property_may_be_named_like_a_keyword() {
    let given = json!({"type": "object", "properties": {"$ref": {"type": "string"}, "type": {"type": "integer"}}});
    let (schema, _) = argument("3.1.0", given.clone(), json!({}));
    assert_eq!(schema, given);
}

#[test]
fn a_definition_that_is_used_once_is_written_in_place() {
    let components = json!({"schemas": {
        "Outer": {"type": "object", "properties": {"inner": {"$ref": "#/components/schemas/Inner"}}},
        "Inner": {"type": "object", "properties": {"text": {"type": "string"}}},
        "Unused": {"type": "object"},
    }});
    let given = json!({"$ref": "#/components/schemas/Outer", "description": "the outer one"});
    let (schema, definitions) = argument("3.1.0", given, components);
    let inner = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let expected =
        json!({"type": "object", "properties": {"inner": inner}, "description": "the outer one"});
    assert_eq!((schema, definitions), (expected, Value::Null));
}

#[test]
fn cyclic_definitions_stay_definitions() {
    let components = json!({"schemas": {
        "Node": {"type": "object", "properties": {
            "next": {"$ref": "#/components/schemas/Node"},
            "other": {"$ref": "#/components/schemas/Other"},
        }},
        "Other": {"type": "object", "properties": {"back": {"$ref": "#/components/schemas/Node"}}},
    }});
    let (schema, definitions) = argument(
        "3.1.0",
        json!({"$ref": "#/components/schemas/Node"}),
        components,
    );
    assert_eq!(schema, json!({"$ref": "#/$defs/Node"}));
    let names: Vec<_> = definitions
        .as_object()
        .expect("definitions")
        .keys()
        .collect();
    assert_eq!(names, ["Node", "Other"]);
}

#[test]
fn a_reference_that_never_ends_is_refused() {
    let components = json!({"schemas": {
        "A": {"$ref": "#/components/schemas/B"},
        "B": {"$ref": "#/components/schemas/A"},
    }});
    let operation = json!({
        "parameters": [{"name": "v", "in": "query", "schema": {"$ref": "#/components/schemas/A"}}],
    });
    let document = document("3.1.0", operation, components);
    let operations = document.operations().expect("operations");
    let error = document
        .import(&operations[0], &ImportOptions::default())
        .expect_err("a circle");
    assert!(error.to_string().contains("circle"), "{error}");
}

#[test]
fn a_reference_that_leads_nowhere_is_refused_with_its_place() {
    let operation =
        json!({"parameters": [{"name": "v", "in": "query", "schema": {"$ref": "#/nowhere"}}]});
    let document = document("3.1.0", operation, json!({}));
    let operations = document.operations().expect("operations");
    let error = document
        .import(&operations[0], &ImportOptions::default())
        .expect_err("nowhere");
    assert_eq!(
        error.to_string(),
        "OpenAPI document, #/paths/~1things/post/parameters/0/schema: the reference \"#/nowhere\": it leads nowhere"
    );
}

#[test]
fn other_documents_are_used_when_given_and_never_fetched() {
    let operation = json!({"requestBody": {"content": {"application/json": {"schema": {
    "type": "object", "properties": {
        "pet": {"$ref": "schemas/pet.json#/Pet"},
        "far": {"$ref": "https://example.com/far.json"},
    }}}}}});
    let document = document("3.1.0", operation, json!({}));
    let missing: Vec<_> = document.missing_documents().into_iter().collect();
    assert_eq!(
        missing,
        ["https://example.com/far.json", "schemas/pet.json"]
    );
    let operations = document.operations().expect("operations");
    let error = document
        .import(&operations[0], &ImportOptions::default())
        .expect_err("missing");
    assert!(
        error
            .to_string()
            .contains("schemas/pet.json\" is not here, and is not fetched"),
        "{error}"
    );

    let pet = json!({"Pet": {"type": "object", "properties": {"owner": {"$ref": "owner.json"}}}});
    let document = document
        .with_other("schemas/pet.json", pet)
        .and_then(|document| document.with_other("schemas/owner.json", json!({"type": "string"})))
        .and_then(|document| {
            document.with_other("https://example.com/far.json", json!({"type": "integer"}))
        })
        .expect("documents");
    assert!(document.missing_documents().is_empty());
    let properties = &import(&document).input_schema["properties"];
    assert_eq!(
        properties["pet"]["properties"]["owner"],
        json!({"type": "string"})
    );
    assert_eq!(properties["far"], json!({"type": "integer"}));
}

#[test]
fn requests_have_no_read_only_properties_and_responses_no_write_only_ones() {
    let thing = json!({
        "type": "object",
        "required": ["id", "secret", "name"],
        "properties": {
            "id": {"type": "string", "readOnly": true},
            "secret": {"$ref": "#/components/schemas/Secret"},
            "name": {"type": "string"},
        },
    });
    let components =
        json!({"schemas": {"Thing": thing, "Secret": {"type": "string", "writeOnly": true}}});
    let schema = json!({"$ref": "#/components/schemas/Thing"});
    let content = json!({"application/json": {"schema": schema}});
    let operation = json!({
        "requestBody": {"required": true, "content": content},
        "responses": {"200": {"description": "", "content": content}},
    });
    let imported = import(&document("3.0.3", operation, components));
    assert_eq!(imported.input_schema["required"], json!(["secret", "name"]));
    let output = imported.output_schema.expect("a schema");
    assert_eq!(output["required"], json!(["id", "name"]));
    assert_eq!(
        output["properties"].as_object().expect("properties").len(),
        2
    );
}

#[test]
fn results_may_have_more_than_their_schema_says() {
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "text": {"type": "string", "pattern": "^a$", "maxLength": 1, "example": "a"},
            "one": {"oneOf": [{"type": "string", "title": "A"}, {"type": "string", "title": "B"}]},
        },
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "one": {"anyOf": [{"type": "string", "title": "A"}, {"type": "string", "title": "B"}]},
        },
    });
    assert_eq!(response(schema, json!({})), Some(expected));
}

#[test]
fn only_objects_and_arrays_have_a_schema_of_results() {
    assert_eq!(response(json!({"type": "string"}), json!({})), None);
    assert_eq!(
        response(json!({"type": "object", "nullable": true}), json!({})),
        None
    );
    let list = json!({"type": "array", "items": {"type": "string"}});
    assert_eq!(response(list.clone(), json!({})), Some(list));
    let components = json!({"schemas": {"Tree": {"type": "object", "properties": {
        "children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}},
    }}}});
    let tree =
        response(json!({"$ref": "#/components/schemas/Tree"}), components).expect("a schema");
    assert_eq!(
        (&tree["$ref"], &tree["type"]),
        (&json!("#/$defs/Tree"), &json!("object"))
    );
}

#[test]
fn results_have_no_schema_if_a_success_may_have_no_content() {
    let content = json!({"application/json": {"schema": {"type": "object"}}});
    for responses in [
        json!({"200": {"description": "", "content": content}, "204": {"description": ""}}),
        json!({"200": {"description": "", "content": content},
               "201": {"description": "", "content": {"application/json": {"schema": {"type": "array"}}}}}),
        json!({"200": {"description": "", "content": {"text/plain": {"schema": {"type": "string"}}}}}),
    ] {
        let imported = import(&document(
            "3.0.3",
            json!({"responses": responses}),
            json!({}),
        ));
        assert_eq!(imported.output_schema, None, "{responses}");
    }
    let failure = json!({"200": {"description": "", "content": content},
                         "default": {"description": "", "content": {"application/json": {"schema": {}}}}});
    let imported = import(&document("3.0.3", json!({"responses": failure}), json!({})));
    assert_eq!(imported.output_schema, Some(json!({"type": "object"})));
}

/// Schemas of which each refers to all others.
fn dense_components(count: usize) -> Value {
    let names: Vec<_> = (0..count).map(|index| format!("Schema{index}")).collect();
    let schema = |_: &String| {
        let properties = names.iter().map(|name| {
            (
                name.clone(),
                json!({"$ref": format!("#/components/schemas/{name}")}),
            )
        });
        json!({"type": "object", "properties": Value::Object(properties.collect())})
    };
    let schemas = names.iter().map(|name| (name.clone(), schema(name)));
    json!({"schemas": Value::Object(schemas.collect())})
}

#[test]
fn a_large_schema_is_shortened_to_its_limit() {
    let content = json!({"application/json": {"schema": {"$ref": "#/components/schemas/Schema0"}}});
    let operation = json!({
        "requestBody": {"required": true, "content": content},
        "responses": {"200": {"description": "", "content": content}},
    });
    let document = document("3.1.0", operation, dense_components(60));
    let mut options = ImportOptions::default();
    options.max_schema_bytes = 8_000;
    let imported = import_within(&document, options);
    let output = imported.output_schema.expect("a schema");
    for schema in [&imported.input_schema, &output] {
        let length = schema.to_string().len();
        assert!(length <= 8_000, "{length}");
        assert_eq!(
            schema["properties"].as_object().expect("properties").len(),
            60
        );
    }
    assert_eq!(output["properties"]["Schema7"], json!({"type": "object"}));
}

#[test]
fn a_schema_that_doubles_at_every_level_stays_small() {
    let mut schemas = serde_json::Map::new();
    for level in 0..100 {
        let next = json!({"$ref": format!("#/components/schemas/Level{}", level + 1)});
        let properties = json!({"left": next, "right": next});
        schemas.insert(
            format!("Level{level}"),
            json!({"type": "object", "properties": properties}),
        );
    }
    schemas.insert("Level100".to_owned(), json!({"type": "string"}));
    let operation = json!({"parameters": [
        {"name": "value", "in": "query", "schema": {"$ref": "#/components/schemas/Level0"}},
    ]});
    let imported = import(&document("3.1.0", operation, json!({"schemas": schemas})));
    assert!(imported.input_schema.to_string().len() <= 32 * 1024);
}

#[test]
fn deep_nesting_without_references_is_cut() {
    let mut schema = json!({"type": "string"});
    for _ in 0..200 {
        schema = json!({"type": "object", "properties": {"inner": schema}});
    }
    let (schema, _) = argument("3.1.0", schema, json!({}));
    assert!(schema.to_string().len() < 3_000);
}

/// Schemas of which each combines twelve references to the next: there are 12⁸ paths through them.
fn combined(keyword: &str, last: &Value) -> Value {
    let mut schemas = serde_json::Map::new();
    for level in 0..8 {
        let next = json!({"$ref": format!("#/components/schemas/Level{}", level + 1)});
        schemas.insert(format!("Level{level}"), json!({keyword: vec![next; 12]}));
    }
    schemas.insert("Level8".to_owned(), last.clone());
    json!({"schemas": schemas})
}

#[test]
fn a_body_with_too_many_combinations_is_one_argument() {
    let components = combined("allOf", &json!({"properties": {"a": {"type": "string"}}}));
    let schema = json!({"$ref": "#/components/schemas/Level0"});
    let operation = json!({
        "requestBody": {"content": {"application/json": {"schema": schema}}},
        "responses": {},
    });
    let imported = import(&document("3.1.0", operation, components));
    let properties = imported.input_schema["properties"].as_object();
    let names: Vec<_> = properties.expect("properties").keys().collect();
    assert_eq!(names, ["body"]);
}

#[test]
fn a_form_with_too_many_combinations_is_refused() {
    let components = combined("oneOf", &json!({"type": "string"}));
    let file = json!({"$ref": "#/components/schemas/Level0"});
    let schema = json!({"type": "object", "properties": {"file": file}});
    let operation = json!({
        "requestBody": {"content": {"multipart/form-data": {"schema": schema}}},
        "responses": {},
    });
    let document = document("3.1.0", operation, components);
    let operations = document.operations().expect("operations");
    let error = document.import(&operations[0], &ImportOptions::default());
    let error = error.expect_err("too complex").to_string();
    assert!(error.contains("`MAX_BODY_VISITS`"), "{error}");
}

#[test]
fn a_result_with_too_many_combinations_has_no_schema() {
    let components = combined("oneOf", &json!({"type": "object"}));
    let schema = json!({"$ref": "#/components/schemas/Level0"});
    assert_eq!(response(schema, components), None);
}

#[test]
fn the_limit_of_a_schema_holds_for_wide_ones() {
    let words = "a description that is not short ".repeat(50);
    let names: Vec<_> = (0..60).map(|number| format!("argument{number}")).collect();
    let parameters = |schema: &Value| -> Value {
        let all = names.iter().map(
            |name| json!({"name": name, "in": "query", "description": words, "schema": schema}),
        );
        Value::Array(all.collect())
    };
    let properties: serde_json::Map<_, _> = names
        .iter()
        .map(|name| {
            (
                name.clone(),
                json!({"type": "string", "description": words}),
            )
        })
        .collect();
    let wide = json!({"type": "object", "properties": properties});
    let names_enum = json!({"type": "string", "enum": vec![words.clone(); 100]});
    for (schema, limit, has_arguments) in [
        (json!({"type": "string"}), 4_000, true),
        (wide.clone(), 4_000, true),
        (names_enum, 4_000, true),
        (wide.clone(), 800, false),
        (json!({"default": wide}), 0, false),
    ] {
        let operation = json!({
            "parameters": parameters(&schema),
            "responses": {"200": {"description": "", "content": {"application/json": {"schema": wide}}}},
        });
        let mut options = ImportOptions::default();
        options.max_schema_bytes = limit;
        let imported = import_within(&document("3.1.0", operation, json!({})), options);
        assert!(imported.schema_bytes <= limit.max(4));
        let written = imported.input_schema.to_string();
        assert!(written.len() <= limit.max(20), "{}", written.len());
        assert_eq!(imported.input_schema["type"], "object");
        let properties = imported.input_schema["properties"].as_object();
        assert_eq!(properties.is_some_and(|all| all.len() == 60), has_arguments);
        let output = imported.output_schema.expect("a schema");
        assert!(output.to_string().len() <= limit.max(20));
        assert_eq!(output["type"], "object");
        // Each of the eleven attempts ends at twice the limit.
        assert!(imported.converted_bytes <= 2 * 11 * 2 * limit);
    }
}

#[test]
fn values_that_look_like_internal_references_are_left_out() {
    let value = json!({"\u{0}reference": 0});
    for keyword in ["const", "default", "example"] {
        let schema = json!({"type": "object", keyword: value});
        let (converted, definitions) = argument("3.1.0", schema, json!({}));
        assert_eq!(converted, json!({"type": "object"}), "{keyword}");
        assert_eq!(definitions, Value::Null);
    }
    let other = json!({"$ref": "#/components/schemas/Other"});
    let schema = json!({
        "properties": {"\u{0}reference": true, "a": {"enum": [[value]]}, "b": other, "c": {"examples": [value]}},
    });
    let components = json!({"schemas": {"Other": {"type": "string"}}});
    let (converted, _) = argument("3.1.0", schema, components);
    let expected = json!({"properties": {"a": {}, "b": {"type": "string"}, "c": {}}});
    assert_eq!(converted, expected);
}
