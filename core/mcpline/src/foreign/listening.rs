//! Where an HTTP server of a binding listens: an address, or a socket that the process has inherited.

use tokio::net::TcpListener;

use crate::error::Error;
use crate::server::Server;
use crate::transport::http::io_threads::IoThreadHooks;
use crate::transport::http::{Http, HttpOptions, check_metrics, http};

/// Listens for a server, if the paths of its routes and metrics are free. The error of [`Server::serve`] would come after
/// the binding has returned the address.
///
/// `host` is a name or an address. `fd://3` is the inherited socket with the descriptor 3, as gunicorn and others write it; it
/// must listen already, and `port` is not used.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the server itself serves the path of a route; metrics are to be served
/// but are off; or as for [`http()`].
/// [`ErrorKind::Transport`](crate::ErrorKind::Transport): the address cannot be bound, or the descriptor is not a socket that
/// listens for TCP connections.
pub async fn listen(
    server: &Server,
    (host, port): (String, u16),
    options: HttpOptions,
) -> Result<Http, Error> {
    match host.strip_prefix("fd://") {
        Some(descriptor) => listen_on(server, inherited(&host, descriptor)?, options),
        None => {
            check(server, &options)?;
            http((host, port), options).await
        }
    }
}

/// Sets what a binding does with the I/O threads of an HTTP server ([`HttpOptions::io_threads`]).
pub fn hook_io_threads(options: &mut HttpOptions, hooks: IoThreadHooks) {
    options.io_thread_hooks = hooks;
}

/// Like [`listen`], on a socket that listens already.
pub(super) fn listen_on(
    server: &Server,
    socket: std::net::TcpListener,
    options: HttpOptions,
) -> Result<Http, Error> {
    check(server, &options)?;
    let listener = TcpListener::from_std(socket);
    let listener =
        listener.map_err(|error| Error::transport("listen", "cannot use the socket", error))?;
    Http::from_listener(listener, options)
}

fn check(server: &Server, options: &HttpOptions) -> Result<(), Error> {
    #[cfg(feature = "routes")]
    crate::transport::http::check_routes(server, options)?;
    check_metrics(server, options)
}

#[cfg(unix)]
fn inherited(host: &str, descriptor: &str) -> Result<std::net::TcpListener, Error> {
    let descriptor = descriptor.parse().map_err(|_| {
        Error::usage(format!(
            "`host`: {host:?} has no descriptor: write its number, as in `fd://3`"
        ))
    })?;
    mcpline_process::inherited_listener(descriptor).map_err(|error| {
        let message = format!("cannot listen on the inherited socket {host}");
        Error::transport("listen", message, error)
    })
}

#[cfg(not(unix))]
fn inherited(host: &str, _descriptor: &str) -> Result<std::net::TcpListener, Error> {
    Err(Error::usage(format!(
        "`host`: {host:?}: inherited sockets are only available on Unix systems"
    )))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::ErrorKind;

    async fn listening(host: &str) -> Result<Http, Error> {
        let server = Server::new("listening", "1");
        listen(&server, (host.to_owned(), 0), HttpOptions::default()).await
    }

    #[tokio::test]
    async fn a_server_listens_on_an_inherited_socket() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
        let http = listening(&format!("fd://{}", socket.as_raw_fd())).await;
        let address = socket.local_addr().expect("an address");
        assert_eq!(http.expect("listens").address(), address);
    }

    #[tokio::test]
    async fn what_is_not_a_listening_socket_is_refused() {
        for host in ["fd://", "fd://x", "fd://3.5"] {
            let error = listening(host).await.expect_err(host);
            assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        }
        let error = listening("fd://1048576").await.expect_err("not open");
        assert_eq!(error.kind(), ErrorKind::Transport);
        assert!(error.to_string().contains("fd://1048576"), "{error}");
    }
}
