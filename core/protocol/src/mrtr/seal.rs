//! Seals `requestState`: authenticated encryption under a ring of keys.
//!
//! The first key of a ring seals, all of them open. To rotate keys, put the new one first and drop the old one after
//! the longest expiry. Processes that share the ring open each other's state.
//!
//! A sealed text is base64url without padding of
//! `version (1) | key id (8) | nonce (24) | ciphertext and tag`. Everything before the ciphertext is
//! authenticated with it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use sha2::Sha256;

/// The minimum length of a master secret in bytes: the strength of the cipher that it is derived for.
pub const MIN_SECRET_LEN: usize = 32;

const VERSION: u8 = 1;
const KEY_ID_LEN: usize = 8;
const NONCE_LEN: usize = 24;
const HEADER_LEN: usize = 1 + KEY_ID_LEN;

/// The purpose mixed into every derived key, so that one master secret never serves two uses.
const PURPOSE_KEY: &[u8] = b"mcpline request state key v1";
const PURPOSE_KEY_ID: &[u8] = b"mcpline request state key id v1";

/// Why a secret is not usable as a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// No secret was given.
    #[error("a key ring needs at least one secret")]
    Empty,
    /// The secret is too short to be safe.
    #[error("a secret needs at least {MIN_SECRET_LEN} bytes, this one has {len}")]
    TooShort {
        /// How many bytes the secret has.
        len: usize,
    },
}

/// Why a sealed text is rejected.
///
/// The distinction is for the server's log. The client gets the same error in every case; otherwise it could learn
/// which keys exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It was not sealed by this library.
    #[error("the request state is not in a known format")]
    Malformed,
    /// It names a key that is not on the ring: sealed by another process, or before a rotation.
    #[error(
        "the request state was sealed with an unknown key: it is not in the key ring of this process"
    )]
    UnknownKey,
    /// The key is known but verification fails: the text was changed.
    #[error("the request state was tampered with")]
    Tampered,
}

/// Keys that seal and open `requestState`, derived from master secrets.
#[derive(Clone)]
pub struct KeyRing {
    keys: Vec<Key>,
}

#[derive(Clone)]
struct Key {
    id: [u8; KEY_ID_LEN],
    cipher: XChaCha20Poly1305,
}

