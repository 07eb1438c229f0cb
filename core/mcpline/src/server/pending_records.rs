//! Requests whose response is written, but not their record.
//!
//! A request is recorded, and its span ends, after its response, on the thread that wrote it. The client may have the response
//! and end the connection before that thread runs again, so serving ends, and a client of a server in memory closes, only after this.

use std::sync::Arc;
use std::time::Duration;

/// How long the end of serving waits at most. Records take microseconds unless their thread waits for a processor or their
/// listener blocks; a handler that lets others keep its context keeps the span as long.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// How often it looks whether all are recorded.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Counts the requests of a server that are answered and not yet recorded.
#[derive(Default)]
pub(super) struct PendingRecords(Arc<()>);

/// A request that is about to be answered, until it is recorded and its span has ended.
#[derive(Clone)]
pub(super) struct PendingRecord {
    _counted: Arc<()>,
}

impl PendingRecords {
    /// Counts a request, before its response is written.
    pub(super) fn begin(&self) -> PendingRecord {
        PendingRecord {
            _counted: self.0.clone(),
        }
    }

    /// Waits until all are recorded, for a bounded time.
    pub(super) async fn wait(&self) {
        let all_recorded = async {
            while Arc::strong_count(&self.0) > 1 {
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
        };
        let _ = tokio::time::timeout(MAX_WAIT, all_recorded).await;
    }
}
