//! `format` in dialects where it is a rule: drafts 4, 6 and 7. Formats that are not listed here are annotations there,
//! too.

use std::net::{Ipv4Addr, Ipv6Addr};

use fluent_uri::{Uri, UriRef};

use crate::budget::StepBudget;
use crate::pattern::Pattern;

/// A format that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Date,
    DateTime,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    JsonPointer,
    Regex,
    Time,
    Uri,
    UriReference,
}

impl Format {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "date" => Self::Date,
            "date-time" => Self::DateTime,
            "email" => Self::Email,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "json-pointer" => Self::JsonPointer,
            "regex" => Self::Regex,
            "time" => Self::Time,
            "uri" => Self::Uri,
            "uri-reference" => Self::UriReference,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::DateTime => "date-time",
            Self::Email => "email",
            Self::Hostname => "hostname",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::JsonPointer => "json-pointer",
            Self::Regex => "regex",
            Self::Time => "time",
            Self::Uri => "uri",
            Self::UriReference => "uri-reference",
        }
    }

    /// Whether a string has this format; `None` if that exceeds the budget.
    pub(crate) fn fits(self, text: &str, budget: &mut StepBudget<'_>) -> Option<bool> {
        budget.charge(1 + text.len() / 2)?;
        Some(match self {
            Self::Date => is_date(text),
            Self::DateTime => text
                .split_once(['T', 't'])
                .is_some_and(|(date, time)| is_date(date) && is_time(time)),
            Self::Email => is_email(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::JsonPointer => is_pointer(text),
            Self::Regex => {
                let compiles = Pattern::compile(text, budget).is_ok();
                if budget.remaining() == 0 {
                    return None;
                }
                compiles
            }
            Self::Time => is_time(text),
            Self::Uri => Uri::parse(text).is_ok(),
            Self::UriReference => UriRef::parse(text).is_ok(),
        })
    }
}

/// The leading `count` digits as a number.
fn digits(text: &str, count: usize) -> Option<u32> {
    let all = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

/// `full-date` of RFC 3339.
fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let mut part = |count| parts.next().and_then(|part| digits(part, count));
    let (Some(year), Some(month), Some(day)) = (part(4), part(2), part(2)) else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=longest).contains(&day)
}

/// `full-time` of RFC 3339. A leap second must be the last second of a day in UTC.
fn is_time(text: &str) -> bool {
    let Some((clock, offset)) = offset(text) else {
        return false;
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let mut parts = clock.splitn(3, ':');
    let mut part = || parts.next().and_then(|part| digits(part, 2));
    let (Some(hour), Some(minute), Some(second)) = (part(), part(), part()) else {
        return false;
    };
    if hour > 23 || minute > 59 || second > 60 {
        return false;
    }
    let of_day = i32::try_from(hour * 60 + minute).unwrap_or_default();
    second < 60 || (of_day - offset).rem_euclid(24 * 60) == 24 * 60 - 1
}

/// Splits a time into its part without the offset, and the offset in minutes.
fn offset(text: &str) -> Option<(&str, i32)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let at = text.rfind(['+', '-'])?;
    let (clock, offset) = text.split_at(at);
    let (hour, minute) = offset.get(1..)?.split_once(':')?;
    let (hour, minute) = (digits(hour, 2)?, digits(minute, 2)?);
    let minutes = i32::try_from(hour * 60 + minute).ok()?;
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    (hour < 24 && minute < 60).then_some((clock, sign * minutes))
}

/// `Mailbox` of RFC 5321, without quoted names.
fn is_email(text: &str) -> bool {
    let is_atom = |atom: &str| {
        !atom.is_empty()
            && atom
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte))
    };
    let Some((name, host)) = text.rsplit_once('@') else {
        return false;
    };
    let literal = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let is_host = match literal {
        Some(literal) => match literal.strip_prefix("IPv6:") {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => literal.parse::<Ipv4Addr>().is_ok(),
        },
        None => is_hostname(host),
    };
    is_host && name.split('.').all(is_atom)
}

/// A host name according to RFC 1123.
fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

/// A JSON pointer according to RFC 6901.
fn is_pointer(text: &str) -> bool {
    let escapes_are_known = text
        .split('~')
        .skip(1)
        .all(|rest| rest.starts_with(['0', '1']));
    (text.is_empty() || text.starts_with('/')) && escapes_are_known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_reject_similar_strings() {
        for (format, fitting, unfitting) in [
            (
                "date",
                &["2024-02-29", "1999-12-31"][..],
                &["2023-02-29", "2024-13-01", "24-01-01", "2024-1-1"][..],
            ),
            (
                "time",
                &["12:00:00Z", "23:59:60Z", "01:29:60.5+01:30"],
                &["12:00:00", "24:00:00Z", "22:59:60Z", "12:00:00.Z", "12:00Z"],
            ),
            (
                "date-time",
                &["1985-04-12t23:20:50.52z", "1990-12-31T15:59:60-08:00"],
                &["1985-04-12 23:20:50Z", "1985-04-12T23:20:50"],
            ),
            (
                "email",
                &["joe.bloggs@example.com", "te~st@[127.0.0.1]"],
                &["joe", ".a@b.c", "a..b@c", "a@", "a@-b"],
            ),
            (
                "hostname",
                &["localhost", "a-b.example"],
                &["-a", "a_b", "a..b", ""],
            ),
            ("ipv4", &["127.0.0.1"], &["256.1.1.1", "1.1.1", "01.1.1.1"]),
            ("ipv6", &["::1", "::ffff:1.2.3.4"], &["1::2::3", "::1%eth0"]),
            ("json-pointer", &["", "/a~1b/0"], &["a", "/~2", "/~"]),
            ("regex", &["^a+$"], &["(", "a{2,1}"]),
            (
                "uri",
                &["https://a.example/b?c#d", "urn:x:y"],
                &["/a", "a b:"],
            ),
            ("uri-reference", &["/a", "#b", "urn:x"], &["\\a", "a b"]),
        ] {
            let format = Format::from_name(format).expect(format);
            for text in fitting {
                let mut budget = StepBudget::new(1_000_000, None);
                assert_eq!(
                    format.fits(text, &mut budget),
                    Some(true),
                    "{text:?} is a {}",
                    format.name()
                );
            }
            for text in unfitting {
                let mut budget = StepBudget::new(1_000_000, None);
                assert_eq!(
                    format.fits(text, &mut budget),
                    Some(false),
                    "{text:?} is no {}",
                    format.name()
                );
            }
        }
    }
}
