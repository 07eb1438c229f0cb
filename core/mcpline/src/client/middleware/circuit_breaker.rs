//! Sends nothing for a while to a server that fails.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use mcpline_runtime::clock;

use crate::client_error::ClientError;
use crate::error_kind::ErrorKind;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::request::is_busy;
use super::{ClientMiddleware, ClientMiddlewareFuture, ClientNext, ClientOutcome, ClientRequest};

/// Maximum number of requests that try a server at once. More than one, because a request may lead to others before it ends: an
/// extension's handler sends them, or the user answers a question.
const MAX_TRIALS: usize = 10;

/// A [`ClientMiddleware`] that sends nothing for a while to a server that has failed several times in a row, so that callers get an
/// error at once instead of waiting, and the server can recover.
///
/// Failures are: the server could not be reached or the handshake failed, the connection or the process ended, a timeout elapsed,
/// the server was busy (-31000), or it answered with an HTTP status from 500, or 429. Every other answer of the server is a
/// success; errors of the host, such as a refused call, count as neither. After `failures` in a row the circuit is open: requests
/// fail with [`ClientError::ServerUnreachable`], whose source is [`CircuitOpen`], and nothing is sent; results that the
/// client has cached are still returned. After `reset` up to ten requests are sent as trials; the first that succeeds closes the circuit,
/// and the first that fails opens it again.
///
/// Put [`Retry`](super::Retry) before it, so that repetitions count.
///
/// ```
/// use std::time::Duration;
///
/// use mcpline::client::Client;
/// use mcpline::client::middleware::{CircuitBreaker, Retry};
///
/// let builder = Client::builder("host", "1.0.0")
///     .middleware(Retry::new(3))
///     .middleware(CircuitBreaker::new(5, Duration::from_secs(30)));
/// # let _ = builder;
/// ```
#[derive(Debug)]
pub struct CircuitBreaker {
    failures: u32,
    reset: Duration,
    circuit: Arc<Mutex<Circuit>>,
}

/// The source of the error of a request that an open [`CircuitBreaker`] has not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CircuitOpen;

#[derive(Debug, Default)]
struct Circuit {
    /// Failures in a row.
    failures: u32,
    /// When the circuit was opened, if it is open.
    opened: Option<Duration>,
    /// Trials in flight.
    trials: usize,
    /// Counts how often the circuit was opened or closed: outcomes of requests from before do not count.
    generation: u64,
}

impl CircuitBreaker {
    /// Creates one that opens after `failures` in a row (at least one), for `reset`.
    pub fn new(failures: u32, reset: Duration) -> Self {
        Self {
            failures: failures.max(1),
            reset,
            circuit: Arc::default(),
        }
    }

    /// Returns whether the circuit is open: requests fail, apart from trials.
    pub fn is_open(&self) -> bool {
        lock(&self.circuit).opened.is_some()
    }

    /// Admits a request, or returns why it is not sent.
    fn admit(&self) -> Result<AdmissionGuard, ClientError> {
        let mut circuit = lock(&self.circuit);
        let is_trial = match circuit.opened {
            None => false,
            Some(opened) => {
                let left = opened
                    .saturating_add(self.reset)
                    .saturating_sub(clock::now());
                if !left.is_zero() || circuit.trials >= MAX_TRIALS {
                    return Err(refused(circuit.failures, left));
                }
                circuit.trials += 1;
                true
            }
        };
        Ok(AdmissionGuard {
            circuit: self.circuit.clone(),
            generation: circuit.generation,
            max_failures: self.failures,
            is_trial,
        })
    }
}

fn refused(failures: u32, left: Duration) -> ClientError {
    let next = match left.is_zero() {
        true => "a trial request is in flight".to_owned(),
        false => format!("the next attempt is in {left:.1?}"),
    };
    ClientError::ServerUnreachable {
        reason: format!("the circuit breaker is open after {failures} failures in a row; {next}"),
        source: Some(io::Error::other(CircuitOpen).into()),
    }
}

/// Whether an error is that of an open circuit.
pub(super) fn is_circuit_open(error: &ClientError) -> bool {
    let ClientError::ServerUnreachable {
        source: Some(source),
        ..
    } = error.cause()
    else {
        return false;
    };
    source
        .get_ref()
        .is_some_and(|inner| inner.is::<CircuitOpen>())
}

impl fmt::Display for CircuitOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the circuit is open")
    }
}

impl Error for CircuitOpen {}

/// What an outcome says about the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Answers,
    Fails,
    Unknown,
}

/// A request that is sent. Dropped without an outcome, it makes room for another trial.
struct AdmissionGuard {
    circuit: Arc<Mutex<Circuit>>,
    generation: u64,
    max_failures: u32,
    is_trial: bool,
}

impl AdmissionGuard {
    fn end(self, outcome: &ClientOutcome) {
        let mut circuit = lock(&self.circuit);
        if circuit.generation != self.generation {
            return;
        }
        match health(outcome) {
            Health::Unknown => {}
            Health::Answers => {
                circuit.failures = 0;
                if circuit.opened.take().is_some() {
                    circuit.generation += 1;
                    drop(circuit);
                    tracing::info!("circuit breaker closed: the server responds again");
                }
            }
            Health::Fails => {
                circuit.failures = circuit.failures.saturating_add(1);
                if self.is_trial || circuit.failures >= self.max_failures {
                    circuit.opened = Some(clock::now());
                    circuit.generation += 1;
                    let failures = circuit.failures;
                    drop(circuit);
                    tracing::warn!(
                        failures,
                        "circuit breaker opened: the server fails, so requests are not sent for a while"
                    );
                }
            }
        }
    }
}

impl Drop for AdmissionGuard {
    fn drop(&mut self) {
        if self.is_trial {
            lock(&self.circuit).trials -= 1;
        }
    }
}

fn lock(circuit: &Mutex<Circuit>) -> MutexGuard<'_, Circuit> {
    circuit.lock().unwrap_or_else(PoisonError::into_inner)
}

fn health(outcome: &ClientOutcome) -> Health {
    let error = match outcome {
        Ok(_) => return Health::Answers,
        Err(error) => error,
    };
    match error.cause() {
        _ if is_busy(error) => Health::Fails,
        ClientError::RequestTimedOut { .. }
        | ClientError::Http { status: 500.., .. }
        | ClientError::ServerUnreachable { .. }
        | ClientError::ConnectionLost { .. }
        | ClientError::ServerExited { .. }
        | ClientError::HandshakeFailed(_) => Health::Fails,
        other => match other.kind() {
            ErrorKind::Rpc
            | ErrorKind::Http
            | ErrorKind::SessionExpired
            | ErrorKind::AuthorizationFailed
            | ErrorKind::InvalidResponse => Health::Answers,
            // Errors of the host, which may have sent nothing.
            _ => Health::Unknown,
        },
    }
}

impl ClientMiddleware for CircuitBreaker {
    fn handle(&self, request: ClientRequest, next: ClientNext) -> ClientMiddlewareFuture {
        if request.is_cached() {
            // The answer says nothing about the server.
            return Box::pin(async move { next.run(request).await });
        }
        let admitted = match self.admit() {
            Ok(admitted) => admitted,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        Box::pin(async move {
            let outcome = next.run(request).await;
            admitted.end(&outcome);
            outcome
        })
    }
}
