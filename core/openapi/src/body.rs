//! Bodies of requests: which media type is sent, and how arguments become one.

use std::collections::{BTreeMap, HashMap};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::document::Document;
use crate::error::{ArgumentError, DocumentError};
use crate::multipart::{self, Part};
use crate::operation::Operation;
use crate::parameter::is_token;
use crate::percent::UnescapedCharacters;
use crate::reference::DocumentLocation;
use crate::style::{self, Query, Style};

/// The largest number of properties of a body that become arguments of their own.
const MAX_FLAT_PROPERTIES: usize = 100;

/// The deepest nesting of `allOf` whose properties become arguments of their own.
const MAX_FLAT_DEPTH: usize = 8;

/// The largest number of schemas that are visited to find the properties, or the files, of a body. The largest bodies of
/// public documents have a few hundred. Schemas that combine references to others can have as many combinations as there are
/// paths through them, which grows exponentially.
const MAX_BODY_VISITS: usize = 10_000;

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    Json,
    /// `application/x-www-form-urlencoded`
    Form,
    Multipart,
    Text,
    /// Bytes, which the argument has in base64.
    Binary,
}

/// The body of an operation's requests.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) kind: BodyKind,
    pub(crate) media_type: String,
    pub(crate) is_required: bool,
    pub(crate) description: Option<String>,
    /// `None` if there is none, or if it says nothing of the members of a form.
    pub(crate) schema: Option<DocumentLocation>,
    /// How properties of a form are written.
    fields: BTreeMap<String, Field>,
}

/// A property of a body that is written in its own way.
#[derive(Debug, Clone)]
struct Field {
    style: Option<(Style, bool)>,
    media_type: Option<String>,
    files: Files,
}

/// What a property of a form holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Files {
    None,
    One,
    Several,
}

/// A property of a body that becomes an argument.
#[derive(Debug, Clone)]
pub(crate) struct FlatProperty {
    pub(crate) name: String,
    pub(crate) schema: DocumentLocation,
    pub(crate) is_required: bool,
}

impl Document {
    /// Returns the body of an operation, in the media type that suits a model best.
    pub(crate) fn body_of(&self, operation: &Operation) -> Result<Option<Body>, DocumentError> {
        let place = operation.place.child("requestBody");
        if self.at(&place).is_none() {
            return Ok(None);
        }
        let (place, object) = self.object(&place)?;
        let content = place.child("content");
        let Some(Value::Object(types)) = self.at(&content) else {
            return Ok(None);
        };
        let schema_of = |media_type: &str| {
            let schema = content.child(media_type).child("schema");
            self.at(&schema).map(|_| schema)
        };
        let best = types.keys().min_by_key(|media_type| {
            let rank = rank(media_type);
            // A form cannot be the array or string that its schema describes.
            let is_possible = !is_form(rank)
                || schema_of(media_type).is_none_or(|schema| self.may_be_object(&schema));
            (!is_possible, rank)
        });
        let Some(media_type) = best else {
            return Ok(None);
        };
        if !is_media_type(media_type) {
            return Err(self.error(&content, format!("{media_type:?} is not a media type")));
        }
        let media = content.child(media_type);
        let schema = schema_of(media_type).filter(|schema| {
            !is_form(rank(media_type)) || (self.may_be_object(schema) && self.has_members(schema))
        });
        let kind = self.kind_of(media_type, schema.as_ref());
        let fields = match (kind, &schema) {
            (BodyKind::Form | BodyKind::Multipart, Some(schema)) => {
                self.fields(schema, &media, kind)?
            }
            _ => BTreeMap::new(),
        };
        let description = object.get("description").and_then(Value::as_str);
        let is_required = match object.get("required").and_then(Value::as_bool) {
            Some(is_required) => is_required,
            // The default is `false`, but most documents without it mean a body that has to have these properties.
            None => self.has_required_properties(schema.as_ref()),
        };
        Ok(Some(Body {
            kind,
            media_type: sent_media_type(media_type, kind),
            is_required,
            description: description.map(str::to_owned),
            schema,
            fields,
        }))
    }

