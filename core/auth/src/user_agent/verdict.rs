//! The outcome of a sign-in, as the client reports it to the user agent.

use std::fmt;

/// Reports the outcome of a sign-in to the user agent, which shows it to the user. Dropping it reports a failure: an
/// authorization that ends early must not leave a success page behind.
pub struct Verdict {
    report: Option<Box<VerdictCallback>>,
}

type VerdictCallback = dyn FnOnce(Result<(), &str>) + Send;

impl Verdict {
    /// Calls `report` with the outcome: `Ok` if the client is authorized, otherwise the reason in words for the user.
    pub fn new(report: impl FnOnce(Result<(), &str>) + Send + 'static) -> Self {
        Self {
            report: Some(Box::new(report)),
        }
    }

    /// Reports the outcome to no one.
    pub fn untold() -> Self {
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

impl Drop for Verdict {
    fn drop(&mut self) {
        if let Some(report) = self.report.take() {
            report(Err("The authorization was given up."));
        }
    }
}

impl fmt::Debug for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verdict").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn verdict() -> (Verdict, mpsc::Receiver<Result<(), String>>) {
        let (sender, receiver) = mpsc::channel();
        let verdict = Verdict::new(move |outcome| {
            let _ = sender.send(outcome.map_err(str::to_owned));
        });
        (verdict, receiver)
    }

    #[test]
    fn verdict_is_reported_once() {
        let (accepted, received) = verdict();
        accepted.accept();
        assert_eq!(received.iter().collect::<Vec<_>>(), [Ok(())]);
        let (refused, received) = verdict();
        refused.refuse("no");
        assert_eq!(received.iter().collect::<Vec<_>>(), [Err("no".to_owned())]);
    }

    #[test]
    fn dropped_verdict_reports_failure() {
        let (dropped, received) = verdict();
        drop(dropped);
        assert!(received.recv().is_ok_and(|outcome| outcome.is_err()));
    }
}
