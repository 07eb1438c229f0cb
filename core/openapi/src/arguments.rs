//! The arguments of a tool: parameters and the properties of the body, side by side.

use serde_json::{Map, Value, json};

use crate::body::{Body, BodyKind, Files, FlatProperty};
use crate::document::Document;
use crate::error::{ArgumentError, DocumentError};
use crate::limits::{MAX_ARGUMENT_NAME_CHARS, MAX_EXAMPLE_BYTES};
use crate::names::{self, UniqueNames};
use crate::parameter::{Location, Parameter};
use crate::schema::{
    self, BuiltSchema, Direction, Position, SchemaSet, Stop, nullable, size_within,
};

/// The arguments that a body is made of.
#[derive(Debug, Clone)]
pub(crate) enum BodyArguments {
    /// One argument is the body.
    Whole(String),
    /// Arguments, and the properties of the body that they are.
    Flat(Vec<(String, String)>),
}

impl BodyArguments {
    /// Returns the value of the body, with the name of its argument for errors. `None` if there is no body to send.
    pub(crate) fn value(
        &self,
        arguments: &Map<String, Value>,
        body: &Body,
    ) -> Result<Option<(String, Value)>, ArgumentError> {
        match self {
            Self::Whole(name) => match arguments.get(name) {
                Some(value) => Ok(Some((name.clone(), value.clone()))),
                None if body.is_required => Err(ArgumentError::new(name, "it is required")),
                None => Ok(None),
            },
            Self::Flat(properties) => {
                let mut members = Map::new();
                for (argument, property) in properties {
                    if let Some(value) = arguments.get(argument) {
                        members.insert(property.clone(), value.clone());
                    }
                }
                let is_sent = body.is_required || !members.is_empty();
                Ok(is_sent.then(|| ("body".to_owned(), Value::Object(members))))
            }
        }
    }
}

/// A property of the arguments' schema.
struct Argument<'a> {
    name: String,
    source: Source<'a>,
    is_required: bool,
}

