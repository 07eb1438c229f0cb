//! Names of files.

use sha2::{Digest as _, Sha256};

/// Returns the name of the file for an id: a digest, so that it is a valid name whatever the id is, on file systems that ignore
/// case, too.
pub(crate) fn file_name(id: &str) -> String {
    let digest = Sha256::digest(id.as_bytes());
    digest[..20]
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect()
}
