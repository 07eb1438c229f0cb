//! Bodies of `multipart/form-data` (RFC 7578).

use std::collections::HashSet;

/// What boundaries begin with. It does not overlap itself.
const PREFIX: &str = "mcpline-boundary-";

/// The number of digits at the end of a boundary. All have the same number, so that none is the beginning of another.
const DIGITS: usize = 10;

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

/// Returns a boundary that no part contains. One pass over the data, whatever it contains.
fn boundary(parts: &[Part]) -> String {
    let mut contained = HashSet::new();
    for part in parts {
        let mut rest = &*part.data;
        while let Some(at) = rest
            .windows(PREFIX.len())
            .position(|window| window == PREFIX.as_bytes())
        {
            rest = &rest[at + PREFIX.len()..];
            let digits = rest
                .get(..DIGITS)
                .and_then(|digits| <[u8; DIGITS]>::try_from(digits).ok());
            contained.extend(digits);
        }
    }
    let written = |number: u64| format!("{number:0DIGITS$}");
    // At most one more attempt than there are boundaries in the data.
    let mut numbers = (0..).map(written);
    let is_free = |digits: &String| {
        let digits: Option<[u8; DIGITS]> = digits.as_bytes().try_into().ok();
        digits.is_none_or(|digits| !contained.contains(&digits))
    };
    let digits = numbers.find(is_free).unwrap_or_default();
    format!("{PREFIX}{digits}")
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
            data: b"--mcpline-boundary-0000000000--\r\n".to_vec(),
        };
        let (body, boundary) = write(&[part]);
        assert_eq!(boundary, "mcpline-boundary-0000000001");
        let expected = "--mcpline-boundary-0000000001\r\n\
            Content-Disposition: form-data; name=\"a%22%0D%0AX: y\"; filename=\"b%22.txt\"\r\n\
            Content-Type: text/plain\r\n\r\n\
            --mcpline-boundary-0000000000--\r\n\r\n\
            --mcpline-boundary-0000000001--\r\n";
        assert_eq!(String::from_utf8(body).expect("text"), expected);
    }

    #[test]
    fn a_boundary_is_found_in_one_pass_over_data_full_of_boundaries() {
        const COUNT: u64 = 100_000;
        let data: String = (0..COUNT)
            .map(|number| format!("mcpline-boundary-{number:010}"))
            .collect();
        let part = Part {
            name: "a".to_owned(),
            file_name: None,
            media_type: None,
            data: data.into_bytes(),
        };
        assert_eq!(boundary(&[part]), "mcpline-boundary-0000100000");
    }

    #[test]
    fn a_boundary_of_another_length_ends_nothing() {
        let part = |data: &str| Part {
            name: "a".to_owned(),
            file_name: None,
            media_type: None,
            data: data.as_bytes().to_vec(),
        };
        let parts = [
            part("mcpline-boundary-00000000001"),
            part("mcpline-boundary-"),
        ];
        assert_eq!(boundary(&parts), "mcpline-boundary-0000000001");
    }
}
