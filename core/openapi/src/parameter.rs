//! Parameters of an operation.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::document::Document;
use crate::error::DocumentError;
use crate::limits::MAX_PARAMETERS;
use crate::operation::Operation;
use crate::percent;
use crate::reference::DocumentLocation;
use crate::security::{Scheme, SchemeKind};
use crate::style::Style;

/// Where a parameter is in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Location {
    Path,
    Query,
    Header,
    Cookie,
}

impl Location {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }

    fn of(name: &str) -> Option<Self> {
        let all = [Self::Path, Self::Query, Self::Header, Self::Cookie];
        all.into_iter().find(|location| location.name() == name)
    }
}

/// How a parameter is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Encoding {
    Style {
        style: Style,
        explode: bool,
    },
    /// JSON, because its `content` says so.
    Json,
}

/// A parameter.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    /// The name in the request.
    pub(crate) name: String,
    pub(crate) location: Location,
    pub(crate) is_required: bool,
    pub(crate) encoding: Encoding,
    pub(crate) allows_reserved: bool,
    /// The name of the argument; set later.
    pub(crate) argument: String,
    /// Where the parameter is, unless the document does not describe it.
    pub(crate) place: Option<DocumentLocation>,
    /// Where its schema is.
    pub(crate) schema: Option<DocumentLocation>,
}

impl Document {
    /// Returns the parameters of an operation: those of the path first, then the others in the order of the document.
    /// Without those that carry credentials, and those that the specification ignores.
    pub(crate) fn parameters_of(
        &self,
        operation: &Operation,
        security: &[Vec<Scheme>],
    ) -> Result<Vec<Parameter>, DocumentError> {
        let mut parameters: Vec<Parameter> = Vec::new();
        for owner in [&operation.path_place, &operation.place] {
            let place = owner.child("parameters");
            let count = self
                .at(&place)
                .and_then(Value::as_array)
                .map_or(0, Vec::len);
            if count > MAX_PARAMETERS {
                let reason = format!("there are {count}, and at most {MAX_PARAMETERS} are allowed");
                return Err(self.error(&place, reason));
            }
            for index in 0..count {
                let parameter = self.parameter(&place.child(&index.to_string()))?;
                let same = parameters.iter_mut().find(|known| {
                    known.location == parameter.location && known.name == parameter.name
                });
                match same {
                    Some(replaced) => *replaced = parameter,
                    None => parameters.push(parameter),
                }
            }
        }
        parameters.retain(|parameter| {
            !is_ignored(parameter) && !carries_credentials(parameter, security)
        });
        let names = path_names(sent_path(&operation.path));
        if names.len() > MAX_PARAMETERS {
            let reason = format!("the path has more than {MAX_PARAMETERS} variables");
            return Err(self.error(&operation.path_place, reason));
        }
        parameters.retain(|parameter| {
            parameter.location != Location::Path || names.contains(&&*parameter.name)
        });
        for name in names {
            let is_described = |parameter: &Parameter| {
                parameter.location == Location::Path && parameter.name == name
            };
            if !parameters.iter().any(is_described) {
                parameters.push(Parameter::undescribed(name));
            }
        }
        parameters.sort_by_key(|parameter| parameter.location != Location::Path);
        Ok(parameters)
    }

    /// Returns the path of an operation for requests, without a fragment: characters that no URL can have are encoded, except
    /// in the names of variables.
    ///
    /// # Errors
    ///
    /// The path has a query, which would not be sent as part of the path.
    pub(crate) fn path_of(&self, operation: &Operation) -> Result<String, DocumentError> {
        let mut path = String::with_capacity(operation.path.len());
        let mut rest = sent_path(&operation.path);
        while !rest.is_empty() {
            let (fixed, variable) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
            if fixed.contains('?') {
                let reason = format!(
                    "the path {:?} contains a query, which OpenAPI does not allow: its names belong into `parameters`",
                    operation.path
                );
                return Err(self.error(&operation.place, reason));
            }
            percent::encode_path(&mut path, fixed);
            // A variable ends with `}`. Without one, the brace is a character like others.
            let end = variable.find('}').map(|end| end + 1);
            let (variable, after) = variable.split_at(end.unwrap_or(variable.len().min(1)));
            match end {
                Some(_) => path.push_str(variable),
                None => percent::encode_path(&mut path, variable),
            }
            rest = after;
        }
        Ok(path)
    }

