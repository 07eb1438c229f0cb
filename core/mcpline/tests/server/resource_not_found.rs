//! Handlers say that a resource does not exist, and clients of every revision get the error that it has.

use std::collections::BTreeMap;

use mcpline::client::{Client, ClientError};
use mcpline::protocol::vocabulary::{Prompt, Resource, ResourceTemplate};
use mcpline::protocol::{Revision, RpcError};
use mcpline::server::ToolError;
use mcpline::{HandlerError, Server};
use serde_json::{Value, json};

const MISSING: Result<&str, HandlerError> = Err(HandlerError::ResourceNotFound(None));

fn other() -> HandlerError {
    HandlerError::ResourceNotFound(Some("note://other".into()))
}

fn server() -> Server {
    Server::new("notes", "1")
        .resource(Resource::new("note://fixed", "fixed"), || async { MISSING })
        .resource_template(
            ResourceTemplate::new("note://by/{id}", "note"),
            |_: Value| async { MISSING },
        )
        .resource_template(
            ResourceTemplate::new("other://{id}", "other"),
            |_: Value| async { Err::<&str, _>(ToolError::from(other())) },
        )
        .prompt(Prompt::new("prompt"), || async { MISSING })
        .tool("tool", "Reads a note", || async { Err::<&str, _>(other()) })
}

async fn client(revision: Revision) -> Client {
    let builder =
        Client::builder("notes", "1").configure(|settings| settings.revisions = vec![revision]);
    builder.connect(&server()).await.expect("a client")
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, ClientError>) -> RpcError {
    match outcome {
        Err(ClientError::Rpc(error)) => error,
        outcome => panic!("{outcome:?}"),
    }
}

#[tokio::test]
async fn resources_that_handlers_do_not_find_have_the_error_of_the_revision() {
    for revision in Revision::ALL.iter().copied() {
        let client = client(revision).await;
        let unknown = refused(client.read_resource("note://unknown").await);
        let code = if revision.is_modern() { -32602 } else { -32002 };
        assert_eq!(unknown.code.0, code);
        for (read, named) in [
            ("note://fixed", "note://fixed"),
            ("note://by/a%20b", "note://by/a%20b"),
            ("other://1", "note://other"),
        ] {
            let error = refused(client.read_resource(read).await);
            assert_eq!(error.code, unknown.code, "{revision} {read}");
            assert_eq!(error.message, format!("Resource not found: {named}"));
            let data = error.data.expect("data").decode::<Value>().expect("JSON");
            assert_eq!(data, json!({"uri": named}));
        }
    }
}

#[tokio::test]
async fn tools_that_miss_a_resource_tell_the_model() {
    let client = client(Revision::V2025_11_25).await;
    let result = client.call_tool("tool", json!({})).await.expect("a result");
    assert_eq!(result.is_error, Some(true));
    assert_eq!(result.text(), "Resource not found: note://other");
}

#[tokio::test]
async fn a_missing_resource_without_a_uri_has_no_data() {
    let client = client(Revision::V2025_11_25).await;
    let error = refused(client.get_prompt("prompt", &BTreeMap::new()).await);
    assert_eq!(
        (error.code.0, error.message.as_ref()),
        (-32002, "Resource not found")
    );
    assert!(error.data.is_none());
}
