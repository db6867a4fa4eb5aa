//! Preferences of a request: the header `Prefer` (RFC 7240).

use std::time::Duration;

/// Name and value of the preference for an answer before the outcome.
pub const RESPOND_ASYNC: &str = "respond-async";

/// Returns the time for which a client that prefers an answer before the outcome waits for the
/// outcome (`wait`, in seconds; zero without it). `None`: it waits until the outcome is there.
/// Unknown preferences and invalid values are ignored, and the first one of a name counts.
pub fn patience(values: &[&str]) -> Option<Duration> {
    let mut wait = None;
    let mut is_async = false;
    for preference in values.iter().flat_map(|value| value.split(',')) {
        let named = preference.split(';').next().unwrap_or_default();
        let (name, value) = named.split_once('=').unwrap_or((named, ""));
        let (name, value) = (name.trim(), value.trim().trim_matches('"'));
        if name.eq_ignore_ascii_case(RESPOND_ASYNC) {
            is_async = true;
        } else if name.eq_ignore_ascii_case("wait") {
            wait.get_or_insert_with(|| value.parse::<u32>().ok());
        }
    }
    let seconds = wait.flatten().unwrap_or(0);
    is_async.then(|| Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferences_are_read_as_rfc_7240_says() {
        let rows: [(&[&str], Option<u64>); 13] = [
            (&[], None),
            (&["wait=5"], None),
            (&["return=minimal"], None),
            (&["respond-async"], Some(0)),
            (&["Respond-Async"], Some(0)),
            (&["respond-async, wait=10"], Some(10)),
            (&["wait=10; note=x, respond-async"], Some(10)),
            (&["respond-async", "wait = \"10\""], Some(10)),
            (&["return=minimal, respond-async ;a=b"], Some(0)),
            (&["respond-async, wait=soon"], Some(0)),
            (&["respond-async, wait=-1"], Some(0)),
            (&["respond-async, wait=4294967296"], Some(0)),
            (&["respond-async, wait=2, wait=9"], Some(2)),
        ];
        for (values, seconds) in rows {
            assert_eq!(patience(values), seconds.map(Duration::from_secs), "{values:?}");
        }
    }
}
