//! Reads JSON in place: finds values by JSON pointers and returns them as slices of the caller's text.

use std::borrow::Cow;

use mcpline::protocol::wire::{JsonKind, RawRef};

use crate::status::mcpl_status::MCPL_NOT_FOUND;
use crate::status::{Fault, FaultResult};

/// A JSON text in the caller's memory, validated once.
pub(crate) struct Value<'t> {
    raw: RawRef<'t>,
}

impl<'t> Value<'t> {
    /// Validates a JSON text.
    pub(crate) fn new(json: &'t [u8]) -> FaultResult<Self> {
        match RawRef::parse(json) {
            Ok(raw) => Ok(Self { raw }),
            Err(error) => Err(Fault::invalid(format!("not valid JSON: {error}"))),
        }
    }

    pub(crate) fn kind(&self) -> JsonKind {
        self.raw.kind()
    }

    /// Returns the text of the value, without surrounding white space.
    pub(crate) fn bytes(&self) -> &'t [u8] {
        self.raw.as_bytes()
    }

    /// Returns the value that a JSON pointer (RFC 6901) refers to.
    pub(crate) fn find(self, pointer: &str) -> FaultResult<Self> {
        if pointer.is_empty() {
            return Ok(self);
        }
        let Some(tokens) = pointer.strip_prefix('/') else {
            let text = format!("{pointer:?} is not a JSON pointer: it has to begin with a slash");
            return Err(Fault::invalid(text));
        };
        let mut raw = self.raw;
        for token in tokens.split('/') {
            let token = unescaped(pointer, token)?;
            let found = match raw.kind() {
                JsonKind::Object => raw.member(&token),
                JsonKind::Array => index(&token).and_then(|index| raw.elements()?.nth(index)),
                _ => None,
            };
            raw = found.ok_or_else(|| missing(format!("the JSON has no value at {pointer}")))?;
        }
        Ok(Self { raw })
    }

    /// Returns a whole number in any notation: `1`, `1.0`, `1e0`.
    pub(crate) fn int64(&self) -> FaultResult<i64> {
        if let Ok(number) = self.raw.decode::<i64>() {
            return Ok(number);
        }
        let number = self.double()?;
        // Beyond this, a double cannot represent every integer.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if number.fract() == 0.0 && number.abs() <= EXACT {
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and fits")]
            return Ok(number as i64);
        }
        Err(Fault::invalid(format!(
            "{} is not a 64-bit integer",
            self.text()
        )))
    }

    pub(crate) fn double(&self) -> FaultResult<f64> {
        self.expect(JsonKind::Number)?;
        let number = self.raw.decode::<f64>();
        number.map_err(|_| Fault::invalid(format!("{} does not fit into a double", self.text())))
    }

    pub(crate) fn bool(&self) -> FaultResult<bool> {
        self.expect(JsonKind::Bool)?;
        Ok(self.raw.as_bytes() == b"true")
    }

    /// Returns the text of a string, with its escapes decoded.
    pub(crate) fn string(&self) -> FaultResult<Cow<'t, str>> {
        self.expect(JsonKind::String)?;
        Ok(self.raw.string_value().unwrap_or_default())
    }

    /// Returns the number of members or elements.
    pub(crate) fn count(&self) -> FaultResult<usize> {
        match (self.raw.members(), self.raw.elements()) {
            (Some(members), _) => Ok(members.count()),
            (_, Some(elements)) => Ok(elements.count()),
            (None, None) => Err(self.unlike("an object or an array")),
        }
    }

    /// Returns the member, with its name, or the element at an index.
    pub(crate) fn item(self, index: usize) -> FaultResult<(Option<String>, Self)> {
        let item = match (self.raw.members(), self.raw.elements()) {
            (Some(mut members), _) => {
                let member = members.nth(index);
                member.map(|(name, value)| (Some(name.into_owned()), value))
            }
            (_, Some(mut elements)) => elements.nth(index).map(|value| (None, value)),
            (None, None) => return Err(self.unlike("an object or an array")),
        };
        let (name, raw) = item.ok_or_else(|| missing(format!("no item at index {index}")))?;
        Ok((name, Self { raw }))
    }

    /// Returns the text for error messages.
    fn text(&self) -> Cow<'t, str> {
        String::from_utf8_lossy(self.bytes())
    }

    fn expect(&self, kind: JsonKind) -> FaultResult<()> {
        match self.kind() == kind {
            true => Ok(()),
            false => Err(self.unlike(name_of(kind))),
        }
    }

    fn unlike(&self, wanted: &str) -> Fault {
        Fault::invalid(format!("this is {}, not {wanted}", name_of(self.kind())))
    }
}

fn missing(text: String) -> Fault {
    Fault::new(MCPL_NOT_FOUND, text)
}

fn name_of(kind: JsonKind) -> &'static str {
    match kind {
        JsonKind::Null => "null",
        JsonKind::Bool => "a boolean",
        JsonKind::Number => "a number",
        JsonKind::String => "a string",
        JsonKind::Array => "an array",
        JsonKind::Object => "an object",
    }
}

