//! An imported operation: schemas for a model, and requests from arguments.

use serde_json::{Map, Value};

use crate::arguments::{self, BodyArguments};
use crate::body::Body;
use crate::document::Document;
use crate::error::{ArgumentError, DocumentError};
use crate::limits::DEFAULT_SCHEMA_BYTES;
use crate::operation::{Method, Operation};
use crate::parameter::{Encoding, Location, Parameter};
use crate::percent::{self, UnescapedCharacters};
use crate::resource;
use crate::response;
use crate::schema::BuiltSchema;
use crate::security::{self, Credential, Credentials, Scheme, SchemeKind};
use crate::style::{self, Query};

/// How operations are imported.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportOptions {
    /// The size of the schema of an operation's arguments, and of its result, in bytes of JSON. Parts of larger ones are
    /// replaced by their types, the deepest first, and descriptions are cut. If that does not suffice, the schema has nothing
    /// but its type.
    pub max_schema_bytes: usize,
    /// Whether results have schemas.
    pub output_schemas: bool,
    /// Names of headers that the author sets. Parameters with these names are no arguments.
    pub own_headers: Vec<String>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            max_schema_bytes: DEFAULT_SCHEMA_BYTES,
            output_schemas: true,
            own_headers: Vec::new(),
        }
    }
}

/// An operation with everything that a call needs. It refers to the document no more.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ImportedOperation {
    /// The JSON Schema (2020-12) of the arguments: an object.
    pub input_schema: Value,
    /// The JSON Schema of the response, if it is always a JSON object or array.
    pub output_schema: Option<Value>,
    /// The size of both schemas together, in bytes of JSON.
    pub schema_bytes: usize,
    /// About how many bytes were converted for them. It is more than their size if they had to be shortened.
    pub converted_bytes: usize,
    /// The URL of the server that the document names, without a `/` at its end. `None` if it is relative and the URL of the
    /// document is not known.
    pub server: Option<String>,
    /// Whether there are security schemes of which one has to be met.
    pub needs_credentials: bool,
    method: Method,
    path: String,
    accept: String,
    parameters: Vec<Parameter>,
    body: Option<(Body, BodyArguments)>,
    security: Vec<Vec<Scheme>>,
}

/// An HTTP request, relative to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestParts {
    /// The method.
    pub method: &'static str,
    /// The path with its query. It begins with `/`.
    pub path_and_query: String,
    /// Headers, with `Accept` and, if there is a body, `Content-Type`.
    pub headers: Vec<(String, String)>,
    /// The body; empty if there is none.
    pub body: Vec<u8>,
}

impl Document {
    /// Imports an operation of this document.
    ///
    /// # Errors
    ///
    /// The operation is not valid, or a reference in it leads nowhere.
    pub fn import(
        &self,
        operation: &Operation,
        options: &ImportOptions,
    ) -> Result<ImportedOperation, DocumentError> {
        let security = self.security_of(operation)?;
        let mut parameters = self.parameters_of(operation, &security)?;
        parameters.retain(|parameter| {
            let mut own = options.own_headers.iter();
            parameter.location != Location::Header
                || !own.any(|name| name.eq_ignore_ascii_case(&parameter.name))
        });
        let body = self.body_of(operation)?;
        let (input, body) =
            arguments::assign(self, &mut parameters, body, options.max_schema_bytes)?;
        let responses = response::SuccessResponses::of(self, operation)?;
        let output = match options.output_schemas {
            true => responses.schema(self, options.max_schema_bytes)?,
            false => None,
        };
        let sum = |of: fn(&BuiltSchema) -> usize| of(&input) + output.as_ref().map_or(0, of);
        Ok(ImportedOperation {
            schema_bytes: sum(|built| built.bytes),
            converted_bytes: sum(|built| built.converted_bytes),
            input_schema: input.schema,
            output_schema: output.map(|output| output.schema),
            server: self.server_of(operation),
            needs_credentials: !security.is_empty() && !security.iter().any(Vec::is_empty),
            method: operation.method,
            path: self.path_of(operation)?,
            accept: responses.accept(),
            parameters,
            body,
            security,
        })
    }
}