impl KeyRing {
    /// Creates a ring from master secrets, the sealing one first.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no secret, or one is shorter than [`MIN_SECRET_LEN`] bytes.
    pub fn new<S: AsRef<[u8]>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, KeyError> {
        let keys = secrets
            .into_iter()
            .map(|secret| Key::derive(secret.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            return Err(KeyError::Empty);
        }
        Ok(Self { keys })
    }

    /// Seals `plain` with the first key.
    ///
    /// `nonce` must be fresh random bytes for every call; with 192 bits, any number of processes may draw them without
    /// coordination.
    pub fn seal(&self, plain: &[u8], nonce: [u8; NONCE_LEN]) -> String {
        let key = &self.keys[0];
        let mut sealed = Vec::with_capacity(HEADER_LEN + NONCE_LEN + plain.len() + 16);
        sealed.push(VERSION);
        sealed.extend_from_slice(&key.id);
        let header: [u8; HEADER_LEN] = key.header();
        sealed.extend_from_slice(&nonce);
        let payload = Payload {
            msg: plain,
            aad: &header,
        };
        // Encryption only fails beyond 256 GiB of plain text.
        if let Ok(ciphertext) = key.cipher.encrypt(&XNonce::from(nonce), payload) {
            sealed.extend_from_slice(&ciphertext);
        }
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// Opens a sealed text with the key that it names.
    ///
    /// # Errors
    ///
    /// [`OpenError`], for the log and not for the client.
    pub fn open(&self, sealed: &str) -> Result<Vec<u8>, OpenError> {
        let bytes = URL_SAFE_NO_PAD
            .decode(sealed)
            .map_err(|_| OpenError::Malformed)?;
        if bytes.len() < HEADER_LEN + NONCE_LEN || bytes[0] != VERSION {
            return Err(OpenError::Malformed);
        }
        let (header, rest) = bytes.split_at(HEADER_LEN);
        let (nonce, ciphertext) = rest.split_at(NONCE_LEN);
        let nonce: [u8; NONCE_LEN] = nonce.try_into().map_err(|_| OpenError::Malformed)?;
        let key = self
            .keys
            .iter()
            .find(|key| key.id == header[1..])
            .ok_or(OpenError::UnknownKey)?;
        let payload = Payload {
            msg: ciphertext,
            aad: header,
        };
        key.cipher
            .decrypt(&XNonce::from(nonce), payload)
            .map_err(|_| OpenError::Tampered)
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyRing({} keys)", self.keys.len())
    }
}

impl Key {
    fn derive(secret: &[u8]) -> Result<Self, KeyError> {
        if secret.len() < MIN_SECRET_LEN {
            return Err(KeyError::TooShort { len: secret.len() });
        }
        let kdf = Hkdf::<Sha256>::new(None, secret);
        let mut key = [0; 32];
        let mut id = [0; KEY_ID_LEN];
        // HKDF-SHA256 expands to at most 8,160 bytes; these two need 40.
        let expanded = kdf
            .expand(PURPOSE_KEY, &mut key)
            .and_then(|()| kdf.expand(PURPOSE_KEY_ID, &mut id));
        debug_assert!(expanded.is_ok());
        Ok(Self {
            id,
            cipher: XChaCha20Poly1305::new(&key.into()),
        })
    }

    fn header(&self) -> [u8; HEADER_LEN] {
        let mut header = [0; HEADER_LEN];
        header[0] = VERSION;
        header[1..].copy_from_slice(&self.id);
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(seeds: &[u8]) -> KeyRing {
        KeyRing::new(seeds.iter().map(|seed| [*seed; 32])).expect("long enough")
    }

    #[test]
    fn sealed_state_opens_and_reveals_nothing() {
        let ring = ring(&[1]);
        let sealed = ring.seal(b"secret answers", [7; 24]);
        assert_eq!(ring.open(&sealed), Ok(b"secret answers".to_vec()));
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).expect("base64url");
        assert!(!bytes.windows(6).any(|window| window == b"secret"));
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let ring = ring(&[1]);
        let sealed = URL_SAFE_NO_PAD
            .decode(ring.seal(b"x", [7; 24]))
            .expect("base64url");
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert!(
                ring.open(&URL_SAFE_NO_PAD.encode(changed)).is_err(),
                "byte {index}"
            );
        }
        assert_eq!(ring.open("not base64url!"), Err(OpenError::Malformed));
    }

    #[test]
    fn a_rotated_ring_opens_what_the_old_key_sealed() {
        let old = ring(&[1]);
        let rotated = ring(&[2, 1]);
        let sealed = old.seal(b"x", [7; 24]);
        assert_eq!(rotated.open(&sealed), Ok(b"x".to_vec()));
        assert_eq!(
            old.open(&rotated.seal(b"x", [7; 24])),
            Err(OpenError::UnknownKey)
        );
    }

    #[test]
    fn distinguishes_unknown_keys_from_tampering() {
        let sealed = ring(&[1]).seal(b"x", [7; 24]);
        assert_eq!(ring(&[2]).open(&sealed), Err(OpenError::UnknownKey));
        let mut tampered = sealed;
        tampered.pop();
        tampered.push('A');
        assert!(matches!(
            ring(&[1]).open(&tampered),
            Err(OpenError::Tampered | OpenError::Malformed)
        ));
    }

    #[test]
    fn short_secrets_are_refused() {
        assert_eq!(
            KeyRing::new([b"short".as_slice()]).err(),
            Some(KeyError::TooShort { len: 5 })
        );
        assert_eq!(
            KeyRing::new(Vec::<Vec<u8>>::new()).err(),
            Some(KeyError::Empty)
        );
    }
}
