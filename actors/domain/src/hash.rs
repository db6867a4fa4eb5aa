//! Hashes: versions of definitions, ids of spans, jitter of retry delays.

use std::fmt::Write as _;

use serde::Serialize;
use sha2::{Digest, Sha256};

/// Returns the SHA-256 of the canonical JSON (keys sorted, no white space) as 64 hex digits.
pub fn canonical_hash<T: Serialize>(tree: &T) -> Result<String, serde_json::Error> {
    let mut value = serde_json::to_value(tree)?;
    value.sort_all_objects();
    Ok(hex(&Sha256::digest(serde_json::to_vec(&value)?)))
}

/// Returns the first eight bytes of SHA-256 over the parts, as a number.
pub fn span_hash(parts: &[&str]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = digest_of(parts);
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// Returns the first 16 hex digits of SHA-256 over the parts.
pub fn short_hash(parts: &[&str]) -> String {
    hex(&digest_of(parts)[..8])
}

/// Returns the first 32 hex digits of SHA-256 over the parts, for ids that must be globally
/// unique.
pub fn long_hash(parts: &[&str]) -> String {
    hex(&digest_of(parts)[..16])
}

/// Returns a number in `0.0..1.0` that depends on the parts alone.
pub fn fraction_of(parts: &[&str]) -> f64 {
    let digest = digest_of(parts);
    let head = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    f64::from(head) / (f64::from(u32::MAX) + 1.0)
}

fn digest_of(parts: &[&str]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.len().to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_does_not_change_the_hash() {
        let one = json!({ "a": 1, "b": { "c": 2, "d": 3 } });
        let two = json!({ "b": { "d": 3, "c": 2 }, "a": 1 });
        assert_eq!(canonical_hash(&one).unwrap(), canonical_hash(&two).unwrap());
        let other = json!({ "a": 1, "b": { "c": 2, "d": 4 } });
        assert_ne!(canonical_hash(&one).unwrap(), canonical_hash(&other).unwrap());
    }

    #[test]
    fn parts_are_kept_apart() {
        assert_ne!(short_hash(&["ab", "c"]), short_hash(&["a", "bc"]));
        assert!((0.0..1.0).contains(&fraction_of(&["a"])));
    }
}
