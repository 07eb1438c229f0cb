//! A transport written in JavaScript, as a channel of the core's.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mcpline::client::{Channel, Dial};
use mcpline::protocol::wire::Raw;
use tokio::sync::{mpsc, oneshot};

use crate::hub::lock;

use super::{About, Outlet};

/// How many messages from the server wait in the core; the rest wait here.
const WAITING: usize = 64;

/// The channels of one client.
#[derive(Default)]
pub(super) struct Channels(Mutex<Open>);

#[derive(Default)]
struct Open {
    last: u32,
    lines: HashMap<u32, Line>,
    is_over: bool,
}

/// One channel, as JavaScript knows it by its number.
struct Line {
    /// Who waits until it is open.
    opening: Option<oneshot::Sender<Result<(), String>>>,
    incoming: mpsc::UnboundedSender<Bytes>,
}

impl Channels {
    /// The channel is open, or couldn't be opened.
    pub(super) fn opened(&self, number: u32, outcome: Result<(), String>) {
        let opening = lock(&self.0)
            .lines
            .get_mut(&number)
            .and_then(|line| line.opening.take());
        if let Some(opening) = opening {
            // Nobody may wait for it any more.
            let _ = opening.send(outcome);
        }
    }

    /// A message has come.
    pub(super) fn received(&self, number: u32, message: Bytes) {
        if let Some(line) = lock(&self.0).lines.get(&number) {
            // A channel that is closed takes nothing.
            let _ = line.incoming.send(message);
        }
    }

    /// The channel is closed by the other side. Whether it was open.
    pub(super) fn close(&self, number: u32) -> bool {
        let line = lock(&self.0).lines.remove(&number);
        line.is_some()
    }

    /// There is nobody in JavaScript any more.
    pub(super) fn end(&self) {
        let mut open = lock(&self.0);
        open.is_over = true;
        let lines = std::mem::take(&mut open.lines);
        drop(open);
        drop(lines);
    }
}

/// Has JavaScript open channels.
pub(super) struct Dialler {
    pub(super) outlet: Outlet,
    pub(super) channels: Arc<Channels>,
}

impl Dial for Dialler {
    fn dial(&self) -> Pin<Box<dyn Future<Output = io::Result<Channel>> + Send + '_>> {
        Box::pin(async {
            let gone = || io::Error::other("the client is gone");
            let (opening, opened) = oneshot::channel();
            let (incoming, mut received) = mpsc::unbounded_channel();
            let number = {
                let mut open = lock(&self.channels.0);
                if open.is_over {
                    return Err(gone());
                }
                open.last = open.last.wrapping_add(1);
                let line = Line {
                    opening: Some(opening),
                    incoming,
                };
                let number = open.last;
                open.lines.insert(number, line);
                number
            };
            let ours = Ours {
                outlet: self.outlet.clone(),
                channels: self.channels.clone(),
                number,
            };
            self.outlet.tell(About::Dial, number, None);
            opened
                .await
                .map_err(|_| gone())?
                .map_err(io::Error::other)?;
            let (to_server, mut sent) = mpsc::unbounded_channel::<Bytes>();
            tokio::spawn(async move {
                while let Some(message) = sent.recv().await {
                    let message = Raw::from_trusted(message);
                    ours.outlet.tell(About::Send, ours.number, Some(message));
                }
            });
            let (forward, from_server) = mpsc::channel(WAITING);
            tokio::spawn(async move {
                while let Some(message) = received.recv().await {
                    if forward.send(message).await.is_err() {
                        break;
                    }
                }
            });
            Ok(Channel {
                to_server,
                from_server,
            })
        })
    }
}

/// Has JavaScript close a channel, unless it has, when the core needs it no more.
struct Ours {
    outlet: Outlet,
    channels: Arc<Channels>,
    number: u32,
}

impl Drop for Ours {
    fn drop(&mut self) {
        if self.channels.close(self.number) {
            self.outlet.tell(About::HangUp, self.number, None);
        }
    }
}
