//! Limits on what a token or a key set can make this side hold or compute, each with its reason.

/// The longest key set, in bytes. A hundred RSA keys with certificate chains take about 400 KiB.
pub const MAX_SET_LEN: usize = 512 * 1024;

/// The largest number of keys in a set: verifying may try several, and issuers publish one to five.
pub const MAX_KEYS: usize = 100;

/// The longest token, in bytes. Tokens with a user's groups take some kilobytes; HTTP servers usually accept 8 to 16
/// KiB of headers.
pub const MAX_TOKEN_LEN: usize = 16 * 1024;
