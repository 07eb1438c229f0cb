//! Keys and signatures: compact JWS on `ring`.
//!
//! Shares no code with the library's own signatures on purpose, so that each tests the other.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The two RSA keys: `ring` cannot generate any. They are public, so use them in tests only.
const RSA_KEYS: [&str; 2] = [
    include_str!("../keys/rsa-1.pem"),
    include_str!("../keys/rsa-2.pem"),
];

/// A signature algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    #[serde(rename = "ES256")]
    Es256,
    /// RSA (PKCS #1 v1.5) with SHA-256.
    #[serde(rename = "RS256")]
    Rs256,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
}

impl Algorithm {
    /// Its name in a header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
            Self::EdDsa => "EdDSA",
        }
    }
}

/// A private key with its public half.
pub struct Key {
    algorithm: Algorithm,
    kid: String,
    pkcs8: Vec<u8>,
    pair: Pair,
}

enum Pair {
    Es256(EcdsaKeyPair),
    Rs256(signature::RsaKeyPair),
    EdDsa(Ed25519KeyPair),
}

impl Key {
    /// Generates a key. For RSA, returns one of the two keys in turn (`turn` counts).
    pub fn generate(algorithm: Algorithm, turn: usize) -> Self {
        let random = SystemRandom::new();
        let pkcs8 = match algorithm {
            Algorithm::Es256 => {
                EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
                    .expect("the system has randomness")
                    .as_ref()
                    .to_vec()
            }
            Algorithm::Rs256 => pem_content(RSA_KEYS[turn % RSA_KEYS.len()])
                .expect("the key in this folder is a PEM file"),
            Algorithm::EdDsa => Ed25519KeyPair::generate_pkcs8(&random)
                .expect("the system has randomness")
                .as_ref()
                .to_vec(),
        };
        Self::from_pkcs8(algorithm, pkcs8).expect("a key just made can be read")
    }

    /// Reads a private key (PKCS #8 in PEM).
    pub fn from_pem(algorithm: Algorithm, pem: &str) -> Option<Self> {
        Self::from_pkcs8(algorithm, pem_content(pem)?)
    }

    fn from_pkcs8(algorithm: Algorithm, pkcs8: Vec<u8>) -> Option<Self> {
        let pair = match algorithm {
            Algorithm::Es256 => Pair::Es256(
                EcdsaKeyPair::from_pkcs8(
                    &ECDSA_P256_SHA256_FIXED_SIGNING,
                    &pkcs8,
                    &SystemRandom::new(),
                )
                .ok()?,
            ),
            Algorithm::Rs256 => Pair::Rs256(signature::RsaKeyPair::from_pkcs8(&pkcs8).ok()?),
            Algorithm::EdDsa => {
                Pair::EdDsa(Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pkcs8).ok()?)
            }
        };
        let mut key = Self {
            algorithm,
            kid: String::new(),
            pkcs8,
            pair,
        };
        key.kid = thumbprint(&key.public_jwk())?;
        Some(key)
    }

    /// Its algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Its id, which is its thumbprint.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The private key, as PKCS #8 in PEM.
    pub fn private_pem(&self) -> String {
        let encoded = STANDARD.encode(&self.pkcs8);
        let lines: Vec<&str> = (0..encoded.len())
            .step_by(64)
            .map(|start| &encoded[start..encoded.len().min(start + 64)])
            .collect();
        format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            lines.join("\n")
        )
    }

    /// The public half, as a member of a JWK set.
    pub fn public_jwk(&self) -> Value {
        let mut jwk = match &self.pair {
            Pair::Es256(pair) => {
                // An uncompressed point: the byte 4, then both coordinates.
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y)})
            }
            Pair::Rs256(pair) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                json!({"kty": "RSA", "n": encode(&public.n), "e": encode(&public.e)})
            }
            Pair::EdDsa(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key().as_ref())})
            }
        };
        jwk["alg"] = self.algorithm.name().into();
        jwk["use"] = "sig".into();
        if !self.kid.is_empty() {
            jwk["kid"] = self.kid.clone().into();
        }
        jwk
    }

    /// Signs `claims`. The header has `alg` and `kid`; members of `header` are added, and removed if they are null.
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        let mut whole = Map::new();
        whole.insert("alg".into(), self.algorithm.name().into());
        whole.insert("kid".into(), self.kid.clone().into());
        for (name, value) in header.as_object().into_iter().flatten() {
            if value.is_null() {
                whole.remove(name);
            } else {
                whole.insert(name.clone(), value.clone());
            }
        }
        let signed = format!(
            "{}.{}",
            encode(Value::Object(whole).to_string().as_bytes()),
            encode(claims.to_string().as_bytes())
        );
        let random = SystemRandom::new();
        let signature = match &self.pair {
            Pair::Es256(pair) => pair
                .sign(&random, signed.as_bytes())
                .expect("the system has randomness")
                .as_ref()
                .to_vec(),
            Pair::Rs256(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(
                    &signature::RSA_PKCS1_SHA256,
                    &random,
                    signed.as_bytes(),
                    &mut signature,
                )
                .expect("the buffer has the length of the modulus");
                signature
            }
            Pair::EdDsa(pair) => pair.sign(signed.as_bytes()).as_ref().to_vec(),
        };
        format!("{signed}.{}", encode(&signature))
    }
}

