//! Replaces the functions of the C library that return entropy and the time, so that a run depends on its seed alone.
//!
//! The code under test is built as it is shipped: `getrandom`, the hash maps of the standard library and its clocks call
//! `getrandom` and `clock_gettime`, and the linker takes the definitions of the program before those of the C library. Before
//! [`simulate`], both are passed on to the kernel.

#![allow(unsafe_code, reason = "defines functions of the C library")]

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::random::Random;

/// Whether time and entropy are simulated.
static IS_SIMULATED: AtomicBool = AtomicBool::new(false);

/// The entropy of the run.
static ENTROPY: Mutex<Option<Random>> = Mutex::new(None);

/// Milliseconds since 1970 on the clock of the replica that runs now.
static UNIX_MILLISECONDS: AtomicI64 = AtomicI64::new(FIRST_UNIX_MILLISECONDS);

/// The time at which runs begin: 2026-07-28.
const FIRST_UNIX_MILLISECONDS: i64 = 1_785_196_800_000;

/// The time on the monotonic clock, which stands still: tokio's paused clock counts from it.
const MONOTONIC_SECONDS: libc::time_t = 1_000_000;

/// Simulates time and entropy from now on.
pub(crate) fn simulate(seed: u64) {
    *lock() = Some(Random::new(seed ^ 0x656e_7472_6f70_7921));
    IS_SIMULATED.store(true, Ordering::SeqCst);
}

/// Sets the clock that shows the date, to milliseconds since the run began.
pub(crate) fn set_date(milliseconds: i64) {
    UNIX_MILLISECONDS.store(FIRST_UNIX_MILLISECONDS + milliseconds, Ordering::Relaxed);
}

/// Gives the children of this process the same addresses each time. Some hash maps take their keys from addresses.
///
/// # Errors
///
/// The system does not allow it, as in some containers.
pub(crate) fn fix_addresses() -> io::Result<()> {
    const QUERY: libc::c_ulong = 0xffff_ffff;
    // SAFETY: changes nothing but the flags of this process.
    let flags = unsafe { libc::personality(QUERY) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    let fixed = flags | libc::ADDR_NO_RANDOMIZE;
    let Ok(fixed) = libc::c_ulong::try_from(fixed) else {
        return Err(io::Error::other("unknown flags"));
    };
    // SAFETY: as above.
    match unsafe { libc::personality(fixed) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<Random>> {
    ENTROPY
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// `getrandom(2)`.
///
/// # Safety
///
/// `buffer` has `length` writable bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(
    buffer: *mut libc::c_void,
    length: libc::size_t,
    flags: libc::c_uint,
) -> libc::ssize_t {
    if !IS_SIMULATED.load(Ordering::SeqCst) {
        // SAFETY: the caller's promise.
        let drawn = unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) };
        return drawn as libc::ssize_t;
    }
    if length == 0 {
        return 0;
    }
    // SAFETY: the caller's promise; bytes need no alignment, and they are only written.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
    let mut entropy = lock();
    let random = entropy.get_or_insert_with(|| Random::new(0));
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&random.next().to_le_bytes()[..chunk.len()]);
    }
    length as libc::ssize_t
}

/// `clock_gettime(2)`.
///
/// # Safety
///
/// `time` is writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(
    clock: libc::clockid_t,
    time: *mut libc::timespec,
) -> libc::c_int {
    if !IS_SIMULATED.load(Ordering::SeqCst) {
        // SAFETY: the caller's promise.
        return unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) } as libc::c_int;
    }
    let is_date = matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE);
    let (seconds, milliseconds) = match is_date {
        true => {
            let now = UNIX_MILLISECONDS.load(Ordering::Relaxed);
            (now.div_euclid(1_000), now.rem_euclid(1_000))
        }
        false => (MONOTONIC_SECONDS, 0),
    };
    // SAFETY: the caller's promise.
    unsafe {
        (*time).tv_sec = seconds;
        (*time).tv_nsec = milliseconds * 1_000_000;
    }
    0
}
