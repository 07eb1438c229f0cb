//! The schema of one revision, and the definitions that a message must match, derived from the schema itself.

use std::collections::HashMap;

use jsonschema::Validator;
use serde_json::{Value, json};

/// The side whose messages are checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Side {
    #[default]
    Server,
    Client,
}

impl Side {
    /// The unions of this side's requests and notifications.
    fn unions(self) -> (&'static str, &'static str) {
        match self {
            Self::Server => ("ServerRequest", "ServerNotification"),
            Self::Client => ("ClientRequest", "ClientNotification"),
        }
    }
}

/// The definitions of one revision.
#[derive(Debug)]
pub(crate) struct Definitions {
    /// `$defs` or `definitions`.
    key: &'static str,
    dialect: Value,
    all: Value,
    compiled: HashMap<String, Validator>,
}

/// Prefixes of custom methods and result types in tests. No schema has them, so they are validated against the
/// definitions that all methods share. Requests of tasks are custom in revisions that do not define them.
const CUSTOM: [&str; 2] = ["acme/", "tasks/"];

fn is_custom(name: &str) -> bool {
    CUSTOM.iter().any(|custom| name.starts_with(custom))
}

impl Definitions {
    pub(crate) fn new(mut document: Value) -> Self {
        let key = if document.get("$defs").is_some() {
            "$defs"
        } else {
            "definitions"
        };
        Self {
            key,
            dialect: document["$schema"].take(),
            all: document[key].take(),
            compiled: HashMap::new(),
        }
    }

    /// Validates a message of `side`. If it is a response, `method` is that of its request.
    pub(crate) fn check(
        &mut self,
        side: Side,
        message: &Value,
        method: Option<&str>,
    ) -> Result<(), String> {
        if message.get("method").is_some() {
            let (requests, notifications) = side.unions();
            let (envelope, union) = if message.get("id").is_some() {
                ("JSONRPCRequest", requests)
            } else {
                ("JSONRPCNotification", notifications)
            };
            self.fits(envelope, message)?;
            let Some(name) = self.member(union, &message["method"]) else {
                return match message["method"].as_str().is_some_and(is_custom) {
                    true => Ok(()),
                    false => Err(format!("no {union} has the method {}", message["method"])),
                };
            };
            return self.fits(&name, message);
        }
        if let Some(error) = message.get("error") {
            let envelope = self.named(&["JSONRPCErrorResponse", "JSONRPCError"]);
            self.fits(&envelope, message)?;
            return match self.error(&error["code"]) {
                Some(name) => self.fits(&name, message),
                None => Ok(()),
            };
        }
        let envelope = self.named(&["JSONRPCResultResponse", "JSONRPCResponse"]);
        self.fits(&envelope, message)?;
        let Some(method) = method else { return Ok(()) };
        if message["result"]["resultType"]
            .as_str()
            .is_some_and(is_custom)
        {
            return self.fits("Result", &message["result"]);
        }
        let Some(request) = self.request(method) else {
            return match is_custom(method) {
                true => self.fits("Result", &message["result"]),
                false => Err(format!("a result for {method}, which does not exist")),
            };
        };
        let result = request.replace("Request", "Result");
        let response = format!("{result}Response");
        if self.all.get(&response).is_some() {
            return self.fits(&response, message);
        }
        // Methods without a result type of their own (ping, logging/setLevel, …) have an empty one.
        let result = self.named(&[&result, "EmptyResult"]);
        self.fits(&result, &message["result"])
    }

    fn fits(&mut self, name: &str, value: &Value) -> Result<(), String> {
        if !self.compiled.contains_key(name) {
            let schema = json!({
                "$schema": self.dialect, "$ref": format!("#/{}/{name}", self.key), self.key: self.all,
            });
            let validator = jsonschema::validator_for(&schema).expect("the schema compiles");
            self.compiled.insert(name.to_owned(), validator);
        }
        let problems: Vec<String> = self.compiled[name]
            .iter_errors(value)
            .map(|error| format!("{name}: {error} at {}", error.instance_path()))
            .collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems.join("\n"))
        }
    }

    /// Returns the first of these definitions that exists.
    fn named(&self, names: &[&str]) -> String {
        let found = names.iter().find(|name| self.all.get(**name).is_some());
        found.expect("one of them exists").to_string()
    }

    fn definitions(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.all.as_object().into_iter().flatten()
    }

    /// Returns the member of a union of messages with this method.
    fn member(&self, union: &str, method: &Value) -> Option<String> {
        let definition = self.all.get(union)?;
        let has = |name: &&str| self.all[*name]["properties"]["method"]["const"] == *method;
        let Some(options) = definition["anyOf"].as_array() else {
            // A union with one member.
            return Some(union).filter(has).map(str::to_owned);
        };
        let names = options
            .iter()
            .filter_map(|option| option["$ref"].as_str()?.rsplit('/').next());
        names.filter(has).map(str::to_owned).next()
    }

    /// Returns the definition of a request with this method.
    fn request(&self, method: &str) -> Option<String> {
        let mut having = self.definitions().filter(|(name, definition)| {
            name.ends_with("Request") && definition["properties"]["method"]["const"] == method
        });
        having.next().map(|(name, _)| name.clone())
    }

    /// Returns the definition of the error with this code.
    fn error(&self, code: &Value) -> Option<String> {
        let mut having = self.definitions().filter(|(_, definition)| {
            let parts = definition["properties"]["error"]["allOf"].as_array();
            let is = |part: &Value| part["properties"]["code"]["const"] == *code;
            parts.is_some_and(|parts| parts.iter().any(is))
        });
        having.next().map(|(name, _)| name.clone())
    }
}
