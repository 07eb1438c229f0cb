//! What C calls to write JSON.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::status::{Done, Fault, entry, entry_or, mcpl_status};
use crate::text::{MCPL_AUTO_LENGTH, Text, bytes, json, name, put, text};

use super::writer::Writer;

/// Writes JSON piece by piece, for programs that have no JSON library.
///
/// Made by `mcpl_json_new`, released by `mcpl_json_free`. Unlike what the other types of this library point to, it is
/// nothing that the library keeps: to use one that was released is undefined, and only one thread may use it at a time.
///
/// One value is written, as a rule an object:
///
/// ```c
/// mcpl_json_begin_object(json);
/// mcpl_json_name(json, "sum");
/// mcpl_json_put_int64(json, 5);
/// mcpl_json_end_object(json);
/// mcpl_json_text(json, &text, &length);
/// ```
///
/// The functions that write give no status: the first mistake is remembered, whatever follows is ignored, and
/// `mcpl_json_text` tells what it was.
pub struct mcpl_json {
    writer: Writer,
    /// What was given last.
    text: Option<Text>,
}

/// Makes a writer, of which nothing is written yet. Release it with `mcpl_json_free`. Any thread.
///
/// `NULL` only for a defect of the library.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_json_new() -> *mut mcpl_json {
    entry_or(std::ptr::null_mut(), || {
        Ok(Box::into_raw(Box::new(mcpl_json {
            writer: Writer::default(),
            text: None,
        })))
    })
}

/// Writes with it. Nothing happens with `NULL`; what goes wrong is its first mistake.
///
/// # Safety
///
/// `json` is `NULL`, or a writer that nobody else uses at the moment.
unsafe fn write(json: *mut mcpl_json, write: impl FnOnce(&mut Writer)) {
    // SAFETY: as the caller promises.
    let Some(json) = (unsafe { json.as_mut() }) else {
        return;
    };
    json.text = None;
    if catch_unwind(AssertUnwindSafe(|| write(&mut json.writer))).is_err() {
        json.writer.fail("a defect of mcpline".to_owned());
    }
}

/// Writes what was given, unless it can't be.
fn put_given<T>(to: &mut Writer, given: Done<T>, put: impl FnOnce(&mut Writer, T)) {
    match given {
        Ok(given) => put(to, given),
        Err(fault) => to.fail(fault.message),
    }
}

/// Begins an object: members follow, each a name (`mcpl_json_name`) and a value, then `mcpl_json_end_object`.
///
/// It is a mistake where no value can be, or more than 127 levels deep. One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_begin_object(json: *mut mcpl_json) {
    // SAFETY: the header demands it.
    unsafe { write(json, |to| to.begin(true)) }
}

/// Ends the object that was begun last. It is a mistake if that was an array, or if a name has no value yet. One thread
/// at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_end_object(json: *mut mcpl_json) {
    // SAFETY: the header demands it.
    unsafe { write(json, |to| to.end(true)) }
}

/// Begins an array: values follow, then `mcpl_json_end_array`.
///
/// It is a mistake where no value can be, or more than 127 levels deep. One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_begin_array(json: *mut mcpl_json) {
    // SAFETY: the header demands it.
    unsafe { write(json, |to| to.begin(false)) }
}

/// Ends the array that was begun last. It is a mistake if that was an object. One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_end_array(json: *mut mcpl_json) {
    // SAFETY: the header demands it.
    unsafe { write(json, |to| to.end(false)) }
}

/// Names the next value of an object. The name is copied. One thread at a time.
///
/// It is a mistake outside of an object, where another name has no value yet, and if it is `NULL` or not UTF-8. That an
/// object has a name twice is told by `mcpl_json_text`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_name(json: *mut mcpl_json, name: *const c_char) {
    // SAFETY: the header demands it.
    unsafe {
        write(json, |to| {
            put_given(to, self::name("the name", name), Writer::name)
        })
    }
}

/// Writes a string.
///
/// - `text`, `length`: the text in UTF-8, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte. It is copied, and what
///   has to be escaped is.
///
/// It is a mistake where no value can be, and if the text is `NULL` or not UTF-8. One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_put_string(
    json: *mut mcpl_json,
    text: *const c_char,
    length: usize,
) {
    // SAFETY: the header demands it.
    unsafe {
        write(json, |to| {
            put_given(to, self::text("the text", text, length), Writer::string)
        })
    }
}

