//! JSON in columns.

use greenroom_actors::domain::fact::{Others, Suspension};
use greenroom_actors::ports::store::{Projection, read_stored};
use serde::de::DeserializeOwned;

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
    let Some(shown) = projection.suspension.as_deref() else { return Ok(None) };
    match projection.others.as_deref() {
        None => serde_json::to_vec(shown).map(Some),
        Some(others) => serde_json::to_vec(&(shown, others)).map(Some),
    }
}

/// Decodes suspensions: the shown one and the others.
pub fn suspensions_of(
    bytes: Option<&[u8]>,
) -> Result<(Option<Suspension>, Option<Others>), Damaged> {
    let Some(bytes) = bytes else { return Ok((None, None)) };
    if is_pair(bytes) {
        let (shown, others) = parse(bytes)?;
        return Ok((Some(shown), Some(others)));
    }
    Ok((Some(parse(bytes)?), None))
}

/// Returns true if suspensions are stored as a pair.
pub(crate) fn is_pair(suspensions: &[u8]) -> bool {
    suspensions.first() == Some(&b'[')
}
