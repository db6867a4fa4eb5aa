//! The copy of one store to another, which is checked at the end.

use super::digest::Digest;
use super::{Failed, Kind, Source, Target};

/// Progress of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// So many records of a kind are copied.
    Copied { kind: Kind, count: u64, of: u64 },
    /// Indexes, counters and the like are derived from the records.
    Deriving,
    /// So many records of a kind are read back.
    Checked { kind: Kind, count: u64, of: u64 },
}

/// Content of a copy: the number of records of each kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied(Vec<(Kind, u64)>);

impl Copied {
    /// Returns the number of records of a kind.
    pub fn count(&self, kind: Kind) -> u64 {
        self.0.iter().find(|(of, _)| *of == kind).map_or(0, |(_, count)| *count)
    }

    /// Returns the kinds, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, u64)> {
        self.0.iter().copied()
    }
}

/// Copies all records to an empty store; reads them back and compares their numbers and hashes
/// before it makes that store usable.
pub fn copy(
    source: &mut dyn Source,
    target: &mut dyn Target,
    report: &mut dyn FnMut(Progress),
) -> Result<Copied, Failed> {
    let mut digests = Vec::new();
    for kind in Kind::ALL {
        let (mut digest, of) = (Digest::default(), source.count(kind)?);
        source.read(kind, &mut |records| {
            records.iter().for_each(|record| digest.add(record));
            target.write(kind, records)?;
            report(Progress::Copied { kind, count: digest.count, of });
            Ok(())
        })?;
        digests.push((kind, digest));
    }
    report(Progress::Deriving);
    target.derive()?;
    for (kind, wanted) in &digests {
        check(target, *kind, wanted, report)?;
    }
    target.complete()?;
    Ok(Copied(digests.into_iter().map(|(kind, digest)| (kind, digest.count)).collect()))
}

fn check(
    target: &mut dyn Target,
    kind: Kind,
    wanted: &Digest,
    report: &mut dyn FnMut(Progress),
) -> Result<(), Failed> {
    let mut found = Digest::default();
    target.read(kind, &mut |records| {
        records.iter().for_each(|record| found.add(record));
        report(Progress::Checked { kind, count: found.count, of: wanted.count });
        Ok(())
    })?;
    if found == *wanted {
        return Ok(());
    }
    let (copied, read) = (wanted.count, found.count);
    Err(Failed(if copied == read {
        format!("the copy differs from the original: {kind}, of which there are {copied}")
    } else {
        format!("the copy differs from the original: {copied} {kind} were copied, {read} are there")
    }))
}

#[cfg(test)]
mod tests {
    use super::super::{Receive, Record, Value};
    use super::*;

    /// A store in memory, with a fault.
    #[derive(Default)]
    struct Shelf {
        records: Vec<(Kind, Record)>,
        damages: Option<Kind>,
        loses: Option<Kind>,
        is_derived: bool,
        is_complete: bool,
    }

    impl Source for Shelf {
        fn count(&mut self, kind: Kind) -> Result<u64, Failed> {
            Ok(self.records.iter().filter(|(of, _)| *of == kind).count() as u64)
        }

        fn read(&mut self, kind: Kind, receive: &mut Receive<'_>) -> Result<(), Failed> {
            let mut found = self.records.iter().filter(|(of, _)| *of == kind);
            found.try_for_each(|(_, record)| receive(vec![record.clone()]))
        }
    }

    impl Target for Shelf {
        fn write(&mut self, kind: Kind, records: Vec<Record>) -> Result<(), Failed> {
            assert!(!self.is_derived, "derived before the last record");
            if self.loses == Some(kind) {
                return Ok(());
            }
            for mut record in records {
                if self.damages == Some(kind) {
                    record[0] = Value::Null;
                }
                self.records.push((kind, record));
            }
            Ok(())
        }

        fn derive(&mut self) -> Result<(), Failed> {
            self.is_derived = true;
            Ok(())
        }

        fn complete(&mut self) -> Result<(), Failed> {
            assert!(self.is_derived, "complete before it is derived");
            self.is_complete = true;
            Ok(())
        }
    }

    fn original() -> Shelf {
        let timer =
            |key: &str| vec![Value::Text("x".into()), Value::Text(key.into()), Value::Integer(7)];
        let definition = vec![Value::Text("hash".into()), Value::Bytes(b"{}".to_vec())];
        let records = vec![
            (Kind::Timers, timer("a")),
            (Kind::Timers, timer("b")),
            (Kind::Definitions, definition),
        ];
        Shelf { records, ..Shelf::default() }
    }

    #[test]
    fn a_copy_has_all_records_and_is_complete() {
        let (mut source, mut target) = (original(), Shelf::default());
        let mut seen = Vec::new();
        let copied = copy(&mut source, &mut target, &mut |progress| seen.push(progress)).unwrap();
        assert_eq!((copied.count(Kind::Timers), copied.count(Kind::Definitions)), (2, 1));
        assert_eq!(copied.count(Kind::Logs), 0);
        assert_eq!(copied.iter().count(), Kind::ALL.len());
        assert!(target.is_complete);
        assert!(source.records.iter().all(|record| target.records.contains(record)));
        assert!(seen.contains(&Progress::Copied { kind: Kind::Timers, count: 1, of: 2 }));
        assert!(seen.contains(&Progress::Checked { kind: Kind::Timers, count: 2, of: 2 }));
    }

    #[test]
    fn a_copy_that_differs_is_not_complete() {
        let lossy = Shelf { loses: Some(Kind::Definitions), ..Shelf::default() };
        let damaged = Shelf { damages: Some(Kind::Timers), ..Shelf::default() };
        for (mut target, says) in [
            (lossy, "1 definitions were copied, 0 are there"),
            (damaged, "timers, of which there are 2"),
        ] {
            let refusal = copy(&mut original(), &mut target, &mut |_| {}).unwrap_err();
            assert!(refusal.to_string().contains(says), "{refusal}");
            assert!(!target.is_complete);
        }
    }
}