/// Returns a token with this header, these claims and this signature, for tests of refusals.
pub fn unsigned(header: &Value, claims: &Value, signature: &[u8]) -> String {
    format!(
        "{}.{}.{}",
        encode(header.to_string().as_bytes()),
        encode(claims.to_string().as_bytes()),
        encode(signature)
    )
}

/// The SHA-256 thumbprint of a public key (RFC 7638).
pub fn thumbprint(jwk: &Value) -> Option<String> {
    let members: &[&str] = match jwk["kty"].as_str()? {
        "EC" => &["crv", "kty", "x", "y"],
        "RSA" => &["e", "kty", "n"],
        "OKP" => &["crv", "kty", "x"],
        _ => return None,
    };
    let mut hashed = String::from("{");
    for (index, member) in members.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        hashed += &format!(
            "{comma}\"{member}\":{}",
            Value::from(jwk[*member].as_str()?)
        );
    }
    hashed.push('}');
    Some(encode(digest(&SHA256, hashed.as_bytes()).as_ref()))
}

/// Returns a token's header and claims if one of `keys` has signed it. `alg` must fit the key.
pub(crate) fn verify(token: &str, keys: &[Value]) -> Result<(Value, Value), String> {
    let (signed, signature) = token.rsplit_once('.').ok_or("not a JWS")?;
    let (header, claims) = signed.split_once('.').ok_or("not a JWS")?;
    let header = decode_json(header).ok_or("the header can't be read")?;
    let claims = decode_json(claims).ok_or("the claims can't be read")?;
    let signature = decode(signature).ok_or("the signature can't be read")?;
    let algorithm = header["alg"].as_str().unwrap_or_default();
    let fits = keys.iter().any(|key| {
        let same = |member: &str, other: &Value| key[member].is_null() || key[member] == *other;
        (header["kid"].is_null() || same("kid", &header["kid"]))
            && same("alg", &header["alg"])
            && is_by(key, algorithm, signed.as_bytes(), &signature)
    });
    if fits {
        Ok((header, claims))
    } else {
        Err(format!("no known key made this {algorithm:?} signature"))
    }
}

/// Returns the header and the claims of a token without verifying it.
pub fn read_unverified(token: &str) -> Option<(Value, Value)> {
    let mut parts = token.split('.');
    Some((decode_json(parts.next()?)?, decode_json(parts.next()?)?))
}

fn is_by(key: &Value, algorithm: &str, signed: &[u8], signature: &[u8]) -> bool {
    let member = |name: &str| key[name].as_str().and_then(decode);
    let of = |kind: &str, curve: Option<&str>| {
        key["kty"] == kind && curve.is_none_or(|curve| key["crv"] == curve)
    };
    match algorithm {
        "ES256" if of("EC", Some("P-256")) => {
            let (Some(x), Some(y)) = (member("x"), member("y")) else {
                return false;
            };
            let point = [&[4], x.as_slice(), y.as_slice()].concat();
            UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point)
                .verify(signed, signature)
                .is_ok()
        }
        "RS256" | "PS256" if of("RSA", None) => {
            let (Some(n), Some(e)) = (member("n"), member("e")) else {
                return false;
            };
            let way = if algorithm == "RS256" {
                &signature::RSA_PKCS1_2048_8192_SHA256
            } else {
                &signature::RSA_PSS_2048_8192_SHA256
            };
            RsaPublicKeyComponents { n, e }
                .verify(way, signed, signature)
                .is_ok()
        }
        "EdDSA" if of("OKP", Some("Ed25519")) => member("x").is_some_and(|x| {
            UnparsedPublicKey::new(&signature::ED25519, x)
                .verify(signed, signature)
                .is_ok()
        }),
        _ => false,
    }
}

/// Returns unguessable text of 32 random bytes.
pub(crate) fn random_text() -> String {
    let bytes = ring::rand::generate::<[u8; 32]>(&SystemRandom::new())
        .expect("the system has randomness")
        .expose();
    encode(&bytes)
}

/// Returns the S256 challenge of a code verifier.
pub(crate) fn challenge(verifier: &str) -> String {
    encode(digest(&SHA256, verifier.as_bytes()).as_ref())
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

fn decode_json(text: &str) -> Option<Value> {
    serde_json::from_slice(&decode(text)?).ok()
}

fn pem_content(pem: &str) -> Option<Vec<u8>> {
    let base64: String = pem
        .lines()
        .filter(|line| !line.starts_with("-----"))
        .map(str::trim)
        .collect();
    STANDARD.decode(base64).ok()
}
