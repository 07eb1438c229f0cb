//! The messages on the wire: requests whose ids have a fixed width, so that they are patched and not rebuilt.

use std::error::Error;

use memchr::memmem;
use serde_json::{Value, json};

use crate::options::{Era, Options};

/// The first id. All ids have ten digits.
pub const FIRST_ID: u64 = 1_000_000_000;
const ID_DIGITS: usize = 10;
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// A request in which only the id changes.
#[derive(Clone)]
pub struct Template {
    bytes: Vec<u8>,
    at: usize,
}

impl Template {
    fn new(bytes: Vec<u8>) -> Result<Self, Box<dyn Error>> {
        let digits = FIRST_ID.to_string();
        let at = memmem::find(&bytes, digits.as_bytes()).ok_or("the template has no id")?;
        Ok(Self { bytes, at })
    }

    /// The request with this id.
    pub fn with_id(&mut self, id: u64) -> &[u8] {
        let mut rest = id;
        for digit in self.bytes[self.at..self.at + ID_DIGITS].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        &self.bytes
    }
}

/// The text to echo.
pub fn payload(options: &Options) -> String {
    "abcdefghijklmnop"
        .chars()
        .cycle()
        .take(options.payload)
        .collect()
}

/// The body of a call.
pub fn call(options: &Options) -> Value {
    let mut params = json!({"name": options.tool, "arguments": {"text": payload(options)}});
    if options.tool != "echo" {
        params["_meta"] = json!({"progressToken": FIRST_ID});
    }
    if options.era == Era::Modern {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
        params["_meta"]["io.modelcontextprotocol/clientInfo"] =
            json!({"name": "bench-load", "version": "1"});
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    json!({"jsonrpc": "2.0", "id": FIRST_ID, "method": "tools/call", "params": params})
}

/// The body of the handshake request.
pub fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "bench-load", "version": "1"}}})
}

/// The body of the handshake notification.
pub fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

/// Formats a message as a line.
pub fn line(message: &Value) -> Vec<u8> {
    let mut bytes = message.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

/// A call as a line template.
pub fn call_line(options: &Options) -> Result<Template, Box<dyn Error>> {
    Template::new(line(&call(options)))
}

/// A POST of this body.
pub fn post(options: &Options, host: &str, session: Option<&str>, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let mut head = format!(
        "POST {} HTTP/1.1\r\nhost: {host}\r\naccept: application/json, text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n",
        options.path,
        body.len()
    );
    if let Some(session) = session {
        head += &format!("mcp-session-id: {session}\r\nmcp-protocol-version: {LEGACY}\r\n");
    } else if options.era == Era::Modern {
        head += &format!(
            "mcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\nmcp-name: {}\r\n",
            options.tool
        );
    } else if options.era == Era::Stateless {
        head += &format!("mcp-protocol-version: {LEGACY}\r\n");
    }
    (head + "\r\n" + &body).into_bytes()
}

/// A call as a POST template.
pub fn call_post(
    options: &Options,
    host: &str,
    session: Option<&str>,
) -> Result<Template, Box<dyn Error>> {
    Template::new(post(options, host, session, &call(options)))
}

/// The GET that opens a session's stream.
pub fn get(options: &Options, host: &str, session: &str) -> Vec<u8> {
    format!(
        "GET {} HTTP/1.1\r\nhost: {host}\r\naccept: text/event-stream\r\nmcp-session-id: {session}\r\n\
         mcp-protocol-version: {LEGACY}\r\n\r\n",
        options.path
    )
    .into_bytes()
}

/// Finds the id of a response, which is near its start or its end.
pub fn id_of(message: &[u8]) -> Option<u64> {
    const NEAR: usize = 96;
    let finder = |part: &[u8]| {
        let at = memmem::find(part, br#""id":"#)? + 5;
        let digits: Vec<u8> = part[at..]
            .iter()
            .copied()
            .skip_while(|&byte| byte == b' ')
            .take_while(u8::is_ascii_digit)
            .collect();
        std::str::from_utf8(&digits).ok()?.parse().ok()
    };
    let near = message.len().min(NEAR);
    finder(&message[..near]).or_else(|| finder(&message[message.len() - near..]))
}

/// Checks a response completely: the echoed text, and no error.
pub fn check(options: &Options, message: &[u8]) -> Result<(), Box<dyn Error>> {
    let value: Value = serde_json::from_slice(message)?;
    let echoed = value
        .pointer("/result/content/0/text")
        .and_then(Value::as_str);
    let failed = value
        .pointer("/result/isError")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    if echoed != Some(payload(options).as_str()) || failed {
        let shown: String = value.to_string().chars().take(400).collect();
        return Err(format!("not an echo: {shown}").into());
    }
    Ok(())
}
