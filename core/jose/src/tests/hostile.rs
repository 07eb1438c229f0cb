//! Forged tokens, which must all be rejected.

use serde_json::{Value, json};

use super::{claims, forge, key, set, sign};
use crate::{
    Algorithm, JoseError, JwkSet, MAX_TOKEN_LEN, UnverifiedJwt, VerifiedJwt, decode, encode, verify,
};

fn refusal(token: &str, algorithm: Algorithm) -> Result<VerifiedJwt, JoseError> {
    verify(token, &set(algorithm, "k"), &Algorithm::ALL)
}

fn payload() -> String {
    Value::Object(claims()).to_string()
}

#[test]
fn rejects_unsigned_tokens_in_any_spelling_of_none() {
    for name in ["none", "None", "NONE", "nOnE", ""] {
        for signature in [&b""[..], b"anything"] {
            let token = forge(&json!({ "alg": name }), &payload(), signature);
            assert_eq!(
                refusal(&token, Algorithm::Rs256),
                Err(JoseError::AlgorithmNotAllowed)
            );
        }
    }
}

#[test]
fn a_public_key_is_never_taken_for_a_shared_secret() {
    // The classic attack: HMAC with the bytes of the public key, which everyone knows, as the secret.
    let public = Value::Object(key(Algorithm::Rs256).public_jwk().to_json()).to_string();
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, public.as_bytes());
    let header = json!({ "alg": "HS256", "kid": "k" });
    let signed = format!("{}.{}", encode(header.to_string()), encode(payload()));
    let tag = ring::hmac::sign(&secret, signed.as_bytes());
    let token = format!("{signed}.{}", encode(tag));
    assert_eq!(
        refusal(&token, Algorithm::Rs256),
        Err(JoseError::AlgorithmNotAllowed)
    );
}

#[test]
fn an_algorithm_that_is_not_allowed_is_refused_though_the_signature_is_right() {
    let token = sign(Algorithm::Rs256, json!({ "kid": "k" }));
    assert_eq!(
        verify(&token, &set(Algorithm::Rs256, "k"), &[Algorithm::Es256]).err(),
        Some(JoseError::AlgorithmNotAllowed)
    );
}

#[test]
fn a_token_can_not_choose_another_algorithm_than_its_key_is_for() {
    // Signed with PS256 by a key that is published for RS256.
    let token = sign(Algorithm::Ps256, json!({ "kid": "k" }));
    assert_eq!(
        refusal(&token, Algorithm::Rs256),
        Err(JoseError::UnknownKey)
    );
    // A token that names a key of another type.
    let token = sign(Algorithm::Es256, json!({ "kid": "k" }));
    for of in [Algorithm::Rs256, Algorithm::Es384, Algorithm::EdDsa] {
        assert_eq!(refusal(&token, of), Err(JoseError::UnknownKey));
    }
}

#[test]
fn keys_that_a_token_brings_along_are_ignored() {
    let own = crate::SigningKey::generate_es256(&ring::rand::SystemRandom::new());
    let own = own.expect("a key");
    let header = json!({
        "jwk": own.public_jwk().to_json(),
        "jku": "https://attacker.example/keys",
        "x5u": "https://attacker.example/chain",
        "x5c": ["AAAA"],
        "kid": "../../dev/null",
    });
    let token = own.sign(
        &ring::rand::SystemRandom::new(),
        header.as_object().expect("an object"),
        &claims(),
    );
    assert_eq!(
        refusal(&token.expect("signed"), Algorithm::Es256),
        Err(JoseError::UnknownKey)
    );
}

#[test]
fn extensions_that_must_be_understood_are_refused() {
    for crit in [json!(["b64"]), json!(["exp"]), json!([]), json!(null)] {
        let token = sign(
            Algorithm::Es256,
            json!({ "kid": "k", "crit": crit, "b64": false }),
        );
        assert_eq!(refusal(&token, Algorithm::Es256), Err(JoseError::Critical));
    }
}

