//! Responses: which ones a document expects, and what they mean for a tool.

use serde_json::Value;

use crate::body::{is_media_type, rank};
use crate::document::Document;
use crate::error::DocumentError;
use crate::limits::MAX_ERROR_BODY_BYTES;
use crate::operation::{Operation, cut};
use crate::reference::DocumentLocation;
use crate::schema::{self, BuiltSchema, Direction, Position};

/// The largest number of schemas that are visited to find the type of a result. Beyond it, the type is not known, and the
/// result has no schema. Schemas that combine references to others have exponentially many combinations.
const MAX_RESPONSE_VISITS: usize = 10_000;

/// The responses that a document describes as successful.
#[derive(Debug, Default)]
pub(crate) struct SuccessResponses {
    media_types: Vec<String>,
    /// The schema that all of them have.
    schema: Option<DocumentLocation>,
}

impl SuccessResponses {
    pub(crate) fn of(document: &Document, operation: &Operation) -> Result<Self, DocumentError> {
        let place = operation.place.child("responses");
        let Some(Value::Object(responses)) = document.at(&place) else {
            return Ok(Self::default());
        };
        let is_success = |code: &&String| {
            let mut characters = code.chars();
            code.len() == 3 && characters.next() == Some('2')
        };
        let mut codes: Vec<_> = responses.keys().filter(is_success).collect();
        if codes.is_empty() {
            codes = responses.keys().filter(|code| *code == "default").collect();
        }
        let mut expected = Self::default();
        let mut schemas = Vec::new();
        for code in codes {
            let (response, _) = document.object(&place.child(code))?;
            let content = response.child("content");
            let types = document.at(&content).and_then(Value::as_object);
            let mut json = None;
            for media_type in types.into_iter().flat_map(|types| types.keys()) {
                if is_media_type(media_type) && !expected.media_types.contains(media_type) {
                    expected.media_types.push(media_type.clone());
                }
                if rank(media_type) == 0 && json.is_none() {
                    let schema = content.child(media_type).child("schema");
                    json = document.at(&schema).map(|_| schema);
                }
            }
            // Without content, or with another one, there is no structured content.
            schemas.push(match json {
                Some(schema) => Some(document.follow(&schema)?.0),
                None => None,
            });
        }
        schemas.dedup();
        if let [Some(_)] = &schemas[..] {
            expected.schema = schemas.pop().flatten();
        }
        Ok(expected)
    }

    /// Returns the value of `Accept`: JSON, where the document has it.
    pub(crate) fn accept(&self) -> String {
        let json: Vec<_> = self
            .media_types
            .iter()
            .filter(|media_type| rank(media_type) == 0)
            .map(String::as_str)
            .collect();
        let preferred = match (json.is_empty(), self.media_types.is_empty()) {
            (false, _) => json.join(", "),
            (true, false) => self.media_types.join(", "),
            (true, true) => "application/json".to_owned(),
        };
        match preferred.contains("*/*") {
            true => preferred,
            false => format!("{preferred}, */*;q=0.1"),
        }
    }

    /// Returns the schema of the structured content, if it is an object or an array.
    pub(crate) fn schema(
        &self,
        document: &Document,
        max_bytes: usize,
    ) -> Result<Option<BuiltSchema>, DocumentError> {
        let Some(place) = &self.schema else {
            return Ok(None);
        };
        let mut visits = MAX_RESPONSE_VISITS;
        let Some(kind) = kind_of(document, place, &mut visits, 0) else {
            return Ok(None);
        };
        let mut built = schema::build(document, Direction::Response, max_bytes, |set| {
            // As a definition, because the schema may contain itself.
            set.refer(place, Position::at_reference(0))
                .map(Value::Object)
        })?;
        match built.schema.get("type") {
            Some(declared) if declared != kind => return Ok(None),
            Some(_) => {}
            None if built.schema.is_object() => built.schema["type"] = kind.into(),
            None => return Ok(None),
        }
        Ok(Some(built))
    }
}

