//! Public keys (RFC 7517, RFC 7518 section 6, RFC 8037 section 2).

use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey};
use serde_json::Value;
use sha2::{Digest, Sha256};

use mcpline_protocol::vocabulary::JsonObject;

use crate::algorithm::Family;
use crate::{Algorithm, JoseError, decode, encode};

/// Accepted sizes of RSA keys: smaller ones are weak, larger ones could keep a verifier busy (RFC 7518, section 3.3).
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;

/// Members of private or shared keys only (RFC 7518, section 6).
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// A public key that verifies signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jwk {
    key: PublicKey,
    id: Option<String>,
    /// The only algorithm that the key may be used with, if it names one.
    algorithm: Option<Algorithm>,
}

/// The key itself, with points in uncompressed form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PublicKey {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl Jwk {
    /// Parses a public key.
    ///
    /// # Errors
    ///
    /// If it is not a public key for signatures of a supported algorithm: another `kty` or `crv`, a `use` or `key_ops`
    /// other than verifying, invalid members, an RSA key of fewer than 2048 or more than 8192 bits, a private key.
    pub fn parse(jwk: &JsonObject) -> Result<Self, JoseError> {
        if PRIVATE.iter().any(|name| jwk.contains_key(*name)) {
            return Err(JoseError::PrivateKey);
        }
        check_use(jwk)?;
        let key = PublicKey::parse(jwk)?;
        let algorithm = match jwk.get("alg") {
            None => None,
            Some(name) => {
                let algorithm = name
                    .as_str()
                    .and_then(Algorithm::parse)
                    .filter(|algorithm| algorithm.family() == key.family());
                let fitting = algorithm.ok_or(JoseError::UnusableKey(
                    "its `alg` is unknown or does not match its type",
                ))?;
                Some(fitting)
            }
        };
        let id = jwk.get("kid").map(|id| match id {
            Value::String(id) => Ok(id.clone()),
            _ => Err(JoseError::UnusableKey("kid must be a string")),
        });
        Ok(Self {
            key,
            id: id.transpose()?,
            algorithm,
        })
    }

    pub(super) fn new(key: PublicKey, algorithm: Option<Algorithm>) -> Self {
        Self {
            key,
            id: None,
            algorithm,
        }
    }

    /// Sets the key's id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Its `kid`.
    pub fn key_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Whether the key may verify signatures of this algorithm.
    pub fn supports_algorithm(&self, algorithm: Algorithm) -> bool {
        self.key.family() == algorithm.family()
            && self.algorithm.is_none_or(|only| only == algorithm)
    }

    /// The key as JSON.
    pub fn to_json(&self) -> JsonObject {
        let mut jwk = self.key.members();
        if let Some(id) = &self.id {
            jwk.insert("kid".into(), id.clone().into());
        }
        if let Some(algorithm) = self.algorithm {
            jwk.insert("alg".into(), algorithm.as_str().into());
        }
        jwk
    }

    /// The SHA-256 thumbprint (RFC 7638), in base64url.
    pub fn thumbprint(&self) -> String {
        let members = self.key.members();
        let mut names: Vec<&String> = members.keys().collect();
        names.sort_unstable();
        let required = names
            .into_iter()
            .map(|name| (name.clone(), members[name].clone()));
        let required: JsonObject = required.collect();
        encode(Sha256::digest(Value::Object(required).to_string()))
    }

    /// Verifies a signature over `message`.
    ///
    /// # Errors
    ///
    /// [`JoseError::UnknownKey`] if the key isn't for this algorithm, [`JoseError::BadSignature`] if the signature is
    /// invalid. ECDSA signatures have a fixed length (RFC 7518, section 3.4).
    pub(super) fn verify(
        &self,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), JoseError> {
        if !self.supports_algorithm(algorithm) {
            return Err(JoseError::UnknownKey);
        }
        let verified = match &self.key {
            PublicKey::Rsa { n, e } => {
                let parameters = rsa_parameters(algorithm).ok_or(JoseError::UnknownKey)?;
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            PublicKey::P256(point) => {
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point)
                    .verify(message, signature)
            }
            PublicKey::P384(point) => {
                UnparsedPublicKey::new(&signature::ECDSA_P384_SHA384_FIXED, point)
                    .verify(message, signature)
            }
            PublicKey::Ed25519(point) => {
                UnparsedPublicKey::new(&signature::ED25519, point).verify(message, signature)
            }
        };
        verified.map_err(|_| JoseError::BadSignature)
    }
}