#[test]
fn duplicate_members_are_refused_in_header_and_payload() {
    let header = r#"{"alg":"ES256","kid":"k","kid":"other"}"#;
    let token = format!(
        "{}.{}.{}",
        encode(header),
        encode(payload()),
        encode([0; 64])
    );
    assert!(matches!(
        refusal(&token, Algorithm::Es256),
        Err(JoseError::Malformed(_))
    ));
    // The payload is only parsed when the signature is valid.
    for payload in [
        r#"{"sub":"alice","sub":"mallory"}"#,
        r#"{"a":{"b":1,"b":2}}"#,
        "[]",
        "",
        "{",
        "\u{feff}{}",
    ] {
        let signed = format!("{}.{}", encode(r#"{"alg":"EdDSA"}"#), encode(payload));
        let ring_key = ring::signature::Ed25519KeyPair::from_pkcs8_maybe_unchecked(
            key(Algorithm::EdDsa).to_pkcs8().expect("PKCS #8"),
        );
        let signature = ring_key.expect("a key").sign(signed.as_bytes());
        let token = format!("{signed}.{}", encode(signature));
        assert_eq!(
            refusal(&token, Algorithm::EdDsa),
            Err(JoseError::Malformed("its payload is not a JSON object")),
            "{payload}"
        );
        let broken = format!("{signed}.{}", encode([0; 64]));
        assert_eq!(
            refusal(&broken, Algorithm::EdDsa),
            Err(JoseError::BadSignature)
        );
    }
}

#[test]
fn another_spelling_of_the_same_bytes_is_refused() {
    let token = sign(Algorithm::Es256, json!({ "kid": "k" }));
    let (signed, signature) = token.rsplit_once('.').expect("parts");
    for spelt in [
        format!("{token}="),
        format!("{token}=="),
        format!("{token}\n"),
        format!(" {token}"),
        format!("{token}."),
        format!(".{token}"),
        format!("{signed}.{} ", signature),
        format!(
            "{signed}.{}",
            signature.replace('-', "+").replace('_', "/") + "+"
        ),
        signed.to_owned(),
        "..".into(),
        String::new(),
    ] {
        assert!(
            matches!(
                refusal(&spelt, Algorithm::Es256),
                Err(JoseError::Malformed(_))
            ),
            "{spelt}"
        );
    }
    // Unused bits after the last byte must be zero: 64 bytes leave two of them.
    let last = signature.as_bytes()[signature.len() - 1];
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let place = alphabet.iter().position(|c| *c == last).expect("base64url");
    let other = alphabet[place + 1] as char;
    let respelt = format!("{}{other}", &token[..token.len() - 1]);
    assert_eq!(
        refusal(&respelt, Algorithm::Es256),
        Err(JoseError::Malformed("its signature is not base64url"))
    );
}

#[test]
fn ecdsa_signatures_have_one_length() {
    let token = sign(Algorithm::Es256, json!({ "kid": "k" }));
    let (signed, signature) = token.rsplit_once('.').expect("parts");
    let signature = decode(signature).expect("base64url");
    let mut der = vec![0x30, 68, 2, 32];
    der.extend_from_slice(&signature[..32]);
    der.extend_from_slice(&[2, 32]);
    der.extend_from_slice(&signature[32..]);
    for wrong in [
        &signature[..63],
        &[&signature[..], &[0]].concat(),
        &der,
        &[0; 64],
        &[],
    ] {
        let token = format!("{signed}.{}", encode(wrong));
        assert_eq!(
            refusal(&token, Algorithm::Es256),
            Err(JoseError::BadSignature)
        );
    }
}

#[test]
fn a_long_token_is_refused_before_it_is_read() {
    let mut token = sign(
        Algorithm::Es256,
        json!({ "kid": "k", "x": "x".repeat(MAX_TOKEN_LEN) }),
    );
    assert_eq!(refusal(&token, Algorithm::Es256), Err(JoseError::TooLong));
    token.truncate(MAX_TOKEN_LEN);
    assert!(matches!(
        refusal(&token, Algorithm::Es256),
        Err(JoseError::Malformed(_))
    ));
}

#[test]
fn members_of_a_wrong_type_are_refused() {
    for header in [
        json!({ "alg": ["ES256"] }),
        json!({ "alg": "ES256", "kid": 7 }),
        json!({ "alg": "ES256", "typ": null }),
        json!({ "kid": "k" }),
        json!([]),
        json!("ES256"),
    ] {
        let token = forge(&header, &payload(), &[0; 64]);
        assert!(matches!(
            refusal(&token, Algorithm::Es256),
            Err(JoseError::Malformed(_))
        ));
    }
}

#[test]
fn no_changed_and_no_cut_off_token_verifies() {
    for algorithm in [Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa] {
        let keys = set(algorithm, "k");
        let token = sign(algorithm, json!({ "kid": "k", "typ": "at+jwt" }));
        assert!(verify(&token, &keys, &Algorithm::ALL).is_ok());
        for at in 0..token.len() {
            assert!(verify(&token[..at], &keys, &Algorithm::ALL).is_err());
            for bit in 0..7 {
                let mut changed = token.clone().into_bytes();
                changed[at] ^= 1 << bit;
                let changed = String::from_utf8(changed).expect("ASCII");
                assert!(
                    verify(&changed, &keys, &Algorithm::ALL).is_err(),
                    "byte {at}, bit {bit}"
                );
            }
        }
    }
}

#[test]
fn token_type_is_read_without_its_prefix() {
    let kind = |typ: &str| {
        let token = sign(Algorithm::Es256, json!({ "typ": typ }));
        let token = UnverifiedJwt::parse(&token, &Algorithm::ALL).expect("a token");
        token.kind().map(str::to_owned)
    };
    assert_eq!(kind("at+jwt").as_deref(), Some("at+jwt"));
    assert_eq!(kind("Application/at+jwt").as_deref(), Some("at+jwt"));
    assert_eq!(kind("JWT").as_deref(), Some("JWT"));
}

#[test]
fn errors_do_not_reveal_the_token() {
    let token = forge(
        &json!({ "alg": "secret-name", "kid": "secret-id" }),
        "secret",
        b"secret",
    );
    for error in [
        refusal(&token, Algorithm::Es256).expect_err("refused"),
        verify(&token, &JwkSet::default(), &[]).expect_err("refused"),
    ] {
        assert!(!format!("{error} {error:?}").contains("secret"));
    }
}
