//! The baseline for comparisons: no protocol, no session, only the envelope and an echo.
//!
//! `bench-server-bare` is a blocking stdio loop, `bench-server-bare --http PORT` a bare hyper server.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io::{self, Read, Write};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Arguments<'a>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

/// Appends the response to a `tools/call` of `echo`.
fn answer(message: &[u8], out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let call: Call = serde_json::from_slice(message)?;
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(call.id.get().as_bytes());
    out.extend_from_slice(br#","result":{"content":[{"type":"text","text":"#);
    serde_json::to_writer(&mut *out, &call.params.arguments.text)?;
    out.extend_from_slice(br#"}],"isError":false}}"#);
    Ok(())
}

fn stdio() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut pending = Vec::with_capacity(1 << 16);
    let mut out = Vec::with_capacity(1 << 16);
    let mut chunk = vec![0; 1 << 16];
    loop {
        let count = input.read(&mut chunk)?;
        if count == 0 {
            return Ok(());
        }
        pending.extend_from_slice(&chunk[..count]);
        let mut start = 0;
        while let Some(length) = pending[start..].iter().position(|&byte| byte == b'\n') {
            answer(&pending[start..start + length], &mut out)?;
            out.push(b'\n');
            start += length + 1;
        }
        pending.drain(..start);
        output.write_all(&out)?;
        output.flush()?;
        out.clear();
    }
}

async fn exchange(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::default());
    let mut out = Vec::with_capacity(256);
    let parsed = match request.into_body().collect().await {
        Ok(body) => answer(&body.to_bytes(), &mut out).is_ok(),
        Err(_) => false,
    };
    if parsed {
        let json = hyper::header::HeaderValue::from_static("application/json");
        response
            .headers_mut()
            .insert(hyper::header::CONTENT_TYPE, json);
        *response.body_mut() = Full::from(out);
    } else {
        *response.status_mut() = hyper::StatusCode::BAD_REQUEST;
    }
    Ok(response)
}

async fn http(port: u16) -> io::Result<()> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service_fn(exchange)),
        );
    }
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().position(|argument| argument == "--http") {
        None => stdio(),
        Some(at) => {
            let port = arguments.get(at + 1).and_then(|port| port.parse().ok());
            let port = port.ok_or_else(|| io::Error::other("--http needs a port"))?;
            tokio::runtime::Builder::new_current_thread()
                .enable_io()
                .build()?
                .block_on(http(port))
        }
    }
}