    /// Whether a schema accepts objects, as far as its own `type` says.
    fn may_be_object(&self, schema: &DocumentLocation) -> bool {
        let Ok((_, schema)) = self.follow(schema) else {
            // Reading the schema reports the error.
            return true;
        };
        match schema.get("type") {
            Some(Value::String(kind)) => kind == "object",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            _ => true,
        }
    }

    /// Whether a schema says anything of the members of an object.
    fn has_members(&self, schema: &DocumentLocation) -> bool {
        const MEMBERS: [&str; 6] = [
            "properties",
            "patternProperties",
            "additionalProperties",
            "allOf",
            "anyOf",
            "oneOf",
        ];
        let Ok((_, schema)) = self.follow(schema) else {
            return true;
        };
        let says = |name: &&str| {
            schema
                .get(*name)
                .is_some_and(|value| value.is_array() || value.is_object())
        };
        MEMBERS.iter().any(says)
    }

    fn has_required_properties(&self, schema: Option<&DocumentLocation>) -> bool {
        let followed = schema.and_then(|schema| self.follow(schema).ok());
        let required = followed.and_then(|(_, schema)| schema.get("required"));
        required
            .and_then(Value::as_array)
            .is_some_and(|names| !names.is_empty())
    }

    fn kind_of(&self, media_type: &str, schema: Option<&DocumentLocation>) -> BodyKind {
        match rank(media_type) {
            0 => BodyKind::Json,
            1 => BodyKind::Form,
            2 => BodyKind::Multipart,
            3 => BodyKind::Text,
            4 if schema.is_some_and(|schema| !self.is_binary(schema)) => BodyKind::Json,
            _ => BodyKind::Binary,
        }
    }

    /// Whether a schema describes bytes.
    fn is_binary(&self, schema: &DocumentLocation) -> bool {
        let Ok((_, schema)) = self.follow(schema) else {
            return false;
        };
        let text = |name: &str| schema.get(name).and_then(Value::as_str);
        let is_text = text("contentMediaType")
            .is_some_and(|media| media.starts_with("text/") || media.contains("json"));
        matches!(text("format"), Some("binary"))
            || text("type") == Some("file")
            || (text("contentMediaType").is_some() && text("contentEncoding").is_none() && !is_text)
    }

    /// Says whether a property of a form is a file, or may be several.
    ///
    /// # Errors
    ///
    /// No visits are left.
    fn files_of(
        &self,
        schema: &DocumentLocation,
        visits: &mut Visits,
        depth: usize,
    ) -> Result<Files, DocumentError> {
        if !visits.take() {
            let reason = format!(
                "the schema of the body is too complex: more than {MAX_BODY_VISITS} schemas have to be searched for files \
                 (`MAX_BODY_VISITS`)"
            );
            return Err(self.error(schema, reason));
        }
        let Ok((place, value)) = self.follow(schema) else {
            return Ok(Files::None);
        };
        if self.is_binary(&place) {
            return Ok(Files::One);
        }
        if depth > MAX_FLAT_DEPTH {
            return Ok(Files::None);
        }
        if value.get("type").and_then(Value::as_str) == Some("array") {
            return Ok(
                match self.files_of(&place.child("items"), visits, depth + 1)? {
                    Files::None => Files::None,
                    _ => Files::Several,
                },
            );
        }
        let alternatives = ["anyOf", "oneOf", "allOf"].into_iter().flat_map(|keyword| {
            let count = value
                .get(keyword)
                .and_then(Value::as_array)
                .map_or(0, Vec::len);
            let all = place.child(keyword);
            (0..count).map(move |index| all.child(&index.to_string()))
        });
        let mut found = Files::None;
        for schema in alternatives {
            found = found.max(self.files_of(&schema, visits, depth + 1)?);
        }
        Ok(found)
    }

