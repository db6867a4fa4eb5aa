//! Estimates compared with measured allocations.

use serde_json::{Value, json};

use super::*;

/// Memory of lists of these parts, measured on a 64-bit machine with serde_json 1.0.154
/// (`preserve_order`): the sum of `Layout::size` of live allocations, and 16 bytes for each. It is
/// within 1% of the growth of the resident set.
const MEASURED: [(&str, usize, u64); 7] = [
    (r#"{"k":1}"#, 125_000, 61_062_200),
    ("1", 500_000, 37_748_752),
    (r#""a text of some length""#, 40_000, 6_198_608),
    (r#"{"a":1,"b":"two","c":[1,2,3],"d":{}}"#, 25_000, 33_334_312),
    ("[]", 300_000, 37_748_752),
    ("[[1]]", 100_000, 70_237_200),
    (r#"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9}"#, 15_000, 28_194_664),
];

#[test]
fn the_estimate_matches_measured_allocations() {
    let many = |part: &str, count: usize| format!("[{}]", vec![part; count].join(","));
    for (part, count, allocated) in MEASURED {
        let value: Value = serde_json::from_str(&many(part, count)).unwrap();
        let estimate = memory_bytes(&value);
        let near = allocated / 100 * 95..=allocated / 100 * 105;
        assert!(near.contains(&estimate), "{part} times {count}: {estimate}, not {allocated}");
    }
}

#[test]
fn a_value_without_parts_has_the_size_of_a_value() {
    for value in [json!(null), json!(true), json!(1.5), json!(""), json!([]), json!({})] {
        assert_eq!(memory_bytes(&value), VALUE_BYTES, "{value}");
    }
    assert_eq!(memory_bytes(&json!("12345678")), VALUE_BYTES + 8 + ALLOCATION_BYTES);
}
