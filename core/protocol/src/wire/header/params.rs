//! `x-mcp-header`: tool parameters that are mirrored into `Mcp-Param-*` headers ("Custom Headers from
//! Tool Parameters").

use std::borrow::Cow;

use serde_json::Value;

use super::{HeaderOccurrence, PARAM_PREFIX, decode_value, encode_value, malformed, mismatch};
use mcpline_schema::subschemas::{SUBSCHEMA_KEYWORDS, SUBSCHEMA_MAP_KEYWORDS};

use crate::error::RpcError;
use crate::json::{JsonKind, Raw};
use crate::limits::{MAX_DEPTH, MAX_PARAM_HEADERS};

const ANNOTATION: &str = "x-mcp-header";

/// The largest integer that every JSON reader represents exactly.
const SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// The parameters of one tool that are mirrored into headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParamHeaders(Vec<ParamHeader>);

/// One mirrored parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamHeader {
    /// The full name of the header, including `Mcp-Param-`.
    pub header: String,
    /// The `properties` keys that lead to the parameter.
    pub path: Vec<String>,
}

/// An annotation that makes its tool definition invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("x-mcp-header at {place}: {rule}")]
pub struct HeaderRuleError {
    /// A JSON pointer into the input schema.
    pub place: String,
    /// The rule that is broken.
    pub rule: HeaderRule,
}

/// The rules for `x-mcp-header`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderRule {
    /// The value is not a string.
    #[error("must be a string")]
    NotText,
    /// The value is empty or not a token.
    #[error("{0:?} is not an HTTP field name")]
    NotToken(String),
    /// Another property has the same value, ignoring case.
    #[error("{0:?} is used twice")]
    NotUnique(String),
    /// The property's type is not string, integer or boolean.
    #[error("the type must be string, integer or boolean")]
    NotPrimitive,
    /// The property cannot be reached through `properties` alone.
    #[error("only properties that are reached through `properties` alone may have it")]
    NotReachable,
    /// There are more than [`MAX_PARAM_HEADERS`].
    #[error("more than {MAX_PARAM_HEADERS} properties have it")]
    TooMany,
    /// The schema is nested more than [`MAX_DEPTH`] levels deep.
    #[error("the schema is nested too deep")]
    TooDeep,
}

impl ParamHeaders {
    /// Collects the annotations of an input schema. A client leaves out tools for which this fails.
    ///
    /// # Errors
    /// The first rule that an annotation breaks.
    pub fn compile(input_schema: &Value) -> Result<Self, HeaderRuleError> {
        let mut found = Self::default();
        let mut walk = Walk {
            headers: &mut found.0,
            path: Vec::new(),
            place: String::new(),
            depth: 0,
        };
        walk.schema(input_schema, true)?;
        Ok(found)
    }

    /// Whether no parameter is mirrored, as for most tools.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mirrored parameters.
    pub fn iter(&self) -> impl Iterator<Item = &ParamHeader> {
        self.0.iter()
    }

    /// The headers that a client sends with these arguments: names and encoded values. Arguments that are absent or
    /// `null` have none.
    pub fn headers(&self, arguments: &Raw) -> Vec<(&str, String)> {
        let mirrored = self
            .0
            .iter()
            .filter_map(|param| Some((param, param.value(arguments)?)));
        mirrored
            .filter_map(|(param, value)| {
                let text = encode_value(&text_of(&value)?).into_owned();
                Some((param.header.as_str(), text))
            })
            .collect()
    }

    /// Checks received headers against the arguments in the body.
    ///
    /// An argument of a type that no header can carry does not match the tool's schema either; that error is left to
    /// the validation of arguments, unless a header claims to mirror it.
    ///
    /// # Errors
    /// A [`HEADER_MISMATCH`](crate::ErrorCode::HEADER_MISMATCH) when a header is missing, unexpected, repeated,
    /// malformed or different; sent with status 400.
    pub fn check<'h>(
        &self,
        headers: impl Fn(&str) -> HeaderOccurrence<'h>,
        arguments: &Raw,
    ) -> Result<(), RpcError> {
        self.0.iter().try_for_each(|param| {
            let name = param.header.as_str();
            let value = match headers(name) {
                HeaderOccurrence::Repeated => {
                    return Err(mismatch(format!("{name} header is repeated")));
                }
                HeaderOccurrence::Once(value) => {
                    Some(decode_value(value).map_err(|problem| malformed(name, problem))?)
                }
                HeaderOccurrence::Absent => None,
            };
            let body = param.value(arguments);
            match (value, body) {
                (None, None) => Ok(()),
                (None, Some(body)) if text_of(&body).is_none() => Ok(()),
                (None, Some(_)) => Err(mismatch(format!("{name} header is missing"))),
                (Some(value), Some(body)) if same(&value, &body) => Ok(()),
                (Some(value), Some(_)) => Err(mismatch(format!(
                    "{name} header value '{value}' does not match the body"
                ))),
                (Some(value), None) => Err(mismatch(format!(
                    "{name} header value '{value}' mirrors an argument that is not there"
                ))),
            }
        })
    }
}

