//! shim
/// s
#[derive(Debug)]
pub struct Ranked {
    /// s
    pub values: Vec<String>,
    /// s
    pub total: usize,
    /// s
    pub has_more: bool,
}
/// s
pub fn rank(_: &str, _: &[String]) -> Ranked {
    Ranked {
        values: vec![],
        total: 0,
        has_more: false,
    }
}
