//! Integers with more than 64 bits, which a decoded value does not keep.

use mcpline_protocol::Quoted;
use mcpline_protocol::wire::Raw;

/// The longest part of an integer in a message, in bytes.
const MAX_SHOWN_BYTES: usize = 40;

/// Checks that no argument contains an integer with more than 64 bits: another number would be sent to the API.
///
/// # Errors
///
/// A message for the model.
pub(super) fn check(arguments: &Raw) -> Result<(), String> {
    for (name, value) in arguments.members().into_iter().flatten() {
        if let Some(integer) = first_large_integer(value.as_bytes()) {
            let shown = match integer.get(..MAX_SHOWN_BYTES) {
                Some(beginning) if beginning != integer => format!("{beginning}…"),
                _ => integer.to_owned(),
            };
            return Err(format!(
                "Invalid arguments: argument {}: the integer {shown} has more than 64 bits, and its digits would be lost",
                Quoted(name)
            ));
        }
    }
    Ok(())
}

/// Returns the first integer with more than 64 bits in valid JSON. Numbers with a fraction or an exponent do not count.
fn first_large_integer(json: &[u8]) -> Option<&str> {
    let mut position = 0;
    while let Some(&byte) = json.get(position) {
        match byte {
            b'"' => position = end_of_string(json, position + 1),
            b'-' | b'0'..=b'9' => {
                let is_part =
                    |byte: u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let length = json[position..]
                    .iter()
                    .take_while(|byte| is_part(**byte))
                    .count();
                let number = std::str::from_utf8(&json[position..position + length]).ok()?;
                let is_integer = !number.contains(['.', 'e', 'E']);
                if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return Some(number);
                }
                position += length;
            }
            _ => position += 1,
        }
    }
    None
}

/// Returns the position after the closing quotation mark.
fn end_of_string(json: &[u8], mut position: usize) -> usize {
    while let Some(&byte) = json.get(position) {
        position += 1;
        match byte {
            b'"' => break,
            b'\\' => position += 1,
            _ => {}
        }
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_integers_with_more_than_64_bits_outside_of_strings() {
        for json in [
            r#"{"a": [18446744073709551615, -9223372036854775808, -0]}"#,
            r#"{"a": ["99999999999999999999", "\"99999999999999999999", "\\"]}"#,
            r#"{"99999999999999999999": 1}"#,
            r#"{"a": [1e30, 99999999999999999999.5, 1.5E+40, true, null]}"#,
        ] {
            let arguments = Raw::parse(json.as_bytes().to_vec()).expect("valid JSON");
            assert_eq!(check(&arguments), Ok(()), "{json}");
        }
        for (json, integer) in [
            (r#"{"a": 18446744073709551616}"#, "18446744073709551616"),
            (
                r#"{"a": {"b": ["\\", -9223372036854775809]}}"#,
                "-9223372036854775809",
            ),
        ] {
            let arguments = Raw::parse(json.as_bytes().to_vec()).expect("valid JSON");
            let error = check(&arguments).expect_err(json);
            assert!(
                error.contains(&format!("argument \"a\": the integer {integer} has")),
                "{error}"
            );
        }
        let long = format!(r#"{{"a": {}}}"#, "9".repeat(1_000));
        let arguments = Raw::parse(long).expect("valid JSON");
        assert!(check(&arguments).expect_err("too long").len() < 200);
        let name = "a".repeat(10_000);
        let arguments = Raw::parse(format!(r#"{{"{name}": 18446744073709551616}}"#)).expect("JSON");
        assert!(check(&arguments).expect_err("a long name").len() < 500);
    }
}
