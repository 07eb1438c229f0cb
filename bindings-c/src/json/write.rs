//! The functions of the header that write JSON.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::status::{Fault, FaultResult, entry, entry_or, mcpl_status};
use crate::text::{MCPL_AUTO_LENGTH, NulTerminatedText, bytes, json, name, put, text};

use super::writer::Writer;

/// A JSON writer, for programs without a JSON library.
///
/// Created by `mcpl_json_new`, released by `mcpl_json_free`. Unlike the handles of this library it is a real pointer:
/// using it after its release is undefined behaviour. Use it on one thread at a time.
///
/// A writer produces one value, usually an object:
///
/// ```c
/// mcpl_json_begin_object(json);
/// mcpl_json_name(json, "sum");
/// mcpl_json_put_int64(json, 5);
/// mcpl_json_end_object(json);
/// mcpl_json_text(json, &text, &length);
/// ```
///
/// The functions that write return no status. The writer keeps the first error and ignores everything after it;
/// `mcpl_json_text` returns the error.
pub struct mcpl_json {
    writer: Writer,
    /// The text that was returned last.
    text: Option<NulTerminatedText>,
}

/// Creates an empty writer. Release it with `mcpl_json_free`.
///
/// Returns `NULL` only if the library has a bug. Any thread.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn mcpl_json_new() -> *mut mcpl_json {
    entry_or(std::ptr::null_mut(), || {
        Ok(Box::into_raw(Box::new(mcpl_json {
            writer: Writer::default(),
            text: None,
        })))
    })
}

/// Uses the writer. Does nothing for `NULL`; errors are kept in the writer.
///
/// # Safety
///
/// `json` is `NULL`, or a writer that no other thread uses at the moment.
unsafe fn write(json: *mut mcpl_json, write: impl FnOnce(&mut Writer)) {
    // SAFETY: guaranteed by the caller.
    let Some(json) = (unsafe { json.as_mut() }) else {
        return;
    };
    json.text = None;
    if catch_unwind(AssertUnwindSafe(|| write(&mut json.writer))).is_err() {
        json.writer
            .fail("bug in mcpline: writing JSON panicked".to_owned());
    }
}

/// Writes an argument, or records why it is invalid.
fn put_given<T>(to: &mut Writer, given: FaultResult<T>, put: impl FnOnce(&mut Writer, T)) {
    match given {
        Ok(given) => put(to, given),
        Err(fault) => to.fail(fault.message),
    }
}

/// Begins an object. Members follow, each with a name (`mcpl_json_name`) and a value, then `mcpl_json_end_object`.
///
/// It is an error where no value is allowed, and at more than 127 levels.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_begin_object(json: *mut mcpl_json) {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { write(json, |to| to.begin(true)) }
}

/// Ends the innermost object. It is an error if an array is innermost, or a name has no value yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_end_object(json: *mut mcpl_json) {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { write(json, |to| to.end(true)) }
}

/// Begins an array. Values follow, then `mcpl_json_end_array`.
///
/// It is an error where no value is allowed, and at more than 127 levels.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_begin_array(json: *mut mcpl_json) {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { write(json, |to| to.begin(false)) }
}

/// Ends the innermost array. It is an error if an object is innermost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_end_array(json: *mut mcpl_json) {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { write(json, |to| to.end(false)) }
}

/// Writes the name of the next member of an object.
///
/// - `name`: UTF-8 text that ends with a zero byte. Copied.
///
/// It is an error outside an object, if the name before has no value yet, and if `name` is `NULL` or not UTF-8.
/// Duplicate names are reported by `mcpl_json_text`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_name(json: *mut mcpl_json, name: *const c_char) {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        write(json, |to| {
            put_given(to, self::name("the name", name), Writer::name)
        })
    }
}

/// Writes a string.
///
/// - `text`, `length`: UTF-8 text and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied, and escaped where needed.
///
/// It is an error where no value is allowed, and if `text` is `NULL` or not UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_put_string(
    json: *mut mcpl_json,
    text: *const c_char,
    length: usize,
) {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        write(json, |to| {
            put_given(to, self::text("the text", text, length), Writer::string)
        })
    }
}

/// Writes an integer. It is an error where no value is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_put_int64(json: *mut mcpl_json, number: i64) {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { write(json, |to| to.int64(number)) }
}

/// Writes a number, with enough digits to read back the same double. It is an error where no value is allowed, and if
/// the number is not finite.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_put_double(json: *mut mcpl_json, number: f64) {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { write(json, |to| to.double(number)) }
}

/// Writes `true` or `false`. It is an error where no value is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_put_bool(json: *mut mcpl_json, value: bool) {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { write(json, |to| to.bool(value)) }
}

/// Writes `null`. It is an error where no value is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_put_null(json: *mut mcpl_json) {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { write(json, |to| to.null()) }
}

