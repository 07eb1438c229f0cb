//! Authorization: OAuth as the protocol's revisions use it, without I/O.
//!
//! What both sides need of signed tokens is in [`jose`]: the server verifies them, the client signs its
//! proofs and assertions.

pub mod jose;
