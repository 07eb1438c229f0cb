//! Values as keyring entries: one for each, and more for values that are too long for one.
//!
//! The entry under the key's own name has the number of pieces and the digest of the value; a value that fits is stored
//! there itself. Pieces get new random names for each value. They are written before and removed after the entry that
//! names them, so that a concurrent reader finds either value, or tries again.

use std::sync::Arc;

use keyring_core::{CredentialStore, Entry, Error};
use sha2::{Digest, Sha256};

use super::super::StoreError;
use super::super::file::hex;
use super::KeyringError;

/// How often a value is read again because it was replaced in the meantime.
const TRIES: usize = 3;

/// The largest value, as in the file store.
const LARGEST: usize = 1024 * 1024;

/// The longest key that is used as an entry name unchanged. Windows allows 513 characters, and pieces have longer
/// names.
const NAME: usize = 256;

const FORMAT: &str = "mcpline 1";

/// The entries of one service.
pub(super) struct Entries {
    store: Arc<CredentialStore>,
    service: Arc<str>,
    /// The longest secret that the keyring accepts.
    piece: usize,
}

/// The content of the entry under a key's own name.
struct Head {
    /// The number of pieces; 0 if the value is stored here itself.
    pieces: usize,
    /// The random part of the pieces' names.
    drawn: String,
    digest: String,
    value: Vec<u8>,
}

impl Entries {
    pub(super) fn new(store: Arc<CredentialStore>, service: Arc<str>, piece: usize) -> Self {
        Self {
            store,
            service,
            piece,
        }
    }

    pub(super) fn load(&self, key: &str) -> Result<Option<Vec<u8>>, KeyringError> {
        let name = name(key);
        for _ in 0..TRIES {
            let Some(head) = self.head(&name)? else {
                return Ok(None);
            };
            let mut value = head.value;
            for index in 0..head.pieces {
                match self.get(&piece_name(&name, &head.drawn, index))? {
                    Some(piece) => value.extend_from_slice(&piece),
                    None => break,
                }
            }
            if digest(&value) == head.digest {
                return Ok(Some(value));
            }
        }
        Err(KeyringError::Damaged(
            "a part of the value is missing from the keyring, or was replaced",
        ))
    }

    pub(super) fn save(&self, key: &str, value: &[u8]) -> Result<(), KeyringError> {
        if value.len() > LARGEST {
            return Err(KeyringError::Other(StoreError::other(
                "the value is larger than 1 MiB, the limit of this store",
            )));
        }
        let name = name(key);
        // An unreadable value is replaced all the same.
        let before = self.head(&name).ok().flatten();
        let mut drawn = [0; 4];
        getrandom::fill(&mut drawn)
            .map_err(|error| KeyringError::Other(StoreError::other(error)))?;
        let drawn = hex(&drawn);
        let digest = digest(value);
        let whole = [format!("{FORMAT} 0 {drawn} {digest}\n").as_bytes(), value].concat();
        if whole.len() <= self.piece {
            self.entry(&name)?.set_secret(&whole)?;
        } else {
            let mut pieces = 0;
            for piece in value.chunks(self.piece) {
                self.entry(&piece_name(&name, &drawn, pieces))?
                    .set_secret(piece)?;
                pieces += 1;
            }
            let head = format!("{FORMAT} {pieces} {drawn} {digest}\n");
            self.entry(&name)?.set_secret(head.as_bytes())?;
        }
        match before {
            Some(before) => self.clear(&name, &before),
            None => Ok(()),
        }
    }

    pub(super) fn remove(&self, key: &str) -> Result<(), KeyringError> {
        let name = name(key);
        let before = self.head(&name).ok().flatten();
        self.delete(&name)?;
        match before {
            Some(before) => self.clear(&name, &before),
            None => Ok(()),
        }
    }

    /// Removes the pieces of a value.
    fn clear(&self, name: &str, head: &Head) -> Result<(), KeyringError> {
        (0..head.pieces).try_for_each(|index| self.delete(&piece_name(name, &head.drawn, index)))
    }

    fn head(&self, name: &str) -> Result<Option<Head>, KeyringError> {
        match self.get(name)? {
            Some(written) => Head::read(&written).map(Some).ok_or(KeyringError::Damaged(
                "the keyring's entry is not in mcpline's format",
            )),
            None => Ok(None),
        }
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, KeyringError> {
        match self.entry(name)?.get_secret() {
            Ok(secret) => Ok(Some(secret)),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn delete(&self, name: &str) -> Result<(), KeyringError> {
        match self.entry(name)?.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn entry(&self, name: &str) -> Result<Entry, KeyringError> {
        Ok(self.store.build(&self.service, name, None)?)
    }
}

impl Head {
    fn read(written: &[u8]) -> Option<Self> {
        let end = written.iter().position(|byte| *byte == b'\n')?;
        let line = std::str::from_utf8(&written[..end]).ok()?;
        let mut words = line.strip_prefix(FORMAT)?.split(' ').skip(1);
        Some(Self {
            pieces: words
                .next()?
                .parse()
                .ok()
                .filter(|pieces| *pieces <= LARGEST)?,
            drawn: words.next()?.to_owned(),
            digest: words.next()?.to_owned(),
            value: written[end + 1..].to_vec(),
        })
    }
}

/// The entry name for a key: the key itself, so that users recognise it, unless it is too long.
fn name(key: &str) -> String {
    let is_plain = key.chars().all(|char| char.is_ascii_graphic());
    if is_plain && (1..=NAME).contains(&key.len()) {
        key.to_owned()
    } else {
        format!("sha256:{}", digest(key.as_bytes()))
    }
}

fn piece_name(name: &str, drawn: &str, index: usize) -> String {
    format!("{name} {drawn} {index}")
}

fn digest(value: &[u8]) -> String {
    hex(&Sha256::digest(value))
}
