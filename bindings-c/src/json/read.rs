//! What C calls to read JSON.

use std::ffi::c_char;

use mcpline::protocol::wire::Kind;

use crate::status::{Done, Fault, entry, mcpl_status};
use crate::text::{Out, bytes, name, owned, put};

use super::value::Value;

/// What kind of value JSON is.
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

impl From<Kind> for mcpl_json_kind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Null => Self::MCPL_JSON_NULL,
            Kind::Bool => Self::MCPL_JSON_BOOL,
            Kind::Number => Self::MCPL_JSON_NUMBER,
            Kind::String => Self::MCPL_JSON_STRING,
            Kind::Array => Self::MCPL_JSON_ARRAY,
            Kind::Object => Self::MCPL_JSON_OBJECT,
        }
    }
}

/// What lies at `json`.
///
/// # Safety
///
/// As for [`bytes`].
unsafe fn value<'t>(json: *const c_char, length: usize) -> Done<Value<'t>> {
    if json.is_null() {
        return Err(Fault::invalid("the JSON is NULL"));
    }
    // SAFETY: as the caller promises.
    Value::new(unsafe { bytes("the JSON", json, length)? })
}

/// What a pointer leads to in what lies at `json`.
///
/// # Safety
///
/// As for [`bytes`] and [`name`].
unsafe fn found<'t>(json: *const c_char, length: usize, pointer: *const c_char) -> Done<Value<'t>> {
    // SAFETY: as the caller promises.
    unsafe { value(json, length)?.find(name("the pointer", pointer)?) }
}

/// Gives a value by its place in the caller's own text.
///
/// # Safety
///
/// Both can be written to, or are `NULL`.
unsafe fn lend(found: &Value<'_>, value: *mut *const c_char, value_length: *mut usize) {
    let bytes = found.bytes();
    // SAFETY: as the caller promises.
    unsafe {
        put(value, bytes.as_ptr().cast());
        put(value_length, bytes.len());
    }
}

/// Finds a value in a JSON text.
///
/// - `json`, `length`: the text, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte. It is checked as a whole.
/// - `pointer`: a JSON pointer (RFC 6901), such as `"/content/0/text"`. `""` is the whole text; `~1` stands for a
///   slash and `~0` for a tilde in the name of a member.
/// - `value`, `value_length`: set to where the value lies in `json` itself, without white space around it, and to its
///   length in bytes. Nothing is copied, nothing has to be released, and no zero byte follows: what is found lives as
///   long as the text. Either may be `NULL`. On failure they are set to `NULL` and 0.
///
/// What was found can be given to the other functions of this kind. Any thread.
///
/// Fails with `MCPL_NOT_FOUND` if there is no such value, and with `MCPL_USAGE_ERROR` if the text is not JSON (two
/// members of one name in an object are not) or the pointer is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_find(
    json: *const c_char,
    length: usize,
    pointer: *const c_char,
    value: *mut *const c_char,
    value_length: *mut usize,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the header demands it.
        unsafe {
            put(value, std::ptr::null());
            put(value_length, 0);
            lend(&found(json, length, pointer)?, value, value_length);
        }
        Ok(())
    })
}

/// Tells what kind of value a JSON text is.
///
/// - `json`, `length`: the text, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte.
/// - `kind`: set to its kind; left as it is on failure.
///
/// Any thread. Fails with `MCPL_USAGE_ERROR` if the text is not JSON.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_kind_of(
    json: *const c_char,
    length: usize,
    kind: *mut mcpl_json_kind,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the header demands it.
        unsafe { put(kind, value(json, length)?.kind().into()) };
        Ok(())
    })
}

/// Reads an integer.
///
/// - `json`, `length`: the text, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte.
/// - `pointer`: where the number is in it, as for `mcpl_json_find`.
/// - `number`: set to the number; left as it is on failure.
///
/// A number that is whole is an integer however it is written: `7`, `7.0` and `7e0` are the same. Any thread.
///
/// Fails with `MCPL_NOT_FOUND` if there is no such value, and with `MCPL_USAGE_ERROR` if it is not an integer of 64
/// bits, or as `mcpl_json_find` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_int64(
    json: *const c_char,
    length: usize,
    pointer: *const c_char,
    number: *mut i64,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the header demands it.
        unsafe { put(number, found(json, length, pointer)?.int64()?) };
        Ok(())
    })
}

