//! The functions of the header that read JSON.

use std::ffi::c_char;

use mcpline::protocol::wire::JsonKind;

use crate::status::{Fault, FaultResult, entry, mcpl_status};
use crate::text::{OutString, allocate_string, bytes, name, put};

use super::value::Value;

/// Types of JSON values.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum mcpl_json_kind {
    /// `null`
    MCPL_JSON_NULL = 0,
    /// `true` or `false`
    MCPL_JSON_BOOL = 1,
    /// A number.
    MCPL_JSON_NUMBER = 2,
    /// A string.
    MCPL_JSON_STRING = 3,
    /// An array.
    MCPL_JSON_ARRAY = 4,
    /// An object.
    MCPL_JSON_OBJECT = 5,
}

impl From<JsonKind> for mcpl_json_kind {
    fn from(kind: JsonKind) -> Self {
        match kind {
            JsonKind::Null => Self::MCPL_JSON_NULL,
            JsonKind::Bool => Self::MCPL_JSON_BOOL,
            JsonKind::Number => Self::MCPL_JSON_NUMBER,
            JsonKind::String => Self::MCPL_JSON_STRING,
            JsonKind::Array => Self::MCPL_JSON_ARRAY,
            JsonKind::Object => Self::MCPL_JSON_OBJECT,
        }
    }
}

/// Returns the value at `json`.
///
/// # Safety
///
/// As for [`bytes`].
unsafe fn value<'t>(json: *const c_char, length: usize) -> FaultResult<Value<'t>> {
    if json.is_null() {
        return Err(Fault::invalid("the JSON is NULL"));
    }
    // SAFETY: guaranteed by the caller.
    Value::new(unsafe { bytes("the JSON", json, length)? })
}

/// Returns the value in `json` that a JSON pointer refers to.
///
/// # Safety
///
/// As for [`bytes`] and [`name`].
unsafe fn found<'t>(
    json: *const c_char,
    length: usize,
    pointer: *const c_char,
) -> FaultResult<Value<'t>> {
    // SAFETY: guaranteed by the caller.
    unsafe { value(json, length)?.find(name("the pointer", pointer)?) }
}

/// Returns a value to C as a position within the caller's own text.
///
/// # Safety
///
/// Both can be written to, or are `NULL`.
unsafe fn write_slice(found: &Value<'_>, value: *mut *const c_char, value_length: *mut usize) {
    let bytes = found.bytes();
    // SAFETY: guaranteed by the caller.
    unsafe {
        put(value, bytes.as_ptr().cast());
        put(value_length, bytes.len());
    }
}

/// Finds a value in a JSON text, without copying.
///
/// - `json`, `length`: the text and its length in bytes, or `MCPL_AUTO_LENGTH`. All of it is validated.
/// - `pointer`: JSON pointer (RFC 6901) that ends with a zero byte, such as `"/content/0/text"`. `""` is the whole
///   text; write `~1` for a slash and `~0` for a tilde in a member name.
/// - `value`, `value_length`: set to the start of the value within `json` and to its length in bytes, without
///   surrounding white space. No zero byte follows, and there is nothing to release: the value is valid as long as
///   `json`. Each may be `NULL`. `NULL` and 0 on failure.
///
/// The value can be passed to the other `mcpl_json_...` functions.
///
/// Returns `MCPL_NOT_FOUND` if there is no such value, and `MCPL_USAGE_ERROR` if the text is not valid JSON (including
/// objects with duplicate member names) or the pointer is invalid. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_find(
    json: *const c_char,
    length: usize,
    pointer: *const c_char,
    value: *mut *const c_char,
    value_length: *mut usize,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        unsafe {
            put(value, std::ptr::null());
            put(value_length, 0);
            write_slice(&found(json, length, pointer)?, value, value_length);
        }
        Ok(())
    })
}

/// Returns the type of a JSON value.
///
/// - `json`, `length`: the text and its length in bytes, or `MCPL_AUTO_LENGTH`.
/// - `kind`: set to the type; unchanged on failure.
///
/// Returns `MCPL_USAGE_ERROR` if the text is not valid JSON. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_kind_of(
    json: *const c_char,
    length: usize,
    kind: *mut mcpl_json_kind,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        unsafe { put(kind, value(json, length)?.kind().into()) };
        Ok(())
    })
}

/// Reads an integer.
///
/// - `json`, `length`: the text and its length in bytes, or `MCPL_AUTO_LENGTH`.
/// - `pointer`: JSON pointer to the number, as in `mcpl_json_find`.
/// - `number`: set to the number; unchanged on failure.
///
/// Any notation of a whole number is accepted: `7`, `7.0` and `7e0`.
///
/// Returns `MCPL_NOT_FOUND` if there is no such value, and `MCPL_USAGE_ERROR` if it is not a 64-bit integer or
/// `mcpl_json_find` would. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_int64(
    json: *const c_char,
    length: usize,
    pointer: *const c_char,
    number: *mut i64,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        unsafe { put(number, found(json, length, pointer)?.int64()?) };
        Ok(())
    })
}

