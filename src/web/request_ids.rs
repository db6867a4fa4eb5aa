//! Ids of requests: a random number of the worker, a dash, and a counter.

use std::cell::Cell;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;

use actix_web::http::header::HeaderValue;

/// Length of 16 digits, a dash and at most 16 digits.
const ID_CHARS_MAX: usize = 33;

thread_local! {
    /// 64 random bits per thread, so that workers and processes do not share ids.
    static WORKER: u64 = RandomState::new().hash_one("worker");
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// Returns a new id. Called for every request: no clock, no random source, one allocation.
pub(crate) fn next() -> HeaderValue {
    let worker = WORKER.with(|worker| *worker);
    let number = NUMBER.replace(NUMBER.get() + 1);
    let mut text = [0; ID_CHARS_MAX];
    let mut rest = &mut text[..];
    // It fits: two numbers of at most 16 digits.
    let written = write!(rest, "{worker:016x}-{number:x}");
    debug_assert!(written.is_ok(), "request id {worker:x}-{number:x} does not fit");
    let length = ID_CHARS_MAX - rest.len();
    HeaderValue::from_bytes(&text[..length]).unwrap_or(HeaderValue::from_static("unknown"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn some() -> Vec<String> {
        (0..1000).map(|_| next().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn ids_are_different_within_a_worker_and_between_two() {
        let other = std::thread::spawn(some).join().unwrap();
        let own = some();
        let (worker, number) = own[0].split_once('-').unwrap();
        assert_eq!((worker.len(), number), (16, "0"));
        let all: HashSet<_> = own.iter().chain(&other).collect();
        assert_eq!(all.len(), 2000);
    }
}
