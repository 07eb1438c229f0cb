//! Options that a URL may have, for programs that have nothing but a URL.

use std::time::Duration;

use crate::error::ValkeyError;
use crate::options::ValkeyOptions;

/// Removes `key_prefix` and `timeout` from the query of a URL; returns the rest of the URL, and the options. Other
/// parameters stay.
pub(crate) fn separate(url: &str) -> Result<(String, ValkeyOptions), ValkeyError> {
    let mut options = ValkeyOptions::default();
    let Some((address, query)) = url.split_once('?') else {
        return Ok((url.to_owned(), options));
    };
    let mut others: Vec<&str> = Vec::new();
    for parameter in query.split('&') {
        match parameter.split_once('=') {
            Some(("key_prefix", prefix)) => options.key_prefix = prefix.to_owned(),
            Some(("timeout", seconds)) => options.timeout = timeout(seconds)?,
            _ => others.push(parameter),
        }
    }
    let url = match others.is_empty() {
        true => address.to_owned(),
        false => format!("{address}?{}", others.join("&")),
    };
    Ok((url, options))
}

fn timeout(seconds: &str) -> Result<Duration, ValkeyError> {
    let seconds = seconds.parse().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or(ValkeyError::InvalidOption {
            option: "timeout",
            reason: "must be a number of seconds".to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_taken_out_of_the_query() {
        let url = "valkey-sentinel://a,b/1?key_prefix=weather&service=main&timeout=0.5";
        let (rest, options) = separate(url).expect("valid");
        assert_eq!(rest, "valkey-sentinel://a,b/1?service=main");
        assert_eq!(options.key_prefix, "weather");
        assert_eq!(options.timeout, Duration::from_millis(500));
    }

    #[test]
    fn a_url_without_options_stays_as_it_is() {
        let (rest, options) = separate("valkey://localhost/2").expect("valid");
        assert_eq!(rest, "valkey://localhost/2");
        assert_eq!(options.key_prefix, ValkeyOptions::default().key_prefix);
        let (rest, _) = separate("valkey://localhost?timeout=1").expect("valid");
        assert_eq!(rest, "valkey://localhost");
    }

    #[test]
    fn a_timeout_must_be_a_number() {
        for timeout in ["soon", "-1", "nan", ""] {
            let error = separate(&format!("valkey://localhost?timeout={timeout}")).unwrap_err();
            assert_eq!(error.to_string(), "`timeout`: must be a number of seconds");
        }
    }
}
