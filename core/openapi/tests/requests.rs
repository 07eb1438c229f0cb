//! Requests from arguments: parameters, bodies and credentials.

use mcpline_openapi::{
    Credential, Credentials, Document, ImportOptions, ImportedOperation, RequestParts,
};
use serde_json::{Value, json};

fn document(method: &str, path: &str, operation: Value, schemes: Value) -> Document {
    Document::new(json!({
        "openapi": "3.1.0",
        "info": {"title": "Test", "version": "1"},
        "servers": [{"url": "https://{region}.example.com/v1/", "variables": {"region": {"default": "eu"}}}],
        "paths": {path: {method: operation}},
        "components": {"securitySchemes": schemes},
    }))
    .expect("a document")
}

fn import(document: &Document) -> ImportedOperation {
    let operations = document.operations().expect("operations");
    let options = ImportOptions::default();
    document
        .import(&operations[0], &options)
        .expect("an operation")
}

fn operation(method: &str, path: &str, operation: Value) -> ImportedOperation {
    import(&document(method, path, operation, json!({})))
}

fn request(imported: &ImportedOperation, arguments: Value) -> RequestParts {
    let arguments = arguments.as_object().expect("an object").clone();
    imported
        .request(&arguments, &Credentials::default())
        .expect("a request")
}

fn refusal(imported: &ImportedOperation, arguments: Value) -> String {
    let arguments = arguments.as_object().expect("an object").clone();
    let error = imported
        .request(&arguments, &Credentials::default())
        .expect_err("refused");
    error.to_string()
}

fn header<'r>(request: &'r RequestParts, name: &str) -> Option<&'r str> {
    let found = request.headers.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| &**value)
}

fn parameter(location: &str, extra: Value) -> Value {
    let mut parameter = json!({"name": "p", "in": location, "schema": {}});
    let members = parameter.as_object_mut().expect("an object");
    members.extend(extra.as_object().expect("an object").clone());
    json!({"parameters": [parameter]})
}

#[test]
fn parameters_have_the_styles_of_the_document() {
    let (list, object) = (json!(["a", "b"]), json!({"x": 1, "y": "z"}));
    for (location, extra, value, expected) in [
        ("path", json!({}), json!("a/b c"), "/t/a%2Fb%20c"),
        (
            "path",
            json!({"style": "label", "explode": true}),
            list.clone(),
            "/t/.a.b",
        ),
        (
            "path",
            json!({"style": "matrix"}),
            object.clone(),
            "/t/;p=x,1,y,z",
        ),
        ("query", json!({}), list.clone(), "/t/{p}?p=a&p=b"),
        (
            "query",
            json!({"explode": false}),
            list.clone(),
            "/t/{p}?p=a,b",
        ),
        (
            "query",
            json!({"style": "spaceDelimited", "explode": false}),
            list.clone(),
            "/t/{p}?p=a%20b",
        ),
        (
            "query",
            json!({"style": "pipeDelimited", "explode": false}),
            list.clone(),
            "/t/{p}?p=a%7Cb",
        ),
        (
            "query",
            json!({"style": "deepObject", "explode": true}),
            object.clone(),
            "/t/{p}?p%5Bx%5D=1&p%5By%5D=z",
        ),
        (
            "query",
            json!({"allowReserved": true}),
            json!("a/b&c"),
            "/t/{p}?p=a/b%26c",
        ),
        (
            "query",
            json!({"schema": null, "content": {"application/json": {"schema": {}}}}),
            object.clone(),
            "/t/{p}?p=%7B%22x%22%3A1%2C%22y%22%3A%22z%22%7D",
        ),
    ] {
        let path = if location == "path" { "/t/{p}" } else { "/t" };
        let imported = operation("get", path, parameter(location, extra));
        let expected = expected.replace("/{p}", "");
        assert_eq!(
            request(&imported, json!({"p": value})).path_and_query,
            expected
        );
    }
    let imported = operation("get", "/t", parameter("header", json!({"explode": true})));
    assert_eq!(
        header(&request(&imported, json!({"p": object})), "p"),
        Some("x=1,y=z")
    );
    let imported = operation("get", "/t", parameter("cookie", json!({})));
    assert_eq!(
        header(&request(&imported, json!({"p": "a;b"})), "Cookie"),
        Some("p=a%3Bb")
    );
}

