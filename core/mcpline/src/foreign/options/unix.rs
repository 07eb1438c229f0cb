//! Options of a server on a Unix socket, or on a named pipe of Windows.

use serde_json::Value;

use crate::error::Error;
use crate::foreign::LocalSocketOptions;

use super::options_macro::options;
use super::set;

options! {
    /// [`LocalSocketOptions`] from foreign code. `mode` is a number, or a text of octal digits, because JSON has no octal numbers.
    #[derive(Debug, Default)]
    pub struct UnixServingOptions {
        mode: Option<Value>,
        max_connections: Option<usize>,
    }
}

impl UnixServingOptions {
    /// Converts into the core's options.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): `mode` is not a file mode, or is set on Windows, whose pipes have none.
    pub fn options(self) -> Result<LocalSocketOptions, Error> {
        let mut options = LocalSocketOptions::default();
        set(&mut options.max_connections, self.max_connections);
        #[cfg(windows)]
        if self.mode.is_some() {
            return Err(Error::usage(
                "`mode`: not supported on Windows; remove it. Only the user of the server may connect to a named pipe",
            ));
        }
        #[cfg(unix)]
        if let Some(given) = self.mode {
            options.mode = mode(&given).ok_or_else(|| {
                Error::usage(format!(
                    "`mode`: {given} is not a file mode; write a text of octal digits, such as \"0660\", or a number"
                ))
            })?;
        }
        Ok(options)
    }
}

#[cfg(unix)]
fn mode(given: &Value) -> Option<u32> {
    match given {
        // Also without the prefixes of programming languages for octal numbers.
        Value::String(digits) => u32::from_str_radix(digits.trim_start_matches("0o"), 8).ok(),
        given => u32::try_from(given.as_u64()?).ok(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::foreign::options::read;

    fn mode_of(json: &str) -> Result<u32, String> {
        let options: UnixServingOptions =
            read("the options", json.as_bytes()).map_err(|error| error.to_string())?;
        let options = options.options().map_err(|error| error.to_string())?;
        Ok(options.mode)
    }

    #[test]
    fn a_mode_is_a_number_or_octal_digits() {
        assert_eq!(mode_of("{}"), Ok(0o600));
        for json in [
            r#"{"mode": 432}"#,
            r#"{"mode": "0660"}"#,
            r#"{"mode": "660"}"#,
            r#"{"mode": "0o660"}"#,
        ] {
            assert_eq!(mode_of(json), Ok(0o660), "{json}");
        }
        for json in [
            r#"{"mode": "rw"}"#,
            r#"{"mode": -1}"#,
            r#"{"mode": "0680"}"#,
            r#"{"mode": true}"#,
        ] {
            let error = mode_of(json).expect_err(json);
            assert!(error.starts_with("`mode`: "), "{error}");
        }
    }

    #[test]
    fn unknown_options_are_refused() {
        assert!(mode_of(r#"{"modes": "0660"}"#).is_err());
    }
}
