//! Private keys and signing.

use std::fmt;

use ring::rand::SecureRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    Ed25519KeyPair, KeyPair as _, RsaEncoding, RsaKeyPair,
};
use serde_json::Value;

use mcpline_protocol::vocabulary::JsonObject;

use crate::algorithm::Family;
use crate::jwk::PublicKey;
use crate::pem::{self, PrivateKeyDer};
use crate::{Algorithm, JoseError, Jwk, encode};

/// A private key with its signature algorithm. `Debug` shows nothing of the key.
pub struct SigningKey {
    algorithm: Algorithm,
    pair: Pair,
    /// The key in PKCS #8, if it was read or generated in that format.
    pkcs8: Option<Vec<u8>>,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// Parses a private key in PEM: PKCS #8, or the older formats of RSA and EC keys.
    ///
    /// Signs with `algorithm`, or, if that is `None`, with the default for the key: `RS256`, `ES256`, `ES384` or
    /// `EdDSA`.
    ///
    /// # Errors
    ///
    /// If the key is not supported (RSA of 2048 to 4096 bits, P-256, P-384, Ed25519), is encrypted, or is not for this
    /// algorithm.
    pub fn from_pem(
        pem: &[u8],
        algorithm: Option<Algorithm>,
        entropy: &dyn SecureRandom,
    ) -> Result<Self, JoseError> {
        match pem::read(pem)? {
            PrivateKeyDer::Pkcs8(key) => Self::from_pkcs8(&key, algorithm, entropy),
            PrivateKeyDer::Rsa(key) => {
                let pair = RsaKeyPair::from_der(&key)
                    .map_err(|_| JoseError::UnusableSigningKey(UNKNOWN_KIND))?;
                Self::new(Pair::Rsa(Box::new(pair)), algorithm, None)
            }
            PrivateKeyDer::Ec(key) => [pem::OID_P256, pem::OID_P384]
                .iter()
                .find_map(|curve| {
                    let key = pem::ec_as_pkcs8(&key, curve);
                    Self::from_pkcs8(&key, algorithm, entropy).ok()
                })
                .ok_or(JoseError::UnusableSigningKey(UNKNOWN_KIND)),
        }
    }

