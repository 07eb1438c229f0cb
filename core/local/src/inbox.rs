//! The socket of this process, over which others send their messages.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Buf as _, BytesMut};
use mcpline::sharing::{Bus as _, MemorySharing};
use mcpline_runtime::{background, clock};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use tokio::io::AsyncReadExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::directory::{ServiceDirectory, unusable};
use crate::error::LocalError;
use crate::limits::{BACKLOG, MAX_MESSAGE_BYTES, MAX_PEERS};
use crate::sessions::remove_file;

/// Bytes of a buffer for one read.
const READ_BYTES: usize = 16 * 1024;

/// Characters of the name of a socket: with the directory's, it must fit into the path of a socket. 16 are 96 random bits.
pub(crate) const NAME_CHARACTERS: usize = 16;

/// A socket that listens, before it belongs to a runtime.
pub(crate) struct Inbox {
    socket: net::UnixListener,
    path: PathBuf,
    name: String,
}

impl Inbox {
    /// Creates the socket. From then on, others send their messages here.
    pub(crate) fn bind(directory: &ServiceDirectory) -> Result<Self, LocalError> {
        let folder = directory.bus();
        let name = clock::token()[..NAME_CHARACTERS].replace('-', "_");
        let path = folder.join(&name);
        // Others remove a socket that they find and that is not listened on, so it gets its name afterwards.
        let hidden = folder.join(format!(".{name}"));
        let bound = listen(&hidden).and_then(|socket| {
            std::fs::rename(&hidden, &path)?;
            Ok(socket)
        });
        match bound {
            Ok(socket) => Ok(Self { socket, path, name }),
            Err(error) => {
                let _ = remove_file(&hidden);
                Err(unusable(&path, &error))
            }
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts connections and passes on what they send, until the returned guard is dropped. Needs a runtime.
    pub(crate) fn receive(self, subscribers: &Arc<MemorySharing>) -> io::Result<InboxTasks> {
        let listener = UnixListener::from_std(self.socket)?;
        let accepting = accept(listener, subscribers.clone());
        let accepting = background::spawn(&Handle::current(), accepting);
        Ok(InboxTasks {
            path: self.path,
            accepting: accepting.abort_handle(),
        })
    }
}

/// The tasks that read. Removes the socket on drop.
pub(crate) struct InboxTasks {
    path: PathBuf,
    accepting: background::AbortHandle,
}

impl InboxTasks {
    /// Whether others can find the socket.
    pub(crate) fn is_found(&self) -> bool {
        self.path.exists()
    }
}

impl Drop for InboxTasks {
    fn drop(&mut self) {
        self.accepting.abort();
        let _ = remove_file(&self.path);
    }
}

fn listen(path: &Path) -> io::Result<net::UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let socket = new_socket()?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    let socket = net::UnixListener::from(socket);
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Returns a socket that programs which another thread starts meanwhile do not inherit.
#[cfg(not(target_vendor = "apple"))]
fn new_socket() -> io::Result<OwnedFd> {
    let flags = rustix::net::SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

/// Returns a socket. The system has no such flag: a program that another thread starts between the two calls inherits the socket.
#[cfg(target_vendor = "apple")]
fn new_socket() -> io::Result<OwnedFd> {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    Ok(socket)
}

async fn accept(listener: UnixListener, subscribers: Arc<MemorySharing>) {
    let free = Arc::new(Semaphore::new(MAX_PEERS));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection of another process");
                tokio::time::sleep(crate::limits::CONNECT_DELAY).await;
                continue;
            }
        };
        let Ok(permit) = free.clone().try_acquire_owned() else {
            tracing::warn!("too many processes share their state: refused another");
            continue;
        };
        let subscribers = subscribers.clone();
        background::spawn(&Handle::current(), async move {
            if let Err(error) = read(stream, &subscribers).await {
                tracing::debug!(%error, "the connection of another process failed");
            }
            drop(permit);
        });
    }
}

/// Passes on the messages of a connection until it ends.
async fn read(mut stream: UnixStream, subscribers: &MemorySharing) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    loop {
        while let Some(length) = buffer.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)) {
            let length = length as usize;
            if length > MAX_MESSAGE_BYTES {
                return Err(io::Error::other(format!(
                    "a message of {length} bytes exceeds {MAX_MESSAGE_BYTES} bytes"
                )));
            }
            if buffer.len() < 4 + length {
                break;
            }
            buffer.advance(4);
            subscribers.publish(buffer.split_to(length).freeze());
        }
        buffer.reserve(READ_BYTES);
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}
