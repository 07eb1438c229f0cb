//! Conversion of strings, bytes and JSON from and to C. Input is checked: pointers, UTF-8 and JSON.

use std::ffi::{CStr, CString, c_char};

use bytes::Bytes;
use mcpline::protocol::wire::Raw;

use crate::status::{Fault, FaultResult};

/// Length of a string that ends with a zero byte: the function determines it.
pub const MCPL_AUTO_LENGTH: usize = usize::MAX;

/// Returns a string that ends with a zero byte. `what` names it in errors.
///
/// # Safety
///
/// `text` is `NULL` or such a string, for as long as the result is used.
pub(crate) unsafe fn name<'a>(what: &str, text: *const c_char) -> FaultResult<&'a str> {
    // SAFETY: guaranteed by the caller.
    unsafe { optional(what, text)? }.ok_or_else(|| Fault::invalid(format!("{what} is NULL")))
}

/// Like [`name`], but returns `None` for `NULL`.
///
/// # Safety
///
/// As for [`name`].
pub(crate) unsafe fn optional<'a>(what: &str, text: *const c_char) -> FaultResult<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: guaranteed by the caller.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str();
    text.map(Some)
        .map_err(|error| Fault::invalid(format!("{what} is not UTF-8: {error}")))
}

/// Returns bytes of this length. `NULL` is allowed if there are none.
///
/// # Safety
///
/// `data` is `NULL` or points to `length` bytes, or to a string that ends with a zero byte if the length is
/// [`MCPL_AUTO_LENGTH`], for as long as the result is used.
pub(crate) unsafe fn bytes<'a>(
    what: &str,
    data: *const c_char,
    length: usize,
) -> FaultResult<&'a [u8]> {
    if data.is_null() {
        return match length {
            0 => Ok(&[]),
            _ => Err(Fault::invalid(format!("{what} is NULL"))),
        };
    }
    if length == MCPL_AUTO_LENGTH {
        // SAFETY: guaranteed by the caller.
        return Ok(unsafe { CStr::from_ptr(data) }.to_bytes());
    }
    if isize::try_from(length).is_err() {
        return Err(Fault::invalid(format!(
            "{what}: the length {length} is too large"
        )));
    }
    // SAFETY: guaranteed by the caller; the length was checked.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), length) })
}

/// Returns a string of this length.
///
/// # Safety
///
/// As for [`bytes`].
pub(crate) unsafe fn text<'a>(
    what: &str,
    data: *const c_char,
    length: usize,
) -> FaultResult<&'a str> {
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { bytes(what, data, length)? };
    if data.is_null() {
        return Err(Fault::invalid(format!("{what} is NULL")));
    }
    std::str::from_utf8(bytes)
        .map_err(|error| Fault::invalid(format!("{what} is not UTF-8: {error}")))
}

/// Returns a copy of JSON text of this length.
///
/// # Safety
///
/// As for [`bytes`].
pub(crate) unsafe fn json(what: &str, data: *const c_char, length: usize) -> FaultResult<Raw> {
    // SAFETY: guaranteed by the caller.
    let given = unsafe { optional_json(what, data, length)? };
    given.ok_or_else(|| Fault::invalid(format!("{what} is NULL")))
}

/// Like [`json`], but returns `None` for `NULL`, whatever its length.
///
/// # Safety
///
/// As for [`bytes`].
pub(crate) unsafe fn optional_json(
    what: &str,
    data: *const c_char,
    length: usize,
) -> FaultResult<Option<Raw>> {
    if data.is_null() {
        return Ok(None);
    }
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { bytes(what, data, length)? };
    let json = Raw::parse(Bytes::copy_from_slice(bytes));
    json.map(Some)
        .map_err(|error| Fault::invalid(format!("{what} is not valid JSON: {error}")))
}

/// Returns copies of an array of strings.
///
/// # Safety
///
/// `list` is `NULL` or points to `count` pointers, each to a string that ends with a zero byte.
pub(crate) unsafe fn list(
    what: &str,
    list: *const *const c_char,
    count: usize,
) -> FaultResult<Vec<String>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if list.is_null() || isize::try_from(count.saturating_mul(size_of::<usize>())).is_err() {
        return Err(Fault::invalid(format!("{what} is NULL")));
    }
    // SAFETY: guaranteed by the caller.
    let list = unsafe { std::slice::from_raw_parts(list, count) };
    let texts = list.iter().map(|text| {
        // SAFETY: guaranteed by the caller.
        unsafe { name(what, *text) }.map(str::to_owned)
    });
    texts.collect()
}

/// Writes a value to a place that C passed, unless it is `NULL`.
///
/// # Safety
///
/// `place` is `NULL` or can be written to.
pub(crate) unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: guaranteed by the caller.
        unsafe { place.write(value) };
    }
}

/// The place for a string that is returned to C; `NULL` and 0 until it is set.
pub(crate) struct OutString {
    text: *mut *mut c_char,
    length: *mut usize,
}

impl OutString {
    /// # Safety
    ///
    /// Both are `NULL` or can be written to, for as long as this is used.
    pub(crate) unsafe fn new(text: *mut *mut c_char, length: *mut usize) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe {
            put(text, std::ptr::null_mut());
            put(length, 0);
        }
        Self { text, length }
    }

    /// Sets the string, which the caller then owns. If the caller passed `NULL` for it, only the length is set.
    pub(crate) fn write_string(self, text: &[u8]) {
        // SAFETY: both can be written to, as was promised to `new`.
        unsafe {
            put(self.length, text.len());
            if !self.text.is_null() {
                self.text.write(allocate_string(text));
            }
        }
    }
}

/// Allocates a string that C owns until it calls `mcpl_string_free`. Zero bytes in it are kept: use its length.
pub(crate) fn allocate_string(text: &[u8]) -> *mut c_char {
    // The allocation begins with the size, which is needed to release it.
    let size = text.len() + 1;
    let mut memory = Vec::with_capacity(HEAD + size);
    memory.extend_from_slice(&size.to_ne_bytes());
    memory.extend_from_slice(text);
    memory.push(0);
    let memory = Box::into_raw(memory.into_boxed_slice());
    // SAFETY: the memory begins with the head.
    unsafe { memory.cast::<c_char>().add(HEAD) }
}

const HEAD: usize = size_of::<usize>();

/// Releases a string that a function of this library returned. `NULL` is ignored. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_string_free(text: *mut c_char) {
    if text.is_null() {
        return;
    }
    // SAFETY: `owned` allocated it, with its head in front.
    unsafe {
        let memory = text.cast::<u8>().sub(HEAD);
        let size = usize::from_ne_bytes(memory.cast::<[u8; HEAD]>().read());
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
            memory,
            HEAD + size,
        )));
    }
}

/// A string for a callback: a zero byte follows it, which its length does not include.
#[derive(Debug)]
pub(crate) struct NulTerminatedText(Box<[u8]>);

impl NulTerminatedText {
    pub(crate) fn new(text: &[u8]) -> Self {
        let mut copy = Vec::with_capacity(text.len() + 1);
        copy.extend_from_slice(text);
        copy.push(0);
        Self(copy.into_boxed_slice())
    }

    pub(crate) fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len() - 1
    }
}

/// Returns a C string, with replacement characters for zero bytes in the text.
pub(crate) fn to_c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}
