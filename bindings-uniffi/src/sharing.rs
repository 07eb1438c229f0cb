//! State that several servers share, at a URL.

#[cfg(not(feature = "valkey"))]
pub(crate) use mcpline::foreign::options::no_sharing as share;

/// Returns the state that is shared over the Valkey at this URL.
#[cfg(feature = "valkey")]
pub(crate) fn share(url: &str) -> Result<mcpline::sharing::Sharing, mcpline_valkey::ValkeyError> {
    mcpline_valkey::Valkey::connect_on_own_thread(url)
}
