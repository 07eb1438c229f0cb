//! Texts of errors of JSON.

/// Returns the message of an error without the column, because the program did not write the text.
pub(crate) fn without_column(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let column = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&column).unwrap_or(&text).to_owned()
}