    fn fields(
        &self,
        schema: &DocumentLocation,
        media: &DocumentLocation,
        kind: BodyKind,
    ) -> Result<BTreeMap<String, Field>, DocumentError> {
        let mut flat = FlatProperties::new(usize::MAX);
        // Not flat: the encoding of each property is still known by its name.
        let is_flat = self.collect_flat(schema, &mut flat, 0)?;
        let mut properties = flat.all;
        if !is_flat {
            let (place, _) = self.follow(schema)?;
            let place = place.child("properties");
            let names = self.at(&place).and_then(Value::as_object);
            properties = names
                .into_iter()
                .flat_map(Map::keys)
                .map(|name| FlatProperty {
                    name: name.clone(),
                    schema: place.child(name),
                    is_required: false,
                })
                .collect();
        }
        let mut fields = BTreeMap::new();
        let mut visits = Visits::new();
        for property in properties {
            let encoding = media.child("encoding").child(&property.name);
            let text = |name: &str| self.at(&encoding.child(name)).and_then(Value::as_str);
            let style = text("style")
                .and_then(Style::of)
                .filter(|style| !matches!(style, Style::Simple | Style::Label | Style::Matrix));
            let explode = self.at(&encoding.child("explode")).and_then(Value::as_bool);
            let style = style.or(explode.map(|_| Style::Form));
            let media_type = text("contentType")
                .filter(|media_type| is_media_type(media_type) && !media_type.contains(['*', ',']));
            let field = Field {
                style: style.map(|style| (style, explode.unwrap_or(style == Style::Form))),
                media_type: media_type.map(str::to_owned),
                files: match kind {
                    BodyKind::Multipart => self.files_of(&property.schema, &mut visits, 0)?,
                    _ => Files::None,
                },
            };
            fields.insert(property.name, field);
        }
        Ok(fields)
    }

    /// Returns the properties of a body, if it is an object that has only these.
    pub(crate) fn flat_properties(
        &self,
        schema: &DocumentLocation,
    ) -> Result<Option<Vec<FlatProperty>>, DocumentError> {
        let mut flat = FlatProperties::new(MAX_FLAT_PROPERTIES);
        let is_flat = self.collect_flat(schema, &mut flat, 0)?;
        Ok((is_flat && !flat.all.is_empty()).then_some(flat.all))
    }

    /// Collects the properties of a schema and of those that it combines. Returns whether it is only that, and small enough.
    fn collect_flat(
        &self,
        schema: &DocumentLocation,
        out: &mut FlatProperties,
        depth: usize,
    ) -> Result<bool, DocumentError> {
        // What is allowed: annotations, and what a list of properties says as well.
        const FLAT: [&str; 14] = [
            "type",
            "properties",
            "required",
            "allOf",
            "title",
            "description",
            "example",
            "examples",
            "nullable",
            "deprecated",
            "externalDocs",
            "xml",
            "default",
            "additionalProperties",
        ];
        if !out.visits.take() {
            return Ok(false);
        }
        let (place, value) = self.follow(schema)?;
        let Some(object) = value.as_object() else {
            return Ok(false);
        };
        let is_flat = |(name, value): (&String, &Value)| match &**name {
            "type" => value == "object",
            "additionalProperties" => value == &Value::Bool(false),
            name => FLAT.contains(&name) || name.starts_with("x-"),
        };
        if depth > MAX_FLAT_DEPTH || !object.iter().all(is_flat) {
            return Ok(false);
        }
        let all = object
            .get("allOf")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        for index in 0..all {
            let part = place.child("allOf").child(&index.to_string());
            if !self.collect_flat(&part, out, depth + 1)? {
                return Ok(false);
            }
        }
        let properties = place.child("properties");
        for name in object
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys)
        {
            let schema = properties.child(name);
            let own = self.at(&schema).and_then(|schema| schema.get("readOnly"));
            let read_only = own.or(self.follow(&schema)?.1.get("readOnly"));
            if read_only == Some(&Value::Bool(true)) {
                continue;
            }
            if !out.add(name, schema) {
                return Ok(false);
            }
        }
        let required = object.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            // It may be one of another part.
            if let Some(index) = out.index.get(name) {
                out.all[*index].is_required = true;
            }
        }
        Ok(true)
    }
}

/// The visits that are left while a schema is searched.
struct Visits(usize);

