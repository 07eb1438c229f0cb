//! The client: connects to a server of any age over any transport, asks it, answers it, and stays connected.

mod error;
mod link;

pub use error::{ClientError, ClientErrorKind, MAX_KEPT_BODY};
