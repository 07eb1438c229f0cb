//! Trace context of a message: which span of a trace caused it (W3C Trace Context and Baggage).
//!
//! It is in `_meta` of the parameters, on every transport and revision (2026-07-28, "Base protocol", `_meta`), and in the headers of
//! an HTTP request.

use mcpline_protocol::vocabulary::meta::{BAGGAGE, TRACEPARENT, TRACESTATE};
use mcpline_protocol::wire::{Raw, RawRef};

/// Maximum length of `tracestate` in bytes. W3C Trace Context, 3.3.1.5, requires 512; twice as much for implementations
/// that send more.
const MAX_TRACESTATE: usize = 1024;

/// Maximum length of `baggage` in bytes, as W3C Baggage, 3.2.3 requires.
const MAX_BAGGAGE: usize = 8192;

/// Length of `traceparent` in version `00`: `00-`, 32 digits, `-`, 16 digits, `-`, 2 digits.
const TRACEPARENT_LENGTH: usize = 55;

/// The trace context of a message: `traceparent`, `tracestate` and `baggage` of the W3C.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceContext {
    traceparent: Option<Box<str>>,
    tracestate: Option<Box<str>>,
    baggage: Option<Box<str>>,
}

impl TraceContext {
    /// Creates a context from its parts, without those that are invalid or too long. Returns `None` if nothing is left.
    ///
    /// `traceparent` needs the form of W3C Trace Context, 3.2.2; without it there is no `tracestate` either, which is
    /// left out above 1,024 bytes. `baggage` may have 8,192 bytes. All must be visible ASCII, with spaces.
    pub fn new(
        traceparent: Option<&str>,
        tracestate: Option<&str>,
        baggage: Option<&str>,
    ) -> Option<Self> {
        let traceparent = traceparent.filter(|value| is_traceparent(value));
        let tracestate = tracestate
            .filter(|value| traceparent.is_some() && is_header_value(value, MAX_TRACESTATE));
        let baggage = baggage.filter(|value| is_header_value(value, MAX_BAGGAGE));
        (traceparent.is_some() || baggage.is_some()).then(|| Self {
            traceparent: traceparent.map(Box::from),
            tracestate: tracestate.map(Box::from),
            baggage: baggage.map(Box::from),
        })
    }

    /// Reads the context from `_meta` of a message; see [`TraceContext::new`].
    pub fn from_meta(meta: &Raw) -> Option<Self> {
        let (mut parent, mut state, mut baggage) = (None, None, None);
        for (name, value) in meta.borrowed().members()? {
            let field = match &*name {
                TRACEPARENT => &mut parent,
                TRACESTATE => &mut state,
                BAGGAGE => &mut baggage,
                _ => continue,
            };
            *field = Some(value);
        }
        fn text(value: Option<RawRef<'_>>) -> Option<std::borrow::Cow<'_, str>> {
            value.and_then(RawRef::string_value)
        }
        Self::new(
            text(parent).as_deref(),
            text(state).as_deref(),
            text(baggage).as_deref(),
        )
    }

    /// Reads the context from the headers of an HTTP request; see [`TraceContext::new`].
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn from_headers(headers: &http::HeaderMap) -> Option<Self> {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let parent = header(TRACEPARENT);
        if parent.is_none() && !headers.contains_key(BAGGAGE) {
            return None;
        }
        Self::new(parent, header(TRACESTATE), header(BAGGAGE))
    }

    /// Returns `traceparent`, if there is one: the ids of the trace and of the span that caused the message.
    pub fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref()
    }

    /// Returns `tracestate`: data of tracing systems, which travels with the trace.
    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }

    /// Returns `baggage`: data of applications, which travels with the trace.
    pub fn baggage(&self) -> Option<&str> {
        self.baggage.as_deref()
    }

    /// Returns the id of the trace: 32 hexadecimal digits.
    pub fn trace_id(&self) -> Option<&str> {
        self.traceparent.as_deref()?.get(3..35)
    }

    /// Returns the id of the span that caused the message: 16 hexadecimal digits.
    pub fn span_id(&self) -> Option<&str> {
        self.traceparent.as_deref()?.get(36..52)
    }

    /// Whether the sender may have recorded its span.
    pub fn is_sampled(&self) -> bool {
        let flags = self
            .traceparent
            .as_deref()
            .and_then(|value| value.get(53..55));
        flags.is_some_and(|flags| u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1))
    }

    /// Returns the parts that there are, with the names of the keys of `_meta` and of the headers.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            (TRACEPARENT, self.traceparent()),
            (TRACESTATE, self.tracestate()),
            (BAGGAGE, self.baggage()),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

