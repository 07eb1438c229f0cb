//! Checks of paths, hosts and origins in the options of an HTTP server. An entry that no request can match would refuse all
//! requests that it is meant for, far from the place of the mistake.

use super::io_threads::MAX_IO_THREADS;
use super::options::HttpOptions;
use super::security::host_name;
use crate::error::Error;

impl HttpOptions {
    /// Brings hosts and origins into the form in which requests have them: without a trailing slash, and without the
    /// default port of an origin.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage), with the entry and what to write: a path without a slash at its
    /// start, or one of two endpoints, an entry of the hosts or origins that no request can match, or too many I/O threads.
    pub(crate) fn normalize(&mut self) -> Result<(), Error> {
        if self.io_threads > MAX_IO_THREADS {
            return Err(Error::usage(format!(
                "`io_threads`: at most {MAX_IO_THREADS}, and useful up to the number of cores"
            )));
        }
        check_path("path", &self.path)?;
        if let Some((stream, messages)) = &self.sse_paths {
            check_path("sse_paths", stream)?;
            check_path("sse_paths", messages)?;
        }
        if let Some(path) = &self.health_path {
            check_path("health_path", path)?;
        }
        if let Some(path) = &self.ready_path {
            check_path("ready_path", path)?;
        }
        for host in &mut self.allowed_hosts {
            normalize_host(host)?;
        }
        for origin in &mut self.allowed_origins {
            normalize_origin(origin)?;
        }
        // Last, because a mounted service is served nevertheless.
        self.check_distinct_paths()
    }

    /// Refuses two endpoints at one path, only one of which could be reached.
    fn check_distinct_paths(&self) -> Result<(), Error> {
        // HTTP+SSE has sessions.
        let sse_paths = self.sse_paths.as_ref().filter(|_| !self.stateless);
        let paths = [
            ("path", Some(&self.path)),
            ("sse_paths", sse_paths.map(|(stream, _)| stream)),
            ("sse_paths", sse_paths.map(|(_, messages)| messages)),
            ("health_path", self.health_path.as_ref()),
            ("ready_path", self.ready_path.as_ref()),
        ];
        for (at, (option, path)) in paths.iter().enumerate() {
            let earlier = paths[..at].iter().find(|(_, earlier)| earlier == path);
            if let (Some(path), Some((other, _))) = (path, earlier) {
                return Err(Error::usage(format!(
                    "`{option}`: {path:?} is the path of another endpoint, too (`{other}`)"
                )));
            }
        }
        Ok(())
    }
}

fn check_path(option: &str, path: &str) -> Result<(), Error> {
    if !path.starts_with('/') {
        return Err(Error::usage(format!(
            "`{option}`: {path:?} does not begin with a slash: write {:?}",
            format!("/{path}")
        )));
    }
    if path.contains(['?', '#']) {
        return Err(Error::usage(format!(
            "`{option}`: {path:?} must be a path without a query and a fragment"
        )));
    }
    Ok(())
}

fn normalize_host(host: &mut String) -> Result<(), Error> {
    let refused = |entry: &str, reason: &str| {
        Err(Error::usage(format!("`allowed_hosts`: {entry:?} {reason}")))
    };
    if let Some((_, after)) = host.split_once("://") {
        let name = host_of(after);
        return refused(
            host,
            &format!("is a URL, but hosts have no scheme: write {name:?}"),
        );
    }
    if let Some(name) = host.strip_suffix('/') {
        *host = name.to_owned();
    }
    if host == "*" {
        return Ok(());
    }
    let name = host.strip_prefix("*.").unwrap_or(host);
    if name.contains('*') {
        return refused(
            host,
            "has an asterisk that stands for nothing: only `*.example.com` and `*` are patterns",
        );
    }
    if name.len() < host.len() && name.contains(':') {
        return refused(host, "is a pattern, which must have no port");
    }
    check_ascii("allowed_hosts", host)?;
    match host_name(name) {
        Some(known) if !known.is_empty() => Ok(()),
        _ => refused(
            host,
            &format!(
                "is not a host name or address: write one without scheme, port and path, such as {:?}",
                example(host_of(name))
            ),
        ),
    }
}

