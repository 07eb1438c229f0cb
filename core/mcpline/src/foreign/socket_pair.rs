//! A connection of this process to itself, for event loops of Windows, which can watch sockets only.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// Returns both ends, which do not block.
///
/// # Errors
///
/// The system's.
pub fn socket_pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    let own = one.local_addr()?;
    let other = loop {
        // Another process may connect first.
        let (connected, from) = listener.accept()?;
        if from == own {
            break connected;
        }
    };
    for end in [&one, &other] {
        end.set_nonblocking(true)?;
        end.set_nodelay(true)?;
    }
    Ok((one, other))
}