/// Whether a text is a `traceparent` (W3C Trace Context, 3.2.2). Those of later versions may be longer.
fn is_traceparent(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let (Some(head), Some(rest)) = (
        bytes.get(..TRACEPARENT_LENGTH),
        bytes.get(TRACEPARENT_LENGTH..),
    ) else {
        return false;
    };
    let has_form = head.iter().enumerate().all(|(index, byte)| match index {
        2 | 35 | 52 => *byte == b'-',
        _ => is_hex(byte),
    });
    let (version, trace, span) = (&head[..2], &head[3..35], &head[36..52]);
    let is_zero = |digits: &[u8]| digits.iter().all(|digit| *digit == b'0');
    let has_length = match version {
        b"ff" => false,
        b"00" => rest.is_empty(),
        _ => rest.first().is_none_or(|byte| *byte == b'-') && is_header_value(text, MAX_TRACESTATE),
    };
    has_form && has_length && !is_zero(trace) && !is_zero(span)
}

/// Whether a text is not empty, not too long, and can be the value of a header.
fn is_header_value(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn reads_the_parts_of_meta() {
        let meta = Raw::from_trusted(format!(
            r#"{{"traceparent":"{PARENT}","tracestate":"a=b","baggage":"user=x","other":1}}"#
        ));
        let context = TraceContext::from_meta(&meta).expect("a context");
        assert_eq!(context.traceparent(), Some(PARENT));
        assert_eq!(context.trace_id(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        assert_eq!(context.span_id(), Some("00f067aa0ba902b7"));
        assert!(context.is_sampled());
        let fields: Vec<_> = context.fields().collect();
        assert_eq!(
            fields,
            [
                ("traceparent", PARENT),
                ("tracestate", "a=b"),
                ("baggage", "user=x")
            ]
        );
    }

    #[test]
    fn members_are_found_by_their_decoded_names_and_must_be_texts() {
        let meta = Raw::from_trusted(format!(r#"{{"trace\u0070arent":"{PARENT}","baggage":1}}"#));
        let context = TraceContext::from_meta(&meta).expect("a context");
        let fields: Vec<_> = context.fields().collect();
        assert_eq!(fields, [("traceparent", PARENT)]);
        assert_eq!(TraceContext::from_meta(&Raw::from_trusted("[]")), None);
    }

    #[test]
    fn a_malformed_traceparent_is_left_out_with_its_tracestate() {
        for malformed in [
            "",
            "x",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::new(Some(malformed), Some("a=b"), None), None);
            let with_baggage = TraceContext::new(Some(malformed), Some("a=b"), Some("c=d"));
            let fields = with_baggage.expect("baggage");
            assert_eq!(fields.fields().collect::<Vec<_>>(), [("baggage", "c=d")]);
        }
    }

    #[test]
    fn later_versions_may_add_fields() {
        let later = PARENT.replacen("00-", "01-", 1) + "-more";
        let context = TraceContext::new(Some(&later), None, None).expect("a context");
        assert_eq!(context.span_id(), Some("00f067aa0ba902b7"));
    }

    #[test]
    fn long_and_unprintable_values_are_left_out() {
        let long = "x".repeat(MAX_TRACESTATE + 1);
        let context = TraceContext::new(Some(PARENT), Some(&long), Some("a=b\nc"));
        let fields = context.expect("a context");
        assert_eq!(
            fields.fields().collect::<Vec<_>>(),
            [("traceparent", PARENT)]
        );
        let longest = "x".repeat(MAX_TRACESTATE);
        let context = TraceContext::new(Some(PARENT), Some(&longest), None);
        assert_eq!(
            context.expect("a context").tracestate(),
            Some(longest.as_str())
        );
    }

    #[cfg(feature = "http")]
    #[test]
    fn reads_headers() {
        let mut headers = http::HeaderMap::new();
        assert_eq!(TraceContext::from_headers(&headers), None);
        headers.insert("traceparent", PARENT.parse().expect("a value"));
        headers.insert("tracestate", "a=b".parse().expect("a value"));
        let context = TraceContext::from_headers(&headers).expect("a context");
        assert_eq!(
            (context.traceparent(), context.tracestate()),
            (Some(PARENT), Some("a=b"))
        );
    }
}
