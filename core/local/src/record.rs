//! Records of the files of streams: four bytes with the length of the event, eight with its number, and the event.

/// Bytes of a record before its event.
pub(crate) const HEADER: u64 = 12;

/// The length in the record that marks the end of a stream.
pub(crate) const END: u32 = u32::MAX;
