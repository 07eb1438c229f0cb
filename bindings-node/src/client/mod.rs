//! What JavaScript holds as a client: the core's client, and the ways back to whoever waits.
//!
//! - [`handle`] is one client: requests go in, once per turn, and answers settle promises.
//! - [`host`] is what a server may ask and tell: questions and notifications on their way to JavaScript's handlers.
//! - [`ending`] knows the clients that are open, for the end of the process or of the worker.
//! - [`failure`] is what the core's failures become, [`cursors`] how lists are followed.

mod cursors;
mod ending;
mod failure;
mod handle;
mod host;
mod roots;

use std::sync::Arc;

use mcpline::foreign::{Backlog, Place};
use mcpline::protocol::wire::Raw;

use crate::hub::{Event, Shared};

/// What an event of a client is about. The numbers are those of `lib/client/events.ts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    /// Progress of the request with this number: `[progress, total, message]`.
    Progress = 0,
    /// The server asks: the parameters of a question with this number.
    Elicit = 1,
    Sample = 2,
    Roots = 3,
    /// Nobody waits for the answer to the question with this number any more.
    Withdrawn = 4,
    /// The server tells something: `[method, params]`.
    Told = 5,
    /// A child wrote a line to its stderr.
    Stderr = 6,
    /// The core asks about authorization, under this number: `[method, params]`.
    Auth = 10,
    /// The server sends a custom request, under this number: `[method, params]`.
    Request = 11,
}

/// Where a client's events go.
#[derive(Clone)]
struct Outlet {
    hub: Arc<Shared>,
    client: u32,
    /// What waits for the client's listeners.
    backlog: Backlog,
}

impl Outlet {
    fn tell(&self, about: About, number: u32, json: Option<Raw>) {
        self.post(about, number, json, None);
    }

    /// Tells what a listener hears, unless it is so slow that too much waits for it.
    fn tell_listener(&self, about: About, number: u32, json: Raw) {
        if let Some(place) = self.backlog.admit(json.as_bytes().len()) {
            self.post(about, number, Some(json), Some(place));
        }
    }

    fn post(&self, about: About, number: u32, json: Option<Raw>, place: Option<Place>) {
        let number = f64::from(number);
        self.hub
            .post(Event::Told(self.client, about as u32, number, json, place));
    }
}
