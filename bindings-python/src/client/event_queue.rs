//! A queue between the I/O thread and an event loop: events cross in batches, with one wake-up per batch.
//!
//! A blocking client has a queue as well, drained by the thread of its handlers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use mcpline::client::ConnectionEvent;
use mcpline::foreign::IoAction;
use mcpline::foreign::client::{BacklogSlot, HostInputRequest};
use mcpline::protocol::vocabulary::Progress;
use mcpline::protocol::wire::Raw;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::errors;
use crate::event_loop::lock;
use crate::runtime::Runtime;
use crate::wakeup_fd::WakeupFd;

use super::channel::Channel;
use super::events::{Host, InputResponseSender};
use super::failure::{self, ClientFutureValue};

/// An event that must be handled in Python.
pub(super) enum Event {
    /// Sets the result of a future.
    Resolve(Py<PyAny>, ClientFutureValue),
    /// Reports progress to a listener.
    Progress(Arc<Py<PyAny>>, Progress, BacklogSlot),
    /// Passes an input request to the host.
    InputRequest {
        host: Arc<Host>,
        request: HostInputRequest,
        answer: InputResponseSender,
    },
    /// An input request was cancelled.
    Withdrawn { host: Arc<Host>, number: u64 },
    /// A channel of the host's transport must be opened.
    OpenChannel { host: Arc<Host>, channel: Channel },
    /// The server sent a notification.
    Notification {
        host: Arc<Host>,
        method: String,
        params: Option<Raw>,
        slot: BacklogSlot,
    },
    /// The connection was made, lost, restored or closed.
    Connection {
        host: Arc<Host>,
        event: ConnectionEvent,
        slot: Option<BacklogSlot>,
    },
    /// A child process wrote a line to its stderr.
    Stderr {
        host: Arc<Host>,
        line: String,
        slot: BacklogSlot,
    },
}

/// The events that the I/O thread has posted.
pub(super) struct EventQueue {
    events: Mutex<Vec<Event>>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl EventQueue {
    /// Like [`Self::post`], from a runtime that may end before it wakes the loop: that of a server.
    pub(super) fn post_at_once(&self, event: Event) {
        if self.put(event) {
            (self.wake)();
        }
    }

    /// Adds an event. Returns whether the draining thread has to be woken.
    fn put(&self, event: Event) -> bool {
        let mut events = lock(&self.events);
        events.push(event);
        events.len() == 1
    }

    /// Posts an event from any thread. Wakes the draining thread once for all events of a turn.
    pub(super) fn post(&self, event: Event) {
        if !self.put(event) {
            return;
        }
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let wake = self.wake.clone();
                runtime.spawn(async move {
                    tokio::task::yield_now().await;
                    wake();
                });
            }
            Err(_) => (self.wake)(),
        }
    }
}

/// Keeps a backlog slot until a listener or a handler has processed its item.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct HeldBacklogSlot(#[expect(dead_code, reason = "dropped with it")] BacklogSlot);

/// The queue that an event loop drains, and the actions that it hands over.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct LoopQueue {
    event_queue: Arc<EventQueue>,
    wake: Arc<WakeupFd>,
    /// The actions for each I/O thread in this iteration of the loop.
    pending: Mutex<Vec<(Arc<Runtime>, Vec<IoAction>)>>,
    flush_scheduled: AtomicBool,
    closed: AtomicBool,
}

#[pymethods]
impl LoopQueue {
    /// Creates a queue for a loop that watches `fileno()` and then calls `drain()`; otherwise `notify` is called, from
    /// another thread, when there is something to drain.
    #[new]
    #[pyo3(signature = (notify))]
    fn new(py: Python<'_>, notify: Option<Py<PyAny>>) -> PyResult<Self> {
        let wake = WakeupFd::new().map_err(|error| errors::transport(py, &error.to_string()))?;
        let wake = Arc::new(wake);
        let own = wake.clone();
        Ok(Self {
            event_queue: Arc::new(EventQueue {
                events: Mutex::default(),
                wake: match notify {
                    Some(notify) => crate::event_loop::notifier(notify),
                    None => Arc::new(move || own.wake()),
                },
            }),
            wake,
            pending: Mutex::default(),
            flush_scheduled: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        })
    }

    /// The descriptor that becomes readable when there is something to drain.
    fn fileno(&self) -> i64 {
        self.wake.reader()
    }

    /// Handles all events that were posted since the last drain.
    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        self.wake.clear();
        let events = std::mem::take(&mut *lock(&self.event_queue.events));
        let mut failed = None;
        for event in events {
            if let Err(error) = dispatch_event(py, event) {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Waits until there is something to drain; `false` once the queue is closed and empty.
    fn wait(&self, py: Python<'_>) -> bool {
        py.detach(|| {
            loop {
                // First, so that events after the check wake this thread.
                self.wake.clear();
                let is_closed = self.closed.load(Ordering::Acquire);
                // Events from before the end are handled, such as the one that the client is closed.
                if !lock(&self.event_queue.events).is_empty() {
                    return true;
                }
                if is_closed {
                    return false;
                }
                self.wake.wait();
            }
        })
    }

    /// Ends a waiting `wait`.
    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake.wake();
    }

    /// Hands over the loop's actions. Called by the loop, at most once per iteration.
    fn flush(&self) {
        self.flush_scheduled.store(false, Ordering::Relaxed);
        self.hand_over();
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(events) = self.event_queue.events.try_lock() {
            for event in &*events {
                if let Event::Resolve(future, _) = event {
                    visit.call(future)?;
                }
            }
        }
        Ok(())
    }
}

impl LoopQueue {
    pub(super) fn event_queue(&self) -> &Arc<EventQueue> {
        &self.event_queue
    }