/// Reads a number.
///
/// - `json`, `length`: the text, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte.
/// - `pointer`: where the number is in it, as for `mcpl_json_find`.
/// - `number`: set to the nearest double; left as it is on failure.
///
/// Any thread. Fails with `MCPL_NOT_FOUND` if there is no such value, and with `MCPL_USAGE_ERROR` if it is no number or
/// beyond what a double holds, or as `mcpl_json_find` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_double(
    json: *const c_char,
    length: usize,
    pointer: *const c_char,
    number: *mut f64,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the header demands it.
        unsafe { put(number, found(json, length, pointer)?.double()?) };
        Ok(())
    })
}

/// Reads `true` or `false`.
///
/// - `json`, `length`: the text, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte.
/// - `pointer`: where the value is in it, as for `mcpl_json_find`.
/// - `value`: set to it; left as it is on failure.
///
/// Any thread. Fails with `MCPL_NOT_FOUND` if there is no such value, and with `MCPL_USAGE_ERROR` if it is of another
/// kind, or as `mcpl_json_find` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_bool(
    json: *const c_char,
    length: usize,
    pointer: *const c_char,
    value: *mut bool,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the header demands it.
        unsafe { put(value, found(json, length, pointer)?.bool()?) };
        Ok(())
    })
}

/// Reads a string, its escapes resolved.
///
/// - `json`, `length`: the text, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte.
/// - `pointer`: where the string is in it, as for `mcpl_json_find`.
/// - `text`: set to a copy in UTF-8, followed by a zero byte; release it with `mcpl_string_free`. On failure `NULL`.
/// - `text_length`: set to its length in bytes, without the zero byte; on failure 0. May be `NULL`, but a string may hold
///   zero bytes of its own (`\u0000`), where C functions take it to end.
///
/// Any thread. Fails with `MCPL_NOT_FOUND` if there is no such value, and with `MCPL_USAGE_ERROR` if it is of another
/// kind, or as `mcpl_json_find` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_string(
    json: *const c_char,
    length: usize,
    pointer: *const c_char,
    text: *mut *mut c_char,
    text_length: *mut usize,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the header demands it.
        let (out, value) = unsafe { (Out::new(text, text_length), found(json, length, pointer)?) };
        out.give(value.string()?.as_bytes());
        Ok(())
    })
}

/// Counts the members of an object, or the elements of an array.
///
/// - `json`, `length`: the text, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte.
/// - `pointer`: where the object or array is in it, as for `mcpl_json_find`.
/// - `count`: set to how many it has; left as it is on failure.
///
/// Any thread. Fails with `MCPL_NOT_FOUND` if there is no such value, and with `MCPL_USAGE_ERROR` if it is of another
/// kind, or as `mcpl_json_find` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_count(
    json: *const c_char,
    length: usize,
    pointer: *const c_char,
    count: *mut usize,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the header demands it.
        unsafe { put(count, found(json, length, pointer)?.count()?) };
        Ok(())
    })
}

/// Gives one member of an object, or one element of an array, by its place in the order in which they are written.
///
/// To visit all, count up from 0 until it fails with `MCPL_NOT_FOUND`. Each call passes over what comes before.
///
/// - `json`, `length`: the object or array, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte.
/// - `index`: which one, from 0.
/// - `name`: set to the member's name, followed by a zero byte; release it with `mcpl_string_free`. `NULL` for an element,
///   and on failure. May be `NULL`.
/// - `value`, `value_length`: set to where the value lies in `json`, as `mcpl_json_find` does.
///
/// Any thread. Fails with `MCPL_NOT_FOUND` if there are not so many, and with `MCPL_USAGE_ERROR` if the text is not
/// JSON, or neither an object nor an array.
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
        // SAFETY: the header demands it.
        unsafe {
            put(name, std::ptr::null_mut());
            put(value, std::ptr::null());
            put(value_length, 0);
            let (called, item) = self::value(json, length)?.item(index)?;
            lend(&item, value, value_length);
            if let Some(called) = called.filter(|_| !name.is_null()) {
                name.write(owned(called.as_bytes()));
            }
        }
        Ok(())
    })
}
