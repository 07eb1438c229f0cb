//! The Model Context Protocol as values.
