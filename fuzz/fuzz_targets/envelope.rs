//! The envelope: the scanner compared with `serde_json`, and a round trip of every message.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mcpline_fuzz::Cost;
use mcpline_protocol::wire::{
    Incoming, JsonKind, Message, Params, Problem, Raw, check, encode, read,
};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    agrees_with_serde(data);
    let bytes = Bytes::copy_from_slice(data);
    let (message, cost) = Cost::of(|| read(bytes));
    let (base, each) = (
        Cost {
            steps: 64,
            bytes: 4_096,
        },
        Cost {
            steps: 24,
            bytes: 512,
        },
    );
    cost.is_at_most(base, each, data.len());
    match message {
        Ok(Incoming::Single(message)) => survives(&message),
        Ok(Incoming::Batch(messages)) => messages.iter().flatten().for_each(survives),
        Err(error) => drop(error.to_string()),
    }
});

/// Checks that `serde_json` accepts what the scanner accepts, except for numbers that no float can hold, and rejects
/// what the scanner rejects, except for what RFC 8259 leaves open and the names that `serde_json` reserves.
fn agrees_with_serde(data: &[u8]) {
    let decoded = serde_json::from_slice::<Value>(data);
    match (check(data), decoded) {
        (Ok(()), Ok(value)) => {
            let raw = Raw::parse(data.to_vec()).expect("just checked");
            walks_like(&raw, &value);
        }
        (Ok(()), Err(error)) => {
            assert!(error.to_string().contains("number out of range"), "{error}")
        }
        (Err(error), Ok(_)) => {
            let open = matches!(
                error.problem,
                Problem::Duplicate | Problem::Reserved | Problem::Depth | Problem::Members
            );
            assert!(open, "{error}");
        }
        (Err(_), Err(_)) => {}
    }
}

/// Checks that the members and elements of a raw value equal those of the decoded one.
fn walks_like(raw: &Raw, value: &Value) {
    match value {
        Value::Object(object) => {
            let members: Vec<_> = raw.members().expect("an object").collect();
            assert_eq!(members.len(), object.len());
            for ((key, raw), (name, value)) in members.iter().zip(object) {
                assert_eq!(key, name);
                walks_like(raw, value);
            }
        }
        Value::Array(array) => {
            let elements: Vec<_> = raw.elements().expect("an array").collect();
            assert_eq!(elements.len(), array.len());
            elements
                .iter()
                .zip(array)
                .for_each(|(raw, value)| walks_like(raw, value));
        }
        Value::String(text) => assert_eq!(raw.string_value().expect("a string"), text.as_str()),
        other => assert_eq!(&raw.decode::<Value>().expect("JSON"), other),
    }
}

/// Checks that a message survives writing and reading, except for members that JSON-RPC does not define.
fn survives(message: &Message) {
    let mut out = Vec::new();
    match message {
        Message::Request(request) => {
            let params = request.params.as_ref();
            found(params);
            let params = params.map(|params| params.raw().as_bytes());
            encode::request(&mut out, &request.id, request.method.as_str(), params);
        }
        Message::Notification(notification) => {
            found(notification.params.as_ref());
            let params = notification
                .params
                .as_ref()
                .map(|params| params.raw().as_bytes());
            encode::notification(&mut out, notification.method.as_str(), params);
        }
        Message::Response(response) => match &response.outcome {
            Ok(result) => encode::response(
                &mut out,
                response.id.as_ref().expect("an id"),
                result.as_bytes(),
            ),
            Err(error) => encode::error(&mut out, response.id.as_ref(), error),
        },
    }
    encode::one_line(&mut out);
    assert!(!out.contains(&b'\n'));
    let Ok(Incoming::Single(again)) = read(out.into()) else {
        panic!("unreadable: {message:?}")
    };
    match (message, again) {
        (Message::Request(message), Message::Request(again)) => {
            assert_eq!((&message.id, &message.method), (&again.id, &again.method));
            assert_eq!(message.id.raw(), again.id.raw());
        }
        (Message::Notification(message), Message::Notification(again)) => {
            assert_eq!(message.method, again.method);
        }
        (Message::Response(message), Message::Response(again)) => {
            assert_eq!(message.id, again.id);
            assert_eq!(message.outcome.is_ok(), again.outcome.is_ok());
        }
        (message, again) => panic!("{message:?} became {again:?}"),
    }
}

/// Checks that the members found by the scanner are those of the object.
fn found(params: Option<&Params>) {
    let Some(params) = params else { return };
    assert_eq!(params.raw().kind(), JsonKind::Object);
    for (key, value) in params.raw().members().expect("an object") {
        assert_eq!(params.get(&key), Some(value.clone()));
        assert_eq!(params.raw().member(&key), Some(value.clone()));
        assert_eq!(params.get_str(&key), value.string_value());
    }
}
