//! The stream that HTTP runs on.

/// A connection, encrypted or not. A trait object, so that HTTP's state machine is compiled once for all.
pub(super) trait Stream: hyper::rt::Read + hyper::rt::Write + Unpin + Send {}

impl<S: hyper::rt::Read + hyper::rt::Write + Unpin + Send> Stream for S {}
