//! Token buckets of rate limits as files: `buckets/DIGEST`, changed in place under the lock of its name. A bucket without a file
//! is full. The file has the nanoseconds since 1970 at which it is full again (little-endian), and its time says the same, for
//! the sweep.

use std::io;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcpline::sharing::{BucketPolicy, TakeOutcome};
use mcpline_protocol::session::TokenBucket;

use crate::directory::{ServiceDirectory, private_file};
use crate::file_names::file_name;

/// Returns the time since 1970, which all processes of the machine have in common.
pub(crate) fn unix_time() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

impl ServiceDirectory {
    /// Takes up to so many tokens. Also returns whether the file is new.
    pub(crate) fn take(
        &self,
        key: &str,
        policy: BucketPolicy,
        tokens: u32,
        now: Duration,
    ) -> io::Result<(TakeOutcome, bool)> {
        self.change_bucket(key, now, |bucket| {
            let taken = bucket.take_up_to(tokens, policy.interval, policy.burst, now);
            taken.map_or_else(TakeOutcome::Empty, TakeOutcome::Taken)
        })
    }

    /// Gives back tokens that were not used.
    pub(crate) fn give_back(
        &self,
        key: &str,
        policy: BucketPolicy,
        tokens: u32,
        now: Duration,
    ) -> io::Result<()> {
        let give_back = |bucket: &mut TokenBucket| bucket.give_back(tokens, policy.interval);
        self.change_bucket(key, now, give_back).map(|_| ())
    }

    fn change_bucket<T>(
        &self,
        key: &str,
        now: Duration,
        change: impl FnOnce(&mut TokenBucket) -> T,
    ) -> io::Result<(T, bool)> {
        let _lock = self.lock(key)?;
        let mut options = private_file();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = file.open(self.buckets().join(file_name(key)))?;
        let mut full_at = [0; 8];
        let is_new = match file.read_exact_at(&mut full_at, 0) {
            Ok(()) => false,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => true,
            Err(error) => return Err(error),
        };
        let before = Duration::from_nanos(match is_new {
            true => 0,
            false => u64::from_le_bytes(full_at),
        });
        let mut bucket = TokenBucket::with_full_at(before);
        let changed = change(&mut bucket);
        let after = bucket.full_at();
        if after != before {
            // 500 years are enough.
            let nanoseconds = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
            file.write_all_at(&nanoseconds.to_le_bytes(), 0)?;
        }
        // The write has changed it.
        let time = UNIX_EPOCH.checked_add(after.max(now));
        file.set_modified(time.unwrap_or_else(SystemTime::now))?;
        Ok((changed, is_new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::ServiceAddress;

    #[test]
    fn a_bucket_gets_tokens_by_the_clock_and_survives_its_change() {
        let path = std::env::temp_dir().join(format!("mcpline-bucket-{}", std::process::id()));
        let directory =
            ServiceDirectory::open(ServiceAddress::Path(path.clone()), "own".to_owned());
        let directory = directory.expect("a directory");
        let second = Duration::from_secs(1);
        let policy = BucketPolicy {
            interval: second,
            burst: 2,
        };
        let now = unix_time();
        let take = |now: Duration| {
            let taken = directory.take("one", policy, 5, now);
            taken.expect("taken")
        };
        assert_eq!(take(now), (TakeOutcome::Taken(2), true));
        assert_eq!(take(now), (TakeOutcome::Empty(second), false));
        assert_eq!(take(now + second).0, TakeOutcome::Taken(1));
        // The clock was set back by an hour.
        let earlier = now - 3_600 * second;
        assert_eq!(take(earlier).0, TakeOutcome::Empty(second));
        assert_eq!(take(earlier + second).0, TakeOutcome::Taken(1));
        let give_back = directory.give_back("one", policy, 1, earlier);
        give_back.expect("given back");
        let _ = std::fs::remove_dir_all(&path);
    }
}