impl Visits {
    fn new() -> Self {
        Self(MAX_BODY_VISITS)
    }

    /// Counts one. Returns whether it was left.
    fn take(&mut self) -> bool {
        let is_left = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        is_left
    }
}

/// The properties that are collected from a schema.
struct FlatProperties {
    all: Vec<FlatProperty>,
    /// The positions of the properties, by name.
    index: HashMap<String, usize>,
    max: usize,
    visits: Visits,
}

impl FlatProperties {
    fn new(max: usize) -> Self {
        Self {
            all: Vec::new(),
            index: HashMap::new(),
            max,
            visits: Visits::new(),
        }
    }

    /// Adds a property. Returns whether there are not too many.
    fn add(&mut self, name: &str, schema: DocumentLocation) -> bool {
        if let Some(index) = self.index.get(name) {
            // A later part describes it more precisely.
            self.all[*index].schema = schema;
            return true;
        }
        if self.all.len() == self.max {
            return false;
        }
        self.index.insert(name.to_owned(), self.all.len());
        self.all.push(FlatProperty {
            name: name.to_owned(),
            schema,
            is_required: false,
        });
        true
    }
}

impl Body {
    /// Says whether a property is a file.
    pub(crate) fn files(&self, property: &str) -> Files {
        match self.field(property) {
            Some(field) if self.kind == BodyKind::Multipart => field.files,
            _ => Files::None,
        }
    }

    /// Returns the bytes of a body, and its media type.
    ///
    /// # Errors
    ///
    /// The value cannot be written in this media type.
    pub(crate) fn write(
        &self,
        argument: &str,
        value: &Value,
    ) -> Result<(Vec<u8>, String), ArgumentError> {
        let members = || {
            let members = value.as_object();
            members.ok_or_else(|| ArgumentError::new(argument, "it must be an object"))
        };
        let bytes = match self.kind {
            BodyKind::Json => value.to_string().into_bytes(),
            BodyKind::Form => self.form(members()?).into_bytes(),
            BodyKind::Multipart => {
                let (bytes, boundary) = multipart::write(&self.parts(members()?)?);
                return Ok((bytes, format!("{}; boundary={boundary}", self.media_type)));
            }
            BodyKind::Text => style::text(value).into_bytes(),
            BodyKind::Binary => decoded(argument, value)?,
        };
        Ok((bytes, self.media_type.clone()))
    }

    fn field(&self, name: &str) -> Option<&Field> {
        self.fields.get(name)
    }

    fn form(&self, members: &Map<String, Value>) -> String {
        let mut query = Query::default();
        for (name, value) in members {
            let style = self.field(name).and_then(|field| field.style);
            let has_objects = match value {
                Value::Array(items) => items.iter().any(|item| item.is_array() || item.is_object()),
                value => value.is_object(),
            };
            match style {
                Some((style, explode)) => {
                    style::in_query(
                        &mut query,
                        name,
                        value,
                        style,
                        explode,
                        UnescapedCharacters::Nothing,
                    );
                }
                // The default of the specification for objects is JSON.
                None if has_objects => {
                    let json = Value::String(value.to_string());
                    style::in_query(
                        &mut query,
                        name,
                        &json,
                        Style::Form,
                        true,
                        UnescapedCharacters::Nothing,
                    );
                }
                None => style::in_query(
                    &mut query,
                    name,
                    value,
                    Style::Form,
                    true,
                    UnescapedCharacters::Nothing,
                ),
            }
        }
        query.write()
    }

    fn parts(&self, members: &Map<String, Value>) -> Result<Vec<Part>, ArgumentError> {
        let mut parts = Vec::new();
        for (name, value) in members {
            let field = self.field(name);
            // Without a schema, the values say which members are files.
            let is_described = self.schema.is_some();
            let is_binary = |value: &Value| match field {
                Some(field) => field.files != Files::None,
                None => !is_described && is_file(value),
            };
            let media_type = field.and_then(|field| field.media_type.as_deref());
            match value {
                Value::Array(items) if !is_json(media_type) => {
                    for item in items {
                        parts.push(part(name, item, is_binary(item), media_type)?);
                    }
                }
                value => parts.push(part(name, value, is_binary(value), media_type)?),
            }
        }
        Ok(parts)
    }
}

