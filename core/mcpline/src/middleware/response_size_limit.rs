//! Limits the size of results, which models have to read.

use std::sync::Arc;
use std::time::Duration;

use mcpline_protocol::vocabulary::ResourceTemplate;
use mcpline_protocol::wire::{Method, Raw};
use serde_json::Value;

use super::result_pages::{self, PageLinks, ResultPages};
use super::{Middleware, MiddlewareFuture, MiddlewareRequest, Next, ProvidedResources};

/// A [`Middleware`] that limits the size of the results of tools: a model has to read them, and hosts refuse large ones.
///
/// Of a larger result, the longest text is cut, with a note that says how many bytes are missing. If that is not enough, for
/// example because of an image, or the result has structured content, which clients check as a whole, the client gets a tool error
/// that names the size and the limit. Results that ask for input stay as they are.
///
/// With [pages](Self::with_pages), the client can read what was cut.
#[derive(Debug)]
pub struct ResponseSizeLimit {
    options: Options,
}

#[derive(Debug, Clone)]
struct Options {
    max_bytes: usize,
    /// `None`: what is cut is lost.
    pages: Option<Arc<ResultPages>>,
}

/// Smallest limit: a note and the members of a result must fit.
const MIN_BYTES: usize = 512;

impl ResponseSizeLimit {
    /// Creates a limit for results of `max_bytes`, as JSON; at least 512.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            options: Options {
                max_bytes: max_bytes.max(MIN_BYTES),
                pages: None,
            },
        }
    }

    /// Keeps the texts that are cut, and the structured content of results that become errors, so that clients can read them in
    /// pages: as resources `result://{id}/{page}`, each within the limit. The note in the result, or the error, names the first and
    /// the last one. The server gets a resource template of that form.
    ///
    /// The texts of all clients together have at most `max_kept_bytes`; the oldest are dropped. Each is kept for `lifetime`. A text
    /// that alone is larger has no pages. Its id is not guessable, and if the caller was authenticated, only that caller can read it.
    /// Add the middleware to the server that is served: a client of a server that it is mounted in cannot read the pages.
    ///
    /// [`Self::DEFAULT_MAX_KEPT_BYTES`] and [`Self::DEFAULT_LIFETIME`] suit most servers.
    #[must_use]
    pub fn with_pages(mut self, max_kept_bytes: usize, lifetime: Duration) -> Self {
        self.options.pages = Some(Arc::new(ResultPages::new(max_kept_bytes, lifetime)));
        self
    }

    /// 16 MiB for [`with_pages`](Self::with_pages).
    pub const DEFAULT_MAX_KEPT_BYTES: usize = result_pages::DEFAULT_MAX_KEPT_BYTES;

    /// Ten minutes for [`with_pages`](Self::with_pages).
    pub const DEFAULT_LIFETIME: Duration = result_pages::DEFAULT_LIFETIME;
}

impl Options {
    /// Keeps a text, if it may have pages.
    fn keep(&self, text: &str, principal: &str) -> Option<PageLinks> {
        let pages = self.pages.as_ref()?;
        pages.keep(text, principal, self.max_bytes)
    }

    /// Returns what the client gets in place of a result that cannot be cut.
    fn refusal(&self, result: &Raw, request: &MiddlewareRequest) -> Raw {
        let (size, limit) = (result.as_bytes().len(), self.max_bytes);
        let structured = result.member("structuredContent");
        let links = structured.and_then(|content| self.keep(content.as_str(), request.principal()));
        let advice = match links {
            None => "Ask for less.".to_owned(),
            Some(PageLinks { first, last }) => format!(
                "Ask for less, or read its structured content as JSON in the resources {first} to {last}."
            ),
        };
        request.tool_error(&format!(
            "The result has {size} bytes, more than the limit of {limit}. {advice}"
        ))
    }

    /// Returns a shorter result; `None` if there is none.
    fn shortened(&self, result: &Raw, principal: &str) -> Option<Raw> {
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
        let note = |links: Option<&PageLinks>| match links {
            None => String::new(),
            Some(PageLinks { first, last }) => {
                format!(". The whole text is in the resources {first} to {last}")
            }
        };
        let with_note = |end: usize, note: &str| {
            let missing = text.len() - end;
            let kept = &text[..end];
            format!(
                "{kept}\n[{missing} of {} bytes are left out{note}]",
                text.len()
            )
        };
        if encoded_len(&with_note(0, "")) > room {
            return None;
        }
        let links = self.keep(&text, principal);
        let linked = note(links.as_ref());
        // Without links if they do not fit.
        let note = match encoded_len(&with_note(0, &linked)) <= room {
            true => &*linked,
            false => "",
        };
        let cut = |end: usize| with_note(end, note);
        // The largest part that fits. An escape takes up to six times the bytes of its character, so this is searched for.
        let (mut fits, mut too_long) = (0, text.len());
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
        let options = self.options.clone();
        Box::pin(async move {
            if *request.protocol_method() != Method::ToolsCall {
                return next.run(request).await;
            }
            let fallback = request.clone();
            let result = next.run(request).await?;
            let size = result.as_bytes().len();
            let result_type = result.member("resultType");
            let asks = result_type.is_some_and(|own| own.as_bytes() == b"\"input_required\"");
            if size <= options.max_bytes || asks {
                return Ok(result);
            }
            let shortened = options.shortened(&result, fallback.principal());
            Ok(shortened.unwrap_or_else(|| options.refusal(&result, &fallback)))
        })
    }
    fn cuts_results(&self) -> bool {
        true
    }

    fn provided_resources(&self) -> Option<ProvidedResources> {
        let pages = self.options.pages.clone()?;
        let template = ResourceTemplate::new(result_pages::TEMPLATE, "result-pages")
            .with_description("Results of tools that were too large, in pages. Notes in the results name their URIs.");
        Some(ProvidedResources {
            template,
            read: Arc::new(move |uri, principal| pages.read(uri, principal)),
        })
    }
}
