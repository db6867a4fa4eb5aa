//! Preferences of a request: the header `Prefer` (RFC 7240).

use std::time::Duration;

/// Name and value of the preference for an answer before the outcome.
pub const RESPOND_ASYNC: &str = "respond-async";
/// Longest time for which a request waits for its outcome; a longer `wait` means this one.
pub const WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// Returns the time for which a client that prefers an answer before the outcome waits for the
/// outcome (`wait`, in seconds; zero without it). `None`: it waits until the outcome is there.
/// Unknown preferences and invalid values are ignored, and the first one of a name counts.
pub fn wait_of<'a>(headers: impl IntoIterator<Item = &'a [u8]>) -> Option<Duration> {
    let (mut is_async, mut wait) = (None, None);
    for preference in headers.into_iter().flat_map(|header| split(header, b',')) {
        // Parameters follow its value.
        let (name, value) = name_and_value(split(preference, b';').next().unwrap_or_default());
        if name.eq_ignore_ascii_case(RESPOND_ASYNC.as_bytes()) {
            is_async.get_or_insert(value.is_empty());
        } else if name.eq_ignore_ascii_case(b"wait") {
            wait.get_or_insert_with(|| seconds(value));
        }
    }
    is_async?.then(|| wait.flatten().unwrap_or_default().min(WAIT_MAX))
}

/// Splits a text at a separator, but not in its quoted strings.
fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |byte| {
        let is_end = *byte == separator && !is_quoted;
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            _ => {}
        }
        is_end
    })
}

/// Returns the name and the value of a preference. A missing value and an empty one are the same.
/// Escapes remain as they are: no value that counts needs one.
fn name_and_value(preference: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = preference.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
    let (name, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let unquoted = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    (name, unquoted.unwrap_or(value))
}

/// Parses a number of seconds, which has digits only.
fn seconds(value: &[u8]) -> Option<Duration> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    // One that is too large for the type is longer than the longest wait.
    let number = || str::from_utf8(value).ok()?.parse().ok();
    is_number.then(|| Duration::from_secs(number().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferences_are_read_as_rfc_7240_says() {
        let rows: [(&[&[u8]], Option<u64>); 30] = [
            (&[], None),
            (&[b""], None),
            (&[b"wait=5"], None),
            (&[b"return=minimal"], None),
            (&[b"respond-async"], Some(0)),
            (&[b"Respond-Async"], Some(0)),
            (&[b"respond-async, wait=10"], Some(10)),
            (&[b"wait=10; note=x, respond-async"], Some(10)),
            (&[b"respond-async", b"wait = \"10\""], Some(10)),
            (&[b" , return=minimal,\trespond-async ;a=b"], Some(0)),
            (&[b"respond-async, wait=soon"], Some(0)),
            (&[b"respond-async, wait=-1"], Some(0)),
            (&[b"respond-async, wait=+5"], Some(0)),
            (&[b"respond-async, wait=5.5"], Some(0)),
            (&[b"respond-async, wait"], Some(0)),
            (&[b"respond-async, wait=\"\""], Some(0)),
            (&[b"respond-async, wait=2, wait=9"], Some(2)),
            (&[b"respond-async, wait=3600"], Some(3600)),
            (&[b"respond-async, wait=3601"], Some(3600)),
            (&[b"respond-async, wait=99999999999999999999999"], Some(3600)),
            (&[b"respond-async=\"\""], Some(0)),
            (&[b"respond-async="], Some(0)),
            (&[b"respond-async=x"], None),
            (&[b"respond-async=x, respond-async"], None),
            (&[b"note=\"a, respond-async\""], None),
            (&[b"note=\"a; b, wait=9\", respond-async, wait=3"], Some(3)),
            (&[b"note=\"say \\\"hi\\\", wait=9\", respond-async, wait=3"], Some(3)),
            (&[b"respond-async; note=\", wait=9\""], Some(0)),
            (&[b"note=\"gr\xfc\xdf\", respond-async, wait=3"], Some(3)),
            (&[b"note=\"not closed, wait=9", b"respond-async, wait=3"], Some(3)),
        ];
        for (headers, seconds) in rows {
            let shown: Vec<_> = headers.iter().map(|header| header.escape_ascii()).collect();
            let wait = wait_of(headers.iter().copied());
            assert_eq!(wait, seconds.map(Duration::from_secs), "{shown:?}");
        }
    }
}