fn is_json(media_type: Option<&str>) -> bool {
    media_type.is_some_and(|media_type| rank(media_type) == 0)
}

fn part(
    name: &str,
    value: &Value,
    is_binary: bool,
    media_type: Option<&str>,
) -> Result<Part, ArgumentError> {
    let media_type = media_type.map(str::to_owned);
    if is_binary {
        return file(name, value, media_type);
    }
    let is_structured = value.is_array() || value.is_object();
    let data = match is_structured || is_json(media_type.as_deref()) {
        true => value.to_string(),
        false => style::text(value),
    };
    let json = is_structured.then(|| "application/json".to_owned());
    Ok(Part {
        name: name.to_owned(),
        file_name: None,
        media_type: media_type.or(json),
        data: data.into_bytes(),
    })
}

/// Whether a value has the form of a file: an object with `data`, and at most `filename` and `content_type`.
fn is_file(value: &Value) -> bool {
    const MEMBERS: [&str; 3] = ["data", "filename", "content_type"];
    value.as_object().is_some_and(|members| {
        members.contains_key("data")
            && members
                .iter()
                .all(|(name, value)| MEMBERS.contains(&&**name) && value.is_string())
    })
}

/// Returns the part of a file: an object with `data`, `filename` and `content_type`, or only the data.
fn file(name: &str, value: &Value, media_type: Option<String>) -> Result<Part, ArgumentError> {
    let text = |member: &str| value.get(member).and_then(Value::as_str);
    let own_type = text("content_type");
    if let Some(own_type) = own_type.filter(|own_type| !is_media_type(own_type)) {
        let reason = format!("`content_type` {own_type:?} is not a media type");
        return Err(ArgumentError::new(name, reason));
    }
    let data = decoded(name, value.get("data").unwrap_or(value))?;
    let file_name = text("filename")
        .filter(|name| !name.is_empty())
        .unwrap_or(name);
    let media_type = own_type.map(str::to_owned).or(media_type);
    Ok(Part {
        name: name.to_owned(),
        file_name: Some(file_name.to_owned()),
        media_type: media_type.or(Some("application/octet-stream".to_owned())),
        data,
    })
}

fn decoded(argument: &str, value: &Value) -> Result<Vec<u8>, ArgumentError> {
    let text = value.as_str();
    let decoded = text.and_then(|text| STANDARD.decode(text).ok());
    decoded.ok_or_else(|| ArgumentError::new(argument, "it must be base64 (RFC 4648, section 4)"))
}

/// Orders media types by how well they suit a model.
pub(crate) fn rank(media_type: &str) -> u8 {
    let essence = media_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match &*essence {
        "application/json" | "text/json" => 0,
        "application/x-www-form-urlencoded" => 1,
        "multipart/form-data" => 2,
        "application/xml"
        | "application/yaml"
        | "application/x-yaml"
        | "application/graphql"
        | "application/javascript"
        | "application/x-ndjson"
        | "application/jsonl" => 3,
        "*/*" | "application/*" => 4,
        _ if essence.ends_with("+json") => 0,
        _ if essence.ends_with("+xml") || essence.starts_with("text/") => 3,
        _ => 5,
    }
}

/// Whether media types of a [`rank`] are forms: lists of names and values.
fn is_form(rank: u8) -> bool {
    matches!(rank, 1 | 2)
}

/// Returns the media type of a request, without wildcards.
fn sent_media_type(media_type: &str, kind: BodyKind) -> String {
    if !media_type.contains('*') {
        return media_type.to_owned();
    }
    match kind {
        BodyKind::Json => "application/json",
        BodyKind::Text => "text/plain",
        _ => "application/octet-stream",
    }
    .to_owned()
}

/// Whether a text has the form of a media type, and can be the value of a header.
pub(crate) fn is_media_type(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default().trim();
    let is_printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    is_printable
        && essence
            .split_once('/')
            .is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}