#[test]
fn a_value_in_a_path_leads_to_no_other_path() {
    let imported = operation("delete", "/users/{id}/notes.{kind}", json!({}));
    for id in ["", "..", ".", "a/../../admin", "a\\..\\b", "../x", "a\0b"] {
        let refused = refusal(&imported, json!({"id": id, "kind": "x"}));
        assert!(
            refused.starts_with("argument \"id\": it is part of a path"),
            "{refused}"
        );
    }
    let sent = request(&imported, json!({"id": "a/b?c#d%2e", "kind": "..x"}));
    assert_eq!(sent.path_and_query, "/users/a%2Fb%3Fc%23d%252e/notes...x");
    let joined = operation("get", "/a/.{p}", json!({}));
    let refused = refusal(&joined, json!({"p": [".", "x"]}));
    assert!(refused.contains("segment"), "{refused}");
}

#[test]
fn a_value_cannot_add_headers_or_cookies() {
    let imported = operation("get", "/t", parameter("header", json!({})));
    for value in ["a\r\nX-Admin: 1", "a\nb", "a\0"] {
        let refused = refusal(&imported, json!({"p": value}));
        assert!(refused.contains("control character"), "{refused}");
    }
    let imported = operation("get", "/t", parameter("cookie", json!({})));
    let sent = request(&imported, json!({"p": "a; admin=1\r\n"}));
    assert_eq!(header(&sent, "Cookie"), Some("p=a%3B%20admin%3D1%0D%0A"));
    let named = json!({"parameters": [{"name": "a\r\nb", "in": "header"}]});
    let document = document("get", "/t", named, json!({}));
    let operations = document.operations().expect("operations");
    document
        .import(&operations[0], &ImportOptions::default())
        .expect_err("no name of a header");
}

