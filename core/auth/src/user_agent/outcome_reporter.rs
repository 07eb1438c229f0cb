//! The outcome of a sign-in, as the client reports it to the user agent.

use std::fmt;

/// Reports the outcome of a sign-in to the user agent, which shows it to the user. Dropping it reports a failure: an
/// authorization that ends early must not leave a success page behind.
pub struct OutcomeReporter {
    report: Option<Box<OutcomeCallback>>,
}

type OutcomeCallback = dyn FnOnce(Result<(), &str>) + Send;

impl OutcomeReporter {
    /// Calls `report` with the outcome: `Ok` if the client is authorized, otherwise the reason in words for the user.
    pub fn new(report: impl FnOnce(Result<(), &str>) + Send + 'static) -> Self {
        Self {
            report: Some(Box::new(report)),
        }
    }

    /// Reports the outcome to no one.
    pub fn unreported() -> Self {
        Self { report: None }
    }

    /// Reports that the client is authorized.
    pub fn accept(mut self) {
        if let Some(report) = self.report.take() {
            report(Ok(()));
        }
    }

    /// Reports that the client is not authorized. `reason` is shown to the user: it must not contain secrets, and must
    /// attribute text that an attacker may have written.
    pub fn refuse(mut self, reason: &str) {
        if let Some(report) = self.report.take() {
            report(Err(reason));
        }
    }
}

impl Drop for OutcomeReporter {
    fn drop(&mut self) {
        if let Some(report) = self.report.take() {
            report(Err("The sign-in ended without a result."));
        }
    }
}

impl fmt::Debug for OutcomeReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutcomeReporter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn reporter() -> (OutcomeReporter, mpsc::Receiver<Result<(), String>>) {
        let (sender, receiver) = mpsc::channel();
        let reporter = OutcomeReporter::new(move |outcome| {
            let _ = sender.send(outcome.map_err(str::to_owned));
        });
        (reporter, receiver)
    }

    #[test]
    fn the_outcome_is_reported_once() {
        let (accepted, received) = reporter();
        accepted.accept();
        assert_eq!(received.iter().collect::<Vec<_>>(), [Ok(())]);
        let (refused, received) = reporter();
        refused.refuse("no");
        assert_eq!(received.iter().collect::<Vec<_>>(), [Err("no".to_owned())]);
    }

    #[test]
    fn dropping_the_reporter_reports_a_failure() {
        let (dropped, received) = reporter();
        drop(dropped);
        assert!(received.recv().is_ok_and(|outcome| outcome.is_err()));
    }
}
