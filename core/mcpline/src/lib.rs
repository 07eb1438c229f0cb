//! The Model Context Protocol in Rust.
