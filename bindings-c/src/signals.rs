//! Signals that ask a program to end: SIGINT and SIGTERM; on Windows Ctrl-C, Ctrl-Break, the end of the console, of the session and of the
//! system.

use std::io;

#[cfg(unix)]
mod system {
    use tokio::signal::unix::{Signal, SignalKind, signal};

    use super::io;

    pub(crate) struct TerminationSignals {
        interrupt: Signal,
        terminate: Signal,
    }

    impl TerminationSignals {
        /// Takes the signals from now on. Needs a tokio runtime.
        pub(crate) fn take() -> io::Result<Self> {
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
            })
        }

        /// Waits for the next one; `None` if none will come.
        pub(crate) async fn next(&mut self) -> Option<()> {
            tokio::select! {
                Some(()) = self.interrupt.recv() => Some(()),
                Some(()) = self.terminate.recv() => Some(()),
                else => None,
            }
        }
    }
}

#[cfg(windows)]
mod system {
    use tokio::signal::windows::{
        CtrlBreak, CtrlC, CtrlClose, CtrlLogoff, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close,
        ctrl_logoff, ctrl_shutdown,
    };

    use super::io;

    pub(crate) struct TerminationSignals {
        interrupt: CtrlC,
        break_key: CtrlBreak,
        close: CtrlClose,
        logoff: CtrlLogoff,
        shutdown: CtrlShutdown,
    }

    impl TerminationSignals {
        /// Takes the signals from now on. Needs a tokio runtime.
        pub(crate) fn take() -> io::Result<Self> {
            Ok(Self {
                interrupt: ctrl_c()?,
                break_key: ctrl_break()?,
                close: ctrl_close()?,
                logoff: ctrl_logoff()?,
                shutdown: ctrl_shutdown()?,
            })
        }

        /// Waits for the next one; `None` if none will come. After the last three the system ends the process within seconds.
        pub(crate) async fn next(&mut self) -> Option<()> {
            tokio::select! {
                Some(()) = self.interrupt.recv() => Some(()),
                Some(()) = self.break_key.recv() => Some(()),
                Some(()) = self.close.recv() => Some(()),
                Some(()) = self.logoff.recv() => Some(()),
                Some(()) = self.shutdown.recv() => Some(()),
                else => None,
            }
        }
    }
}

pub(crate) use system::TerminationSignals;
