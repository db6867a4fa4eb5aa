//! Content hash of records.

use sha2::{Digest as _, Sha256};

use super::{Record, Value};

/// Number and hash of records, whatever their order: the sum of the hashes of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Digest {
    pub(super) count: u64,
    sum: [u64; 4],
}

impl Digest {
    /// Adds a record.
    pub(super) fn add(&mut self, record: &Record) {
        let mut hash = Sha256::new();
        for value in record {
            match value {
                Value::Null => hash.update([0]),
                Value::Integer(number) => {
                    hash.update([1]);
                    hash.update(number.to_le_bytes());
                }
                Value::Text(text) => add_bytes(&mut hash, 2, text.as_bytes()),
                Value::Bytes(bytes) => add_bytes(&mut hash, 3, bytes),
            }
        }
        let hash: [u8; 32] = hash.finalize().into();
        for (sum, part) in self.sum.iter_mut().zip(hash.as_chunks::<8>().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*part));
        }
        self.count += 1;
    }
}

fn add_bytes(hash: &mut Sha256, kind: u8, bytes: &[u8]) {
    hash.update([kind]);
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(records: &[Record]) -> Digest {
        let mut digest = Digest::default();
        records.iter().for_each(|record| digest.add(record));
        digest
    }

    #[test]
    fn the_order_of_records_does_not_matter_and_everything_else_does() {
        let text = |text: &str| Value::Text(text.to_owned());
        let a = vec![text("a"), text("b"), Value::Null];
        let b = vec![Value::Integer(1)];
        let both = digest(&[a.clone(), b.clone()]);
        assert_eq!(both, digest(&[b.clone(), a.clone()]));
        for others in [
            vec![a.clone()],
            vec![a.clone(), b.clone(), b.clone()],
            vec![vec![text("ab"), text(""), Value::Null], b.clone()],
            vec![vec![text("a"), Value::Bytes(b"b".to_vec()), Value::Null], b.clone()],
            vec![vec![text("a"), text("b")], b.clone()],
            vec![vec![text("a"), text("b"), Value::Integer(0)], b],
            vec![a, vec![Value::Integer(-1)]],
        ] {
            assert_ne!(both, digest(&others), "{others:?}");
        }
    }
}
