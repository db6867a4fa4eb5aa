//! The file outside of the store to which every attempt appends a line before it works, and some
//! another one at their end.

use std::collections::BTreeMap;
use std::path::Path;

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Offset in the file.
    pub(super) at: usize,
    pub(super) attempt: u64,
    pub(super) key: String,
    /// Offset of the line of its end, if it has one.
    pub(super) ended: Option<usize>,
}

/// The attempts of each step, in the order in which they began.
pub(super) type Ledger = BTreeMap<(String, String), Vec<Line>>;

pub(super) fn read(path: &Path) -> Ledger {
    let mut ledger = Ledger::new();
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let words: Vec<_> = line.trim_end().split(' ').collect();
        let [execution, step, attempt, key, ref end @ ..] = words[..] else {
            panic!("a torn line: {line:?}")
        };
        let attempt = attempt.parse().unwrap();
        let lines: &mut Vec<Line> =
            ledger.entry((execution.to_owned(), step.to_owned())).or_default();
        match end {
            [] => lines.push(Line { at, attempt, key: key.to_owned(), ended: None }),
            ["ended"] => {
                // the same attempt may have begun twice: late ones end in any order
                let open = lines.iter_mut().find(|it| it.attempt == attempt && it.ended.is_none());
                open.expect("what ends has begun").ended = Some(at);
            }
            _ => panic!("a torn line: {line:?}"),
        }
        at += line.len();
    }
    ledger
}

/// Returns the length of the file: later attempts have larger offsets.
pub(super) fn length(path: &Path) -> usize {
    std::fs::metadata(path).map_or(0, |file| usize::try_from(file.len()).unwrap())
}

/// Checks that attempts are numbered from the first without a gap, each once, all with the key of
/// their step.
pub(super) fn assert_sound(ledger: &Ledger) {
    for ((execution, step), lines) in ledger {
        let attempts: Vec<_> = lines.iter().map(|line| line.attempt).collect();
        let is_rising = attempts.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(is_rising, "{execution} {step} was attempted out of turn: {attempts:?}");
        let key = format!("{execution}/{step}");
        assert!(lines.iter().all(|line| line.key == key), "{execution} {step}: {lines:?}");
    }
}

/// Removes attempts that began after a later one of the same step; returns where they were. Only a
/// process that stood still between its decision and the attempt may begin one so late.
pub(super) fn take_late(ledger: &mut Ledger) -> Vec<(String, usize)> {
    let mut late = Vec::new();
    for ((execution, step), lines) in ledger {
        let mut last = 0;
        lines.retain(|line| {
            let is_late = line.attempt <= last;
            if is_late {
                late.push((format!("{execution} {step} {}", line.attempt), line.at));
            }
            last = last.max(line.attempt);
            !is_late
        });
    }
    late
}

/// Returns where attempts ended after the next one of their step had begun. Only those of a process
/// that stood still may.
pub(super) fn overlaps(ledger: &Ledger) -> Vec<(String, usize)> {
    let mut overlaps = Vec::new();
    for ((execution, step), lines) in ledger {
        for pair in lines.windows(2) {
            if let Some(ended) = pair[0].ended.filter(|ended| *ended > pair[1].at) {
                overlaps.push((format!("{execution} {step} {}", pair[0].attempt), ended));
            }
        }
    }
    overlaps
}
