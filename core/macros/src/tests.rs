//! Mistakes: which message they get, and which part of the source it points at.

use syn::ItemImpl;

use crate::expand::features;

/// Returns the first error of a method: its message and the source that it points at.
fn mistake(method: &str) -> (String, String) {
    in_block(&format!("impl App {{ {method} }}"))
}

fn in_block(source: &str) -> (String, String) {
    let mut block: ItemImpl = syn::parse_str(source).expect("an impl block");
    let error = features(&mut block).expect_err("a mistake");
    let error = error.into_iter().next().expect("an error");
    let span = error.span();
    let (start, end) = (span.start().column, span.end().column);
    let pointed: String = source.chars().skip(start).take(end - start).collect();
    (error.to_string(), pointed)
}

#[track_caller]
fn check(method: &str, message: &str, pointed: &str) {
    let (found, at) = mistake(method);
    assert!(found.contains(message), "{found}");
    assert_eq!(at, pointed, "{found}");
}

#[test]
fn unknown_options_are_named_with_the_known_ones() {
    check(
        "#[tool(readonly)] fn a(&self) {}",
        "`readonly` is not an option of `#[tool]`; known are `name`, `title`",
        "readonly",
    );
    check(
        "#[prompt(read_only)] fn a(&self) {}",
        "not an option of `#[prompt]`",
        "read_only",
    );
}

#[test]
fn options_have_one_value_of_the_right_kind() {
    check(
        "#[tool(name)] fn a(&self) {}",
        "`name` needs a value",
        "name",
    );
    check(
        "#[tool(scopes = 3)] fn a(&self) {}",
        "`scopes` needs a list",
        "scopes",
    );
    check(
        "#[tool(read_only = 1)] fn a(&self) {}",
        "write `read_only`, `read_only = true` or `read_only = false`",
        "read_only",
    );
    check(
        "#[tool(idempotent, idempotent)] fn a(&self) {}",
        "`idempotent` is set twice",
        "idempotent",
    );
    check(
        "#[tool(\"adds\")] fn a(&self) {}",
        "name the option: `#[tool(description = \"…\")]`",
        "\"adds\"",
    );
}

#[test]
fn a_read_only_tool_is_not_destructive() {
    check(
        "#[tool(read_only, destructive)] fn a(&self) {}",
        "is not `destructive`",
        "destructive",
    );
}

#[test]
fn receivers_are_shared_references() {
    for receiver in ["&mut self", "self"] {
        check(
            &format!("#[tool] fn a({receiver}) {{}}"),
            "the receiver is `&self`",
            receiver,
        );
    }
}

#[test]
fn arguments_are_owned_and_named() {
    check(
        "#[tool] fn a(&self, city: &str) {}",
        "use `String` instead of `&str`",
        "&str",
    );
    check(
        "#[tool] fn a(&self, city: impl Display) {}",
        "not `impl Trait`",
        "impl Display",
    );
    check(
        "#[tool] fn a(&self, (x, y): (u8, u8)) {}",
        "a parameter without a name can't be an argument",
        "(x, y)",
    );
}

#[test]
fn args_stand_alone() {
    check(
        "#[tool] fn a(&self, args: Args<Sum>, other: u8) {}",
        "`Args` holds all arguments",
        "Args<Sum>",
    );
}

#[test]
fn resources_name_their_variables() {
    check(
        "#[resource] fn a(&self) {}",
        "a resource needs a URI",
        "#[resource]",
    );
    check(
        "#[resource(\"note://{id}\")] fn a(&self, name: String) {}",
        "`name` is not a variable of the URI; it has `id`",
        "name",
    );
    check(
        "#[resource(\"note://index\")] fn a(&self, Args(x): Args<X>) {}",
        "has no variables",
        "Args<X>",
    );
}

#[test]
fn lists_of_templates_are_methods_without_arguments() {
    let list = |uri: &str, list: &str, others: &str| {
        mistake(&format!(
            "#[resource(\"{uri}\", list = {list})] fn a(&self) {{}} {others}"
        ))
    };
    let (message, at) = list("note://index", "b", "fn b(&self) {}");
    assert!(message.contains("has no variables"), "{message}");
    assert_eq!(at, "b");
    let (message, at) = list("note://{id}", "b", "fn c(&self) {}");
    assert!(
        message.contains("this block has no method `b`"),
        "{message}"
    );
    assert_eq!(at, "b");
    let (message, at) = list("note://{id}", "b", "fn b(&self, id: String) {}");
    assert!(
        message.contains("takes the context, and no arguments"),
        "{message}"
    );
    assert_eq!(at, "&self, id: String");
    let (message, at) = list("note://{id}", "\"b\"", "fn b(&self) {}");
    assert!(message.contains("needs the name of a method"), "{message}");
    assert_eq!(at, "list");
}

#[test]
fn texts_are_parsed_without_serde() {
    check(
        "#[prompt] fn a(&self, #[serde(default)] city: String) {}",
        "are texts, which are parsed with `FromStr`",
        "#[serde(default)]",
    );
}

#[test]
fn blocking_methods_are_not_async() {
    check(
        "#[tool(blocking)] async fn a(&self) {}",
        "a `blocking` method is not `async`",
        "async",
    );
}

#[test]
fn a_method_is_one_feature_without_type_parameters() {
    check(
        "#[tool] #[prompt] fn a(&self) {}",
        "a method is one of",
        "#[prompt]",
    );
    check(
        "#[tool] fn a<T>(&self) {}",
        "can't be called by a client",
        "T",
    );
}

#[test]
fn blocks_have_features_and_are_not_of_traits() {
    let (message, at) = in_block("impl App { fn a(&self) {} }");
    assert!(message.contains("no method of this block"), "{message}");
    assert_eq!(at, "App");
    let (message, at) = in_block("impl Trait for App { #[tool] fn a(&self) {} }");
    assert!(message.contains("not of a trait"), "{message}");
    assert_eq!(at, "Trait");
}

#[test]
fn every_mistake_is_reported() {
    let mut block: ItemImpl =
        syn::parse_str("impl App { #[tool(x)] fn a(&self) {} #[tool(y)] fn b(&self) {} }")
            .expect("an impl block");
    let errors = features(&mut block).expect_err("mistakes");
    assert_eq!(errors.into_iter().count(), 2);
}