impl ImportedOperation {
    /// Returns the names of the security schemes that a request uses, by the names for which there are credentials: those of
    /// the first alternative that all are available for. None if there is no such alternative.
    pub fn used_schemes(&self, is_available: &dyn Fn(&str) -> bool) -> Vec<&str> {
        let schemes = security::first_available(&self.security, is_available);
        let schemes = schemes.into_iter().flatten();
        schemes.map(|scheme| &*scheme.name).collect()
    }

    /// Checks that a credential has the form that its scheme needs.
    ///
    /// # Errors
    ///
    /// The reason, without the value: it is one for another kind of scheme, or has characters that no header can have.
    pub fn check_credential(&self, scheme: &str, credential: &Credential) -> Result<(), String> {
        let mut schemes = self.security.iter().flatten();
        match schemes.find(|own| own.name == scheme) {
            Some(scheme) => scheme.check(credential),
            None => Ok(()),
        }
    }

    /// Returns the URI template (RFC 6570) of the operation as a resource, below `scheme`: `pets/{id}{?limit}`. `None` if a
    /// request needs more than the variables of a path and simple parameters of a query.
    pub fn resource_template(&self, scheme: &str) -> Option<String> {
        resource::template(
            scheme,
            self.method,
            &self.path,
            &self.parameters,
            self.body.is_some(),
        )
    }

    /// Makes the arguments of a call from the variables of the [template](Self::resource_template), which are texts.
    pub fn arguments_of_resource(&self, variables: &Map<String, Value>) -> Map<String, Value> {
        resource::arguments(&self.input_schema, &self.parameters, variables)
    }

    /// Makes a request of arguments that match the [schema](Self::input_schema).
    ///
    /// # Errors
    ///
    /// A value cannot be sent: it would lead to another path, or has characters that its place cannot have.
    pub fn request(
        &self,
        arguments: &Map<String, Value>,
        credentials: &Credentials,
    ) -> Result<RequestParts, ArgumentError> {
        let given = |name: &str| arguments.get(name).filter(|value| !value.is_null());
        let mut path = self.path.clone();
        let mut query = Query::default();
        let mut headers = vec![("Accept".to_owned(), self.accept.clone())];
        let mut cookies = Vec::new();
        for parameter in &self.parameters {
            let argument = &*parameter.argument;
            let Some(value) = given(argument) else {
                if parameter.is_required {
                    return Err(ArgumentError::new(argument, "it is required"));
                }
                continue;
            };
            let json;
            let (value, style) = match parameter.encoding {
                Encoding::Style { style, explode } => (value, Some((style, explode))),
                Encoding::Json => {
                    json = Value::String(value.to_string());
                    (&json, None)
                }
            };
            let name = &*parameter.name;
            let explode = style.is_some_and(|(_, explode)| explode);
            match parameter.location {
                Location::Path => {
                    check_path_value(argument, value)?;
                    let style = style.map_or(style::Style::Simple, |(style, _)| style);
                    let written = style::in_path(name, value, style, explode);
                    path = path.replace(&format!("{{{name}}}"), &written);
                }
                Location::Query => {
                    let keep = match parameter.allows_reserved {
                        true => UnescapedCharacters::Reserved,
                        false => UnescapedCharacters::Nothing,
                    };
                    let style = style.map_or(style::Style::Form, |(style, _)| style);
                    let mut own = Query::default();
                    style::in_query(&mut own, name, value, style, explode, keep);
                    self.check_names(parameter, own.names())?;
                    query.append(own);
                }
                Location::Header => {
                    let written = style::in_header(value, explode);
                    if written.chars().any(char::is_control) {
                        let reason = "it contains a control character, which no header can have";
                        return Err(ArgumentError::new(argument, reason));
                    }
                    headers.push((name.to_owned(), written));
                }
                Location::Cookie => {
                    let own = style::in_cookie(name, value, explode);
                    self.check_names(parameter, own.iter().map(|(name, _)| &**name))?;
                    cookies.extend(own);
                }
            }
        }
        check_path(&path)?;
        let applied = security::apply(&self.security, credentials);
        for (name, value) in &applied.query {
            let value = Value::from(&**value);
            style::in_query(
                &mut query,
                name,
                &value,
                style::Style::Form,
                true,
                UnescapedCharacters::Nothing,
            );
        }
        headers.extend(applied.headers);
        cookies.extend(applied.cookies);
        if !cookies.is_empty() {
            let cookies = cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            let cookies = cookies.collect::<Vec<_>>().join("; ");
            headers.push(("Cookie".to_owned(), cookies));
        }
        let mut bytes = Vec::new();
        if let Some((body, body_arguments)) = &self.body
            && let Some((argument, value)) = body_arguments.value(arguments, body)?
        {
            let media_type;
            (bytes, media_type) = body.write(&argument, &value)?;
            headers.push(("Content-Type".to_owned(), media_type));
        }
        if !query.is_empty() {
            path = format!("{path}?{}", query.write());
        }
        Ok(RequestParts {
            method: self.method.as_str(),
            path_and_query: path,
            headers,
            body: bytes,
        })
    }
}

