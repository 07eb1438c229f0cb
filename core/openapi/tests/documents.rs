//! Documents and their operations, and the meaning of responses.

use mcpline_openapi::limits::{MAX_TAG_BYTES, MAX_TAGS};
use mcpline_openapi::{Document, Method, Outcome, ResponseParts};
use serde_json::json;

#[test]
fn only_documents_of_version_3_are_accepted() {
    for (document, expected) in [
        ("openapi: 3.0.0", "parse it first"),
        ("{}", "no member `openapi`"),
        (r#"{"swagger": "2.0"}"#, "convert it to OpenAPI 3 first"),
        (r#"{"openapi": "4.0.0"}"#, "3.0 and 3.1 are supported"),
    ] {
        let error = Document::from_json(document.as_bytes())
            .expect_err(document)
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn operations_have_unique_names_and_the_texts_of_the_document() {
    let document = Document::new(json!({
        "openapi": "3.0.0",
        "paths": {
            "/pets": {
                "summary": "Pets",
                "get": {"operationId": "pets/list", "description": "All of them.", "tags": ["pets", ""], "deprecated": true},
                "post": {"operationId": "pets list"},
                "x-other": {},
            },
            "/pets/{id}": {"$ref": "#/x-items/pet"},
            "x-extension": {},
        },
        "x-items": {"pet": {"delete": {}}},
    }))
    .expect("a document");
    let operations = document.operations().expect("operations");
    let names: Vec<_> = operations
        .iter()
        .map(|operation| &*operation.name)
        .collect();
    assert_eq!(names, ["pets_list", "pets_list_2", "delete_pets_id"]);
    let first = &operations[0];
    assert_eq!(first.description.as_deref(), Some("Pets\n\nAll of them."));
    assert_eq!(
        (&first.tags[..], first.is_deprecated),
        (&["pets".to_owned()][..], true)
    );
    assert_eq!(
        (operations[2].method, &*operations[2].path),
        (Method::Delete, "/pets/{id}")
    );
}

#[test]
fn a_long_description_is_cut_between_characters() {
    let description = "ü".repeat(4_000);
    let document = Document::new(
        json!({"openapi": "3.0.0", "paths": {"/a": {"get": {"description": description}}}}),
    );
    let operations = document
        .expect("a document")
        .operations()
        .expect("operations");
    let description = operations[0].description.as_deref().expect("a description");
    assert!(description.len() <= 4 * 1024 + 3 && description.ends_with("ü…"));
}

#[test]
fn tags_are_limited_in_number_and_length() {
    let operations = |tags: Vec<String>| {
        let document =
            Document::new(json!({"openapi": "3.0.0", "paths": {"/a": {"get": {"tags": tags}}}}));
        document.expect("a document").operations()
    };
    let most = vec!["t".repeat(MAX_TAG_BYTES); MAX_TAGS];
    assert_eq!(operations(most.clone()).expect("operations")[0].tags, most);
    let refused = |tags| operations(tags).expect_err("too many").to_string();
    assert_eq!(
        refused(vec!["t".to_owned(); MAX_TAGS + 1]),
        "OpenAPI document, #/paths/~1a/get/tags: it has more than 32 tags (`MAX_TAGS`)"
    );
    assert_eq!(
        refused(vec!["t".repeat(MAX_TAG_BYTES + 1)]),
        "OpenAPI document, #/paths/~1a/get/tags: a tag is longer than 200 bytes (`MAX_TAG_BYTES`)"
    );
}

fn outcome(status: u16, content_type: Option<&str>, body: &[u8]) -> Outcome {
    ResponseParts {
        status,
        content_type,
        location: None,
        body,
    }
    .outcome()
}

#[test]
fn responses_are_read_by_their_media_type() {
    let text = |text: &str| Outcome::Text(text.to_owned());
    for (content_type, body, expected) in [
        (
            Some("application/json; charset=utf-8"),
            &b"{}"[..],
            Outcome::Json,
        ),
        (Some("application/problem+json"), b"{}", Outcome::Json),
        (Some("text/html"), b"<p>", text("<p>")),
        (Some("application/xml"), b"\xff", text("\u{fffd}")),
        (
            Some("image/png"),
            b"\x89PNG",
            Outcome::Image("image/png".to_owned()),
        ),
        (Some("image/svg+xml"), b"<svg/>", text("<svg/>")),
        (
            Some("audio/mpeg"),
            b"\0",
            Outcome::Audio("audio/mpeg".to_owned()),
        ),
        (
            Some("application/zip"),
            b"PK\0",
            Outcome::Binary("application/zip".to_owned()),
        ),
        (
            Some("nonsense"),
            b"\0",
            Outcome::Binary("application/octet-stream".to_owned()),
        ),
        (None, b"plain", text("plain")),
    ] {
        assert_eq!(
            outcome(200, content_type, body),
            expected,
            "{content_type:?}"
        );
    }
    assert_eq!(
        outcome(204, None, b""),
        Outcome::Empty("HTTP 204 No Content".to_owned())
    );
}

#[test]
fn an_error_has_its_status_and_the_beginning_of_its_body() {
    let error = outcome(
        404,
        Some("application/json"),
        br#"{"message": "no such pet"}"#,
    );
    assert_eq!(
        error,
        Outcome::Error("HTTP 404 Not Found: {\"message\": \"no such pet\"}".to_owned())
    );
    assert_eq!(
        outcome(500, None, b"\0\x01"),
        Outcome::Error("HTTP 500 Internal Server Error".to_owned())
    );
    let Outcome::Error(long) = outcome(418, None, &[b'a'; 100_000]) else {
        panic!("an error");
    };
    assert!(long.len() < 4_200 && long.ends_with('…'), "{}", long.len());
    let redirect = ResponseParts {
        status: 302,
        content_type: None,
        location: Some("https://x/"),
        body: b"",
    };
    let expected = "HTTP 302 Found. The redirect to https://x/ is not followed";
    assert_eq!(redirect.outcome(), Outcome::Error(expected.to_owned()));
}

#[test]
fn equal_operation_ids_are_numbered_in_linear_time() {
    const COUNT: usize = 20_000;
    let paths: serde_json::Map<_, _> = (0..COUNT)
        .map(|number| {
            (
                format!("/{number}"),
                json!({"get": {"operationId": "same"}}),
            )
        })
        .collect();
    let document = Document::new(json!({"openapi": "3.0.0", "paths": paths})).expect("a document");
    let operations = document.operations().expect("operations");
    assert_eq!(operations[COUNT - 1].name, "same_20000");
}
