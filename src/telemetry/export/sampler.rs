//! Sampling of traces by their ids, so that all processes of a trace decide alike.

use greenroom_actors::domain::trace::Trace;

/// Hex digits of a trace id that decide: the last 56 bits, which are random in every id made
/// according to W3C Trace Context. The digits before them are not: a UUID has its variant there.
/// Ids that this server makes within one millisecond count up in the first of these digits, so
/// most of them are sampled alike. Cell and slot of an execution's id are the last five digits,
/// which hardly ever decide.
const RANDOM_DIGITS: usize = 14;
/// Number of values of that many digits.
const RANDOM_END: u64 = 1 << (4 * RANDOM_DIGITS);

/// Selects the traces to export.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// Share of the traces, from 0 to 1.
    pub ratio: f64,
    /// True to skip traces that the caller does not sample.
    pub follows_caller: bool,
}

impl Default for Sampler {
    fn default() -> Self {
        Self { ratio: 1.0, follows_caller: true }
    }
}

impl Sampler {
    /// Returns true if spans of the trace are exported; the same for all spans of a trace, also in
    /// other processes that decide by the random part of its id.
    pub fn takes(&self, trace: &Trace) -> bool {
        if self.follows_caller && trace.is_unsampled {
            return false;
        }
        let random = trace.id.len().checked_sub(RANDOM_DIGITS);
        let random = random.and_then(|from| u64::from_str_radix(trace.id.get(from..)?, 16).ok());
        let threshold = ((1.0 - self.ratio.clamp(0.0, 1.0)) * RANDOM_END as f64) as u64;
        random.unwrap_or_default() >= threshold
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use greenroom_actors::domain::trace::{EntityType, TraceOrigin};
    use uuid::Uuid;

    use super::*;

    fn trace(id: &str) -> Trace {
        let trace = Trace::of("e1", EntityType::Workflow, &Arc::from("w"), TraceOrigin::New);
        Trace { id: id.into(), ..trace }
    }

    #[test]
    fn the_last_digits_of_the_id_decide() {
        let rows = [
            ("ffffffffffffffffff00000000000000", 1.0, true),
            ("ffffffffffffffffff00000000000000", 0.999, false),
            ("0000000000000000007fffffffffffff", 0.5, false),
            ("00000000000000000080000000000000", 0.5, true),
            ("000000000000000000ffffffffffffff", 0.001, true),
            ("000000000000000000ffffffffffffff", 0.0, false),
        ];
        for (id, ratio, expected) in rows {
            let sampler = Sampler { ratio, follows_caller: true };
            assert_eq!(sampler.takes(&trace(id)), expected, "{id} {ratio}");
        }
    }

    #[test]
    fn ids_of_different_times_are_sampled_evenly() {
        let sampler = Sampler { ratio: 0.25, follows_caller: true };
        let at = |second| uuid::Timestamp::from_unix(uuid::NoContext, second, 0);
        let ids = (0..4_000).map(|second| Uuid::new_v7(at(second)).simple().to_string());
        let taken = ids.filter(|id| sampler.takes(&trace(id))).count();
        assert!((850..1_150).contains(&taken), "{taken} of 4000");
    }

    #[test]
    fn traces_that_the_caller_does_not_sample_are_skipped() {
        let id = "000000000000000000ffffffffffffff";
        let unsampled = Trace { is_unsampled: true, ..trace(id) };
        assert!(!Sampler::default().takes(&unsampled));
        assert!(Sampler { follows_caller: false, ..Sampler::default() }.takes(&unsampled));
    }
}
