//! Test vectors.

use ring::rand::SystemRandom;
use serde_json::json;

use super::{claims, key, object, pem, set};
use crate::{Algorithm, JoseError, Jwk, JwkSet, SigningKey, UnverifiedJwt, encode, verify};

/// RFC 7515, appendix A: the payload of the examples.
const PAYLOAD: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

#[test]
fn the_rs256_example_of_rfc_7515_verifies() {
    let jwk = Jwk::parse(&object(json!({
        "kty": "RSA",
        "n": "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ",
        "e": "AQAB",
    })))
    .expect("a key");
    let token = format!(
        "eyJhbGciOiJSUzI1NiJ9.{PAYLOAD}.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
    );
    let verified = verify(&token, &JwkSet::of([jwk]), &[Algorithm::Rs256]).expect("verified");
    assert_eq!(verified.claims["iss"], "joe");
    assert_eq!(verified.claims["http://example.com/is_root"], true);
}

#[test]
fn the_es256_example_of_rfc_7515_verifies() {
    let jwk = Jwk::parse(&object(json!({
        "kty": "EC",
        "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    })))
    .expect("a key");
    let token = format!(
        "eyJhbGciOiJFUzI1NiJ9.{PAYLOAD}.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
    );
    let verified = verify(&token, &JwkSet::of([jwk]), &[Algorithm::Es256]).expect("verified");
    assert_eq!(verified.claims["exp"], 1_300_819_380);
}

/// RFC 8037, appendix A.
#[test]
fn the_ed25519_example_of_rfc_8037_verifies_and_has_its_thumbprint() {
    let jwk = Jwk::parse(&object(json!({
        "kty": "OKP",
        "crv": "Ed25519",
        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    })))
    .expect("a key");
    assert_eq!(
        jwk.thumbprint(),
        "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    );
    let token = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    // The example signs a text, which is not allowed here: the signature is valid, but the payload isn't.
    let token = UnverifiedJwt::parse(token, &[Algorithm::EdDsa]).expect("a token");
    assert_eq!(
        token.verify(&jwk),
        Err(JoseError::Malformed("its payload is not a JSON object"))
    );
}

/// RFC 7638, section 3.1: members that don't define the key are left out.
#[test]
fn the_thumbprint_example_of_rfc_7638_is_reproduced() {
    let jwk = Jwk::parse(&object(json!({
        "kid": "2011-04-29",
        "alg": "RS256",
        "e": "AQAB",
        "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
        "kty": "RSA",
    })))
    .expect("a key");
    assert_eq!(
        jwk.thumbprint(),
        "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
    );
}

#[test]
fn tokens_that_openssl_signed_verify_in_every_algorithm() {
    let mut seen = Vec::new();
    for line in include_str!("openssl-tokens.txt").lines() {
        let (name, token) = line.split_once(' ').expect("two words");
        let algorithm = Algorithm::parse(name).expect("an algorithm");
        let verified = verify(token, &set(algorithm, "k"), &[algorithm]).expect(name);
        assert_eq!(verified.claims["sub"], "alice");
        seen.push(algorithm);
    }
    assert_eq!(seen, Algorithm::ALL);
}

#[test]
fn signed_tokens_verify_in_every_algorithm() {
    let header = object(json!({ "typ": "at+jwt", "kid": "k" }));
    for algorithm in Algorithm::ALL {
        let token = key(algorithm)
            .sign(&SystemRandom::new(), &header, &claims())
            .expect("signed");
        let verified = verify(&token, &set(algorithm, "k"), &[algorithm]).expect("verified");
        assert_eq!(verified.claims, claims());
        assert_eq!(verified.header["alg"], algorithm.as_str());
        let published =
            JwkSet::parse(json!({ "keys": [set(algorithm, "k").keys()[0].to_json()] }).to_string());
        assert_eq!(published, Ok(set(algorithm, "k")));
    }
}

#[test]
fn stored_key_signs_as_before() {
    let entropy = SystemRandom::new();
    let made = SigningKey::generate_es256(&entropy).expect("a key");
    let kept = SigningKey::from_pkcs8(made.to_pkcs8().expect("PKCS #8"), None, &entropy);
    let token = kept
        .expect("a key")
        .sign(&entropy, &object(json!({})), &claims())
        .expect("signed");
    let keys = JwkSet::of([made.public_jwk()]);
    assert!(verify(&token, &keys, &[Algorithm::Es256]).is_ok());
}

#[test]
fn the_older_forms_of_private_keys_are_the_same_keys() {
    let entropy = SystemRandom::new();
    let read = |pem: &[u8]| SigningKey::from_pem(pem, None, &entropy).expect("a key");
    let public = |pem: &[u8]| read(pem).public_jwk();
    assert_eq!(
        public(include_bytes!("keys/rsa-pkcs1.pem")),
        public(pem(Algorithm::Rs256))
    );
    assert_eq!(
        public(include_bytes!("keys/p256-sec1.pem")),
        public(pem(Algorithm::Es256))
    );
    assert_eq!(read(pem(Algorithm::Es384)).algorithm(), Algorithm::Es384);
    assert_eq!(read(pem(Algorithm::EdDsa)).algorithm(), Algorithm::EdDsa);
    assert_eq!(
        format!("{:?}", read(super::P256)),
        "SigningKey { algorithm: Es256, .. }"
    );
}

#[test]
fn rejects_invalid_private_keys() {
    let read = |pem: &str, algorithm| {
        SigningKey::from_pem(pem.as_bytes(), algorithm, &SystemRandom::new()).err()
    };
    let wrong_use = read(
        std::str::from_utf8(super::P256).expect("text"),
        Some(Algorithm::Rs256),
    );
    assert!(matches!(wrong_use, Some(JoseError::UnusableSigningKey(_))));
    let body = encode([1; 40]);
    for text in [
        String::new(),
        "-----BEGIN PRIVATE KEY".into(),
        "-----BEGIN PRIVATE KEY-----".into(),
        format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"),
        format!("-----BEGIN EC PRIVATE KEY-----\n{body}\n-----END EC PRIVATE KEY-----"),
        format!("-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"),
        format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----"),
        format!(
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\n{body}\n-----END ENCRYPTED PRIVATE KEY-----"
        ),
    ] {
        assert!(
            matches!(read(&text, None), Some(JoseError::UnusableSigningKey(_))),
            "{text}"
        );
    }
}