#[test]
fn arguments_have_names_that_hosts_accept() {
    let imported = operation(
        "get",
        "/t/{id}",
        json!({"parameters": [
            {"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}},
            {"name": "id", "in": "query", "schema": {"type": "string"}},
            {"name": "filter[name]", "in": "query", "schema": {"type": "string"}},
            {"name": "$top", "in": "query", "schema": {"type": "integer"}},
            {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
        {"name": "Accept-Encoding", "in": "header", "schema": {"type": "string"}},
        ]}),
    );
    let properties = imported.input_schema["properties"]
        .as_object()
        .expect("properties");
    let names: Vec<_> = properties.keys().collect();
    assert_eq!(names, ["id", "id_query", "filter_name", "top"]);
    let sent = request(
        &imported,
        json!({"id": 1, "id_query": "q", "filter_name": "n", "top": 2}),
    );
    assert_eq!(sent.path_and_query, "/t/1?id=q&filter%5Bname%5D=n&%24top=2");
}

fn with_body(media_type: &str, media: Value) -> ImportedOperation {
    operation(
        "post",
        "/t/{id}",
        json!({
            "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
            "requestBody": {"required": true, "content": {media_type: media}},
        }),
    )
}

#[test]
fn properties_of_a_simple_body_are_arguments() {
    let schema = json!({"allOf": [
        {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
        {"properties": {"tag": {"type": "string", "nullable": true}}},
    ]});
    let imported = with_body("application/json", json!({"schema": schema}));
    assert_eq!(imported.input_schema["required"], json!(["id", "name"]));
    let sent = request(&imported, json!({"id": "1", "name": "n", "tag": null}));
    assert_eq!(sent.path_and_query, "/t/1");
    assert_eq!(sent.body, br#"{"name":"n","tag":null}"#);
    assert_eq!(header(&sent, "Content-Type"), Some("application/json"));
}

#[test]
fn any_other_body_is_one_argument() {
    for schema in [
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "object", "properties": {"id": {"type": "string"}}}),
        json!({"type": "object", "properties": {"a": {}}, "additionalProperties": true}),
        json!({"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "string"}]}),
    ] {
        let imported = with_body("application/json", json!({"schema": schema}));
        assert_eq!(
            imported.input_schema["required"],
            json!(["id", "body"]),
            "{schema}"
        );
        let sent = request(&imported, json!({"id": "1", "body": ["x"]}));
        assert_eq!(sent.body, br#"["x"]"#);
    }
}

#[test]
fn a_body_with_required_properties_is_required_unless_the_document_says_otherwise() {
    let schema = json!({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "string"},
        "f": {"type": "string", "format": "binary"},
    }});
    let content = json!({"multipart/form-data": {"schema": schema}});
    let imported = operation("post", "/t", json!({"requestBody": {"content": content}}));
    assert_eq!(imported.input_schema["required"], json!(["a"]));
    let imported = operation(
        "post",
        "/t",
        json!({"requestBody": {"content": content, "required": false}}),
    );
    assert_eq!(imported.input_schema.get("required"), None);
    let body = &imported.input_schema["properties"]["body"];
    assert_eq!(
        body["properties"]["f"],
        json!({"type": "string", "contentEncoding": "base64"})
    );
    assert_eq!(request(&imported, json!({})).body, b"");
    let sent = request(&imported, json!({"body": {"a": "x", "f": "aGk="}}));
    assert!(String::from_utf8_lossy(&sent.body).contains("\r\n\r\nhi\r\n"));
}

#[test]
fn forms_are_encoded_as_the_document_says() {
    let imported = with_body(
        "application/x-www-form-urlencoded",
        json!({
            "schema": {"type": "object", "properties": {
                "name": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "address": {"type": "object"},
                "meta": {"type": "object"},
            }},
            "encoding": {"address": {"style": "deepObject", "explode": true}},
        }),
    );
    let sent = request(
        &imported,
        json!({"id": "1", "name": "a b&c", "tags": ["x", "y"], "address": {"city": {"zip": 1}}, "meta": {"k": 1}}),
    );
    let expected =
        "name=a%20b%26c&tags=x&tags=y&address%5Bcity%5D%5Bzip%5D=1&meta=%7B%22k%22%3A1%7D";
    assert_eq!(String::from_utf8(sent.body).expect("text"), expected);
}

#[test]
fn files_are_parts_with_a_name_and_a_media_type() {
    let imported = with_body(
        "multipart/form-data",
        json!({"schema": {"type": "object", "required": ["file"], "properties": {
            "file": {"type": "string", "format": "binary", "description": "The file"},
            "meta": {"type": "object"},
            "note": {"type": "string"},
        }}}),
    );
    let file = &imported.input_schema["properties"]["file"];
    assert_eq!(
        (&file["required"], &file["description"]),
        (&json!(["data"]), &json!("The file"))
    );
    let arguments = json!({
        "id": "1",
        "file": {"data": "aGk=", "filename": "a\"\r\n.txt", "content_type": "text/plain"},
        "meta": {"k": 1},
        "note": "n",
    });
    let sent = request(&imported, arguments);
    let boundary = header(&sent, "Content-Type")
        .expect("a type")
        .split_once("boundary=")
        .expect("a boundary")
        .1;
    let expected = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a%22%0D%0A.txt\"\r\n\
         Content-Type: text/plain\r\n\r\nhi\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"meta\"\r\nContent-Type: application/json\r\n\r\n\
         {{\"k\":1}}\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nn\r\n\
         --{boundary}--\r\n"
    );
    assert_eq!(String::from_utf8_lossy(&sent.body), expected);
    let refused = refusal(
        &imported,
        json!({"id": "1", "file": {"data": "aGk=", "content_type": "a/b\r\nX: y"}}),
    );
    assert!(refused.contains("media type"), "{refused}");
    let refused = refusal(&imported, json!({"id": "1", "file": {"data": "?"}}));
    assert!(refused.contains("base64"), "{refused}");
}

#[test]
fn forms_without_a_useful_schema_have_any_members() {
    // Public documents describe uploads so: Codat's and rclone's with the first, Jira's with the third.
    for schema in [
        json!({}),
        json!({"type": "object"}),
        json!({"type": "string", "format": "binary"}),
    ] {
        let imported = with_body("multipart/form-data", json!({"schema": schema}));
        assert_eq!(
            imported.input_schema["properties"]["body"]["type"],
            json!("object")
        );
        let file = json!({"data": "aGk=", "filename": "a.txt", "content_type": "text/plain"});
        let arguments =
            json!({"id": "1", "body": {"file": file, "tags": ["x", "y"], "meta": {"data": 1}}});
        let sent = String::from_utf8(request(&imported, arguments).body).expect("text");
        for part in [
            "name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nhi\r\n",
            "name=\"tags\"\r\n\r\nx\r\n",
            "name=\"tags\"\r\n\r\ny\r\n",
            "name=\"meta\"\r\nContent-Type: application/json\r\n\r\n{\"data\":1}\r\n",
        ] {
            assert!(sent.contains(part), "{part:?} in {sent:?}");
        }
    }
    let imported = with_body("application/x-www-form-urlencoded", json!({"schema": {}}));
    let sent = request(
        &imported,
        json!({"id": "1", "body": {"a": "b c", "d": [1, 2]}}),
    );
    assert_eq!(
        String::from_utf8(sent.body).expect("text"),
        "a=b%20c&d=1&d=2"
    );
}

#[test]
fn forms_are_objects_even_if_the_document_does_not_say_so() {
    let imported = with_body(
        "application/x-www-form-urlencoded",
        json!({"schema": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}}),
    );
    assert_eq!(
        imported.input_schema["properties"]["body"]["type"],
        json!("object")
    );
}

#[test]
fn a_form_is_not_chosen_for_a_body_that_is_no_object() {
    // Jira's operations that set columns.
    let list = json!({"schema": {"type": "array", "items": {"type": "string"}}});
    let content = json!({"multipart/form-data": list, "*/*": list});
    let imported = operation("put", "/t", json!({"requestBody": {"content": content}}));
    let sent = request(&imported, json!({"body": ["summary", "status"]}));
    assert_eq!(header(&sent, "Content-Type"), Some("application/json"));
    assert_eq!(sent.body, br#"["summary","status"]"#);
}

#[test]
fn a_file_or_several_are_a_list_of_files() {
    let binary = json!({"type": "string", "format": "binary"});
    let list = json!({"type": "array", "items": binary});
    for schema in [json!({"anyOf": [binary, list]}), list] {
        let imported = with_body(
            "multipart/form-data",
            json!({"schema": {"type": "object", "properties": {"image": schema}}}),
        );
        let image = &imported.input_schema["properties"]["image"];
        assert_eq!(
            (&image["type"], &image["items"]["required"]),
            (&json!("array"), &json!(["data"]))
        );
        let arguments = json!({"id": "1", "image": [{"data": "aGk="}, {"data": "aG8="}]});
        let sent = String::from_utf8(request(&imported, arguments).body).expect("text");
        assert_eq!(
            sent.matches("name=\"image\"; filename=\"image\"").count(),
            2,
            "{sent}"
        );
        assert!(
            sent.contains("\r\n\r\nhi\r\n") && sent.contains("\r\n\r\nho\r\n"),
            "{sent}"
        );
    }
}

#[test]
fn texts_and_bytes_are_sent_as_they_are() {
    let imported = with_body("application/xml", json!({"schema": {"type": "object"}}));
    let sent = request(&imported, json!({"id": "1", "body": "<a/>"}));
    assert_eq!(
        (&*sent.body, header(&sent, "Content-Type")),
        (&b"<a/>"[..], Some("application/xml"))
    );
    let imported = with_body("image/*", json!({}));
    assert_eq!(
        imported.input_schema["properties"]["body"]["contentEncoding"],
        "base64"
    );
    let sent = request(&imported, json!({"id": "1", "body": "AP8="}));
    assert_eq!(
        (&*sent.body, header(&sent, "Content-Type")),
        (&[0, 255][..], Some("application/octet-stream"))
    );
}

#[test]
fn json_is_preferred_among_several_media_types() {
    let imported = operation(
        "post",
        "/t",
        json!({
            "requestBody": {"required": true, "content": {
                "application/xml": {}, "application/octet-stream": {}, "application/vnd.api+json": {},
            }},
            "responses": {"200": {"description": "", "content": {"application/xml": {}, "application/vnd.api+json": {}}}},
        }),
    );
    let sent = request(&imported, json!({"body": {"a": 1}}));
    assert_eq!(
        header(&sent, "Content-Type"),
        Some("application/vnd.api+json")
    );
    assert_eq!(
        header(&sent, "Accept"),
        Some("application/vnd.api+json, */*;q=0.1")
    );
}

#[test]
fn an_optional_body_without_arguments_is_not_sent() {
    let content = json!({"application/json": {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}}});
    let imported = operation("post", "/t", json!({"requestBody": {"content": content}}));
    assert_eq!(request(&imported, json!({})).body, b"");
    assert_eq!(request(&imported, json!({"a": "x"})).body, br#"{"a":"x"}"#);
    let imported = operation(
        "post",
        "/t",
        json!({"requestBody": {"required": true, "content": content}}),
    );
    assert_eq!(request(&imported, json!({})).body, b"{}");
}

#[test]
fn credentials_are_put_where_their_schemes_say() {
    let schemes = json!({
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "query": {"type": "apiKey", "in": "query", "name": "key"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "session"},
        "basic": {"type": "http", "scheme": "Basic"},
        "bearer": {"type": "http", "scheme": "bearer"},
        "oauth": {"type": "oauth2", "flows": {}},
        "mutual": {"type": "mutualTLS"},
    });
    let secret = || Credential::Secret("s".to_owned());
    let basic = Credential::Basic {
        username: "u".to_owned(),
        password: "p:w".to_owned(),
    };
    let send = |security: Value, credentials: &Credentials| {
        let parameters = json!([
            {"name": "x-key", "in": "header", "schema": {"type": "string"}},
            {"name": "key", "in": "query", "schema": {"type": "string"}},
        ]);
        let operation = json!({"security": security, "parameters": parameters});
        let document = document("get", "/t", operation, schemes.clone());
        document
            .check_credentials(credentials)
            .expect("valid credentials");
        let imported = import(&document);
        imported
            .request(&serde_json::Map::new(), credentials)
            .expect("a request")
    };
    let credentials = Credentials::default()
        .with("key", secret())
        .with("query", secret())
        .with("cookie", secret())
        .with("oauth", secret())
        .with("basic", basic.clone());
    let sent = send(
        json!([{"bearer": []}, {"key": [], "query": [], "cookie": []}]),
        &credentials,
    );
    assert_eq!(header(&sent, "X-Key"), Some("s"));
    assert_eq!(header(&sent, "Cookie"), Some("session=s"));
    assert_eq!(sent.path_and_query, "/t?key=s");
    let sent = send(json!([{}, {"oauth": ["read"]}]), &credentials);
    assert_eq!(header(&sent, "Authorization"), Some("Bearer s"));
    let sent = send(json!([{"basic": []}]), &credentials);
    assert_eq!(header(&sent, "Authorization"), Some("Basic dTpwOnc="));
    let sent = send(json!([{"bearer": []}]), &credentials);
    assert_eq!(header(&sent, "Authorization"), None);

    let document = document("get", "/t", json!({}), schemes.clone());
    for (name, credential) in [
        ("unknown", secret()),
        ("mutual", secret()),
        ("basic", secret()),
        ("key", basic),
        ("key", Credential::Secret("a\r\nb".to_owned())),
    ] {
        let credentials = Credentials::default().with(name, credential);
        let error = document
            .check_credentials(&credentials)
            .expect_err(name)
            .to_string();
        assert!(
            error.contains(&format!("credentials[\"{name}\"]")),
            "{error}"
        );
        assert!(!error.contains("a\r\nb"), "{error}");
    }
}

#[test]
fn a_credential_is_no_argument() {
    let schemes = json!({"key": {"type": "apiKey", "in": "query", "name": "key"}});
    let operation = json!({
        "security": [{"key": []}],
        "parameters": [{"name": "key", "in": "query", "required": true, "schema": {"type": "string"}}],
    });
    let imported = import(&document("get", "/t", operation, schemes));
    assert_eq!(imported.input_schema["properties"], json!({}));
    assert!(imported.needs_credentials);
}

#[test]
fn a_header_that_the_author_sets_is_no_argument() {
    let document = document(
        "get",
        "/t",
        parameter("header", json!({"required": true})),
        json!({}),
    );
    let operations = document.operations().expect("operations");
    let mut options = ImportOptions::default();
    options.own_headers = vec!["P".to_owned()];
    let imported = document
        .import(&operations[0], &options)
        .expect("an operation");
    assert_eq!(imported.input_schema["properties"], json!({}));
    assert_eq!(request(&imported, json!({})).path_and_query, "/t");
}

#[test]
fn servers_are_expanded_and_resolved() {
    assert_eq!(
        operation("get", "/t", json!({})).server.as_deref(),
        Some("https://eu.example.com/v1")
    );
    let own = json!({"servers": [{"url": "../api"}]});
    let document = document("get", "/t", own, json!({}));
    assert_eq!(import(&document).server, None);
    let document = document
        .with_url("https://docs.example.com/a/openapi.json")
        .expect("a URL");
    assert_eq!(
        import(&document).server.as_deref(),
        Some("https://docs.example.com/api")
    );
}

#[test]
fn resources_have_templates_with_simple_variables() {
    let imported = operation(
        "get",
        "/pets/{pet-id}/",
        json!({"parameters": [
            {"name": "limit", "in": "query", "schema": {"type": "integer"}},
            {"name": "all", "in": "query", "schema": {"type": "boolean"}},
        ]}),
    );
    assert_eq!(imported.resource_template("api"), None);
    let imported = operation(
        "get",
        "/pets/{id}/",
        json!({"parameters": [
            {"name": "limit", "in": "query", "schema": {"type": "integer"}},
            {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
        ]}),
    );
    assert_eq!(
        imported.resource_template("api").as_deref(),
        Some("api://pets/{id}{?limit}")
    );
    // An integer with more than 64 bits stays a text, because a number would lose digits.
    let large = "123456789012345678901234567890";
    for (limit, expected) in [
        ("7", json!(7)),
        (large, json!(large)),
        ("1e30", json!(1e30)),
    ] {
        let variables = json!({"id": "5", "limit": limit});
        let arguments = imported.arguments_of_resource(variables.as_object().expect("an object"));
        assert_eq!(
            Value::Object(arguments),
            json!({"id": "5", "limit": expected})
        );
    }
    assert_eq!(
        operation("get", "/", json!({}))
            .resource_template("x")
            .as_deref(),
        Some("x://root")
    );
    assert_eq!(
        operation("post", "/pets", json!({})).resource_template("api"),
        None
    );
}

#[test]
fn an_object_cannot_take_the_place_of_other_parameters_or_credentials() {
    for location in ["query", "cookie"] {
        let schemes = json!({"key": {"type": "apiKey", "in": location, "name": "api key"}});
        let object = json!({"name": "o", "in": location, "schema": {"type": "object"}, "style": "form", "explode": true});
        let other = json!({"name": "tenant", "in": location, "schema": {}});
        let described = json!({"parameters": [object, other], "security": [{"key": []}, {}]});
        let imported = import(&document("get", "/t", described, schemes));
        for member in ["tenant", "api key", "tenant[x]"] {
            let refusal = refusal(&imported, json!({"o": {member: "x"}}));
            assert!(
                refusal.contains(&format!("the member {member:?}")),
                "{refusal}"
            );
        }
        request(&imported, json!({"o": {"o": 1, "tenants": 2}, "tenant": 3}));
    }
}

#[test]
fn elements_and_members_in_a_path_are_checked_like_other_values() {
    let imported = operation("get", "/t/{p}", parameter("path", json!({"explode": true})));
    for value in [
        json!([]),
        json!({}),
        json!(["a", ""]),
        json!([null]),
        json!(["a", ".."]),
        json!(["a/../b"]),
        json!({"": "a"}),
        json!({"a": ""}),
        json!({"..": "a"}),
        json!({"a/..": "b"}),
        json!({"a": "..\\b"}),
    ] {
        let refusal = refusal(&imported, json!({"p": value}));
        assert!(refusal.contains("part of a path"), "{refusal}");
    }
}

#[test]
fn a_path_has_only_characters_that_a_url_can_have() {
    for (path, expected) in [
        ("/a b/ü", "/a%20b/%C3%BC"),
        ("/a%20b%", "/a%20b%25"),
        ("/t:do/(x)", "/t:do/(x)"),
        ("/a\"<>{p x}^`{", "/a%22%3C%3Ev%5E%60%7B"),
    ] {
        let imported = operation("get", path, json!({}));
        let arguments = json!({"p_x": "v"});
        assert_eq!(request(&imported, arguments).path_and_query, expected);
    }
    let document = document("get", "/a?b=c", json!({}), json!({}));
    let operations = document.operations().expect("operations");
    let error = document.import(&operations[0], &ImportOptions::default());
    let error = error.expect_err("no path").to_string();
    assert!(error.contains("the path \"/a?b=c\""), "{error}");
}

#[test]
fn fragments_tell_operations_apart_and_are_not_sent() {
    // Box's document has several operations for a file, and AWS's has all of a service at one path.
    let document = Document::new(json!({
        "openapi": "3.0.2",
        "paths": {
            "/files/{id}": {"get": {}},
            "/files/{id}#get_shared_link": {"get": {}},
            "/files/{id}#a?b={c}": {"get": {}},
        },
    }))
    .expect("a document");
    let operations = document.operations().expect("operations");
    let names: Vec<_> = operations.iter().map(|one| &*one.name).collect();
    assert_eq!(
        names,
        [
            "get_files_id",
            "get_files_id_get_shared_link",
            "get_files_id_a_b_c"
        ]
    );
    for operation in &operations {
        let imported = document.import(operation, &ImportOptions::default());
        let imported = imported.expect("an operation");
        assert_eq!(imported.input_schema["required"], json!(["id"]));
        let sent = request(&imported, json!({"id": "7"}));
        assert_eq!(sent.path_and_query, "/files/7");
    }
}
