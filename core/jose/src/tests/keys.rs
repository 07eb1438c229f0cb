//! Public keys and key sets: which keys are usable, and which one verifies a token.

use serde_json::{Value, json};

use super::{key, object, sign};
use crate::{Algorithm, JoseError, Jwk, JwkSet, MAX_KEYS, MAX_SET_LEN, encode, verify};

fn ec() -> Value {
    Value::Object(key(Algorithm::Es256).public_jwk().to_json())
}

fn with(name: &str, value: impl Into<Value>) -> Result<Jwk, JoseError> {
    let mut jwk = object(ec());
    jwk.insert(name.into(), value.into());
    Jwk::parse(&jwk)
}

fn rsa(n: &[u8], e: &[u8]) -> Result<Jwk, JoseError> {
    Jwk::parse(&object(
        json!({ "kty": "RSA", "n": encode(n), "e": encode(e) }),
    ))
}

#[test]
fn keys_for_another_use_are_refused() {
    assert!(with("use", "sig").is_ok());
    assert!(with("key_ops", json!(["verify"])).is_ok());
    for refused in [
        with("use", "enc"),
        with("use", 1),
        with("key_ops", json!(["encrypt"])),
        with("key_ops", json!("verify")),
        with("alg", "RS256"),
        with("alg", "ES384"),
        with("alg", "HS256"),
        with("alg", "none"),
        with("alg", 256),
        with("kid", 7),
        with("kty", "oct"),
        with("kty", "OKP"),
        with("crv", "secp256k1"),
        with("crv", "P-384"),
        with("x", "AAAA"),
        with("x", "not base64url"),
        with("y", Value::Null),
    ] {
        assert!(
            matches!(refused, Err(JoseError::UnusableKey(_))),
            "{refused:?}"
        );
    }
}

#[test]
fn private_and_shared_keys_are_refused_where_public_ones_belong() {
    for name in ["d", "p", "k"] {
        assert_eq!(with(name, "AAAA"), Err(JoseError::PrivateKey));
    }
}

#[test]
fn rsa_keys_need_2048_to_8192_bits_and_a_usable_exponent() {
    let bytes = |len: usize| {
        let mut n = vec![0xff; len];
        n[len - 1] = 1;
        n
    };
    assert!(rsa(&bytes(256), &[1, 0, 1]).is_ok());
    assert!(rsa(&bytes(1024), &[1, 0, 1]).is_ok());
    // A leading zero byte, as in DER, does not add bits.
    let padded = [&[0][..], &bytes(256)].concat();
    assert_eq!(rsa(&padded, &[1, 0, 1]), rsa(&bytes(256), &[1, 0, 1]));
    for (n, e) in [
        (bytes(128), vec![1, 0, 1]),
        (bytes(255), vec![1, 0, 1]),
        (bytes(1025), vec![1, 0, 1]),
        (bytes(256), vec![]),
        (bytes(256), vec![1]),
        (bytes(256), vec![2]),
        (bytes(256), vec![1; 256]),
        (vec![], vec![3]),
    ] {
        assert!(matches!(rsa(&n, &e), Err(JoseError::UnusableKey(_))));
    }
}

#[test]
fn set_leaves_out_unusable_keys() {
    let set = json!({ "keys": [
        { "kty": "oct", "k": "AAAA" },
        { "kty": "EC", "crv": "P-256", "x": "broken", "y": "broken" },
        { "kty": "AKP", "alg": "ML-DSA-44", "pub": "AAAA" },
        7,
        ec(),
    ]});
    let set = JwkSet::parse(set.to_string()).expect("a set");
    assert_eq!(set.keys().len(), 1);
}

#[test]
fn sets_are_limited_and_unambiguous() {
    let many = json!({ "keys": vec![ec(); MAX_KEYS + 1] }).to_string();
    assert_eq!(JwkSet::parse(many), Err(JoseError::TooManyKeys));
    let long = json!({ "keys": [], "x": "x".repeat(MAX_SET_LEN) }).to_string();
    assert_eq!(JwkSet::parse(long), Err(JoseError::SetTooLong));
    for broken in [
        "",
        "[]",
        "{}",
        r#"{"keys":{}}"#,
        r#"{"keys":[],"keys":[]}"#,
        r#"{"keys":[{"kty":"EC","kty":"RSA"}]}"#,
    ] {
        let refused = JwkSet::parse(broken.to_owned());
        assert!(
            matches!(refused, Err(JoseError::MalformedSet(_))),
            "{broken}"
        );
    }
}

#[test]
fn a_token_is_verified_by_the_key_that_it_names() {
    let other = crate::SigningKey::generate_es256(&ring::rand::SystemRandom::new());
    let other = other.expect("a key").public_jwk();
    let own = key(Algorithm::Es256).public_jwk();
    let token = sign(Algorithm::Es256, json!({ "kid": "own" }));
    let refused = |keys: Vec<Jwk>| verify(&token, &JwkSet::of(keys), &[Algorithm::Es256]).err();
    let own_as = |id: &str| own.clone().with_id(id);
    let other_as = |id: &str| other.clone().with_id(id);
    assert_eq!(refused(vec![other_as("other"), own_as("own")]), None);
    // Ids need not be unique.
    assert_eq!(refused(vec![other_as("own"), own_as("own")]), None);
    assert_eq!(refused(vec![own.clone()]), None);
    assert_eq!(refused(vec![own_as("other")]), Some(JoseError::UnknownKey));
    assert_eq!(refused(vec![]), Some(JoseError::UnknownKey));
    // The right key under another id is not the one that the token names.
    assert_eq!(
        refused(vec![own_as("other"), other_as("own")]),
        Some(JoseError::BadSignature)
    );
    assert_eq!(refused(vec![other.clone()]), Some(JoseError::BadSignature));
}

#[test]
fn a_token_that_names_no_key_is_tried_with_few() {
    let token = sign(Algorithm::Es256, json!({}));
    let own = key(Algorithm::Es256).public_jwk();
    let other = crate::SigningKey::generate_es256(&ring::rand::SystemRandom::new());
    let other = other.expect("a key").public_jwk();
    let after = |others: usize| {
        let mut keys = vec![other.clone(); others];
        keys.push(own.clone());
        verify(&token, &JwkSet::of(keys), &[Algorithm::Es256]).err()
    };
    assert_eq!(after(7), None);
    assert_eq!(after(8), Some(JoseError::BadSignature));
}
