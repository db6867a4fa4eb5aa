//! Suggestions for misspelt names.

/// Longest name that is compared, in bytes: callers choose names, and a comparison takes as long as
/// both together.
const COMPARED_MAX: usize = 256;

/// Returns the known name most similar to a misspelt one, if it is similar enough.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    const SIMILARITY_MIN: f64 = 0.6;
    if name.len() > COMPARED_MAX {
        return None;
    }
    known
        .into_iter()
        .map(|candidate| (similarity(name, candidate), candidate))
        .filter(|(similarity, known)| {
            *similarity >= SIMILARITY_MIN || is_one_letter_off(name, known)
        })
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate.to_owned())
}

/// Returns true if one name is the other with one more letter, which is a large distance for short
/// names.
fn is_one_letter_off(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    !short.is_empty()
        && short.chars().count() + 1 == long.chars().count()
        && strsim::levenshtein(short, long) == 1
}

/// Returns the similarity of two names, from 0 to 1. `topP` equals `top_p`.
fn similarity(one: &str, other: &str) -> f64 {
    let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    strsim::normalized_damerau_levenshtein(&plain(one), &plain(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_names_are_suggested() {
        let known = ["body_bytes_max", "body_timeout", "host"];
        assert_eq!(nearest("body_byte_max", known).as_deref(), Some("body_bytes_max"));
        assert_eq!(nearest("hsot", known).as_deref(), Some("host"));
        assert_eq!(nearest("bodyTimeout", known).as_deref(), Some("body_timeout"));
        assert_eq!(nearest("tls", known), None);
        let long = "a".repeat(COMPARED_MAX);
        assert_eq!(nearest(&long, [&*long]).as_deref(), Some(&*long));
        assert_eq!(nearest(&(long.clone() + "a"), [&*long]), None, "a comparison would take long");
        for (written, expected) in
            [("bb", Some("b")), ("", None), ("a", None), ("ab", Some("b")), ("abb", None)]
        {
            assert_eq!(nearest(written, ["b"]).as_deref(), expected, "for {written:?}");
        }
    }
}
