//! A server and a client with custom requests and notifications.
//!
//! `cargo run -p example-weather --bin custom-methods` serves stdio, `… -- --http 8000` HTTP. With `--client PROGRAM
//! [ARGUMENT …]` or `--client URL` it is a client of such a server.

#![allow(clippy::print_stdout, reason = "what the example shows")]

use std::sync::Arc;

use mcpline::client::{Address, Client, ClientError, Command, RequestOptions};
use mcpline::protocol::Raw;
use mcpline::transport::{self, http::HttpOptions};
use mcpline::{Context, HandlerError, Server};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{Mutex, mpsc};

#[derive(Deserialize, Serialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, Serialize)]
struct Teas {
    from: Vec<String>,
}

#[derive(Deserialize, Serialize)]
struct Picked {
    picked: Option<String>,
}

#[derive(Deserialize, Serialize)]
struct Tea {
    tea: Option<String>,
}

/// Returns the text, after progress and a custom notification.
async fn echo(params: Text, ctx: Context) -> Result<Text, HandlerError> {
    ctx.progress(1.0, Some(2.0), None);
    let note = Raw::from_serialize(&params).map_err(internal)?;
    ctx.notify("acme/echoing", Some(&note)).map_err(internal)?;
    Ok(params)
}

/// Sends the client a custom request.
async fn choose(_: Nothing, ctx: Context) -> Result<Tea, HandlerError> {
    let from = ["green", "black"].map(str::to_owned).to_vec();
    let params = Raw::from_serialize(&Teas { from }).map_err(internal)?;
    let answer = ctx.send_request("acme/pick", Some(&params)).await?;
    let answer: Picked = answer.decode().map_err(internal)?;
    Ok(Tea { tea: answer.picked })
}

fn internal(error: impl ToString) -> HandlerError {
    HandlerError::Internal(error.to_string())
}

fn server() -> Server {
    let (notes, taken) = mpsc::unbounded_channel();
    let taken = Arc::new(Mutex::new(taken));
    Server::new("custom-methods", "1.0.0")
        .on_request("acme/echo", echo)
        .on_request("acme/choose", choose)
        .on_notification("acme/note", move |note: Text, _: Context| {
            // Fails only if the receiver is gone.
            let _ = notes.send(note.text);
            async {}
        })
        // Returns the next note, or waits for it.
        .on_request("acme/take", move |_: Nothing, _: Context| {
            let taken = taken.clone();
            async move {
                let text = taken.lock().await.recv().await;
                let text = text.ok_or_else(|| internal("there are no more notes"))?;
                Ok::<_, HandlerError>(Text { text })
            }
        })
}

/// Connects to the server, sends custom requests, and serves those of the server.
async fn call(address: Address) -> Result<(), Box<dyn std::error::Error>> {
    let (echoing, mut notifications) = mpsc::unbounded_channel();
    let client = Client::builder("host", "1.0.0")
        .on_request("acme/pick", |teas: Teas| async move {
            let picked = teas.from.into_iter().next();
            Ok(Picked { picked })
        })
        .on_notification(move |notification| {
            let params = notification.params.as_ref();
            if notification.method.as_str() == "acme/echoing"
                && let Some(params) = params.and_then(|params| params.raw().decode::<Text>().ok())
            {
                let _ = echoing.send(params.text);
            }
        })
        .connect(address)
        .await?;
    let echoed: Text = request(&client, "acme/echo", Some(json!({"text": "hello"}))).await?;
    println!(
        "echoing: {}",
        notifications.recv().await.unwrap_or_default()
    );
    println!("echoed: {}", echoed.text);
    let note = Raw::from_serialize(&json!({"text": "a note"}))?;
    client.notify("acme/note", Some(&note)).await?;
    let taken: Text = request(&client, "acme/take", None).await?;
    println!("took: {}", taken.text);
    let chosen: Tea = request(&client, "acme/choose", None).await?;
    println!("picked: {}", chosen.tea.unwrap_or_default());
    client.close().await;
    Ok(())
}

async fn request<R: serde::de::DeserializeOwned>(
    client: &Client,
    method: &str,
    params: Option<serde_json::Value>,
) -> Result<R, Box<dyn std::error::Error>> {
    let params = params.as_ref().map(Raw::from_serialize).transpose()?;
    let answered: Result<Raw, ClientError> = client
        .request(method, params.as_ref(), &RequestOptions::new())
        .await;
    Ok(answered?.decode()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--http", port] => {
            let http = transport::http::http(("127.0.0.1", port.parse()?), HttpOptions::default());
            server().serve(http.await?).await?;
        }
        ["--client", url] if url.starts_with("http") => {
            call(url.into()).await?;
        }
        ["--client", program, ref rest @ ..] => {
            call(Command::new(program).args(rest.iter().copied()).into()).await?;
        }
        _ => server().serve(transport::stdio()).await?,
    }
    Ok(())
}
