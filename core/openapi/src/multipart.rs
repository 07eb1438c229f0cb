//! Bodies of `multipart/form-data` (RFC 7578).

/// One part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) file_name: Option<String>,
    /// Without control characters.
    pub(crate) media_type: Option<String>,
    pub(crate) data: Vec<u8>,
}

/// Returns the body, and its boundary.
pub(crate) fn write(parts: &[Part]) -> (Vec<u8>, String) {
    let boundary = boundary(parts);
    let mut body = Vec::new();
    for part in parts {
        body.extend_from_slice(format!("--{boundary}\r\n").as_bytes());
        let name = quoted(&part.name);
        body.extend_from_slice(
            format!("Content-Disposition: form-data; name=\"{name}\"").as_bytes(),
        );
        if let Some(file_name) = &part.file_name {
            let file_name = quoted(file_name);
            body.extend_from_slice(format!("; filename=\"{file_name}\"").as_bytes());
        }
        body.extend_from_slice(b"\r\n");
        if let Some(media_type) = &part.media_type {
            body.extend_from_slice(format!("Content-Type: {media_type}\r\n").as_bytes());
        }
        body.extend_from_slice(b"\r\n");
        body.extend_from_slice(&part.data);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (body, boundary)
}

/// Returns a boundary that no part contains.
fn boundary(parts: &[Part]) -> String {
    let mut number = 0_u32;
    loop {
        let boundary = format!("mcpline-boundary-{number}");
        let contains = |part: &Part| {
            let mut windows = part.data.windows(boundary.len());
            windows.any(|window| window == boundary.as_bytes())
        };
        if !parts.iter().any(contains) {
            return boundary;
        }
        number += 1;
    }
}

/// Escapes a name as browsers do, so that it cannot end its line or its quotes.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("%22"),
            '\r' => quoted.push_str("%0D"),
            '\n' => quoted.push_str("%0A"),
            other => quoted.push(other),
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_can_end_its_part() {
        let part = Part {
            name: "a\"\r\nX: y".to_owned(),
            file_name: Some("b\".txt".to_owned()),
            media_type: Some("text/plain".to_owned()),
            data: b"--mcpline-boundary-0--\r\n".to_vec(),
        };
        let (body, boundary) = write(&[part]);
        assert_eq!(boundary, "mcpline-boundary-1");
        let expected = "--mcpline-boundary-1\r\n\
            Content-Disposition: form-data; name=\"a%22%0D%0AX: y\"; filename=\"b%22.txt\"\r\n\
            Content-Type: text/plain\r\n\r\n\
            --mcpline-boundary-0--\r\n\r\n\
            --mcpline-boundary-1--\r\n";
        assert_eq!(String::from_utf8(body).expect("text"), expected);
    }
}
