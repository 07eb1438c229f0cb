//! shim
/// s
#[derive(Debug)]
pub struct UriTemplate;
/// s
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct Violation;
impl UriTemplate {
    /// s
    pub fn parse(_: &str) -> Result<Self, Violation> {
        Ok(Self)
    }
    /// s
    pub fn matches(
        &self,
        _: &str,
    ) -> Option<std::collections::BTreeMap<String, serde_json::Value>> {
        None
    }
}
