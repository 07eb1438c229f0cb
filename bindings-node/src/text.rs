//! Conversion of strings between V8 and the core, with one copy each way where possible.

use std::cell::RefCell;
use std::ptr;

use napi::{Result, sys};

use crate::thread_waker::check;

/// Capacity of the buffer for reading strings that is kept.
const KEPT: usize = 256 * 1024;

thread_local! {
    /// Buffer for strings whose length is not known yet.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Creates a JavaScript string from valid UTF-8.
pub(crate) fn to_js(env: sys::napi_env, text: &[u8]) -> Result<sys::napi_value> {
    let length = text.len() as isize;
    let mut value = ptr::null_mut();
    // SAFETY: pointer and length belong to one slice. ASCII is Latin-1, which V8 copies unchanged.
    check(unsafe {
        if text.is_ascii() {
            sys::napi_create_string_latin1(env, text.as_ptr().cast(), length, &mut value)
        } else {
            sys::napi_create_string_utf8(env, text.as_ptr().cast(), length, &mut value)
        }
    })?;
    Ok(value)
}

/// Reads a JavaScript string as UTF-8; lone surrogates become U+FFFD.
///
/// # Errors
///
/// The value is not a string.
pub(crate) fn from_js<T>(
    env: sys::napi_env,
    value: sys::napi_value,
    read: impl FnOnce(&[u8]) -> T,
) -> Result<T> {
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.is_empty() {
            scratch.resize(4096, 0);
        }
        let mut written = 0;
        // SAFETY: the buffer has the given size.
        check(unsafe {
            sys::napi_get_value_string_utf8(
                env,
                value,
                scratch.as_mut_ptr().cast(),
                scratch.len(),
                &mut written,
            )
        })?;
        // A character of four bytes, and the terminator, may not have fit.
        if written + 5 >= scratch.len() {
            let mut length = 0;
            // SAFETY: without a buffer, only the length is computed.
            check(unsafe {
                sys::napi_get_value_string_utf8(env, value, ptr::null_mut(), 0, &mut length)
            })?;
            if length > written {
                scratch.resize(length + 6, 0);
                // SAFETY: the buffer has the given size.
                check(unsafe {
                    sys::napi_get_value_string_utf8(
                        env,
                        value,
                        scratch.as_mut_ptr().cast(),
                        scratch.len(),
                        &mut written,
                    )
                })?;
            }
        }
        let result = read(&scratch[..written]);
        if scratch.len() > KEPT {
            scratch.truncate(KEPT);
            scratch.shrink_to_fit();
        }
        Ok(result)
    })
}

/// Whether JSON that `JSON.stringify` wrote may contain an escaped lone surrogate, which other parsers need not accept.
pub(crate) fn may_be_ill_formed(json: &[u8]) -> bool {
    memchr::memmem::find(json, b"\\ud").is_some()
}
