//! Jobs: processes that end together.

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::ptr;

use windows_sys::Win32::Foundation::INVALID_HANDLE_VALUE;
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
    SetInformationJobObject, TerminateJobObject,
};
use windows_sys::Win32::System::Threading::{
    CREATE_NO_WINDOW, CREATE_SUSPENDED, OpenThread, ResumeThread, THREAD_SUSPEND_RESUME,
};

/// The flags with which a process is created that [`Job::admit`] takes: it does not run before it is in its job, so that
/// it starts no process outside, and it has no console window.
pub const JOB_CREATION_FLAGS: u32 = CREATE_SUSPENDED | CREATE_NO_WINDOW;

/// A process and all that it starts. They end when the job is dropped, and when this process ends, however it does: the
/// system closes its handles.
#[derive(Debug)]
pub struct Job(OwnedHandle);

impl Job {
    /// Creates a job without processes.
    ///
    /// # Errors
    ///
    /// The system's.
    #[allow(unsafe_code)]
    pub fn new() -> io::Result<Self> {
        // SAFETY: without attributes and a name, the system's defaults apply, and the job cannot be inherited.
        let job = unsafe { CreateJobObjectW(ptr::null(), ptr::null()) };
        if job.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle is open and ours.
        let job = Self(unsafe { OwnedHandle::from_raw_handle(job) });
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        let size = u32::try_from(size_of_val(&limits)).map_err(io::Error::other)?;
        // SAFETY: the pointer and the size are those of a structure of this kind, which the call reads.
        let is_set = unsafe {
            SetInformationJobObject(
                job.0.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                ptr::from_ref(&limits).cast(),
                size,
            )
        };
        succeeded(is_set)?;
        Ok(job)
    }

    /// Puts a process that was created with [`JOB_CREATION_FLAGS`] into the job and lets it run.
    ///
    /// # Errors
    ///
    /// The system's. The process does not run then; end it.
    #[allow(unsafe_code)]
    pub fn admit(&self, process: RawHandle, process_id: u32) -> io::Result<()> {
        // SAFETY: both handles are open.
        let is_in = unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), process) };
        succeeded(is_in)?;
        resume(process_id)
    }

    /// Ends all processes of the job. Their exit code is 1.
    #[allow(unsafe_code)]
    pub fn terminate(&self) {
        // SAFETY: the handle is open. Fails if no process is left.
        unsafe { TerminateJobObject(self.0.as_raw_handle(), 1) };
    }
}

fn succeeded(result: i32) -> io::Result<()> {
    if result == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Lets the only thread of a process that was created suspended run. The standard library does not give its handle away.
#[allow(unsafe_code)]
fn resume(process_id: u32) -> io::Result<()> {
    // SAFETY: the call has no pointers.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle is open and ours.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(snapshot) };
    let mut entry = THREADENTRY32 {
        dwSize: u32::try_from(size_of::<THREADENTRY32>()).map_err(io::Error::other)?,
        ..THREADENTRY32::default()
    };
    // SAFETY: the handle is open, and the entry has its size.
    let mut is_there = unsafe { Thread32First(snapshot.as_raw_handle(), &raw mut entry) };
    while is_there != 0 {
        if entry.th32OwnerProcessID == process_id {
            return resume_thread(entry.th32ThreadID);
        }
        // SAFETY: as above.
        is_there = unsafe { Thread32Next(snapshot.as_raw_handle(), &raw mut entry) };
    }
    Err(io::Error::other(
        "the process that was started has no thread",
    ))
}

#[allow(unsafe_code)]
fn resume_thread(thread_id: u32) -> io::Result<()> {
    // SAFETY: the call has no pointers.
    let thread = unsafe { OpenThread(THREAD_SUSPEND_RESUME, 0, thread_id) };
    if thread.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle is open and ours.
    let thread = unsafe { OwnedHandle::from_raw_handle(thread) };
    // SAFETY: the handle is open.
    if unsafe { ResumeThread(thread.as_raw_handle()) } == u32::MAX {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
