//! What Python says of a client to be made, and of a request to be sent.

use std::sync::Arc;

use mcpline::client::{Address, ClientBuilder, ClientSettings, RequestOptions};
use mcpline::foreign::client::Backlog;
use mcpline::foreign::options::{CallOptions, HostOptions, ProgramOptions, log_level};
use mcpline::protocol::client::CallTimeouts;
use mcpline::protocol::vocabulary::LoggingLevel;
use pyo3::prelude::*;

use crate::errors;
use crate::outcome::checked;

use super::host::{self, Host};
use super::port::{Event, Outlet};

/// A builder whose handlers are the host's.
pub(super) fn builder(
    py: Python<'_>,
    offer: HostOptions,
    settings: ClientSettings,
    outlet: &Arc<Outlet>,
    host: &Arc<Host>,
    backlog: &Backlog,
) -> PyResult<ClientBuilder> {
    let (notifications, logs) = (offer.notifications, offer.logs);
    let builder = offer
        .builder(settings, |method| host::answerer(outlet, host, method))
        .map_err(|error| errors::core(py, &error))?;
    Ok(match notifications || logs {
        true => host::listening(builder, outlet, host, backlog, !notifications),
        false => builder,
    })
}

/// A program, whose stderr is heard where somebody listens.
pub(super) fn command(
    py: Python<'_>,
    program: ProgramOptions,
    stderr: Option<(Arc<Outlet>, Arc<Host>, Backlog)>,
) -> PyResult<Address> {
    let command = program.command();
    let mut command = command.map_err(|error| errors::core(py, &error))?;
    if let Some((outlet, host, backlog)) = stderr {
        command = command.on_stderr(move |line| {
            if let Some(place) = backlog.admit(line.len()) {
                let (host, line) = (host.clone(), line.to_owned());
                outlet.post(Event::Stderr { host, line, place });
            }
        });
    }
    Ok(Address::Command(command))
}

/// What Python gives with one request: timeouts without a sign of life and in all, who hears of progress, `_meta`, the
/// log level, whether to reissue, whether a kept result won't do, whether questions are answered by hand.
pub(super) type GivenOptions = (
    Option<f64>,
    Option<f64>,
    Option<Py<PyAny>>,
    Option<Vec<u8>>,
    Option<String>,
    Option<String>,
    bool,
    bool,
);

/// The options of one request, and who hears of progress.
pub(super) fn request_options(
    py: Python<'_>,
    defaults: CallTimeouts,
    given: GivenOptions,
) -> PyResult<(RequestOptions, Option<Py<PyAny>>)> {
    let (timeout, total_timeout, progress, meta, log_level, reissue, fresh, by_hand) = given;
    let options = CallOptions {
        timeout,
        total_timeout,
        meta: meta.map(|meta| checked(py, meta)).transpose()?,
        log_level,
        reissue,
        fresh,
        by_hand,
    };
    let options = options.options(defaults);
    Ok((options.map_err(|error| errors::core(py, &error))?, progress))
}

pub(super) fn log_level_of(py: Python<'_>, name: &str) -> PyResult<LoggingLevel> {
    log_level(name).map_err(|error| errors::core(py, &error))
}
