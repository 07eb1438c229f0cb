//! Options of a client of a server in the same process.

use crate::error::Error;
use crate::transport::MemoryTransportOptions;

use super::CallerOptions;
use super::options_macro::options;

options! {
    /// A client of a server in the same process, from foreign code.
    #[derive(Debug, Default)]
    pub struct MemoryClientOptions {
        principal: Option<CallerOptions>,
        headers: Option<Vec<(String, String)>>,
    }
}

impl MemoryClientOptions {
    /// Converts into the core's options.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a header is invalid, or this build has no HTTP.
    pub fn memory(self) -> Result<MemoryTransportOptions, Error> {
        let options = match self.principal {
            Some(principal) => MemoryTransportOptions::from(principal.authorized()),
            None => MemoryTransportOptions::new(),
        };
        match self.headers {
            Some(headers) => with_headers(options, headers),
            None => Ok(options),
        }
    }
}

#[cfg(feature = "http")]
fn with_headers(
    options: MemoryTransportOptions,
    given: Vec<(String, String)>,
) -> Result<MemoryTransportOptions, Error> {
    let mut headers = http::HeaderMap::new();
    for (name, value) in given {
        let refused =
            |reason: String| Error::usage(format!("`headers`: header {name:?}: {reason}"));
        let key = http::HeaderName::try_from(&name).map_err(|error| refused(error.to_string()))?;
        let value =
            http::HeaderValue::try_from(value).map_err(|error| refused(error.to_string()))?;
        headers.append(key, value);
    }
    Ok(options.with_headers(headers))
}

#[cfg(not(feature = "http"))]
fn with_headers(
    _: MemoryTransportOptions,
    _: Vec<(String, String)>,
) -> Result<MemoryTransportOptions, Error> {
    Err(Error::usage("`headers`: this build has no HTTP"))
}