impl ImportedOperation {
    /// Refuses members of an object that would be sent as other parameters, or as a credential. `written` are the names in the
    /// request that the value of a parameter leads to.
    fn check_names<'n>(
        &self,
        parameter: &Parameter,
        written: impl Iterator<Item = &'n str>,
    ) -> Result<(), ArgumentError> {
        let own = percent::encoded(&parameter.name);
        for name in written.filter(|name| *name != own) {
            let is_other = |other: &Parameter| {
                other.location == parameter.location
                    && other.name != parameter.name
                    && is_part_of(name, &other.name)
            };
            let is_credential = |scheme: &Scheme| match (&scheme.kind, parameter.location) {
                (SchemeKind::Query(key), Location::Query)
                | (SchemeKind::Cookie(key), Location::Cookie) => is_part_of(name, key),
                _ => false,
            };
            let mut schemes = self.security.iter().flatten();
            if schemes.any(is_credential) || self.parameters.iter().any(is_other) {
                let name = percent::decoded(name).unwrap_or_default();
                let reason = format!(
                    "it cannot have the member {name:?}, which is the name of another part of the request"
                );
                return Err(ArgumentError::new(&parameter.argument, reason));
            }
        }
        Ok(())
    }
}

/// Whether an encoded name is that of a parameter, or of a member of it (`name[member]`).
fn is_part_of(encoded: &str, name: &str) -> bool {
    let rest = encoded.strip_prefix(&*percent::encoded(name));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("%5B"))
}

/// Refuses values that lead to another path: an empty one ends the path early, and servers may decode what is encoded
/// before they resolve `..`.
fn check_path_value(argument: &str, value: &Value) -> Result<(), ArgumentError> {
    let is_refused = |text: &str| {
        let is_dots = |segment: &str| segment == "." || segment == "..";
        text.split(['/', '\\']).any(is_dots) || text.contains('\0')
    };
    let texts: Vec<_> = match value {
        Value::Array(items) => items.iter().map(style::text).collect(),
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| [name.clone(), style::text(value)])
            .collect(),
        value => vec![style::text(value)],
    };
    let is_empty = texts.is_empty() || texts.iter().any(String::is_empty);
    let any_refused = texts.iter().any(|text| is_refused(text));
    if is_empty {
        return Err(ArgumentError::new(
            argument,
            "it is part of a path and cannot be empty or contain an empty value",
        ));
    }
    match any_refused {
        true => {
            let reason = "it is part of a path and cannot contain a segment `.` or `..`, or NUL";
            Err(ArgumentError::new(argument, reason))
        }
        false => Ok(()),
    }
}

/// Refuses paths in which values form a segment `.` or `..` together with the text around them.
fn check_path(path: &str) -> Result<(), ArgumentError> {
    let is_dots = |segment: &str| segment == "." || segment == "..";
    match path.split('/').any(is_dots) {
        true => Err(ArgumentError::new(
            "path",
            format!("{path:?} has a segment `.` or `..`"),
        )),
        false => Ok(()),
    }
}