fn normalize_origin(origin: &mut String) -> Result<(), Error> {
    // `null` is the origin of sandboxed documents (HTML, section 7.1.1).
    if origin == "*" || origin == "null" {
        return Ok(());
    }
    let refused = |entry: &str, reason: &str| {
        Err(Error::usage(format!(
            "`allowed_origins`: {entry:?} {reason}"
        )))
    };
    let Some((scheme, after)) = origin.split_once("://") else {
        let written = format!("https://{}", example(host_of(origin)));
        return refused(
            origin,
            &format!("has no scheme, which is part of an origin: write {written:?}"),
        );
    };
    let authority = after.strip_suffix('/').unwrap_or(after);
    if authority.contains(['/', '?', '#', '@']) || authority.is_empty() {
        let written = format!("{scheme}://{}", example(host_of(authority)));
        return refused(
            origin,
            &format!(
                "is not an origin, which has a scheme, a host and a port only: write {written:?}"
            ),
        );
    }
    if authority.contains('*') {
        return refused(
            origin,
            "is a pattern, but only hosts have patterns: list each origin, or allow all with `*`",
        );
    }
    check_ascii("allowed_origins", origin)?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    if is_web && host_name(authority).is_none_or(str::is_empty) {
        return refused(
            origin,
            "is not an origin: write scheme, host and port, such as \"https://app.example.com\"",
        );
    }
    let default_port = if scheme.eq_ignore_ascii_case("https") {
        ":443"
    } else if scheme.eq_ignore_ascii_case("http") {
        ":80"
    } else {
        ""
    };
    let authority = authority.strip_suffix(default_port).unwrap_or(authority);
    *origin = format!("{scheme}://{authority}");
    Ok(())
}

fn check_ascii(option: &str, entry: &str) -> Result<(), Error> {
    if entry.is_ascii() {
        return Ok(());
    }
    Err(Error::usage(format!(
        "`{option}`: {entry:?} is not ASCII: clients send the encoded name, which begins with `xn--`"
    )))
}

/// Returns what is probably the host in an authority with a path and a user.
fn host_of(text: &str) -> &str {
    let authority = text.split(['/', '?', '#']).next().unwrap_or(text);
    authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host)
}