fn rsa_parameters(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    match algorithm {
        Algorithm::Rs256 => Some(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::Rs384 => Some(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::Rs512 => Some(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::Ps256 => Some(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::Ps384 => Some(&signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::Ps512 => Some(&signature::RSA_PSS_2048_8192_SHA512),
        Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa => None,
    }
}

/// Checks the purpose of a key in `use` or `key_ops` (RFC 7517, sections 4.2 and 4.3).
fn check_use(jwk: &JsonObject) -> Result<(), JoseError> {
    let unfit = JoseError::UnusableKey("its `use` or `key_ops` does not allow signatures");
    if jwk.get("use").is_some_and(|purpose| purpose != "sig") {
        return Err(unfit);
    }
    match jwk.get("key_ops") {
        None => Ok(()),
        Some(Value::Array(operations)) if operations.iter().any(|one| one == "verify") => Ok(()),
        Some(_) => Err(unfit),
    }
}

impl PublicKey {
    fn parse(jwk: &JsonObject) -> Result<Self, JoseError> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let bytes = |name: &str| {
            text(name).and_then(decode).ok_or(JoseError::UnusableKey(
                "a member is missing or not base64url",
            ))
        };
        let point = |len: usize| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            if x.len() != len || y.len() != len {
                return Err(JoseError::UnusableKey("a coordinate has a wrong length"));
            }
            Ok([&[UNCOMPRESSED][..], &x, &y].concat())
        };
        match (text("kty"), text("crv")) {
            (Some("RSA"), _) => Self::rsa(&bytes("n")?, &bytes("e")?),
            (Some("EC"), Some("P-256")) => Ok(Self::P256(point(32)?)),
            (Some("EC"), Some("P-384")) => Ok(Self::P384(point(48)?)),
            (Some("OKP"), Some("Ed25519")) => {
                let x = bytes("x")?;
                if x.len() != 32 {
                    return Err(JoseError::UnusableKey("a coordinate has a wrong length"));
                }
                Ok(Self::Ed25519(x))
            }
            _ => Err(JoseError::UnusableKey(
                "its `kty` or `crv` is not supported",
            )),
        }
    }

    /// Some issuers write a zero byte before a number whose first bit is set, as in DER.
    pub(super) fn rsa(n: &[u8], e: &[u8]) -> Result<Self, JoseError> {
        let (n, e) = (without_zeros(n), without_zeros(e));
        let bits = n
            .first()
            .map_or(0, |first| n.len() * 8 - first.leading_zeros() as usize);
        if !RSA_BITS.contains(&bits) {
            return Err(JoseError::UnusableKey("an RSA key needs 2048 to 8192 bits"));
        }
        // An exponent that is even or 1 is invalid; a long one could keep a verifier busy.
        if e.len() > 5 || e == [1] || e.last().is_none_or(|last| last % 2 == 0) {
            return Err(JoseError::UnusableKey(
                "its `e` must be an odd number above 1 of at most 5 bytes",
            ));
        }
        Ok(Self::Rsa {
            n: n.to_vec(),
            e: e.to_vec(),
        })
    }

    fn family(&self) -> Family {
        match self {
            Self::Rsa { .. } => Family::Rsa,
            Self::P256(_) => Family::P256,
            Self::P384(_) => Family::P384,
            Self::Ed25519(_) => Family::Ed25519,
        }
    }

    /// The members that define the key, which are those of its thumbprint (RFC 7638, section 3.2).
    fn members(&self) -> JsonObject {
        let mut members = JsonObject::new();
        let mut put = |name: &str, value: String| {
            members.insert(name.into(), value.into());
        };
        match self {
            Self::Rsa { n, e } => {
                put("kty", "RSA".into());
                put("n", encode(n));
                put("e", encode(e));
            }
            Self::P256(point) | Self::P384(point) => {
                let curve = if matches!(self, Self::P256(_)) {
                    "P-256"
                } else {
                    "P-384"
                };
                let (x, y) = point[1..].split_at((point.len() - 1) / 2);
                put("kty", "EC".into());
                put("crv", curve.into());
                put("x", encode(x));
                put("y", encode(y));
            }
            Self::Ed25519(x) => {
                put("kty", "OKP".into());
                put("crv", "Ed25519".into());
                put("x", encode(x));
            }
        }
        members
    }
}

/// The first byte of a point with both coordinates (SEC 1, section 2.3.3).
const UNCOMPRESSED: u8 = 4;

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}
