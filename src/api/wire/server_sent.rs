//! Data of server-sent events.

use serde::Serialize;

/// Appends an event's data and the end of the event.
pub(super) fn write_data(data: &impl Serialize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    // Cannot fail: the values came from JSON.
    let written = serde_json::to_writer(&mut *out, data);
    debug_assert!(written.is_ok(), "an event could not be written: {written:?}");
    out.extend_from_slice(b"\n\n");
}