    /// Hands an action to the I/O thread after this iteration of the loop, together with others.
    ///
    /// # Errors
    ///
    /// What `call_soon` raises: also the exception of a signal handler, which may run in it. The action is handed over.
    pub(super) fn send(
        slf: &Bound<'_, Self>,
        event_loop: &Bound<'_, PyAny>,
        runtime: &Arc<Runtime>,
        action: IoAction,
    ) -> PyResult<()> {
        let this = slf.get();
        {
            let mut pending = lock(&this.pending);
            match pending
                .iter_mut()
                .find(|(other, _)| Arc::ptr_eq(other, runtime))
            {
                Some((_, actions)) => actions.push(action),
                None => pending.push((runtime.clone(), vec![action])),
            }
        }
        if this.flush_scheduled.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let py = slf.py();
        let scheduled = slf
            .getattr(intern!(py, "flush"))
            .and_then(|flush| event_loop.call_method1(intern!(py, "call_soon"), (flush,)));
        // The loop may not flush, and later actions must not wait for that.
        scheduled.map(drop).inspect_err(|_| this.flush())
    }

    /// Hands over the waiting actions immediately.
    pub(super) fn hand_over(&self) {
        let pending = std::mem::take(&mut *lock(&self.pending));
        for (runtime, mut actions) in pending {
            runtime.io_queue().push_all(&mut actions);
        }
    }
}

fn dispatch_event(py: Python<'_>, event: Event) -> PyResult<()> {
    match event {
        Event::Resolve(future, given) => {
            let future = future.bind(py);
            if future.call_method0(intern!(py, "done"))?.is_truthy()? {
                return Ok(());
            }
            match given.into_python(py) {
                Ok(value) => future.call_method1(intern!(py, "set_result"), (value,))?,
                Err(error) => {
                    future.call_method1(intern!(py, "set_exception"), (error.value(py),))?
                }
            };
            Ok(())
        }
        Event::Progress(callback, progress, slot) => {
            let (progress, total, message) = report_arguments(py, &progress)?;
            let arguments = (progress, total, message, HeldBacklogSlot(slot));
            callback.bind(py).call1(arguments).map(drop)
        }
        Event::InputRequest {
            host,
            request,
            answer,
        } => {
            // Without a host, the dropped answer abandons the request.
            let Some(host) = host.get(py)? else {
                return Ok(());
            };
            let params = request.params;
            let params = params.map(|params| PyBytes::new(py, params.as_bytes()));
            let waiting = request.slot.map(HeldBacklogSlot);
            let arguments = (request.number, &*request.method, params, answer, waiting);
            host.call_method1(intern!(py, "input_request"), arguments)
                .map(drop)
        }
        Event::Withdrawn { host, number } => match host.get(py)? {
            Some(host) => host
                .call_method1(intern!(py, "withdraw"), (number,))
                .map(drop),
            None => Ok(()),
        },
        Event::OpenChannel { host, channel } => match host.get(py)? {
            Some(host) => host
                .call_method1(intern!(py, "open_channel"), (channel,))
                .map(drop),
            None => {
                channel.core().close();
                Ok(())
            }
        },
        Event::Notification {
            host,
            method,
            params,
            slot,
        } => {
            let Some(host) = host.get(py)? else {
                return Ok(());
            };
            let params = params.map(|params| PyBytes::new(py, params.as_bytes()));
            host.call_method1(
                intern!(py, "notify"),
                (method, params, HeldBacklogSlot(slot)),
            )
            .map(drop)
        }
        Event::Connection { host, event, slot } => {
            let Some(host) = host.get(py)? else {
                return Ok(());
            };
            let error = event.error().map(|error| failure::exception(py, error, ""));
            let error = error.map(|error| error.into_value(py));
            host.call_method1(
                intern!(py, "connection_changed"),
                (event.name(), error, slot.map(HeldBacklogSlot)),
            )
            .map(drop)
        }
        Event::Stderr { host, line, slot } => match host.get(py)? {
            Some(host) => host
                .call_method1(intern!(py, "stderr_line"), (line, HeldBacklogSlot(slot)))
                .map(drop),
            None => Ok(()),
        },
    }
}

/// The arguments `progress`, `total` and `message` of a listener.
type ReportArguments<'a, 'py> = (
    Bound<'py, PyAny>,
    Option<Bound<'py, PyAny>>,
    Option<&'a str>,
);

/// Converts a report for a listener.
pub(super) fn report_arguments<'a, 'py>(
    py: Python<'py>,
    progress: &'a Progress,
) -> PyResult<ReportArguments<'a, 'py>> {
    let total = progress.total.map(|total| failure::number(py, total));
    Ok((
        failure::number(py, progress.progress)?,
        total.transpose()?,
        progress.message.as_deref(),
    ))
}
