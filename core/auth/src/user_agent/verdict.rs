//! What a user who has come back is told: whether the client took what the authorization server said.

use std::fmt;

/// Tells the user agent, and so the user, what has become of a visit. Dropped, it tells of a refusal: whatever ends an
/// authorization early must not leave a page behind that says that all is well.
pub struct Verdict {
    tell: Option<Box<VerdictCallback>>,
}

type VerdictCallback = dyn FnOnce(Result<(), &str>) + Send;

impl Verdict {
    /// One that is told: `Ok` if the client is authorized, else why not, in words for the user.
    pub fn new(tell: impl FnOnce(Result<(), &str>) + Send + 'static) -> Self {
        Self {
            tell: Some(Box::new(tell)),
        }
    }

    /// One that nobody wants to hear.
    pub fn untold() -> Self {
        Self { tell: None }
    }

    /// The client is authorized.
    pub fn accept(mut self) {
        if let Some(tell) = self.tell.take() {
            tell(Ok(()));
        }
    }

    /// The client is not authorized. `reason` is shown to the user: no secrets, and nothing that an attacker may have
    /// written without saying whose words they are.
    pub fn refuse(mut self, reason: &str) {
        if let Some(tell) = self.tell.take() {
            tell(Err(reason));
        }
    }
}

impl Drop for Verdict {
    fn drop(&mut self) {
        if let Some(tell) = self.tell.take() {
            tell(Err("The authorization was given up."));
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
        let (told, heard) = mpsc::channel();
        let verdict = Verdict::new(move |outcome| {
            let _ = told.send(outcome.map_err(str::to_owned));
        });
        (verdict, heard)
    }

    #[test]
    fn a_verdict_is_told_once() {
        let (accepted, heard) = verdict();
        accepted.accept();
        assert_eq!(heard.iter().collect::<Vec<_>>(), [Ok(())]);
        let (refused, heard) = verdict();
        refused.refuse("no");
        assert_eq!(heard.iter().collect::<Vec<_>>(), [Err("no".to_owned())]);
    }

    #[test]
    fn a_dropped_verdict_is_a_refusal() {
        let (dropped, heard) = verdict();
        drop(dropped);
        assert!(heard.recv().is_ok_and(|outcome| outcome.is_err()));
    }
}
