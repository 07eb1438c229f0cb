//! Custom requests, extensions and notification listeners of a driver's client.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use mcpline::client::{ClientBuilder, Extension, RequestOptions};
use mcpline::protocol::vocabulary::JsonObject;
use mcpline::protocol::wire::Notification;
use mcpline::protocol::{Raw, RpcError};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Custom requests of servers that a client serves: for each member of the result, the member of the params to copy.
pub(crate) type Served = BTreeMap<String, BTreeMap<String, String>>;

/// An extension that a client declares.
#[derive(Clone, Deserialize)]
pub(crate) struct Declared {
    #[serde(default)]
    settings: JsonObject,
    /// The requests that resolve results, by result type.
    #[serde(default)]
    resolves: BTreeMap<String, String>,
}

pub(crate) fn serve(mut builder: ClientBuilder, served: &Served) -> ClientBuilder {
    for (method, members) in served {
        let members = members.clone();
        builder = builder.on_request(method, move |params: Value| {
            let result = copied(&params, &members);
            async move { result }
        });
    }
    builder
}

fn copied(params: &Value, members: &BTreeMap<String, String>) -> Result<Value, RpcError> {
    let mut result = json!({});
    for (name, source) in members {
        let value = params
            .get(source)
            .ok_or_else(|| RpcError::invalid_params(format!("params have no {source:?}")))?;
        result[name] = value.clone();
    }
    Ok(result)
}

pub(crate) fn declare(
    mut builder: ClientBuilder,
    extensions: &BTreeMap<String, Declared>,
) -> ClientBuilder {
    for (identifier, declared) in extensions {
        let mut extension =
            Extension::new(identifier.clone()).with_settings(declared.settings.clone());
        for (result_type, method) in &declared.resolves {
            let method = method.clone();
            extension = extension.on_result_type(result_type.clone(), move |received| {
                let method = method.clone();
                async move {
                    let token = received.result().member("token");
                    let token = token.unwrap_or_else(|| raw(&Value::Null));
                    let params = raw(&json!({"token": token}));
                    let options = RequestOptions::new();
                    received.request(&method, Some(&params), &options).await
                }
            });
        }
        builder = builder.extension(extension);
    }
    builder
}

pub(crate) fn raw(value: &Value) -> Raw {
    Raw::from_serialize(value).expect("JSON")
}

/// Notifications that a client has received.
#[derive(Default)]
pub(crate) struct Received {
    notifications: Mutex<Vec<(String, Value)>>,
    arrived: Notify,
}

impl Received {
    pub(crate) fn add(&self, notification: &Notification) {
        let params = notification.params.as_ref();
        let params = params.and_then(|params| params.raw().decode().ok());
        let method = notification.method.as_str().to_owned();
        let mut all = self
            .notifications
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.push((method, params.unwrap_or_else(|| json!({}))));
        drop(all);
        self.arrived.notify_one();
    }

    /// Waits for the first `count` notifications of a method and returns their params.
    pub(crate) async fn first(&self, method: &str, count: usize) -> Vec<Value> {
        loop {
            let found = self.so_far(method, count);
            if found.len() == count {
                return found;
            }
            self.arrived.notified().await;
        }
    }

    fn so_far(&self, method: &str, count: usize) -> Vec<Value> {
        let all = self
            .notifications
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.iter()
            .filter(|(name, _)| name == method)
            .map(|(_, params)| params.clone())
            .take(count)
            .collect()
    }
}
