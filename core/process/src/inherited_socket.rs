//! Listening sockets that another process has opened: a supervisor of workers, or systemd.

use std::io::{Error, ErrorKind, Result};
use std::net::TcpListener;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use rustix::net::sockopt::socket_acceptconn;

/// Returns a listener for a listening TCP socket that this process has inherited. The descriptor itself stays open, but
/// programs that are started do not inherit it any more.
///
/// # Errors
///
/// It is not open, or not a socket that listens for TCP connections.
#[allow(unsafe_code)]
pub fn inherited_listener(descriptor: RawFd) -> Result<TcpListener> {
    // SAFETY: the call has no pointers. On a descriptor that is not open it fails.
    let duplicate = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
    if duplicate < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the system has just opened it, for this call.
    let duplicate = unsafe { OwnedFd::from_raw_fd(duplicate) };
    // SAFETY: the call has no pointers, and the descriptor is open.
    unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    // Apple's systems do not say.
    if !cfg!(target_vendor = "apple") && !socket_acceptconn(&duplicate)? {
        let message = "the socket is not listening";
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let listener = TcpListener::from(duplicate);
    // Fails for sockets of other kinds.
    listener.local_addr()?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixListener;

    use super::inherited_listener;

    #[test]
    fn an_inherited_listener_accepts_and_leaves_the_descriptor_open() {
        let original = TcpListener::bind("127.0.0.1:0").expect("binds");
        let address = original.local_addr().expect("an address");
        for _ in 0..2 {
            let inherited = inherited_listener(original.as_raw_fd()).expect("a listener");
            assert_eq!(inherited.local_addr().expect("an address"), address);
            let _client = TcpStream::connect(address).expect("connects");
            inherited.set_nonblocking(false).expect("blocks");
            inherited.accept().expect("accepts");
        }
    }

    #[test]
    fn other_descriptors_are_refused() {
        let file = File::open("/dev/null").expect("opens");
        inherited_listener(file.as_raw_fd()).expect_err("a file");
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let address = listener.local_addr().expect("an address");
        let stream = TcpStream::connect(address).expect("connects");
        let refused = inherited_listener(stream.as_raw_fd()).expect_err("a connection");
        assert_eq!(refused.to_string(), "the socket is not listening");
        let folder = std::env::temp_dir().join(format!("mcpline-inherited-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("creates");
        let path = UnixListener::bind(folder.join("socket")).expect("binds");
        inherited_listener(path.as_raw_fd()).expect_err("a Unix socket");
        std::fs::remove_dir_all(&folder).expect("removes");
        inherited_listener(-1).expect_err("no descriptor");
        inherited_listener(1 << 20).expect_err("not open");
    }
}
