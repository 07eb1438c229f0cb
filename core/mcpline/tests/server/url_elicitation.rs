//! URL elicitation, and forms as each revision writes them.

use crate::support::{Client, Nothing};
use mcpline::protocol::vocabulary::{Choice, ElicitParams, FieldSchema, FormSchema};
use mcpline::{Context, HandlerError, Server};
use serde_json::{Value, json};

const URL: &str = "https://example.com/connect";

/// A server whose tools require or request URL elicitation, and elicit choices.
fn server() -> Server {
    Server::new("visits", "1")
        .tool(
            "needs",
            "Needs a visit",
            |_: Nothing, ctx: Context| async move {
                // On 2026-07-28, the client retries the call with the answer.
                if ctx.input_responses().is_some() {
                    return Ok("connected".to_owned());
                }
                let url_elicitation =
                    ElicitParams::url("Connect your account", URL).with_elicitation_id("visit-a");
                Err(HandlerError::UrlElicitationRequired(vec![url_elicitation]))
            },
        )
        .tool(
            "asks",
            "Asks for a visit",
            |_: Nothing, ctx: Context| async move {
                match ctx.elicit(&ElicitParams::url("Connect", URL)).await {
                    Ok(answer) => answer.action.as_str().to_owned(),
                    Err(error) => error.to_string(),
                }
            },
        )
        .tool(
            "chooses",
            "Asks for a choice",
            |_: Nothing, ctx: Context| async move {
                let colours = vec![Choice::new("r", "Red"), Choice::new("g", "Green")];
                let form =
                    FormSchema::new().with_required("colour", FieldSchema::titled_choice(colours));
                match ctx.elicit(&ElicitParams::form("Colour?", form)).await {
                    Ok(answer) => json!(answer.content).to_string(),
                    Err(error) => error.to_string(),
                }
            },
        )
        .tool(
            "chooses_many",
            "Asks for choices",
            |_: Nothing, ctx: Context| async move {
                let form = FormSchema::new()
                    .with_required("colours", FieldSchema::multiple_choice(["r", "g"]));
                match ctx.elicit(&ElicitParams::form("Colours?", form)).await {
                    Ok(answer) => json!(answer.content).to_string(),
                    Err(error) => error.to_string(),
                }
            },
        )
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[runtimes::test]
async fn required_url_elicitations_on_2025_11_25_are_errors_with_one_completion() {
    let server = server();
    let mut other = Client::legacy(&server, "2025-11-25").await;
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("tools/call", json!({"name": "needs"}));
    let error = client.response(&id).await.expect_err("a visit is required");
    assert_eq!(error["code"], -32042);
    assert_eq!(
        error["data"]["elicitations"],
        json!([{"mode": "url", "message": "Connect your account", "url": URL,
                "elicitationId": "visit-a"}])
    );
    server.notify_elicitation_complete("visit-a");
    server.notify_elicitation_complete("visit-a");
    let completion = client.next().await;
    assert_eq!(completion["method"], "notifications/elicitation/complete");
    assert_eq!(completion["params"], json!({"elicitationId": "visit-a"}));
    assert_eq!(client.try_next(), None);
    let ping = other.begin("ping", json!({}));
    assert_eq!(other.next().await["id"], ping, "nobody else is told");
}

#[runtimes::test]
async fn required_url_elicitations_on_2026_07_28_are_input_requests() {
    let server = server();
    let mut client = Client::modern(&server);
    let input_required = client
        .call_modern("needs", json!({}))
        .await
        .expect("a result");
    assert_eq!(input_required["resultType"], "input_required");
    assert_eq!(
        input_required["inputRequests"]["visit-a"],
        json!({"method": "elicitation/create",
               "params": {"mode": "url", "message": "Connect your account", "url": URL}})
    );
    let answers = json!({"inputResponses": {"visit-a": {"action": "accept"}},
                         "requestState": input_required["requestState"]});
    let result = client
        .call_modern("needs", answers)
        .await
        .expect("a result");
    assert_eq!(text(&result), "connected");
    server.notify_elicitation_complete("visit-a");
    assert_eq!(client.try_next(), None);
}

#[runtimes::test]
async fn clients_without_url_elicitation_get_the_url_as_text() {
    let server = server();
    let old = Client::legacy(&server, "2025-06-18").await;
    let mut unable = Client::modern(&server);
    unable.capabilities = json!({"elicitation": {}});
    let unable = unable.shake_hands("2025-11-25").await;
    for mut client in [old, unable] {
        let id = client.begin("tools/call", json!({"name": "needs"}));
        let result = client.response(&id).await.expect("a result");
        assert_eq!(result["isError"], true);
        assert!(text(&result).contains(URL), "{result}");
    }
}

#[runtimes::test]
async fn url_elicitations_have_an_id_only_where_the_revision_defines_it() {
    let server = server();
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("tools/call", json!({"name": "asks"}));
    let input_request = client.next().await;
    let elicitation_id = input_request["params"]["elicitationId"]
        .as_str()
        .expect("an id");
    // The call is still running: its stream carries the completion.
    server.notify_elicitation_complete(elicitation_id);
    assert_eq!(
        client.next().await["params"]["elicitationId"],
        elicitation_id
    );
    client
        .send(json!({"jsonrpc": "2.0", "id": input_request["id"], "result": {"action": "accept"}}));
    assert_eq!(
        text(&client.response(&id).await.expect("a result")),
        "accept"
    );

    let mut modern = Client::modern(&server);
    let result = modern
        .call_modern("asks", json!({}))
        .await
        .expect("a result");
    let requests = result["inputRequests"].as_object().expect("questions");
    let input_request = requests.values().next().expect("one question");
    assert_eq!(input_request["params"].get("elicitationId"), None);
}

#[runtimes::test]
async fn writes_choices_as_the_clients_revision_does() {
    let server = server();
    for (revision, expected) in [
        (
            "2025-06-18",
            json!({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}),
        ),
        (
            "2025-11-25",
            json!({"type": "string",
                   "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}),
        ),
    ] {
        let mut client = Client::legacy(&server, revision).await;
        let id = client.begin("tools/call", json!({"name": "chooses"}));
        let input_request = client.next().await;
        let field = &input_request["params"]["requestedSchema"]["properties"]["colour"];
        assert_eq!(*field, expected, "{revision}");
        client.send(json!({"jsonrpc": "2.0", "id": input_request["id"],
                           "result": {"action": "accept", "content": {"colour": "r"}}}));
        let result = client.response(&id).await.expect("a result");
        assert_eq!(text(&result), r#"{"colour":"r"}"#, "{revision}");
    }
}

#[runtimes::test]
async fn forms_that_a_revision_can_not_express_fail_in_the_handler() {
    let server = server();
    let mut client = Client::legacy(&server, "2025-06-18").await;
    let id = client.begin("tools/call", json!({"name": "chooses_many"}));
    let result = client.response(&id).await.expect("a result");
    assert_eq!(
        text(&result),
        "the client's protocol revision has no multiple choice in forms"
    );
}