/// Reads a number.
///
/// - `json`, `length`: the text and its length in bytes, or `MCPL_AUTO_LENGTH`.
/// - `pointer`: JSON pointer to the number, as in `mcpl_json_find`.
/// - `number`: set to the nearest double; unchanged on failure.
///
/// Returns `MCPL_NOT_FOUND` if there is no such value, and `MCPL_USAGE_ERROR` if it is not a number, is out of the
/// range of a double, or `mcpl_json_find` would. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_double(
    json: *const c_char,
    length: usize,
    pointer: *const c_char,
    number: *mut f64,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        unsafe { put(number, found(json, length, pointer)?.double()?) };
        Ok(())
    })
}

/// Reads `true` or `false`.
///
/// - `json`, `length`: the text and its length in bytes, or `MCPL_AUTO_LENGTH`.
/// - `pointer`: JSON pointer to the value, as in `mcpl_json_find`.
/// - `value`: set to the value; unchanged on failure.
///
/// Returns `MCPL_NOT_FOUND` if there is no such value, and `MCPL_USAGE_ERROR` if it has another type or
/// `mcpl_json_find` would. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_bool(
    json: *const c_char,
    length: usize,
    pointer: *const c_char,
    value: *mut bool,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        unsafe { put(value, found(json, length, pointer)?.bool()?) };
        Ok(())
    })
}

/// Reads a string and decodes its escapes.
///
/// - `json`, `length`: the text and its length in bytes, or `MCPL_AUTO_LENGTH`.
/// - `pointer`: JSON pointer to the string, as in `mcpl_json_find`.
/// - `text`: set to a copy in UTF-8 that ends with a zero byte. Release it with `mcpl_string_free`. `NULL` on failure.
/// - `text_length`: set to its length in bytes, without the zero byte; 0 on failure. May be `NULL`, but the string can
///   contain zero bytes (`\u0000`).
///
/// Returns `MCPL_NOT_FOUND` if there is no such value, and `MCPL_USAGE_ERROR` if it has another type or
/// `mcpl_json_find` would. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_string(
    json: *const c_char,
    length: usize,
    pointer: *const c_char,
    text: *mut *mut c_char,
    text_length: *mut usize,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        let (out, value) = unsafe {
            (
                OutString::new(text, text_length),
                found(json, length, pointer)?,
            )
        };
        out.write_string(value.string()?.as_bytes());
        Ok(())
    })
}

/// Counts the members of an object or the elements of an array.
///
/// - `json`, `length`: the text and its length in bytes, or `MCPL_AUTO_LENGTH`.
/// - `pointer`: JSON pointer to the object or array, as in `mcpl_json_find`.
/// - `count`: set to the number; unchanged on failure.
///
/// Returns `MCPL_NOT_FOUND` if there is no such value, and `MCPL_USAGE_ERROR` if it has another type or
/// `mcpl_json_find` would. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_count(
    json: *const c_char,
    length: usize,
    pointer: *const c_char,
    count: *mut usize,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        unsafe { put(count, found(json, length, pointer)?.count()?) };
        Ok(())
    })
}

/// Returns a member of an object or an element of an array by its position in the text.
///
/// To iterate, count up from 0 until the function returns `MCPL_NOT_FOUND`. Each call skips the items before from the
/// start.
///
/// - `json`, `length`: the object or array and its length in bytes, or `MCPL_AUTO_LENGTH`.
/// - `index`: position, from 0.
/// - `name`: set to the name of the member, which ends with a zero byte. Release it with `mcpl_string_free`. `NULL` for
///   an element, and on failure. May be `NULL`.
/// - `value`, `value_length`: set to the position of the value within `json`, as in `mcpl_json_find`.
///
/// Returns `MCPL_NOT_FOUND` if there are not so many items, and `MCPL_USAGE_ERROR` if the text is not valid JSON, or is
/// neither an object nor an array. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_item(
    json: *const c_char,
    length: usize,
    index: usize,
    name: *mut *mut c_char,
    value: *mut *const c_char,
    value_length: *mut usize,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        unsafe {
            put(name, std::ptr::null_mut());
            put(value, std::ptr::null());
            put(value_length, 0);
            let (called, item) = self::value(json, length)?.item(index)?;
            write_slice(&item, value, value_length);
            if let Some(called) = called.filter(|_| !name.is_null()) {
                name.write(allocate_string(called.as_bytes()));
            }
        }
        Ok(())
    })
}