/// Writes a value that is already JSON.
///
/// - `value`, `length`: JSON text and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied.
///
/// It is an error where no value is allowed, and if the text is not valid JSON.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_put_json(
    json: *mut mcpl_json,
    value: *const c_char,
    length: usize,
) {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        write(json, |to| {
            put_given(to, self::json("the value", value, length), Writer::json)
        })
    }
}

/// Writes binary data as a base64 string (RFC 4648, section 4), such as `data` of images and audio, and `blob` of
/// resources.
///
/// - `data`, `length`: the data and its length in bytes. Copied. `NULL` is allowed for length 0.
///
/// It is an error where no value is allowed, and if `length` is `MCPL_AUTO_LENGTH`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_put_base64(
    json: *mut mcpl_json,
    data: *const c_void,
    length: usize,
) {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        write(json, |to| {
            let given = match length {
                MCPL_AUTO_LENGTH => Err(Fault::invalid(
                    "`length` must be the number of bytes: MCPL_AUTO_LENGTH is only for strings",
                )),
                length => bytes("the bytes", data.cast(), length),
            };
            put_given(to, given, Writer::base64)
        })
    }
}

/// Returns the JSON text that was written.
///
/// - `text`: set to the text, which ends with a zero byte. The writer owns it; it is valid until the writer is used
///   again or released. `NULL` on failure. May be `NULL`.
/// - `length`: set to its length in bytes; 0 on failure. May be `NULL`.
///
/// Returns `MCPL_USAGE_ERROR` if the text is not one complete value, or with the first error of an earlier function;
/// see `mcpl_last_error`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_text(
    json: *mut mcpl_json,
    text: *mut *const c_char,
    length: *mut usize,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        let json = unsafe {
            put(text, std::ptr::null());
            put(length, 0);
            json.as_mut()
        };
        let json = json.ok_or_else(|| Fault::invalid("the writer is NULL"))?;
        let written = json.writer.text().map_err(Fault::invalid)?;
        let kept = json.text.insert(NulTerminatedText::new(written.as_bytes()));
        // SAFETY: the caller upholds the contract in the header.
        unsafe {
            put(text, kept.as_ptr());
            put(length, kept.len());
        }
        Ok(())
    })
}

/// Resets a writer to its initial state, including its error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_clear(json: *mut mcpl_json) {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { write(json, |to| to.clear()) }
}

/// Releases a writer and its text. `NULL` is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_free(json: *mut mcpl_json) {
    if !json.is_null() {
        // SAFETY: `mcpl_json_new` created it, and the caller no longer uses it.
        drop(unsafe { Box::from_raw(json) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::mcpl_status::{MCPL_OK, MCPL_USAGE_ERROR};

    #[test]
    fn returns_text_that_ends_with_a_zero_byte() {
        let json = mcpl_json_new();
        let (mut text, mut length) = (std::ptr::null(), 7);
        // SAFETY: the test owns the writer, and reads its text while it is valid.
        unsafe {
            assert_eq!(
                mcpl_json_text(json, &raw mut text, &raw mut length),
                MCPL_USAGE_ERROR
            );
            assert!(text.is_null() && length == 0);
            mcpl_json_begin_object(json);
            mcpl_json_name(json, c"a".as_ptr());
            mcpl_json_put_json(json, c"[1] ".as_ptr(), usize::MAX);
            mcpl_json_name(json, c"b".as_ptr());
            mcpl_json_put_base64(json, std::ptr::null(), 0);
            mcpl_json_end_object(json);
            assert_eq!(
                mcpl_json_text(json, &raw mut text, &raw mut length),
                MCPL_OK
            );
            let written = std::ffi::CStr::from_ptr(text);
            assert_eq!((written, length), (c"{\"a\":[1],\"b\":\"\"}", 16));
            mcpl_json_clear(json);
            mcpl_json_put_json(json, c"no".as_ptr(), usize::MAX);
            mcpl_json_put_null(json);
            assert_eq!(
                mcpl_json_text(json, &raw mut text, std::ptr::null_mut()),
                MCPL_USAGE_ERROR
            );
            mcpl_json_clear(json);
            mcpl_json_put_base64(json, c"ab".as_ptr().cast(), MCPL_AUTO_LENGTH);
            let unfit = mcpl_json_text(json, &raw mut text, std::ptr::null_mut());
            assert_eq!(unfit, MCPL_USAGE_ERROR);
            mcpl_json_free(json);
        }
    }

    #[test]
    fn accepts_null_for_every_pointer() {
        let null = std::ptr::null_mut();
        // SAFETY: NULL is allowed.
        unsafe {
            mcpl_json_begin_object(null);
            mcpl_json_name(null, std::ptr::null());
            mcpl_json_put_string(null, std::ptr::null(), 3);
            assert_eq!(
                mcpl_json_text(null, std::ptr::null_mut(), std::ptr::null_mut()),
                MCPL_USAGE_ERROR
            );
            mcpl_json_free(null);
        }
    }
}
