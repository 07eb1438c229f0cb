//! The way between the I/O thread and one event loop: what happened crosses in batches, with one wake-up each.
//!
//! A blocking client has a port too, where a thread takes what its handlers are to do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use mcpline::foreign::IoAction;
use mcpline::foreign::client::{BacklogSlot, InputRequest};
use mcpline::protocol::vocabulary::Progress;
use mcpline::protocol::wire::Raw;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::errors;
use crate::event_loop::lock;
use crate::runtime::Runtime;
use crate::wake::Wake;

use super::channel::Channel;
use super::events::{Answer, Host};
use super::failure::{self, ClientFutureValue};

/// Something that has to happen in Python.
pub(super) enum Event {
    /// A future gets its result.
    Resolve(Py<PyAny>, ClientFutureValue),
    /// A caller hears of progress.
    Progress(Arc<Py<PyAny>>, Progress, BacklogSlot),
    /// The host is asked.
    InputRequest {
        host: Arc<Host>,
        request: InputRequest,
        answer: Answer,
    },
    /// An input request was withdrawn.
    Withdrawn { host: Arc<Host>, number: u64 },
    /// A channel of the host's own transport is to be opened.
    OpenChannel { host: Arc<Host>, channel: Channel },
    /// The server sent a notification.
    Notification {
        host: Arc<Host>,
        method: String,
        params: Option<Raw>,
        slot: BacklogSlot,
    },
    /// A child wrote a line to its stderr.
    Stderr {
        host: Arc<Host>,
        line: String,
        slot: BacklogSlot,
    },
}

/// Where the I/O thread leaves what has to happen.
pub(super) struct EventQueue {
    events: Mutex<Vec<Event>>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl EventQueue {
    /// As [`Self::post`], from a runtime that may end before it comes to waking: that of a server.
    pub(super) fn post_at_once(&self, event: Event) {
        if self.put(event) {
            (self.wake)();
        }
    }

    /// Returns whether whoever drains has to be woken.
    fn put(&self, event: Event) -> bool {
        let mut events = lock(&self.events);
        events.push(event);
        events.len() == 1
    }

    /// Has something happen. From any thread; wakes whoever drains once for all that comes in one turn.
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

/// Something that waits for a listener or a handler: whoever holds this has yet to pass it on.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct HeldBacklogSlot(#[expect(dead_code, reason = "dropped with it")] BacklogSlot);

/// What an event loop drains, and where it leaves what it wants done.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct LoopQueue {
    outlet: Arc<EventQueue>,
    wake: Arc<Wake>,
    /// What is to be handed to which I/O thread in this turn of the loop.
    pending: Mutex<Vec<(Arc<Runtime>, Vec<IoAction>)>>,
    flush_scheduled: AtomicBool,
    closed: AtomicBool,
}

#[pymethods]
impl LoopQueue {
    /// A port for a loop that watches `fileno()` and then calls `drain()`; or that has `notify` called, from another
    /// thread, when there is something to drain.
    #[new]
    #[pyo3(signature = (notify))]
    fn new(py: Python<'_>, notify: Option<Py<PyAny>>) -> PyResult<Self> {
        let wake = Wake::new().map_err(|error| errors::transport(py, &error.to_string()))?;
        let wake = Arc::new(wake);
        let own = wake.clone();
        Ok(Self {
            outlet: Arc::new(EventQueue {
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
    fn fileno(&self) -> i32 {
        self.wake.reader()
    }

    /// Does what has come since the last time.
    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        self.wake.clear();
        let events = std::mem::take(&mut *lock(&self.outlet.events));
        let mut failed = None;
        for event in events {
            if let Err(error) = happen(py, event) {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Waits until there is something to drain; `false` once the port is closed.
    fn wait(&self, py: Python<'_>) -> bool {
        py.detach(|| {
            loop {
                // First, so that whatever comes after the look wakes.
                self.wake.clear();
                if self.closed.load(Ordering::Acquire) {
                    return false;
                }
                if !lock(&self.outlet.events).is_empty() {
                    return true;
                }
                self.wake.wait();
            }
        })
    }

    /// Ends whoever waits.
    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake.wake();
    }

    /// Hands over what the loop has wanted done: called by the loop, once per turn at most.
    fn flush(&self) {
        self.flush_scheduled.store(false, Ordering::Relaxed);
        self.hand_over();
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(events) = self.outlet.events.try_lock() {
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
    pub(super) fn outlet(&self) -> &Arc<EventQueue> {
        &self.outlet
    }

    /// Has something done on the I/O thread after this turn of the loop, with whatever else is.
    pub(super) fn send(
        slf: &Bound<'_, Self>,
        event_loop: &Bound<'_, PyAny>,
        runtime: &Arc<Runtime>,
        completion: IoAction,
    ) -> PyResult<()> {
        let this = slf.get();
        {
            let mut pending = lock(&this.pending);
            match pending
                .iter_mut()
                .find(|(other, _)| Arc::ptr_eq(other, runtime))
            {
                Some((_, completions)) => completions.push(completion),
                None => pending.push((runtime.clone(), vec![completion])),
            }
        }
        if !this.flush_scheduled.swap(true, Ordering::Relaxed) {
            let py = slf.py();
            let flush = slf.getattr(intern!(py, "flush"))?;
            event_loop.call_method1(intern!(py, "call_soon"), (flush,))?;
        }
        Ok(())
    }

    /// Hands over what waits, now.
    pub(super) fn hand_over(&self) {
        let pending = std::mem::take(&mut *lock(&self.pending));
        for (runtime, mut completions) in pending {
            runtime.completions().push_all(&mut completions);
        }
    }
}

fn happen(py: Python<'_>, event: Event) -> PyResult<()> {
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
            // Without a host nobody can answer: the answer, dropped, says so.
            let Some(host) = host.get(py)? else {
                return Ok(());
            };
            let params = request.params;
            let params = params.map(|params| PyBytes::new(py, params.as_bytes()));
            let waiting = request.slot.map(HeldBacklogSlot);
            let arguments = (request.number, &*request.method, params, answer, waiting);
            host.call_method1(intern!(py, "ask"), arguments).map(drop)
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
            host.call_method1(intern!(py, "hear"), (method, params, HeldBacklogSlot(slot)))
                .map(drop)
        }
        Event::Stderr { host, line, slot } => match host.get(py)? {
            Some(host) => host
                .call_method1(intern!(py, "hear_stderr"), (line, HeldBacklogSlot(slot)))
                .map(drop),
            None => Ok(()),
        },
    }
}

/// `progress`, `total` and `message`, as a listener takes them.
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
