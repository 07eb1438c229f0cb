//! What is found and what isn't, what is refused, and what it costs.
