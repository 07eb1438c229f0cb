//! A histogram of durations.

use std::time::Duration;

/// Upper bounds of the buckets in seconds, as the semantic conventions advise for all durations of MCP, with their text.
pub(crate) const BOUNDS: [(Duration, &str); 14] = [
    (Duration::from_millis(10), "0.01"),
    (Duration::from_millis(20), "0.02"),
    (Duration::from_millis(50), "0.05"),
    (Duration::from_millis(100), "0.1"),
    (Duration::from_millis(200), "0.2"),
    (Duration::from_millis(500), "0.5"),
    (Duration::from_secs(1), "1"),
    (Duration::from_secs(2), "2"),
    (Duration::from_secs(5), "5"),
    (Duration::from_secs(10), "10"),
    (Duration::from_secs(30), "30"),
    (Duration::from_secs(60), "60"),
    (Duration::from_secs(120), "120"),
    (Duration::from_secs(300), "300"),
];

/// How many durations were recorded in each bucket, and their sum.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    /// Number of durations in each bucket, not cumulative.
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: Duration,
}

impl Histogram {
    pub(crate) fn record(&mut self, duration: Duration) {
        let bucket = BOUNDS.iter().position(|(bound, _)| duration <= *bound);
        if let Some(bucket) = bucket {
            self.buckets[bucket] += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(duration);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn sum(&self) -> Duration {
        self.sum
    }

    /// Returns the text of each bound, with the number of durations up to it.
    pub(crate) fn cumulative(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let mut sum = 0;
        BOUNDS
            .iter()
            .zip(self.buckets)
            .map(move |((_, text), own)| {
                sum += own;
                (*text, sum)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_belong_to_their_bucket() {
        let mut histogram = Histogram::default();
        for millis in [0, 10, 11, 300_000, 300_001] {
            histogram.record(Duration::from_millis(millis));
        }
        let buckets: Vec<_> = histogram.cumulative().collect();
        assert_eq!(buckets[..2], [("0.01", 2), ("0.02", 3)]);
        assert_eq!(buckets[13], ("300", 4));
        assert_eq!(histogram.count(), 5);
        assert_eq!(histogram.sum(), Duration::from_millis(600_022));
    }

    #[test]
    fn texts_are_the_bounds_in_seconds() {
        for (bound, text) in BOUNDS {
            assert_eq!(text.parse(), Ok(bound.as_secs_f64()));
        }
    }
}