    /// Parses a private key in PKCS #8 DER; see [`from_pem`](Self::from_pem).
    ///
    /// # Errors
    ///
    /// If the key is not supported, or is not for this algorithm.
    pub fn from_pkcs8(
        pkcs8: &[u8],
        algorithm: Option<Algorithm>,
        entropy: &dyn SecureRandom,
    ) -> Result<Self, JoseError> {
        let ecdsa = |curve| EcdsaKeyPair::from_pkcs8(curve, pkcs8, entropy).map(Pair::Ecdsa);
        let pair = ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING)
            .or_else(|_| ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING))
            .or_else(|_| Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8).map(Pair::Ed25519))
            .or_else(|_| RsaKeyPair::from_pkcs8(pkcs8).map(|pair| Pair::Rsa(Box::new(pair))))
            .map_err(|_| JoseError::UnusableSigningKey(UNKNOWN_KIND))?;
        Self::new(pair, algorithm, Some(pkcs8.to_vec()))
    }

    /// Generates a key for `ES256`, which most servers support.
    ///
    /// # Errors
    ///
    /// If no entropy is available.
    pub fn generate_es256(entropy: &dyn SecureRandom) -> Result<Self, JoseError> {
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, entropy)
            .map_err(|_| JoseError::Signing)?;
        Self::from_pkcs8(pkcs8.as_ref(), Some(Algorithm::Es256), entropy)
    }

    fn new(
        pair: Pair,
        algorithm: Option<Algorithm>,
        pkcs8: Option<Vec<u8>>,
    ) -> Result<Self, JoseError> {
        let usual = match &pair {
            Pair::Rsa(_) => Algorithm::Rs256,
            Pair::Ecdsa(pair) if pair.public_key().as_ref().len() == P256_POINT => Algorithm::Es256,
            Pair::Ecdsa(_) => Algorithm::Es384,
            Pair::Ed25519(_) => Algorithm::EdDsa,
        };
        let algorithm = algorithm.unwrap_or(usual);
        if algorithm.family() != usual.family() {
            return Err(JoseError::UnusableSigningKey(
                "its type does not fit the configured signing algorithm",
            ));
        }
        Ok(Self {
            algorithm,
            pair,
            pkcs8,
        })
    }

    /// The key's signature algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The key in PKCS #8, for safe storage; `None` if it was read from one of the older formats of RSA keys.
    pub fn to_pkcs8(&self) -> Option<&[u8]> {
        self.pkcs8.as_deref()
    }

    /// The public key.
    pub fn public_jwk(&self) -> Jwk {
        let key = match &self.pair {
            Pair::Rsa(pair) => {
                let PublicKeyComponents { n, e } =
                    PublicKeyComponents::<Vec<u8>>::from(pair.public());
                PublicKey::Rsa { n, e }
            }
            Pair::Ecdsa(pair) => {
                let point = pair.public_key().as_ref().to_vec();
                match self.algorithm.family() {
                    Family::P384 => PublicKey::P384(point),
                    _ => PublicKey::P256(point),
                }
            }
            Pair::Ed25519(pair) => PublicKey::Ed25519(pair.public_key().as_ref().to_vec()),
        };
        Jwk::new(key, Some(self.algorithm))
    }

    /// Signs `claims` with `header`, to which `alg` is added.
    ///
    /// # Errors
    ///
    /// If no entropy is available.
    pub fn sign(
        &self,
        entropy: &dyn SecureRandom,
        header: &JsonObject,
        claims: &JsonObject,
    ) -> Result<String, JoseError> {
        let mut header = header.clone();
        header.insert("alg".into(), self.algorithm.as_str().into());
        let mut token = encode(Value::Object(header).to_string());
        token.push('.');
        token.push_str(&encode(Value::Object(claims.clone()).to_string()));
        let signature = self.sign_bytes(entropy, token.as_bytes())?;
        token.push('.');
        token.push_str(&encode(signature));
        Ok(token)
    }

    fn sign_bytes(&self, entropy: &dyn SecureRandom, bytes: &[u8]) -> Result<Vec<u8>, JoseError> {
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let encoding = rsa_encoding(self.algorithm).ok_or(JoseError::Signing)?;
                pair.sign(encoding, entropy, bytes, &mut signature)
                    .map_err(|_| JoseError::Signing)?;
                Ok(signature)
            }
            Pair::Ecdsa(pair) => pair
                .sign(entropy, bytes)
                .map(|signature| signature.as_ref().to_vec())
                .map_err(|_| JoseError::Signing),
            Pair::Ed25519(pair) => Ok(pair.sign(bytes).as_ref().to_vec()),
        }
    }
}

/// The length of an uncompressed point of P-256.
const P256_POINT: usize = 65;

const UNKNOWN_KIND: &str =
    "its type is not supported: use RSA of 2048 to 4096 bits, P-256, P-384 or Ed25519";

fn rsa_encoding(algorithm: Algorithm) -> Option<&'static dyn RsaEncoding> {
    match algorithm {
        Algorithm::Rs256 => Some(&signature::RSA_PKCS1_SHA256),
        Algorithm::Rs384 => Some(&signature::RSA_PKCS1_SHA384),
        Algorithm::Rs512 => Some(&signature::RSA_PKCS1_SHA512),
        Algorithm::Ps256 => Some(&signature::RSA_PSS_SHA256),
        Algorithm::Ps384 => Some(&signature::RSA_PSS_SHA384),
        Algorithm::Ps512 => Some(&signature::RSA_PSS_SHA512),
        Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa => None,
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}
