//! Which traces are exported: decided by the id of each, so that all who see it agree.

use greenroom_actors::domain::trace::Trace;

/// Digits of a trace's id that decide: the last 56 bits, which are random in every id that is
/// made as W3C Trace Context asks. The half before them is not: a UUID has its variant there.
/// Ids that this server makes within one millisecond count up in the first of these digits, so
/// most of them are taken or left together.
const RANDOM_DIGITS: usize = 14;
/// Values of that many digits.
const RANDOM_END: u64 = 1 << (4 * RANDOM_DIGITS);

/// Decides which traces are exported.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// Share of the traces, from 0 to 1.
    pub ratio: f64,
    /// Whether a caller who does not record its trace is followed in that.
    pub follows_caller: bool,
}

impl Default for Sampler {
    fn default() -> Self {
        Self { ratio: 1.0, follows_caller: true }
    }
}

impl Sampler {
    /// Whether spans of the trace are exported. The same for all spans of a trace, also in other
    /// processes that decide by the randomness of its id.
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
    fn the_end_of_the_id_decides() {
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
    fn ids_of_different_times_are_spread_evenly() {
        let sampler = Sampler { ratio: 0.25, follows_caller: true };
        let at = |second| uuid::Timestamp::from_unix(uuid::NoContext, second, 0);
        let ids = (0..4_000).map(|second| Uuid::new_v7(at(second)).simple().to_string());
        let taken = ids.filter(|id| sampler.takes(&trace(id))).count();
        assert!((850..1_150).contains(&taken), "{taken} of 4000");
    }

    #[test]
    fn a_caller_who_does_not_record_is_followed() {
        let id = "000000000000000000ffffffffffffff";
        let unsampled = Trace { is_unsampled: true, ..trace(id) };
        assert!(!Sampler::default().takes(&unsampled));
        assert!(Sampler { follows_caller: false, ..Sampler::default() }.takes(&unsampled));
    }
}