impl ParamHeader {
    /// The argument at the path, unless it is `null`.
    fn value(&self, arguments: &Raw) -> Option<Raw> {
        let mut value = arguments.clone();
        for key in &self.path {
            value = value.member(key)?;
        }
        (!value.is_null()).then_some(value)
    }
}

/// The header text of a primitive argument, before encoding ("Type conversion").
fn text_of(value: &Raw) -> Option<Cow<'_, str>> {
    match value.kind() {
        JsonKind::String => value.string_value(),
        JsonKind::Bool => Some(Cow::Borrowed(value.as_str())),
        JsonKind::Number => {
            let number: f64 = value.decode().ok()?;
            let integer = number.fract() == 0.0 && number.abs() <= SAFE_INTEGER;
            #[allow(
                clippy::cast_possible_truncation,
                reason = "integral and within the safe range"
            )]
            integer.then(|| Cow::Owned((number as i64).to_string()))
        }
        _ => None,
    }
}

/// Whether a header equals an argument; numbers are compared as numbers.
fn same(header: &str, body: &Raw) -> bool {
    if body.kind() != JsonKind::Number {
        return text_of(body).is_some_and(|text| text == header);
    }
    // Parsed as JSON, so that `inf`, `0x1` and ` 1` are not numbers.
    let header: Option<f64> = Raw::parse(header.to_owned())
        .ok()
        .and_then(|header| header.decode().ok());
    header.is_some() && header == body.decode().ok() && text_of(body).is_some()
}

/// Searches a schema for annotations.
struct Walk<'a> {
    headers: &'a mut Vec<ParamHeader>,
    path: Vec<String>,
    place: String,
    depth: usize,
}

impl Walk<'_> {
    /// `reachable`: whether every step so far was a `properties` key.
    fn schema(&mut self, schema: &Value, reachable: bool) -> Result<(), HeaderRuleError> {
        if self.depth > MAX_DEPTH {
            return Err(self.error(HeaderRule::TooDeep));
        }
        if let Value::Array(schemas) = schema {
            for (at, schema) in schemas.iter().enumerate() {
                self.step(&at.to_string(), |walk| walk.schema(schema, false))?;
            }
            return Ok(());
        }
        let Value::Object(keywords) = schema else {
            return Ok(());
        };
        if let Some(name) = keywords.get(ANNOTATION) {
            self.annotation(name, schema, reachable)?;
        }
        for (keyword, value) in keywords {
            let keyword = keyword.as_str();
            if keyword == "properties" {
                self.step(keyword, |walk| walk.properties(value, reachable))?;
            } else if SUBSCHEMA_KEYWORDS.contains(&keyword) {
                self.step(keyword, |walk| walk.schema(value, false))?;
            } else if SUBSCHEMA_MAP_KEYWORDS.contains(&keyword) {
                self.step(keyword, |walk| walk.properties(value, false))?;
            }
        }
        Ok(())
    }

    fn properties(&mut self, properties: &Value, reachable: bool) -> Result<(), HeaderRuleError> {
        for (key, schema) in properties.as_object().into_iter().flatten() {
            self.path.push(key.clone());
            self.step(key, |walk| walk.schema(schema, reachable))?;
            self.path.pop();
        }
        Ok(())
    }

    fn annotation(
        &mut self,
        name: &Value,
        schema: &Value,
        reachable: bool,
    ) -> Result<(), HeaderRuleError> {
        let Some(name) = name.as_str() else {
            return Err(self.error(HeaderRule::NotText));
        };
        if name.is_empty() || !name.bytes().all(is_token_byte) {
            return Err(self.error(HeaderRule::NotToken(name.to_owned())));
        }
        if !reachable || self.path.is_empty() {
            return Err(self.error(HeaderRule::NotReachable));
        }
        if !is_primitive(&schema["type"]) {
            return Err(self.error(HeaderRule::NotPrimitive));
        }
        let header = format!("{PARAM_PREFIX}{name}");
        if self
            .headers
            .iter()
            .any(|other| other.header.eq_ignore_ascii_case(&header))
        {
            return Err(self.error(HeaderRule::NotUnique(name.to_owned())));
        }
        if self.headers.len() == MAX_PARAM_HEADERS {
            return Err(self.error(HeaderRule::TooMany));
        }
        self.headers.push(ParamHeader {
            header,
            path: self.path.clone(),
        });
        Ok(())
    }

    fn step<T>(&mut self, key: &str, inside: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.place.len();
        self.place.push('/');
        self.place
            .push_str(&key.replace('~', "~0").replace('/', "~1"));
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        // After an error the place is not needed any more, so truncating it does no harm.
        self.place.truncate(length);
        result
    }

    fn error(&self, rule: HeaderRule) -> HeaderRuleError {
        HeaderRuleError {
            place: self.place.clone(),
            rule,
        }
    }
}

