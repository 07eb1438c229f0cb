//! What a child wrote to stderr last.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcpline_protocol::Printable;
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;

use crate::background;

use super::command::StderrListener;

/// Most lines that an error repeats: the end of a traceback.
const KEPT_LINES: usize = 20;

/// Longest line kept, in bytes; the rest of a longer one is dropped.
const KEPT_LINE: usize = 2 * 1024;

/// The last lines of a child's stderr.
pub(super) struct LastLines {
    lines: Arc<Mutex<VecDeque<String>>>,
    reading: Option<background::JoinHandle<()>>,
}

impl LastLines {
    /// Nothing is captured.
    pub(super) fn none() -> Self {
        Self {
            lines: Arc::default(),
            reading: None,
        }
    }

    /// Reads until the end, so that the child never waits for somebody to read.
    pub(super) fn keep(mut stderr: ChildStderr, listener: Option<StderrListener>) -> Self {
        let lines: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let kept = lines.clone();
        let reading = background::spawn_here(async move {
            let mut chunk = [0; 4096];
            let mut line = Vec::new();
            let finish = |line: &mut Vec<u8>| {
                let text = String::from_utf8_lossy(line);
                let text = text.trim_end_matches('\r');
                tracing::info!(target: "mcpline::server_stderr", "{}", Printable(text));
                if let Some(listener) = &listener {
                    listener(text);
                }
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == KEPT_LINES {
                    kept.pop_front();
                }
                kept.push_back(text.to_owned());
                drop(kept);
                line.clear();
            };
            while let Ok(read) = stderr.read(&mut chunk).await {
                if read == 0 {
                    break;
                }
                for &byte in &chunk[..read] {
                    match byte {
                        b'\n' => finish(&mut line),
                        _ if line.len() < KEPT_LINE => line.push(byte),
                        _ => {}
                    }
                }
            }
            if !line.is_empty() {
                finish(&mut line);
            }
        });
        Self {
            lines,
            reading: Some(reading),
        }
    }

    /// The last lines, once stderr has ended or `grace` is over.
    pub(super) async fn last(mut self, grace: Duration) -> Vec<String> {
        if let Some(reading) = &mut self.reading {
            // What it started may hold stderr open for longer than anybody wants to wait.
            let _ = tokio::time::timeout(grace, reading).await;
        }
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }
}

impl Drop for LastLines {
    fn drop(&mut self) {
        if let Some(reading) = &self.reading {
            reading.abort();
        }
    }
}