/// Returns the type of all values that match a schema, if it is an object or an array.
fn kind_of(
    document: &Document,
    place: &DocumentLocation,
    visits: &mut usize,
    depth: usize,
) -> Option<&'static str> {
    const MAX_DEPTH: usize = 8;
    *visits = visits.checked_sub(1)?;
    let (place, schema) = document.follow(place).ok()?;
    if schema.get("nullable") == Some(&Value::Bool(true)) || depth > MAX_DEPTH {
        return None;
    }
    match schema.get("type") {
        Some(Value::String(kind)) => {
            return ["object", "array"].into_iter().find(|known| known == kind);
        }
        Some(_) => return None,
        None => {}
    }
    if schema.get("properties").is_some() {
        return Some("object");
    }
    let mut kinds = |keyword: &str| {
        let count = schema
            .get(keyword)
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        let all = place.child(keyword);
        let mut kind =
            |index: usize| kind_of(document, &all.child(&index.to_string()), visits, depth + 1);
        (0..count).map(&mut kind).collect::<Vec<_>>()
    };
    if let Some(kind) = kinds("allOf").into_iter().flatten().next() {
        return Some(kind);
    }
    ["oneOf", "anyOf"].into_iter().find_map(|keyword| {
        let kinds = kinds(keyword);
        let first = kinds.first().copied().flatten()?;
        kinds
            .iter()
            .all(|kind| *kind == Some(first))
            .then_some(first)
    })
}

/// A response.
#[derive(Debug, Clone, Copy)]
pub struct ResponseParts<'r> {
    /// The status code.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: Option<&'r str>,
    /// `Location`, for redirects that were not followed, without what may be secret: the model reads it.
    pub location: Option<&'r str>,
    /// The body.
    pub body: &'r [u8],
}

/// What a response means for a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The body is JSON by its media type; whether it is valid has to be checked.
    Json,
    /// The body is text.
    Text(String),
    /// The body is an image, with this media type.
    Image(String),
    /// The body is audio, with this media type.
    Audio(String),
    /// The body is bytes, with this media type.
    Binary(String),
    /// There is no body. The text says which status there is.
    Empty(String),
    /// The API reports an error: a message for the model, with the status and the beginning of the body.
    Error(String),
}

impl ResponseParts<'_> {
    /// Returns what the response means.
    pub fn outcome(&self) -> Outcome {
        if !(200..300).contains(&self.status) {
            return Outcome::Error(self.error());
        }
        if self.body.is_empty() {
            return Outcome::Empty(status_text(self.status));
        }
        let media_type = self.content_type.unwrap_or_default();
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        let essence = essence.to_ascii_lowercase();
        let is_plain = essence.is_empty() || !is_media_type(&essence);
        let binary = match rank(&essence) {
            _ if is_plain => "application/octet-stream".to_owned(),
            0 => return Outcome::Json,
            _ if essence.starts_with("image/") && essence != "image/svg+xml" => {
                return Outcome::Image(essence);
            }
            _ if essence.starts_with("audio/") => return Outcome::Audio(essence),
            1 | 3 => return Outcome::Text(self.text()),
            _ => essence,
        };
        match std::str::from_utf8(self.body) {
            // What is UTF-8 and has no control characters was probably meant as text.
            Ok(text) if !text.chars().any(is_binary_character) => Outcome::Text(text.to_owned()),
            _ => Outcome::Binary(binary),
        }
    }

    /// Returns the body as text. Bytes that are not UTF-8 are replaced.
    fn text(&self) -> String {
        String::from_utf8_lossy(self.body).into_owned()
    }

    fn error(&self) -> String {
        let mut message = status_text(self.status);
        if let Some(location) = self.location {
            let location = cut(location.to_owned(), MAX_ERROR_BODY_BYTES);
            message += &format!(". The redirect to {location} is not followed");
        }
        let is_text = !self.text().chars().any(is_binary_character);
        let body = self.text();
        let body = body.trim();
        if !body.is_empty() && is_text {
            message += ": ";
            message += &cut(body.to_owned(), MAX_ERROR_BODY_BYTES);
        }
        message
    }
}

fn is_binary_character(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\r' | '\t' | '\u{1b}' | '\u{c}')
}

/// Returns a status as text: `HTTP 404 Not Found`.
pub fn status_text(status: u16) -> String {
    let reason = match status {
        200 => " OK",
        201 => " Created",
        202 => " Accepted",
        204 => " No Content",
        301 => " Moved Permanently",
        302 => " Found",
        303 => " See Other",
        304 => " Not Modified",
        307 => " Temporary Redirect",
        308 => " Permanent Redirect",
        400 => " Bad Request",
        401 => " Unauthorized",
        403 => " Forbidden",
        404 => " Not Found",
        405 => " Method Not Allowed",
        409 => " Conflict",
        410 => " Gone",
        413 => " Content Too Large",
        415 => " Unsupported Media Type",
        422 => " Unprocessable Content",
        429 => " Too Many Requests",
        500 => " Internal Server Error",
        502 => " Bad Gateway",
        503 => " Service Unavailable",
        504 => " Gateway Timeout",
        _ => "",
    };
    format!("HTTP {status}{reason}")
}