fn example(host: &str) -> &str {
    if host_name(host).is_none_or(str::is_empty) {
        "app.example.com"
    } else {
        host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(options: HttpOptions) -> Result<HttpOptions, String> {
        let mut options = options;
        match options.normalize() {
            Ok(()) => Ok(options),
            Err(error) => Err(error.to_string()),
        }
    }

    fn hosts(entry: &str) -> Result<String, String> {
        let options = HttpOptions {
            allowed_hosts: vec![entry.into()],
            ..HttpOptions::default()
        };
        normalized(options).map(|options| options.allowed_hosts[0].clone())
    }

    fn origins(entry: &str) -> Result<String, String> {
        let options = HttpOptions {
            allowed_origins: vec![entry.into()],
            ..HttpOptions::default()
        };
        normalized(options).map(|options| options.allowed_origins[0].clone())
    }

    #[test]
    fn unambiguous_entries_are_normalized() {
        for (entry, form) in [
            ("https://app.example.com/", "https://app.example.com"),
            ("https://app.example.com:443", "https://app.example.com"),
            ("http://app.example.com:80/", "http://app.example.com"),
            ("http://app.example.com:443", "http://app.example.com:443"),
            ("http://[::1]:80", "http://[::1]"),
            ("http://[::80]", "http://[::80]"),
        ] {
            assert_eq!(origins(entry).as_deref(), Ok(form));
        }
        assert_eq!(hosts("x.example.com/").as_deref(), Ok("x.example.com"));
    }

    #[test]
    fn valid_entries_stay() {
        for entry in [
            "*",
            "null",
            "https://app.example.com",
            "http://localhost:3000",
            "chrome-extension://abcdefgh",
        ] {
            assert_eq!(origins(entry).as_deref(), Ok(entry));
        }
        for entry in [
            "*",
            "*.example.com",
            "mcp.example.com",
            "mcp.example.com:8000",
            "::1",
            "[::1]:80",
            "10.0.0.1",
        ] {
            assert_eq!(hosts(entry).as_deref(), Ok(entry));
        }
    }

    #[test]
    fn entries_that_match_no_request_are_refused_with_what_to_write() {
        for (entry, written) in [
            ("app.example.com", "write \"https://app.example.com\""),
            (
                "https://app.example.com/page",
                "write \"https://app.example.com\"",
            ),
            (
                "https://me@app.example.com",
                "write \"https://app.example.com\"",
            ),
            ("https://", "write \"https://app.example.com\""),
            ("https://*.example.com", "list each origin"),
            ("https://bücher.example", "xn--"),
            ("", "write \"https://app.example.com\""),
        ] {
            let error = origins(entry).unwrap_err();
            assert!(error.contains(written), "{error}");
            assert!(error.contains(&format!("{entry:?}")), "{error}");
        }
        for (entry, written) in [
            ("https://x", "write \"x\""),
            ("https://x/mcp", "write \"x\""),
            ("x/mcp", "such as \"x\""),
            ("*.example.com:80", "no port"),
            ("a.*.com", "only `*.example.com`"),
            ("*example.com", "only `*.example.com`"),
            ("bücher.example", "xn--"),
            ("", "not a host name"),
        ] {
            let error = hosts(entry).unwrap_err();
            assert!(error.contains(written), "{error}");
            assert!(error.contains(&format!("{entry:?}")), "{error}");
        }
    }

    #[test]
    fn paths_begin_with_a_slash() {
        let path = |path: &str| HttpOptions {
            path: path.into(),
            ..HttpOptions::default()
        };
        let error = normalized(path("mcp")).unwrap_err();
        assert_eq!(
            error,
            "`path`: \"mcp\" does not begin with a slash: write \"/mcp\""
        );
        assert!(normalized(path("/mcp?x")).is_err());
        assert!(normalized(path("/")).is_ok());
        let sse = HttpOptions {
            sse_paths: Some(("/sse".into(), "messages".into())),
            ..HttpOptions::default()
        };
        assert!(normalized(sse).unwrap_err().starts_with("`sse_paths`: "));
        let health = HttpOptions {
            health_path: Some("up".into()),
            ..HttpOptions::default()
        };
        assert!(
            normalized(health)
                .unwrap_err()
                .starts_with("`health_path`: ")
        );
        let ready = HttpOptions {
            ready_path: Some("ready".into()),
            ..HttpOptions::default()
        };
        assert!(normalized(ready).unwrap_err().starts_with("`ready_path`: "));
    }

    #[test]
    fn each_endpoint_has_a_path_of_its_own() {
        let error = normalized(HttpOptions {
            path: "/health".into(),
            ..HttpOptions::default()
        });
        assert_eq!(
            error.unwrap_err(),
            "`health_path`: \"/health\" is the path of another endpoint, too (`path`)"
        );
        let twice = HttpOptions {
            sse_paths: Some(("/sse".into(), "/sse".into())),
            ..HttpOptions::default()
        };
        assert!(normalized(twice).unwrap_err().starts_with("`sse_paths`: "));
        let unused = HttpOptions {
            path: "/sse".into(),
            stateless: true,
            ..HttpOptions::default()
        };
        assert!(normalized(unused).is_ok());
        let none = HttpOptions {
            sse_paths: None,
            health_path: None,
            ready_path: None,
            ..HttpOptions::default()
        };
        assert!(normalized(none).is_ok());
    }
}
