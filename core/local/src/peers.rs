//! The other processes of the service, found by their sockets.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use mcpline_runtime::background::{self, JoinHandle};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::limits::{FLUSH_TIMEOUT, LISTING_AGE, MAX_MESSAGE_BYTES, MAX_PEERS};
use crate::outbox::Outbox;

/// Sends messages to the other processes.
pub(crate) struct Peers {
    folder: PathBuf,
    /// The name of this process's socket, which may change.
    own: String,
    names: Vec<String>,
    listing: Option<Listing>,
    by_name: HashMap<String, Peer>,
}

struct Peer {
    outbox: Arc<Outbox>,
    writing: JoinHandle<()>,
}

/// When the names were read.
struct Listing {
    modified: SystemTime,
    /// Whether a later change of the directory must have a later time.
    is_settled: bool,
}

impl Peers {
    pub(crate) fn new(folder: PathBuf, own: String) -> Self {
        Self {
            folder,
            own,
            names: Vec::new(),
            listing: None,
            by_name: HashMap::new(),
        }
    }

    /// Notes that this process listens at another socket.
    pub(crate) fn set_own_socket(&mut self, own: String) {
        self.own = own;
        self.listing = None;
    }

    /// Sends a message to all processes that listen now. Call it in the runtime on whose thread all of this runs.
    pub(crate) fn publish(&mut self, message: &Bytes) {
        if message.len() > MAX_MESSAGE_BYTES {
            tracing::warn!(
                bytes = message.len(),
                "dropped a message for other processes: it is too large"
            );
            return;
        }
        if let Err(error) = self.refresh() {
            tracing::debug!(%error, "cannot list the processes of the service");
        }
        for name in &self.names {
            let peer = self.by_name.get(name);
            let outbox = match peer.filter(|peer| !peer.outbox.is_dead()) {
                Some(peer) => peer.outbox.clone(),
                None => {
                    let outbox = Arc::new(Outbox::default());
                    let writing = outbox.clone().write_to(self.folder.join(name));
                    let writing = background::spawn(&Handle::current(), writing);
                    let peer = Peer {
                        outbox: outbox.clone(),
                        writing,
                    };
                    self.by_name.insert(name.clone(), peer);
                    outbox
                }
            };
            outbox.push(message);
        }
    }

    /// Reads the names of the sockets, if they may have changed.
    fn refresh(&mut self) -> io::Result<()> {
        let modified = fs::metadata(&self.folder)?.modified()?;
        let current = self.listing.as_ref();
        if current.is_some_and(|listing| listing.is_settled && listing.modified == modified) {
            return Ok(());
        }
        let age = SystemTime::now().duration_since(modified);
        self.names.clear();
        for entry in fs::read_dir(&self.folder)? {
            let Ok(name) = entry?.file_name().into_string() else {
                continue;
            };
            // Those that begin with a dot are not yet listened on.
            if !name.starts_with('.') && name != self.own && self.names.len() < MAX_PEERS {
                self.names.push(name);
            }
        }
        self.listing = Some(Listing {
            modified,
            is_settled: age.is_ok_and(|age| age > LISTING_AGE),
        });
        let names = &self.names;
        self.by_name.retain(|name, peer| {
            let is_listed = names.contains(name);
            if !is_listed {
                peer.outbox.close();
            }
            is_listed
        });
        Ok(())
    }

    /// Waits until what was published is sent, for a limited time.
    pub(crate) async fn close(self) {
        let closing = async {
            for peer in self.by_name.into_values() {
                peer.outbox.close();
                // It cannot fail but by a panic.
                let _ = peer.writing.await;
            }
        };
        // The rest is lost, as the trait allows.
        let _ = timeout(FLUSH_TIMEOUT, closing).await;
    }
}