/// Decodes a token of a pointer: `~1` is a slash, `~0` a tilde, and any other use of `~` is an error.
fn unescaped<'p>(pointer: &str, token: &'p str) -> FaultResult<Cow<'p, str>> {
    if !token.contains('~') {
        return Ok(Cow::Borrowed(token));
    }
    let mut parts = token.split('~');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (escaped, rest) = match (part.strip_prefix('0'), part.strip_prefix('1')) {
            (Some(rest), _) => ('~', rest),
            (_, Some(rest)) => ('/', rest),
            (None, None) => {
                let text =
                    format!("{pointer:?} is not a JSON pointer: a tilde needs 0 or 1 after it");
                return Err(Fault::invalid(text));
            }
        };
        out.push(escaped);
        out.push_str(rest);
    }
    Ok(Cow::Owned(out))
}

/// Parses an array index as in RFC 6901: digits without a leading zero. `-`, the index after the last, never exists.
fn index(token: &str) -> Option<usize> {
    let plain = token.bytes().all(|byte| byte.is_ascii_digit());
    let leads = token.len() > 1 && token.starts_with('0');
    match plain && !leads {
        true => token.parse().ok(),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::mcpl_status::{self, MCPL_USAGE_ERROR};

    const SAMPLE: &str =
        r#" {"a":{"b":[10,20,{"c":"d\u00e9\n"}]},"":1,"x/y":2,"m~n":3,"esc\u0061pe":4} "#;

    fn text(json: &str) -> Value<'_> {
        Value::new(json.as_bytes()).unwrap()
    }

    /// Returns the value in the sample that a pointer refers to, or the error status.
    fn at(pointer: &str) -> Result<&'static str, mcpl_status> {
        let found = text(SAMPLE).find(pointer).map_err(|fault| fault.status)?;
        Ok(std::str::from_utf8(found.bytes()).unwrap())
    }

    fn refusal<T>(outcome: FaultResult<T>) -> (mcpl_status, String) {
        let fault = outcome.err().unwrap();
        (fault.status, fault.message)
    }

    #[test]
    fn finds_values_as_slices_of_the_callers_text() {
        let found = text(SAMPLE).find("/a/b/2/c").unwrap().bytes();
        assert!(SAMPLE.as_bytes().as_ptr_range().contains(&found.as_ptr()));
        assert_eq!(found, br#""d\u00e9\n""#);
    }

    #[test]
    fn pointers_follow_rfc_6901() {
        assert_eq!(at(""), Ok(SAMPLE.trim()));
        assert_eq!(at("/a/b/0"), Ok("10"));
        assert_eq!(at("/"), Ok("1"));
        assert_eq!(at("/x~1y"), Ok("2"));
        assert_eq!(at("/m~0n"), Ok("3"));
        assert_eq!(at("/escape"), Ok("4"));
        for missing in [
            "/b", "/a/b/3", "/a/b/01", "/a/b/-", "/a/b/+1", "/a/b/", "/a/b/0/0",
        ] {
            assert_eq!(at(missing), Err(MCPL_NOT_FOUND), "{missing}");
        }
        for unfit in ["a", "/x~2", "/x~"] {
            assert_eq!(at(unfit), Err(MCPL_USAGE_ERROR), "{unfit}");
        }
    }

    #[test]
    fn reports_the_position_of_invalid_json() {
        let (status, message) = refusal(Value::new(b"{\"a\":1,\"a\":2}"));
        assert_eq!(status, MCPL_USAGE_ERROR);
        assert_eq!(message, "not valid JSON: duplicate member at byte 8");
        assert!(Value::new(b"").is_err() && Value::new(b"\"\xff\"").is_err());
    }

    #[test]
    fn reads_whole_numbers_in_any_notation_as_integers() {
        for json in ["7", "7.0", "7e0", "0.7e1"] {
            assert_eq!(text(json).int64().ok(), Some(7), "{json}");
        }
        let extremes = [
            ("-9223372036854775808", i64::MIN),
            ("9223372036854775807", i64::MAX),
        ];
        for (json, number) in extremes {
            assert_eq!(text(json).int64().ok(), Some(number));
        }
        for json in [
            "7.5",
            "9223372036854775808",
            "1e300",
            "1e999",
            "\"7\"",
            "null",
        ] {
            assert_eq!(refusal(text(json).int64()).0, MCPL_USAGE_ERROR, "{json}");
        }
    }

    #[test]
    fn rejects_reading_a_value_as_another_type() {
        assert_eq!(text("-1.5e2").double().ok(), Some(-150.0));
        assert!(text("1e999").double().is_err());
        assert_eq!(text("true").bool().ok(), Some(true));
        assert_eq!(text("false").bool().ok(), Some(false));
        assert_eq!(text(r#""a\u0000\ud83d\ude00""#).string().unwrap(), "a\0😀");
        assert_eq!(
            refusal(text("[]").string()).1,
            "this is an array, not a string"
        );
        assert!(text("1").bool().is_err() && text("true").double().is_err());
    }

    #[test]
    fn lists_items_in_the_order_of_the_text() {
        assert_eq!(text(r#"{"b":1,"a":2}"#).count().ok(), Some(2));
        assert_eq!(text("[]").count().ok(), Some(0));
        let (name, value) = text(r#"{"b":1,"a":[2]}"#).item(1).unwrap();
        assert_eq!((name.as_deref(), value.bytes()), (Some("a"), &b"[2]"[..]));
        let (name, value) = text("[1, 2 ]").item(1).unwrap();
        assert_eq!((name, value.bytes()), (None, &b"2"[..]));
        assert_eq!(refusal(text("[1]").item(1)).0, MCPL_NOT_FOUND);
        assert_eq!(refusal(text("1").item(0)).0, MCPL_USAGE_ERROR);
        assert_eq!(refusal(text("1").count()).0, MCPL_USAGE_ERROR);
    }
}