    fn parameter(&self, place: &DocumentLocation) -> Result<Parameter, DocumentError> {
        let (place, object) = self.object(place)?;
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        let is_true = |name: &str| object.get(name) == Some(&Value::Bool(true));
        let name = text("name").filter(|name| !name.is_empty());
        let location = text("in").and_then(Location::of);
        let (Some(name), Some(location)) = (name, location) else {
            let reason = "a parameter needs `name`, and `in` with path, query, header or cookie";
            return Err(self.error(&place, reason));
        };
        if location == Location::Header && !is_token(name) {
            return Err(self.error(&place, format!("{name:?} is not a name of a header")));
        }
        let content = object.get("content").and_then(Value::as_object);
        let media = content.and_then(|content| content.keys().next());
        let (encoding, schema) = match media {
            Some(media) => (
                Encoding::Json,
                Some(place.child("content").child(media).child("schema")),
            ),
            None => (
                self.style(&place, object, location)?,
                Some(place.child("schema")),
            ),
        };
        Ok(Parameter {
            name: name.to_owned(),
            location,
            is_required: is_true("required") || location == Location::Path,
            encoding,
            allows_reserved: is_true("allowReserved"),
            argument: String::new(),
            schema: schema.filter(|schema| self.at(schema).is_some()),
            place: Some(place),
        })
    }

    fn style(
        &self,
        place: &DocumentLocation,
        object: &Map<String, Value>,
        location: Location,
    ) -> Result<Encoding, DocumentError> {
        let default = match location {
            Location::Query | Location::Cookie => Style::Form,
            Location::Path | Location::Header => Style::Simple,
        };
        let style = match object.get("style").and_then(Value::as_str) {
            None => default,
            Some(name) => {
                let style = Style::of(name).filter(|style| is_allowed(*style, location));
                style.ok_or_else(|| {
                    let reason = format!(
                        "the style {name:?} is not one of a {} parameter",
                        location.name()
                    );
                    self.error(place, reason)
                })?
            }
        };
        let explode = object.get("explode").and_then(Value::as_bool);
        Ok(Encoding::Style {
            style,
            explode: explode.unwrap_or(style == Style::Form),
        })
    }
}

impl Parameter {
    /// A variable of a path that the document does not describe.
    fn undescribed(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            location: Location::Path,
            is_required: true,
            encoding: Encoding::Style {
                style: Style::Simple,
                explode: false,
            },
            allows_reserved: false,
            argument: String::new(),
            place: None,
            schema: None,
        }
    }
}

fn is_allowed(style: Style, location: Location) -> bool {
    match location {
        Location::Path => matches!(style, Style::Simple | Style::Label | Style::Matrix),
        Location::Header => style == Style::Simple,
        Location::Cookie => style == Style::Form,
        Location::Query => !matches!(style, Style::Simple | Style::Label | Style::Matrix),
    }
}

/// Whether the specification ignores the parameter (Parameter Object, `name`), or HTTP sets it.
fn is_ignored(parameter: &Parameter) -> bool {
    const IGNORED: [&str; 13] = [
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    parameter.location == Location::Header
        && IGNORED
            .iter()
            .any(|name| name.eq_ignore_ascii_case(&parameter.name))
}

/// Whether the author's credential takes the place of the parameter: a model never chooses it.
fn carries_credentials(parameter: &Parameter, security: &[Vec<Scheme>]) -> bool {
    security.iter().flatten().any(|scheme| {
        let name = &parameter.name;
        match (&scheme.kind, parameter.location) {
            (SchemeKind::Header(key), Location::Header) => key.eq_ignore_ascii_case(name),
            (SchemeKind::Query(key), Location::Query)
            | (SchemeKind::Cookie(key), Location::Cookie) => key == name,
            _ => false,
        }
    })
}

/// Whether a text is a name of a header (RFC 9110, section 5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

/// Returns a path without its fragment, by which documents tell operations with the same path and method apart (those of Box
/// and AWS, among others). No request has it.
fn sent_path(path: &str) -> &str {
    path.split_once('#').map_or(path, |(path, _)| path)
}

/// Returns the names of the variables of a path.
pub(crate) fn path_names(path: &str) -> Vec<&str> {
    let parts = path.split('{').skip(1);
    let names = parts.filter_map(|part| part.split_once('}').map(|(name, _)| name));
    let mut known = HashSet::new();
    names.filter(|name| known.insert(*name)).collect()
}