/// Whether a type is primitive: one, or a list of several, possibly with `null`.
fn is_primitive(declared: &Value) -> bool {
    let primitive = |name: &Value| matches!(name.as_str(), Some("string" | "integer" | "boolean"));
    match declared {
        Value::Array(names) => {
            names.iter().any(primitive)
                && names.iter().all(|name| primitive(name) || name == "null")
        }
        name => primitive(name),
    }
}

/// `tchar` of RFC 9110 §5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::lookup;
    use super::*;

    fn compiled() -> ParamHeaders {
        ParamHeaders::compile(&json!({
            "type": "object",
            "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"},
                "count": {"type": ["integer", "null"], "x-mcp-header": "Count"},
                "deep": {"type": "object", "properties": {
                    "flag": {"type": "boolean", "x-mcp-header": "Flag"},
                    "x-mcp-header": {"type": "array"},
                }},
                "plain": {"type": "string", "default": {"x-mcp-header": 1}},
            },
            "examples": [{"x-mcp-header": "Nothing"}],
        }))
        .expect("valid")
    }

    fn arguments(value: &Value) -> Raw {
        Raw::from_serialize(value).expect("JSON")
    }

    fn rule(schema: &Value) -> (HeaderRule, String) {
        let error = ParamHeaders::compile(schema).expect_err("invalid");
        (error.rule, error.place)
    }

    #[test]
    fn a_client_sends_what_a_server_accepts() {
        let arguments = arguments(&json!({"region": " ü", "count": -7.0, "deep": {"flag": true}}));
        let compiled = compiled();
        let headers = compiled.headers(&arguments);
        assert_eq!(
            headers,
            [
                ("Mcp-Param-Region", "=?base64?IMO8?=".to_owned()),
                ("Mcp-Param-Count", "-7".to_owned()),
                ("Mcp-Param-Flag", "true".to_owned()),
            ]
        );
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        assert_eq!(compiled.check(lookup(&headers), &arguments), Ok(()));
    }

    #[test]
    fn absent_and_null_arguments_have_no_header() {
        let compiled = compiled();
        for arguments in [
            json!({}),
            json!({"region": null, "deep": {}}),
            json!({"deep": 5}),
        ] {
            let arguments = self::arguments(&arguments);
            assert_eq!(compiled.headers(&arguments), []);
            assert_eq!(compiled.check(lookup(&[]), &arguments), Ok(()));
            let headers = [("Mcp-Param-Region", "x")];
            assert_eq!(
                compiled
                    .check(lookup(&headers), &arguments)
                    .expect_err("refused")
                    .code
                    .0,
                -32020
            );
        }
    }

    #[test]
    fn headers_that_disagree_with_the_body_are_refused() {
        let compiled = compiled();
        let arguments = arguments(&json!({"region": "a", "count": 1}));
        for headers in [
            &[][..],
            &[("mcp-param-region", "a")],
            &[("mcp-param-region", "A"), ("mcp-param-count", "1")],
            &[("mcp-param-region", "a"), ("mcp-param-count", "2")],
            &[("mcp-param-region", "a"), ("mcp-param-count", "one")],
            &[("mcp-param-region", "a"), ("mcp-param-count", "\"1\"")],
            &[
                ("mcp-param-region", "a"),
                ("mcp-param-region", "a"),
                ("mcp-param-count", "1"),
            ],
            &[
                ("mcp-param-region", "=?base64?YQ?="),
                ("mcp-param-count", "1"),
            ],
            &[
                ("mcp-param-region", "a"),
                ("mcp-param-count", "1"),
                ("mcp-param-flag", "true"),
            ],
        ] {
            let error = compiled
                .check(lookup(headers), &arguments)
                .expect_err("refused");
            assert_eq!(error.code.0, -32020, "{headers:?}");
        }
        for count in ["1", "1.0", "1e0"] {
            let headers = [
                ("mcp-param-region", "=?base64?YQ==?="),
                ("mcp-param-count", count),
            ];
            assert_eq!(compiled.check(lookup(&headers), &arguments), Ok(()));
        }
    }

    #[test]
    fn an_argument_that_no_header_can_carry_is_left_to_validation() {
        let compiled = compiled();
        for region in [json!({}), json!([1]), json!(1.5), json!(1e300)] {
            let arguments = arguments(&json!({ "region": region }));
            assert_eq!(compiled.headers(&arguments), []);
            assert_eq!(compiled.check(lookup(&[]), &arguments), Ok(()));
            assert!(
                compiled
                    .check(lookup(&[("mcp-param-region", "1.5")]), &arguments)
                    .is_err()
            );
        }
    }

    #[test]
    fn broken_annotations_make_the_definition_invalid() {
        let property = |schema: Value| json!({"type": "object", "properties": {"a/b": schema}});
        for (name, expected) in [
            (json!(""), HeaderRule::NotToken(String::new())),
            (json!("a b"), HeaderRule::NotToken("a b".into())),
            (json!("a\r\n"), HeaderRule::NotToken("a\r\n".into())),
            (json!("ä"), HeaderRule::NotToken("ä".into())),
            (json!(5), HeaderRule::NotText),
        ] {
            let schema = property(json!({"type": "string", "x-mcp-header": name}));
            assert_eq!(rule(&schema), (expected, "/properties/a~1b".into()));
        }
        for declared in [
            json!("number"),
            json!("object"),
            json!("array"),
            json!(["null"]),
            json!(null),
        ] {
            let schema = property(json!({"type": declared, "x-mcp-header": "X"}));
            assert_eq!(rule(&schema).0, HeaderRule::NotPrimitive);
        }
        assert_eq!(
            rule(&json!({"properties": {
                "a": {"type": "string", "x-mcp-header": "Same"},
                "b": {"type": "string", "x-mcp-header": "sAME"},
            }}))
            .0,
            HeaderRule::NotUnique("sAME".into())
        );
    }

    #[test]
    fn annotations_off_the_properties_chain_are_invalid() {
        let marked = json!({"type": "string", "x-mcp-header": "X"});
        let inside = json!({"properties": {"p": marked}});
        for schema in [
            marked.clone(),
            json!({"items": inside}),
            json!({"prefixItems": [inside]}),
            json!({"oneOf": [{"type": "object"}, inside]}),
            json!({"allOf": [inside]}),
            json!({"anyOf": [inside]}),
            json!({"not": inside}),
            json!({"if": inside}),
            json!({"then": inside}),
            json!({"else": inside}),
            json!({"$defs": {"d": inside}}),
            json!({"$defs": {"d": marked}}),
            json!({"patternProperties": {"^p": marked}}),
            json!({"additionalProperties": marked}),
            json!({"properties": {"list": {"type": "array", "items": marked}}}),
        ] {
            assert_eq!(rule(&schema).0, HeaderRule::NotReachable, "{schema}");
        }
    }

    #[test]
    fn the_number_of_headers_and_the_depth_are_limited() {
        let properties: serde_json::Map<_, _> = (0..=MAX_PARAM_HEADERS)
            .map(|at| {
                (
                    format!("p{at}"),
                    json!({"type": "string", "x-mcp-header": format!("H{at}")}),
                )
            })
            .collect();
        assert_eq!(
            rule(&json!({ "properties": properties })).0,
            HeaderRule::TooMany
        );
        let mut deep = json!({});
        for _ in 0..MAX_DEPTH {
            deep = json!({"properties": {"a": deep}});
        }
        assert_eq!(rule(&deep).0, HeaderRule::TooDeep);
    }
}
