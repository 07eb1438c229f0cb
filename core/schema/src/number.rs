//! Numbers as JSON has them: compared and divided by their mathematical value, whatever type holds them.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use serde_json::Number;

/// The number, if a 64-bit integer holds it.
fn integer(number: &Number) -> Option<i128> {
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

/// Whether it has no fraction: 1.0 has none.
pub(crate) fn is_whole(number: &Number) -> bool {
    integer(number).is_some() || float(number).fract() == 0.0
}

/// Whether it is written without a fraction, as draft 4 wants integers; how numbers beyond 64 bits were written is unknown.
pub(crate) fn is_written_whole(number: &Number) -> bool {
    integer(number).is_some() || float(number).abs() > BEYOND_INTEGERS
}

/// A whole number, zero at least; what is larger than any length counts as the largest.
pub(crate) fn natural(number: &Number) -> Option<u64> {
    if let Some(integer) = integer(number) {
        return u64::try_from(integer).ok();
    }
    let float = float(number);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, not negative; the cast saturates"
    )]
    (float >= 0.0 && float.fract() == 0.0).then_some(float as u64)
}

/// Whether it is above zero.
pub(crate) fn is_positive(number: &Number) -> bool {
    float(number) > 0.0
}

/// How two numbers compare.
pub(crate) fn compare(left: &Number, right: &Number) -> Ordering {
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(left), None) => compare_mixed(left, float(right)),
        (None, Some(right)) => compare_mixed(right, float(left)).reverse(),
        (None, None) => float(left)
            .partial_cmp(&float(right))
            .unwrap_or(Ordering::Equal),
    }
}

/// Two to the power of 64.
const BEYOND_INTEGERS: f64 = 18_446_744_073_709_551_616.0;

/// Floats of this size are far beyond 64-bit integers, and whole numbers below it are exact as 128-bit integers.
const HUGE: f64 = 1e30;

#[expect(
    clippy::cast_possible_truncation,
    reason = "whole, and smaller than HUGE"
)]
fn compare_mixed(integer: i128, float: f64) -> Ordering {
    if float >= HUGE {
        return Ordering::Less;
    }
    if float <= -HUGE {
        return Ordering::Greater;
    }
    let whole = float.trunc();
    integer
        .cmp(&(whole as i128))
        .then_with(|| whole.partial_cmp(&float).unwrap_or(Ordering::Equal))
}

/// Feeds a number to a hash; equal numbers feed the same.
#[expect(
    clippy::cast_possible_truncation,
    reason = "whole, and smaller than HUGE"
)]
pub(crate) fn hash(number: &Number, state: &mut impl Hasher) {
    if let Some(integer) = integer(number) {
        return integer.hash(state);
    }
    let float = float(number);
    if float.fract() == 0.0 && float.abs() < HUGE {
        (float as i128).hash(state);
    } else {
        float.to_bits().hash(state);
    }
}

/// A number as decimal digits: `digits` times ten to the power of `exponent`.
struct Decimal {
    digits: u64,
    exponent: i32,
}

impl Decimal {
    /// What a reader of the shortest text of the number sees; the sign is left out.
    fn of(number: &Number) -> Option<Self> {
        if let Some(integer) = integer(number) {
            let digits = u64::try_from(integer.unsigned_abs()).ok()?;
            return Some(Self {
                digits,
                exponent: 0,
            });
        }
        let text = number.to_string();
        let text = text.trim_start_matches('-');
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let fraction = fraction.trim_end_matches('0');
        let exponent: i32 = exponent.trim_start_matches('+').parse().ok()?;
        // At most 17 digits matter to a float.
        let digits = format!("{whole}{fraction}").parse().ok()?;
        Some(Self {
            digits,
            exponent: exponent - i32::try_from(fraction.len()).ok()?,
        })
    }
}

/// Whether a number is a multiple of another one, which is above zero; in decimal, so that 0.3 is a multiple of 0.1.
pub(crate) fn is_multiple(number: &Number, of: &Number) -> bool {
    let (Some(number), Some(of)) = (Decimal::of(number), Decimal::of(of)) else {
        return false;
    };
    if number.digits == 0 || of.digits == 0 {
        return number.digits == 0;
    }
    let modulus = u128::from(of.digits);
    let digits = u128::from(number.digits);
    let shift = number.exponent - of.exponent;
    if shift >= 0 {
        // Both factors are below 2^64, so no product overflows.
        ((digits % modulus) * power_of_ten(shift, modulus)).is_multiple_of(modulus)
    } else {
        // The divisor grows instead; beyond any 64-bit number nothing is a multiple of it.
        10u128
            .checked_pow(shift.unsigned_abs())
            .and_then(|power| modulus.checked_mul(power))
            .is_some_and(|modulus| digits.is_multiple_of(modulus))
    }
}

/// Ten to this power, modulo a 64-bit number.
fn power_of_ten(mut exponent: i32, modulus: u128) -> u128 {
    let mut result = 1 % modulus;
    let mut base = 10 % modulus;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * base % modulus;
        }
        base = base * base % modulus;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn number(text: &str) -> Number {
        match serde_json::from_str(text) {
            Ok(Value::Number(number)) => number,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn numbers_compare_by_value_whatever_holds_them() {
        for (left, right, expected) in [
            ("1", "1.0", Ordering::Equal),
            ("-1", "-1.5", Ordering::Greater),
            ("1", "1.5", Ordering::Less),
            ("9007199254740993", "9007199254740992.0", Ordering::Greater),
            ("18446744073709551615", "1e300", Ordering::Less),
            ("-9223372036854775808", "-1e300", Ordering::Greater),
            ("18446744073709551615", "-1", Ordering::Greater),
            ("-0.0", "0", Ordering::Equal),
        ] {
            assert_eq!(
                compare(&number(left), &number(right)),
                expected,
                "{left} {right}"
            );
            assert_eq!(
                compare(&number(right), &number(left)),
                expected.reverse(),
                "{left} {right}"
            );
        }
    }

    #[test]
    fn multiples_are_found_in_decimal() {
        for (value, of, expected) in [
            ("0.3", "0.1", true),
            ("0.0075", "0.0001", true),
            ("0.00751", "0.0001", false),
            ("4.5", "1.5", true),
            ("35", "1.5", false),
            ("1e308", "0.5", true),
            ("1e308", "3", false),
            ("12391239123", "1e-8", true),
            ("1", "1e300", false),
            ("0", "7", true),
            ("-9", "3", true),
            ("18446744073709551615", "5", true),
        ] {
            assert_eq!(
                is_multiple(&number(value), &number(of)),
                expected,
                "{value} {of}"
            );
        }
    }

    #[test]
    fn lengths_may_be_written_with_a_fraction_of_zero() {
        assert_eq!(natural(&number("2.0")), Some(2));
        assert_eq!(natural(&number("2.5")), None);
        assert_eq!(natural(&number("-1")), None);
        assert_eq!(natural(&number("1e300")), Some(u64::MAX));
    }
}
