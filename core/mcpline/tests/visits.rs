//! Visits to URLs, and questions in the words of each revision.

mod support;

use mcpline::protocol::vocabulary::{Choice, ElicitParams, FieldSchema, FormSchema};
use mcpline::{Context, HandlerError, Server};
use serde_json::{Value, json};
use support::{Client, Nothing};

const URL: &str = "https://example.com/connect";

/// A server whose tools send the user away in each way.
fn server() -> Server {
    Server::new("visits", "1")
        .tool(
            "needs",
            "Needs a visit",
            |_: Nothing, ctx: Context| async move {
                // On 2026-07-28 the client comes back with the answer.
                if ctx.input_responses().is_some() {
                    return Ok("connected".to_owned());
                }
                let visit =
                    ElicitParams::url("Connect your account", URL).with_elicitation_id("visit-a");
                Err(HandlerError::UrlElicitationRequired(vec![visit]))
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
async fn a_required_visit_is_an_error_of_its_own_on_2025_11_25_and_its_end_is_told_once() {
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
    let told = client.next().await;
    assert_eq!(told["method"], "notifications/elicitation/complete");
    assert_eq!(told["params"], json!({"elicitationId": "visit-a"}));
    assert_eq!(client.try_next(), None);
    let ping = other.begin("ping", json!({}));
    assert_eq!(other.next().await["id"], ping, "nobody else is told");
}

#[runtimes::test]
async fn a_required_visit_is_a_question_on_2026_07_28() {
    let server = server();
    let mut client = Client::modern(&server);
    let asked = client
        .call_modern("needs", json!({}))
        .await
        .expect("a result");
    assert_eq!(asked["resultType"], "input_required");
    assert_eq!(
        asked["inputRequests"]["visit-a"],
        json!({"method": "elicitation/create",
               "params": {"mode": "url", "message": "Connect your account", "url": URL}})
    );
    let answers = json!({"inputResponses": {"visit-a": {"action": "accept"}},
                         "requestState": asked["requestState"]});
    let result = client
        .call_modern("needs", answers)
        .await
        .expect("a result");
    assert_eq!(text(&result), "connected");
    server.notify_elicitation_complete("visit-a");
    assert_eq!(client.try_next(), None);
}

#[runtimes::test]
async fn clients_that_know_no_visits_are_given_the_address_in_words() {
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
async fn a_question_for_a_visit_has_an_id_exactly_where_the_revision_has_them() {
    let server = server();
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("tools/call", json!({"name": "asks"}));
    let question = client.next().await;
    let visit = question["params"]["elicitationId"].as_str().expect("an id");
    // The call still runs: the end is told on its way.
    server.notify_elicitation_complete(visit);
    assert_eq!(client.next().await["params"]["elicitationId"], visit);
    client.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}}));
    assert_eq!(
        text(&client.response(&id).await.expect("a result")),
        "accept"
    );

    let mut modern = Client::modern(&server);
    let asked = modern
        .call_modern("asks", json!({}))
        .await
        .expect("a result");
    let asked = asked["inputRequests"].as_object().expect("questions");
    let question = asked.values().next().expect("one question");
    assert_eq!(question["params"].get("elicitationId"), None);
}

#[runtimes::test]
async fn a_choice_is_asked_in_the_words_of_the_clients_revision() {
    let server = server();
    for (revision, words) in [
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
        let question = client.next().await;
        let asked = &question["params"]["requestedSchema"]["properties"]["colour"];
        assert_eq!(*asked, words, "{revision}");
        client.send(json!({"jsonrpc": "2.0", "id": question["id"],
                           "result": {"action": "accept", "content": {"colour": "r"}}}));
        let result = client.response(&id).await.expect("a result");
        assert_eq!(text(&result), r#"{"colour":"r"}"#, "{revision}");
    }
}

#[runtimes::test]
async fn what_a_revision_has_no_words_for_fails_where_it_is_asked() {
    let server = server();
    let mut client = Client::legacy(&server, "2025-06-18").await;
    let id = client.begin("tools/call", json!({"name": "chooses_many"}));
    let result = client.response(&id).await.expect("a result");
    assert_eq!(
        text(&result),
        "the client's protocol revision has no multiple choice in forms"
    );
}
