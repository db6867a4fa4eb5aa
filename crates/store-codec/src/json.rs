//! JSON in columns.

use greenroom_actors::domain::fact::{Others, Suspension};
use greenroom_actors::ports::store::{Projection, read_stored};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::Damaged;

/// Parses stored JSON, which may nest deeper than what is accepted now.
pub fn parse<T: DeserializeOwned + Send>(bytes: &[u8]) -> Result<T, Damaged> {
    read_stored(bytes).map_err(Damaged::new)
}

/// Parses the JSON of a column that may be null.
pub fn parse_optional<T: DeserializeOwned + Send>(
    bytes: Option<&[u8]>,
) -> Result<Option<T>, Damaged> {
    bytes.map(parse).transpose()
}

/// Encodes the suspensions of an execution: the shown one, or a pair of it and the others.
pub fn suspensions_bytes(projection: &Projection) -> serde_json::Result<Option<Vec<u8>>> {
    suspensions_json(projection.suspension.as_deref(), projection.others.as_deref())
}

pub(crate) fn suspensions_json(
    shown: Option<&Suspension>,
    others: Option<&Others>,
) -> serde_json::Result<Option<Vec<u8>>> {
    let Some(shown) = shown else { return Ok(None) };
    match others {
        None => serde_json::to_vec(shown).map(Some),
        Some(others) => serde_json::to_vec(&(shown, others)).map(Some),
    }
}

/// Maximum size of the suspensions of a row whose payloads are parsed, in bytes of JSON. Larger are
/// rows of older versions, with payloads that take a hundred times as much memory, and a few with
/// long reasons.
const PARSED_PAYLOADS_MAX: usize = 128 << 10;

/// A suspension without its payload.
#[derive(Deserialize)]
struct Bare {
    payload: Option<IgnoredAny>,
    #[serde(flatten)]
    suspension: Suspension,
}

impl From<Bare> for Suspension {
    fn from(Bare { payload, suspension }: Bare) -> Self {
        let payload_omitted = suspension.payload_omitted || payload.is_some();
        Self { payload_omitted, ..suspension }
    }
}

/// Others without their payloads.
#[derive(Deserialize)]
struct BareOthers {
    suspensions: Vec<Bare>,
    #[serde(default)]
    omitted: usize,
}

impl From<BareOthers> for Others {
    fn from(BareOthers { suspensions, omitted }: BareOthers) -> Self {
        Self { suspensions: suspensions.into_iter().map(Suspension::from).collect(), omitted }
    }
}

/// Decodes suspensions, without large payloads: the shown one and the others.
pub fn suspensions_of(
    bytes: Option<&[u8]>,
) -> Result<(Option<Suspension>, Option<Others>), Damaged> {
    let Some(bytes) = bytes else { return Ok((None, None)) };
    let (shown, others) = if bytes.len() > PARSED_PAYLOADS_MAX {
        suspensions_as::<Bare, BareOthers>(bytes)?
    } else {
        suspensions_as::<Suspension, Others>(bytes)?
    };
    Ok((Some(shown.listed()), others.map(Others::listed)))
}

fn suspensions_as<S, O>(bytes: &[u8]) -> Result<(Suspension, Option<Others>), Damaged>
where
    S: DeserializeOwned + Into<Suspension> + Send,
    O: DeserializeOwned + Into<Others> + Send,
{
    if is_pair(bytes) {
        let (shown, others): (S, O) = parse(bytes)?;
        return Ok((shown.into(), Some(others.into())));
    }
    Ok((parse::<S>(bytes)?.into(), None))
}

/// Returns true if suspensions are stored as a pair.
fn is_pair(suspensions: &[u8]) -> bool {
    suspensions.first() == Some(&b'[')
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use greenroom_actors::domain::time::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    fn suspension(id: &str, payload: Option<Value>) -> Suspension {
        Suspension {
            id: Some(id.into()),
            reason: "approval".into(),
            suspended_at: Timestamp(1),
            step_id: "approve".into(),
            path: "approve".into(),
            step_index: 2,
            payload: payload.map(Arc::new),
            deadline: Some(Timestamp(9)),
            by: None,
            pause: false,
            payload_omitted: false,
        }
    }

    fn omitted(id: &str) -> Suspension {
        Suspension { payload_omitted: true, ..suspension(id, None) }
    }

    #[test]
    fn suspensions_come_back_without_large_payloads() {
        let (small, medium) = (json!({ "who": "lea" }), json!("x".repeat(9 << 10)));
        // many small objects, nested deeper than the parser of values goes
        let deep = (0..1500).fold(json!(1), |value, _| json!([value]));
        let large = json!([deep, vec![json!({}); PARSED_PAYLOADS_MAX / 3]]);
        let read = |shown: &Suspension, others: Option<&Others>| {
            let bytes = match others {
                None => serde_json::to_vec(shown),
                Some(others) => serde_json::to_vec(&(shown, others)),
            };
            suspensions_of(Some(&bytes.unwrap())).unwrap()
        };
        for (payload, expected) in [
            (None, suspension("a", None)),
            (Some(&small), suspension("a", Some(small.clone()))),
            (Some(&medium), omitted("a")),
            (Some(&large), omitted("a")),
        ] {
            let stored = suspension("a", payload.cloned());
            assert_eq!(read(&stored, None), (Some(expected), None));
        }
        assert_eq!(read(&omitted("a"), None), (Some(omitted("a")), None));

        let others = |suspensions| Others { suspensions, omitted: 3 };
        let stored = others(vec![suspension("b", Some(small.clone())), suspension("c", None)]);
        let whole = suspension("a", Some(small));
        assert_eq!(read(&whole, Some(&stored)), (Some(whole.clone()), Some(stored.clone())));
        // beside a large one, small ones are omitted as well
        let beside = others(vec![omitted("b"), suspension("c", None)]);
        let read = read(&suspension("a", Some(large)), Some(&stored));
        assert_eq!(read, (Some(omitted("a")), Some(beside)));
    }
}
