//! JSON numbers, compared and divided by their mathematical value, whatever type holds them.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use serde_json::Number;

/// A number in the first of these types that can hold it.
#[derive(Clone, Copy)]
enum NumberValue {
    Integer(i64),
    /// Larger than the maximum of those.
    Large(u64),
    Float(f64),
}

/// Two to the power of 53. Floats represent all integers up to here exactly, and all floats from here on are integers.
const EXACT: u64 = 1 << 53;

/// Two to the powers of 63 and 64, which don't fit into the integer types any more.
const BEYOND_I64: f64 = 9_223_372_036_854_775_808.0;
const BEYOND_U64: f64 = 18_446_744_073_709_551_616.0;

fn number_value(number: &Number) -> NumberValue {
    if let Some(integer) = number.as_i64() {
        NumberValue::Integer(integer)
    } else if let Some(large) = number.as_u64() {
        NumberValue::Large(large)
    } else {
        NumberValue::Float(number.as_f64().unwrap_or(f64::NAN))
    }
}

/// Whether a float is integral. The cast rounds toward zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "what is cast is small enough to be exact"
)]
fn is_integral_float(float: f64) -> bool {
    float.abs() >= EXACT as f64 || (float as i64) as f64 == float
}

/// Whether a number is integral, as 1.0 is.
pub(crate) fn is_integer(number: &Number) -> bool {
    match number_value(number) {
        NumberValue::Integer(_) | NumberValue::Large(_) => true,
        NumberValue::Float(float) => is_integral_float(float),
    }
}

/// Whether a number is written without a fraction, which draft 4 requires of integers; the notation of numbers beyond
/// 64 bits is unknown.
pub(crate) fn is_integer_literal(number: &Number) -> bool {
    match number_value(number) {
        NumberValue::Integer(_) | NumberValue::Large(_) => true,
        NumberValue::Float(float) => float.abs() >= BEYOND_I64,
    }
}

/// An integer of at least zero; values beyond any length become the largest.
pub(crate) fn natural(number: &Number) -> Option<u64> {
    match number_value(number) {
        NumberValue::Integer(integer) => u64::try_from(integer).ok(),
        NumberValue::Large(large) => Some(large),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, not negative; the cast saturates"
        )]
        NumberValue::Float(float) => {
            (float >= 0.0 && is_integral_float(float)).then_some(float as u64)
        }
    }
}

/// Whether a number is positive.
pub(crate) fn is_positive(number: &Number) -> bool {
    number.as_f64().is_some_and(|float| float > 0.0)
}

/// Compares two numbers.
pub(crate) fn compare(left: &Number, right: &Number) -> Ordering {
    match (number_value(left), number_value(right)) {
        (NumberValue::Integer(left), NumberValue::Integer(right)) => left.cmp(&right),
        (NumberValue::Integer(_), NumberValue::Large(_)) => Ordering::Less,
        (NumberValue::Large(_), NumberValue::Integer(_)) => Ordering::Greater,
        (NumberValue::Large(left), NumberValue::Large(right)) => left.cmp(&right),
        (NumberValue::Float(left), NumberValue::Float(right)) => compare_floats(left, right),
        (NumberValue::Integer(left), NumberValue::Float(right)) => {
            compare_integer_with_float(left, right)
        }
        (NumberValue::Float(left), NumberValue::Integer(right)) => {
            compare_integer_with_float(right, left).reverse()
        }
        (NumberValue::Large(left), NumberValue::Float(right)) => {
            compare_large_with_float(left, right)
        }
        (NumberValue::Float(left), NumberValue::Large(right)) => {
            compare_large_with_float(right, left).reverse()
        }
    }
}

fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "what is cast is whole, and in range"
)]
fn compare_integer_with_float(integer: i64, float: f64) -> Ordering {
    if integer.unsigned_abs() <= EXACT {
        compare_floats(integer as f64, float)
    } else if float >= BEYOND_I64 {
        Ordering::Less
    } else if float < -BEYOND_I64 {
        Ordering::Greater
    } else {
        // A fraction makes no difference: a float with a fraction is closer to zero than the integer.
        integer.cmp(&(float as i64))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole, and in range"
)]
fn compare_large_with_float(large: u64, float: f64) -> Ordering {
    if float >= BEYOND_U64 {
        Ordering::Less
    } else if float < BEYOND_I64 {
        Ordering::Greater
    } else {
        large.cmp(&(float as u64))
    }
}

/// Feeds a number to a hash; equal numbers have equal hashes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole, and in range"
)]
pub(crate) fn hash(number: &Number, state: &mut impl Hasher) {
    match number_value(number) {
        NumberValue::Integer(integer) => integer.hash(state),
        NumberValue::Large(large) => large.hash(state),
        NumberValue::Float(float) if !is_integral_float(float) => float.to_bits().hash(state),
        NumberValue::Float(float) if float.abs() < BEYOND_I64 => (float as i64).hash(state),
        NumberValue::Float(float) if (0.0..BEYOND_U64).contains(&float) => {
            (float as u64).hash(state)
        }
        NumberValue::Float(float) => float.to_bits().hash(state),
    }
}

/// A number as decimal digits: `digits` times ten to the power of `exponent`.
struct Decimal {
    digits: u64,
    exponent: i32,
}

impl Decimal {
    /// The digits in the shortest text of the number, without the sign.
    fn of(number: &Number) -> Option<Self> {
        let whole = match number_value(number) {
            NumberValue::Integer(integer) => Some(integer.unsigned_abs()),
            NumberValue::Large(large) => Some(large),
            NumberValue::Float(_) => None,
        };
        if let Some(digits) = whole {
            let exponent = 0;
            return Some(Self { digits, exponent });
        }
        let text = number.to_string();
        let text = text.trim_start_matches('-');
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let fraction = fraction.trim_end_matches('0');
        let exponent: i32 = exponent.trim_start_matches('+').parse().ok()?;
        // Floats have at most 17 significant digits.
        let digits = format!("{whole}{fraction}").parse().ok()?;
        Some(Self {
            digits,
            exponent: exponent - i32::try_from(fraction.len()).ok()?,
        })
    }
}

/// Whether a number is a multiple of another, positive one; in decimal, so that 0.3 is a multiple of 0.1.
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
        ((digits % modulus) * power_of_ten_mod(shift, modulus)).is_multiple_of(modulus)
    } else {
        // The divisor grows instead; nothing is a multiple of it once it exceeds all 64-bit numbers.
        10u128
            .checked_pow(shift.unsigned_abs())
            .and_then(|power| modulus.checked_mul(power))
            .is_some_and(|modulus| digits.is_multiple_of(modulus))
    }
}

/// Ten to this power, modulo a 64-bit number.
fn power_of_ten_mod(mut exponent: i32, modulus: u128) -> u128 {
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
            ("9007199254740993", "0.5", Ordering::Greater),
            ("-9007199254740993", "-0.5", Ordering::Less),
            (
                "18446744073709551615",
                "9223372036854775808.0",
                Ordering::Greater,
            ),
            (
                "9223372036854775808",
                "9223372036854775808.0",
                Ordering::Equal,
            ),
            (
                "9223372036854775807",
                "9223372036854775808.0",
                Ordering::Less,
            ),
            (
                "-9223372036854775808",
                "-9223372036854775808.0",
                Ordering::Equal,
            ),
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
    fn numbers_without_a_fraction_are_whole_however_they_are_written() {
        for (text, expected) in [
            ("1", true),
            ("-1.0", true),
            ("1.5", false),
            ("-0.0", true),
            ("1073741823.5", false),
            ("1e300", true),
            ("18446744073709551615", true),
        ] {
            assert_eq!(is_integer(&number(text)), expected, "{text}");
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
