//! Times as text.

use std::fmt;
use std::time::SystemTime;

/// Writes a time in UTC with milliseconds: `2026-07-28T09:30:00.123Z` (RFC 3339).
pub(crate) struct Rfc3339(pub(super) SystemTime);

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A clock before 1970 is not set.
        let since = self.0.duration_since(SystemTime::UNIX_EPOCH);
        let since = since.unwrap_or_default();
        let seconds = since.as_secs();
        let (year, month, day) = date(seconds / 86_400);
        let (hours, minutes) = (seconds / 3_600 % 24, seconds / 60 % 60);
        let (seconds, millis) = (seconds % 60, since.subsec_millis());
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z"
        )
    }
}

/// Returns year, month and day of a number of days after 1970-01-01.
fn date(mut days: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    loop {
        let length = 365 + u64::from(is_leap(year));
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (1_772_323_200, "2026-03-01T00:00:00.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(Rfc3339(time).to_string(), expected);
        }
    }
}
