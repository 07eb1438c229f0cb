//! Private keys in PEM files: PKCS #8, and the older formats of RSA and EC keys (RFC 7468, 5208, 8017, 5915).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::JoseError;

/// The largest key file.
const MAX_LEN: usize = 64 * 1024;

/// A private key in DER.
pub(super) enum PrivateKeyDer {
    /// `PRIVATE KEY`
    Pkcs8(Vec<u8>),
    /// `RSA PRIVATE KEY`
    Rsa(Vec<u8>),
    /// `EC PRIVATE KEY`
    Ec(Vec<u8>),
}

/// Returns the first private key of a PEM text.
pub(super) fn read(pem: &[u8]) -> Result<PrivateKeyDer, JoseError> {
    let unusable = JoseError::UnusableSigningKey;
    let text = std::str::from_utf8(pem)
        .ok()
        .filter(|text| text.len() <= MAX_LEN)
        .ok_or(unusable("it is not PEM"))?;
    let mut rest = text;
    while let Some((_, block)) = rest.split_once("-----BEGIN ") {
        let (label, block) = block
            .split_once("-----")
            .ok_or(unusable("the PEM text is cut off"))?;
        let (body, after) = block
            .split_once(&format!("-----END {label}-----"))
            .ok_or(unusable("the PEM text is cut off"))?;
        rest = after;
        let key: fn(Vec<u8>) -> PrivateKeyDer = match label {
            "PRIVATE KEY" => PrivateKeyDer::Pkcs8,
            "RSA PRIVATE KEY" => PrivateKeyDer::Rsa,
            "EC PRIVATE KEY" => PrivateKeyDer::Ec,
            "ENCRYPTED PRIVATE KEY" => {
                return Err(unusable("it is encrypted: decrypt it first"));
            }
            // Such files may also contain certificates and curve parameters.
            _ => continue,
        };
        if body.contains("ENCRYPTED") {
            return Err(unusable("it is encrypted: decrypt it first"));
        }
        let body: String = body.split_ascii_whitespace().collect();
        return STANDARD
            .decode(body)
            .map(key)
            .map_err(|_| unusable("the PEM text is not base64"));
    }
    Err(unusable("the PEM text holds no private key"))
}

/// Wraps an EC private key (RFC 5915) of this curve as PKCS #8 (RFC 5208).
pub(super) fn ec_as_pkcs8(key: &[u8], curve: &[u8]) -> Vec<u8> {
    let algorithm = der(SEQUENCE, &[OID_EC_PUBLIC_KEY, curve].concat());
    let version = der(INTEGER, &[0]);
    let body = [version, algorithm, der(OCTET_STRING, key)].concat();
    der(SEQUENCE, &body)
}

fn der(tag: u8, value: &[u8]) -> Vec<u8> {
    let len = value.len();
    let mut out = vec![tag];
    match len {
        0..=0x7f => out.push(len as u8),
        0x80..=0xff => out.extend([0x81, len as u8]),
        _ => out.extend([0x82, (len >> 8) as u8, len as u8]),
    }
    out.extend_from_slice(value);
    out
}

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const SEQUENCE: u8 = 0x30;

/// 1.2.840.10045.2.1
const OID_EC_PUBLIC_KEY: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// 1.2.840.10045.3.1.7
pub(super) const OID_P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// 1.3.132.0.34
pub(super) const OID_P384: &[u8] = &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];
