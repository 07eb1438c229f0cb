//! The functions of the header that read JSON.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "texts end with zero bytes, and what is written to is there"
)]

use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};

use mcpline_c::mcpl_json_kind::*;
use mcpline_c::mcpl_status::*;
use mcpline_c::*;

const ALL: usize = MCPL_AUTO_LENGTH;
const SAMPLE: &CStr = c"{\"n\":7,\"x\":1.5,\"yes\":true,\"s\":\"a\\u0000b\",\"list\":[1,[2]]}";

fn taken(text: *mut c_char, length: usize) -> Vec<u8> {
    assert!(!text.is_null());
    unsafe {
        let copy = std::slice::from_raw_parts(text.cast::<u8>(), length + 1).to_vec();
        mcpl_string_free(text);
        assert_eq!(copy[length], 0);
        copy[..length].to_vec()
    }
}

#[test]
fn finds_and_reads_values_in_place() {
    let json = SAMPLE.as_ptr();
    let (mut value, mut length) = (null(), 0);
    unsafe {
        let found = mcpl_json_find(
            json,
            ALL,
            c"/list/1".as_ptr(),
            &raw mut value,
            &raw mut length,
        );
        assert_eq!(found, MCPL_OK);
        assert!(SAMPLE.to_bytes().as_ptr_range().contains(&value.cast()));
        assert_eq!(
            std::slice::from_raw_parts(value.cast::<u8>(), length),
            b"[2]"
        );
        let mut kind = MCPL_JSON_NULL;
        assert_eq!(mcpl_json_kind_of(value, length, &raw mut kind), MCPL_OK);
        assert_eq!(kind, MCPL_JSON_ARRAY);
        let (mut int, mut double, mut yes, mut count) = (0, 0.0, false, 0);
        assert_eq!(
            mcpl_json_int64(json, ALL, c"/n".as_ptr(), &raw mut int),
            MCPL_OK
        );
        assert_eq!(
            mcpl_json_double(json, ALL, c"/x".as_ptr(), &raw mut double),
            MCPL_OK
        );
        assert_eq!(
            mcpl_json_bool(json, ALL, c"/yes".as_ptr(), &raw mut yes),
            MCPL_OK
        );
        assert_eq!(
            mcpl_json_count(json, ALL, c"".as_ptr(), &raw mut count),
            MCPL_OK
        );
        assert_eq!((int, double, yes, count), (7, 1.5, true, 5));
        let mut text = null_mut();
        let read = mcpl_json_string(json, ALL, c"/s".as_ptr(), &raw mut text, &raw mut length);
        assert_eq!(read, MCPL_OK);
        assert_eq!(taken(text, length), b"a\0b");
    }
}

#[test]
fn iterates_over_all_members_and_elements() {
    let mut names = Vec::new();
    unsafe {
        for index in 0.. {
            let (mut name, mut value, mut length) = (null_mut(), null(), 0);
            let (name_out, value_out) = (&raw mut name, &raw mut value);
            match mcpl_json_item(
                SAMPLE.as_ptr(),
                ALL,
                index,
                name_out,
                value_out,
                &raw mut length,
            ) {
                MCPL_OK => names.push(String::from_utf8(taken(name, length_of(name))).unwrap()),
                end => {
                    assert_eq!(end, MCPL_NOT_FOUND);
                    assert!(name.is_null() && value.is_null() && length == 0);
                    break;
                }
            }
        }
        assert_eq!(names, ["n", "x", "yes", "s", "list"]);
        let (mut name, mut value, mut length) = (std::ptr::dangling_mut(), null(), 0);
        let (name_out, value_out) = (&raw mut name, &raw mut value);
        let item = mcpl_json_item(
            c"[1, true]".as_ptr(),
            ALL,
            1,
            name_out,
            value_out,
            &raw mut length,
        );
        assert_eq!((item, name.is_null(), length), (MCPL_OK, true, 4));
        // A caller that passes NULL for the name gets none to release.
        let nothing = null_mut();
        let item = mcpl_json_item(SAMPLE.as_ptr(), ALL, 0, nothing, value_out, &raw mut length);
        assert_eq!((item, length), (MCPL_OK, 1));
    }
}

/// Returns the length of a string that ends with a zero byte.
unsafe fn length_of(text: *const c_char) -> usize {
    unsafe { CStr::from_ptr(text) }.count_bytes()
}

#[test]
fn rejects_invalid_reads_and_returns_nothing() {
    let json = SAMPLE.as_ptr();
    unsafe {
        let (mut value, mut length) = (json, 7);
        for (text, pointer, status) in [
            (SAMPLE, c"/none", MCPL_NOT_FOUND),
            (SAMPLE, c"none", MCPL_USAGE_ERROR),
            (SAMPLE, c"/\xff", MCPL_USAGE_ERROR),
            (c"{\"a\":}", c"", MCPL_USAGE_ERROR),
            (c"\"\xff\"", c"", MCPL_USAGE_ERROR),
        ] {
            let (value, length) = (&raw mut value, &raw mut length);
            assert_eq!(
                mcpl_json_find(text.as_ptr(), ALL, pointer.as_ptr(), value, length),
                status
            );
            assert!((*value).is_null() && *length == 0);
        }
        let (mut int, mut text) = (5, std::ptr::dangling_mut());
        let invalid = MCPL_USAGE_ERROR;
        assert_eq!(
            mcpl_json_int64(json, ALL, c"/s".as_ptr(), &raw mut int),
            invalid
        );
        assert_eq!(mcpl_json_int64(json, ALL, null(), &raw mut int), invalid);
        assert_eq!(
            mcpl_json_int64(null(), 0, c"".as_ptr(), &raw mut int),
            invalid
        );
        assert_eq!(int, 5);
        let read = mcpl_json_string(json, ALL, c"/n".as_ptr(), &raw mut text, null_mut());
        assert!(read == invalid && text.is_null());
        assert_eq!(
            mcpl_json_count(json, ALL, c"/n".as_ptr(), null_mut()),
            invalid
        );
        assert_eq!(
            mcpl_json_bool(json, ALL, c"/n".as_ptr(), null_mut()),
            invalid
        );
        assert_eq!(
            mcpl_json_double(json, ALL, c"/s".as_ptr(), null_mut()),
            invalid
        );
        // A caller that only needs to know whether a value exists passes NULL.
        assert_eq!(
            mcpl_json_find(json, ALL, c"/n".as_ptr(), null_mut(), null_mut()),
            MCPL_OK
        );
    }
}
