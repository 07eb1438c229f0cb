//! The server, whose tools succeed, fail, wait and ask.

use mcpline::protocol::ErrorCode;
use mcpline::protocol::vocabulary::{
    CreateMessageParams, ElicitParams, FormSchema, Prompt, PromptArgument, Resource,
    ResourceTemplate, Role, SamplingContent, SamplingMessage,
};
use mcpline::server::Completer;
use mcpline::{Context, HandlerError, RpcError, Server, ToolError};
use tracing::Instrument as _;

#[derive(serde::Deserialize)]
struct Numbered {
    number: String,
}

#[derive(serde::Deserialize)]
struct Review {
    topic: String,
}

pub(crate) fn server() -> Server {
    let server = Server::new("golden", "1")
        .tool("works", "", works)
        .tool("refuses", "", async || {
            Err::<(), _>(ToolError::new("not today"))
        })
        .tool("breaks", "", async || {
            Err::<(), _>(HandlerError::Internal("broken".into()))
        })
        .tool("rejects", "", async || {
            Err::<(), _>(RpcError::new(ErrorCode(-31_999), "not now"))
        })
        .tool("hangs", "", hangs)
        .tool("elicits", "", elicits)
        .tool("samples", "", samples)
        .tool("lists_roots", "", lists_roots)
        .resource(Resource::new("note://a", "note"), async || "a note")
        .resource_template(
            ResourceTemplate::new("note://numbered/{number}", "numbered"),
            |numbered: Numbered, _: Context| async move { numbered.number },
        )
        .prompt(
            Prompt::new("review").with_arguments(vec![PromptArgument::new("topic")]),
            |review: Review, _: Context| async move { format!("Review {}", review.topic) },
        );
    let topics = Completer::Candidates(vec!["code".into(), "text".into()]);
    server
        .add_completer("review", "topic", topics)
        .expect("a prompt");
    server
}

async fn works() -> &'static str {
    let working = async {
        tokio::task::yield_now().await;
        "done"
    };
    working.instrument(tracing::info_span!("working")).await
}

async fn hangs(ctx: Context) -> &'static str {
    ctx.progress(0.0, Some(1.0), None);
    std::future::pending().await
}

async fn elicits(ctx: Context) -> Result<String, HandlerError> {
    let form = ElicitParams::form("Sure?", FormSchema::new());
    let answer = ctx.elicit(&form).await?;
    Ok(format!("{:?}", answer.action))
}

async fn samples(ctx: Context) -> Result<&'static str, HandlerError> {
    let hello = SamplingMessage::new(Role::User, SamplingContent::text("Hello"));
    ctx.sample(&CreateMessageParams::new(vec![hello], 1))
        .await?;
    Ok("sampled")
}

async fn lists_roots(ctx: Context) -> Result<String, HandlerError> {
    let roots = ctx.list_roots().await?;
    Ok(roots.len().to_string())
}
