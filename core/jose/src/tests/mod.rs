//! Signing and verifying: the standards' test vectors, tokens of another implementation, forged tokens.

mod hostile;
mod keys;
mod vectors;

use ring::rand::SystemRandom;
use serde_json::{Value, json};

use mcpline_protocol::vocabulary::JsonObject;

use crate::{Algorithm, JwkSet, SigningKey, encode};

/// Private keys for these tests only.
const RSA: &[u8] = include_bytes!("keys/rsa.pem");
const P256: &[u8] = include_bytes!("keys/p256.pem");
const P384: &[u8] = include_bytes!("keys/p384-sec1.pem");
const ED25519: &[u8] = include_bytes!("keys/ed25519.pem");

fn pem(algorithm: Algorithm) -> &'static [u8] {
    match algorithm {
        Algorithm::Es256 => P256,
        Algorithm::Es384 => P384,
        Algorithm::EdDsa => ED25519,
        _ => RSA,
    }
}

fn key(algorithm: Algorithm) -> SigningKey {
    SigningKey::from_pem(pem(algorithm), Some(algorithm), &SystemRandom::new()).expect("a key")
}

/// A set with the public test key of this algorithm, under an id.
fn set(algorithm: Algorithm, id: &str) -> JwkSet {
    JwkSet::of([key(algorithm).public_jwk().with_id(id)])
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => panic!("no object"),
    }
}

fn claims() -> JsonObject {
    object(json!({ "iss": "https://issuer.example", "sub": "alice" }))
}

fn sign(algorithm: Algorithm, header: Value) -> String {
    key(algorithm)
        .sign(&SystemRandom::new(), &object(header), &claims())
        .expect("signed")
}

/// Joins arbitrary parts to a token.
fn forge(header: &Value, payload: &str, signature: &[u8]) -> String {
    format!(
        "{}.{}.{}",
        encode(header.to_string()),
        encode(payload),
        encode(signature)
    )
}
