//! Limits the size of results, which models have to read.

use mcpline_protocol::wire::{Method, Raw};
use serde_json::Value;

use super::{Middleware, MiddlewareFuture, MiddlewareRequest, Next};

/// A [`Middleware`] that limits the size of the results of tools: a model has to read them, and hosts refuse large ones.
///
/// Of a larger result, the longest text is cut, with a note that says how many bytes are missing. If that is not enough, for
/// example because of an image, or the result has structured content, which clients check as a whole, the client gets a tool error
/// that names the size and the limit. Results that ask for input stay as they are.
#[derive(Debug, Clone, Copy)]
pub struct ResponseSizeLimit {
    max_bytes: usize,
}

/// Smallest limit: a note and the members of a result must fit.
const MIN_BYTES: usize = 512;

impl ResponseSizeLimit {
    /// Creates a limit for results of `max_bytes`, as JSON; at least 512.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes: max_bytes.max(MIN_BYTES),
        }
    }

    /// Returns a shorter result; `None` if there is none.
    fn shortened(self, result: &Raw) -> Option<Raw> {
        let mut value: Value = result.decode().ok()?;
        if value.get("structuredContent").is_some() {
            // Clients check it against the output schema, so it cannot be cut.
            return None;
        }
        let content = value.get_mut("content")?.as_array_mut()?;
        // The longest text is cut first: short ones are labels and headings.
        let texts = content
            .iter_mut()
            .filter(|block| block["type"] == "text")
            .filter_map(|block| block.get_mut("text"))
            .filter(|text| text.is_string());
        let longest = texts.max_by_key(|text| text.as_str().map_or(0, str::len))?;
        let text = longest.as_str()?.to_owned();
        // All but this text, whose encoded form has quotation marks.
        let rest = result.as_bytes().len() - encoded_len(&text);
        let room = self.max_bytes.checked_sub(rest)?;
        let cut = |end: usize| {
            let missing = text.len() - end;
            let kept = &text[..end];
            format!("{kept}\n[{missing} of {} bytes are left out]", text.len())
        };
        // The largest part that fits. An escape takes up to six times the bytes of its character, so this is searched for.
        let (mut fits, mut too_long) = (0, text.len());
        if encoded_len(&cut(fits)) > room {
            return None;
        }
        while too_long - fits > 1 {
            let middle = fits.midpoint(too_long);
            match encoded_len(&cut(floor_char_boundary(&text, middle))) <= room {
                true => fits = middle,
                false => too_long = middle,
            }
        }
        *longest = Value::from(cut(floor_char_boundary(&text, fits)));
        Raw::from_serialize(&value).ok()
    }
}

/// Returns the last boundary of a character at or before an index.
fn floor_char_boundary(text: &str, index: usize) -> usize {
    let index = index.min(text.len());
    (0..=index)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

fn encoded_len(text: &str) -> usize {
    serde_json::to_vec(text).map_or(0, |bytes| bytes.len())
}

impl Middleware for ResponseSizeLimit {
    fn handle(&self, request: MiddlewareRequest, next: Next) -> MiddlewareFuture {
        let limit = *self;
        Box::pin(async move {
            if *request.protocol_method() != Method::ToolsCall {
                return next.run(request).await;
            }
            let fallback = request.clone();
            let result = next.run(request).await?;
            let size = result.as_bytes().len();
            let result_type = result.member("resultType");
            let asks = result_type.is_some_and(|own| own.as_bytes() == b"\"input_required\"");
            if size <= limit.max_bytes || asks {
                return Ok(result);
            }
            Ok(limit.shortened(&result).unwrap_or_else(|| {
                fallback.tool_error(&format!(
                    "The result has {size} bytes, more than the limit of {}. Ask for less.",
                    limit.max_bytes
                ))
            }))
        })
    }
}