enum Source<'a> {
    Parameter(&'a Parameter),
    Property(&'a FlatProperty, Files),
    Body(&'a Body),
}

/// Names the arguments, and returns their schema.
pub(crate) fn assign(
    document: &Document,
    parameters: &mut [Parameter],
    body: Option<Body>,
    max_bytes: usize,
) -> Result<(BuiltSchema, Option<(Body, BodyArguments)>), DocumentError> {
    let mut taken = UniqueNames::new(MAX_ARGUMENT_NAME_CHARS);
    for parameter in parameters.iter_mut() {
        let name = argument_name(&parameter.name);
        // The same name in another part of the request.
        let name = match taken.contains(&name) {
            true => format!("{name}_{}", parameter.location.name()),
            false => name,
        };
        parameter.argument = taken.take(name);
    }
    let flat = match &body {
        Some(body) => flat_properties(document, body, &taken)?,
        None => None,
    };
    let mut arguments: Vec<_> = parameters
        .iter()
        .map(|parameter| Argument {
            name: parameter.argument.clone(),
            source: Source::Parameter(parameter),
            is_required: parameter.is_required,
        })
        .collect();
    let mut body_arguments = None;
    if let Some(body) = &body {
        if let Some(properties) = &flat {
            let mut named = Vec::new();
            for property in properties {
                let name = argument_name(&property.name);
                let name = taken.take(name);
                named.push((name.clone(), property.name.clone()));
                arguments.push(Argument {
                    name,
                    source: Source::Property(property, body.files(&property.name)),
                    is_required: property.is_required,
                });
            }
            body_arguments = Some(BodyArguments::Flat(named));
        } else {
            let name = taken.take("body".to_owned());
            arguments.push(Argument {
                name: name.clone(),
                source: Source::Body(body),
                is_required: body.is_required,
            });
            body_arguments = Some(BodyArguments::Whole(name));
        }
    }
    let mut built = schema::build(document, Direction::Request, max_bytes, |set| {
        object_schema(set, &arguments)
    })?;
    // Not even the names of the arguments are short enough.
    built.schema["type"] = "object".into();
    drop(arguments);
    Ok((built, body.zip(body_arguments)))
}

/// Returns a name that all hosts accept.
fn argument_name(name: &str) -> String {
    let is_accepted = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if (1..=MAX_ARGUMENT_NAME_CHARS).contains(&name.len()) && name.bytes().all(is_accepted) {
        return name.to_owned();
    }
    let sanitized = names::sanitized(name, MAX_ARGUMENT_NAME_CHARS);
    match sanitized.is_empty() {
        true => "argument".to_owned(),
        false => sanitized,
    }
}

/// Returns the properties of the body that become arguments. `None` if the body is one argument: it is no simple object, a
/// parameter has the name of a property, or properties are required of a body that is not.
fn flat_properties(
    document: &Document,
    body: &Body,
    taken: &UniqueNames,
) -> Result<Option<Vec<FlatProperty>>, DocumentError> {
    let is_object = matches!(
        body.kind,
        BodyKind::Json | BodyKind::Form | BodyKind::Multipart
    );
    let Some(schema) = body.schema.as_ref().filter(|_| is_object) else {
        return Ok(None);
    };
    let properties = document.flat_properties(schema)?;
    Ok(properties.filter(|properties| {
        let is_taken = |property: &FlatProperty| taken.contains(&argument_name(&property.name));
        let is_conditional = |property: &FlatProperty| property.is_required && !body.is_required;
        !properties
            .iter()
            .any(|property| is_taken(property) || is_conditional(property))
    }))
}

fn object_schema(set: &mut SchemaSet<'_>, arguments: &[Argument<'_>]) -> Result<Value, Stop> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for argument in arguments {
        let schema = match &argument.source {
            Source::Parameter(parameter) => parameter_schema(set, parameter)?,
            Source::Property(property, Files::None) => {
                set.convert(&property.schema, Position::at_reference(0))?
            }
            Source::Property(property, files) => file_schema(set, property, *files)?,
            Source::Body(body) => body_schema(set, body)?,
        };
        properties.insert(argument.name.clone(), schema);
        if argument.is_required {
            required.push(Value::from(&*argument.name));
        }
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    // A misspelt argument would be lost otherwise.
    schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    Ok(Value::Object(schema))
}

fn parameter_schema(set: &mut SchemaSet<'_>, parameter: &Parameter) -> Result<Value, Stop> {
    let schema = match &parameter.schema {
        Some(schema) => set.convert(schema, Position::at_reference(0))?,
        None => match parameter.location {
            Location::Path => json!({"type": "string"}),
            _ => json!({}),
        },
    };
    let Value::Object(mut schema) = schema else {
        return Ok(schema);
    };
    let place = parameter.place.as_ref();
    let member = |name: &str| place.and_then(|place| set.document.at(&place.child(name)));
    let description = match member("description").and_then(Value::as_str) {
        Some(description) => set.description(description)?,
        None => None,
    };
    let example =
        member("example").filter(|example| size_within(example, MAX_EXAMPLE_BYTES).is_some());
    if member("deprecated") == Some(&Value::Bool(true)) {
        schema.insert("deprecated".to_owned(), Value::Bool(true));
    }
    if let Some(example) = example
        && !schema.contains_key("examples")
        && let Some(example) = set.copy(example)?
    {
        schema.insert("examples".to_owned(), json!([example]));
    }
    if let Some(description) = description {
        schema.insert("description".to_owned(), description);
    }
    Ok(Value::Object(schema))
}

/// Returns the schema of a file in a multipart body.
fn file() -> Value {
    json!({
        "type": "object",
        "properties": {
            "data": {"type": "string", "contentEncoding": "base64", "description": "The content, in base64"},
            "filename": {"type": "string"},
            "content_type": {"type": "string", "description": "The media type"},
        },
        "required": ["data"],
        "additionalProperties": false,
    })
}

fn file_schema(
    set: &mut SchemaSet<'_>,
    property: &FlatProperty,
    files: Files,
) -> Result<Value, Stop> {
    set.count_one()?;
    let followed = set.document.follow(&property.schema);
    let schema = followed.ok().map(|(_, schema)| schema);
    let is_nullable =
        schema.is_some_and(|schema| schema.get("nullable") == Some(&Value::Bool(true)));
    let mut converted = match files {
        Files::Several => json!({"type": "array", "items": file()}),
        _ => file(),
    };
    let description = schema.and_then(|schema| schema.get("description"));
    let description = match description.and_then(Value::as_str) {
        Some(description) => set.description(description)?,
        None => None,
    };
    if let Some(description) = description {
        converted["description"] = description;
    }
    Ok(match is_nullable {
        true => nullable(converted),
        false => converted,
    })
}

fn body_schema(set: &mut SchemaSet<'_>, body: &Body) -> Result<Value, Stop> {
    let media_type = &body.media_type;
    let mut schema = match (body.kind, &body.schema) {
        (BodyKind::Binary, _) => json!({
            "type": "string",
            "contentEncoding": "base64",
            "description": format!("The body of the request ({media_type}), in base64"),
        }),
        (BodyKind::Text, _) => json!({
            "type": "string",
            "description": format!("The body of the request ({media_type})"),
        }),
        (BodyKind::Json, Some(schema)) => set.convert(schema, Position::at_reference(0))?,
        (_, Some(schema)) => {
            let mut converted = set.convert(schema, Position::at_reference(0))?;
            let followed = set.document.follow(schema);
            let has_type = followed.is_ok_and(|(_, schema)| schema.get("type").is_some());
            // Forms are objects, whether the document says so or not.
            if let (Value::Object(converted), false) = (&mut converted, has_type) {
                converted.insert("type".to_owned(), "object".into());
            }
            converted
        }
        (BodyKind::Json, None) => json!({}),
        (BodyKind::Multipart, None) => json!({
            "type": "object",
            "additionalProperties": {
                "anyOf": [file(), {"type": ["string", "number", "boolean", "array"]}],
            },
        }),
        (_, None) => json!({"type": "object"}),
    };
    let description = match &body.description {
        Some(description) => set.description(description)?,
        None => None,
    };
    if let (Value::Object(schema), Some(description)) = (&mut schema, description) {
        schema.insert("description".to_owned(), description);
    }
    Ok(schema)
}