/// Writes an integer. It is a mistake where no value can be. One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_put_int64(json: *mut mcpl_json, number: i64) {
    // SAFETY: the header demands it.
    unsafe { write(json, |to| to.int64(number)) }
}

/// Writes a number, so that the same double is read back. It is a mistake where no value can be, and if it is not finite:
/// JSON has no such numbers. One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_put_double(json: *mut mcpl_json, number: f64) {
    // SAFETY: the header demands it.
    unsafe { write(json, |to| to.double(number)) }
}

/// Writes `true` or `false`. It is a mistake where no value can be. One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_put_bool(json: *mut mcpl_json, value: bool) {
    // SAFETY: the header demands it.
    unsafe { write(json, |to| to.bool(value)) }
}

/// Writes `null`. It is a mistake where no value can be. One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_put_null(json: *mut mcpl_json) {
    // SAFETY: the header demands it.
    unsafe { write(json, |to| to.null()) }
}

/// Writes a value that is JSON already.
///
/// - `value`, `length`: the JSON text, in bytes; `MCPL_AUTO_LENGTH` if it ends with a zero byte. It is copied.
///
/// It is a mistake where no value can be, and if the text is not JSON. One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_put_json(
    json: *mut mcpl_json,
    value: *const c_char,
    length: usize,
) {
    // SAFETY: the header demands it.
    unsafe {
        write(json, |to| {
            put_given(to, self::json("the value", value, length), Writer::json)
        })
    }
}

/// Writes bytes as a string in base64 (RFC 4648, section 4): what `data` of images and sounds, and `blob` of resources,
/// have to be.
///
/// - `data`, `length`: the bytes, which are copied. `NULL` is fine for none.
///
/// It is a mistake where no value can be, and if the length is `MCPL_AUTO_LENGTH`: bytes don't end by themselves. One
/// thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_put_base64(
    json: *mut mcpl_json,
    data: *const c_void,
    length: usize,
) {
    // SAFETY: the header demands it.
    unsafe {
        write(json, |to| {
            let given = match length {
                MCPL_AUTO_LENGTH => Err(Fault::invalid("bytes don't end by themselves")),
                length => bytes("the bytes", data.cast(), length),
            };
            put_given(to, given, Writer::base64)
        })
    }
}

/// Gives what was written.
///
/// - `text`: set to the JSON text, followed by a zero byte. It belongs to the writer and lives until the writer is used
///   again or released. On failure `NULL`. May be `NULL`.
/// - `length`: set to its length in bytes; on failure 0. May be `NULL`.
///
/// One thread at a time. Fails with `MCPL_USAGE_ERROR` if what was written is not one whole value, or something went
/// wrong before: `mcpl_last_error` then tells the first mistake.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_text(
    json: *mut mcpl_json,
    text: *mut *const c_char,
    length: *mut usize,
) -> mcpl_status {
    entry(|| {
        // SAFETY: the header demands it.
        let json = unsafe {
            put(text, std::ptr::null());
            put(length, 0);
            json.as_mut()
        };
        let json = json.ok_or_else(|| Fault::invalid("the writer is NULL"))?;
        let written = json.writer.text().map_err(Fault::invalid)?;
        let kept = json.text.insert(Text::new(written.as_bytes()));
        // SAFETY: the header demands it.
        unsafe {
            put(text, kept.as_ptr());
            put(length, kept.len());
        }
        Ok(())
    })
}

/// Forgets what was written, mistakes too: the writer is as new. One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_clear(json: *mut mcpl_json) {
    // SAFETY: the header demands it.
    unsafe { write(json, |to| to.clear()) }
}

/// Releases a writer, and what it gave. `NULL` is nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_json_free(json: *mut mcpl_json) {
    if !json.is_null() {
        // SAFETY: `mcpl_json_new` made it, and the caller gives it back.
        drop(unsafe { Box::from_raw(json) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::mcpl_status::{MCPL_OK, MCPL_USAGE_ERROR};

    #[test]
    fn what_c_writes_is_given_with_a_zero_byte_behind_until_it_is_used_again() {
        let json = mcpl_json_new();
        let (mut text, mut length) = (std::ptr::null(), 7);
        // SAFETY: the writer is ours, and what it gives is read while it lives.
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
    fn null_is_answered() {
        let null = std::ptr::null_mut();
        // SAFETY: NULL may be given.
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
