//! What a server may ask of a host and tell it, on its way to JavaScript's handlers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use mcpline::RpcError;
use mcpline::client::{Answer as Answering, Answerer};
use mcpline::protocol::wire::{Notification, Raw};
use tokio::sync::oneshot;

use crate::hub::lock;

use super::{About, Outlet};

type Outcome = Result<Raw, RpcError>;

/// The questions of one client's servers that wait for an answer. Once the client is gone nothing waits any more: the
/// core must not keep the handlers alive.
#[derive(Default)]
pub(super) struct Questions(Mutex<Open>);

#[derive(Default)]
struct Open {
    last: u32,
    waiting: HashMap<u32, oneshot::Sender<Outcome>>,
    is_over: bool,
}

impl Questions {
    /// Answers one.
    pub(super) fn answer(&self, number: u32, outcome: Outcome) {
        let sender = lock(&self.0).waiting.remove(&number);
        if let Some(sender) = sender {
            // Nobody may want it any more.
            let _ = sender.send(outcome);
        }
    }

    /// Nobody answers any more.
    pub(super) fn end(&self) {
        let mut open = lock(&self.0);
        open.is_over = true;
        let waiting = std::mem::take(&mut open.waiting);
        drop(open);
        drop(waiting);
    }

    /// `None` if nobody answers.
    fn open(&self) -> Option<(u32, oneshot::Receiver<Outcome>)> {
        let mut open = lock(&self.0);
        if open.is_over {
            return None;
        }
        open.last = open.last.wrapping_add(1);
        let number = open.last;
        let (sender, receiver) = oneshot::channel();
        open.waiting.insert(number, sender);
        Some((number, receiver))
    }
}

/// Has the handlers in JavaScript answer questions of this method.
pub(super) fn answerer(outlet: &Outlet, questions: &Arc<Questions>, method: &str) -> Answerer {
    let about = match method {
        "elicitation/create" => About::Elicit,
        "sampling/createMessage" => About::Sample,
        "roots/list" => About::Roots,
        own if own.starts_with("host/") || own.starts_with("auth/") => About::Auth,
        _ => About::Request,
    };
    let method = Raw::string(method);
    let (outlet, questions) = (outlet.clone(), questions.clone());
    Arc::new(move |params| {
        let gone = || Err(RpcError::internal_error("the host is gone"));
        let Some((number, receiver)) = questions.open() else {
            let answering: Answering = Box::pin(async move { gone() });
            return answering;
        };
        let params = match about {
            About::Auth | About::Request => {
                let params = params.as_ref().map_or("{}", Raw::as_str);
                let named = format!("[{},{params}]", method.as_str());
                Some(Raw::from_trusted(named))
            }
            _ => params,
        };
        outlet.tell(about, number, params);
        let asked = Asked {
            outlet: outlet.clone(),
            questions: questions.clone(),
            number,
        };
        Box::pin(async move {
            let answer = receiver.await;
            drop(asked);
            answer.unwrap_or_else(|_| gone())
        })
    })
}

/// Withdraws a question, unless it is answered, when nobody waits for the answer any more.
struct Asked {
    outlet: Outlet,
    questions: Arc<Questions>,
    number: u32,
}

impl Drop for Asked {
    fn drop(&mut self) {
        let waiting = lock(&self.questions.0).waiting.remove(&self.number);
        if waiting.is_some() {
            self.outlet.tell(About::Withdrawn, self.number, None);
        }
    }
}

/// Tells JavaScript of notifications: of log messages, and, as soon as that is wanted, of all others.
pub(super) fn listener(
    outlet: &Outlet,
    all: &Arc<AtomicBool>,
) -> impl Fn(&Notification) + Send + Sync + 'static {
    let (outlet, all) = (outlet.clone(), all.clone());
    move |notification| {
        let method = notification.method.as_str();
        if method != "notifications/message" && !all.load(Ordering::Relaxed) {
            return;
        }
        let name = Raw::string(method);
        let params = notification.params.as_ref();
        let params = params.map_or("{}", |params| params.raw().as_str());
        let told = format!("[{},{params}]", name.as_str());
        outlet.tell_listener(About::Told, 0, Raw::from_trusted(told));
    }
}
