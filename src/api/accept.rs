//! Content negotiation by the header `Accept`.

/// Media type of problems (RFC 9457).
pub const PROBLEM: &str = "application/problem+json";
/// Media type of all other responses.
const JSON: &str = "application/json";

/// Returns true if refusals should be problems: the header names that type, at least as high as
/// plain JSON. `lines` are the values of the header; unreadable parts are ignored.
pub fn prefers_problem<'a>(lines: &(impl Iterator<Item = &'a str> + Clone)) -> bool {
    prefers(lines, PROBLEM, JSON)
}

/// Returns true if the header names `kind` with at least the weight of `other`.
fn prefers<'a>(lines: &(impl Iterator<Item = &'a str> + Clone), kind: &str, other: &str) -> bool {
    // Fast path: the values that most clients send are shorter than the type.
    let has_room = lines.clone().any(|line| line.len() >= kind.len());
    if !has_room {
        return false;
    }
    let weight = |kind| lines.clone().filter_map(|line| weight_of(line, kind)).max();
    match (weight(kind), weight(other)) {
        (Some(0) | None, _) => false,
        (Some(weight), other) => other.is_none_or(|other| weight >= other),
    }
}

/// Returns the weight of a type in a line that names it, in thousandths.
fn weight_of(line: &str, kind: &str) -> Option<u32> {
    let weights = line.split(',').filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_named = parts.next()?.eq_ignore_ascii_case(kind);
        let weight = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then_some(value.trim())
        });
        if is_named { weight.map_or(Some(1000), thousandths) } else { None }
    });
    weights.max()
}

/// Parses a weight: `0.5` is 500. It has one digit and at most three decimals.
fn thousandths(weight: &str) -> Option<u32> {
    let (whole, rest) = weight.split_once('.').unwrap_or((weight, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !matches!(whole, "0" | "1") || rest.len() > 3 || !is_digits(rest) {
        return None;
    }
    let weight: u32 = format!("{whole}{rest:0<3}").parse().ok()?;
    (weight <= 1000).then_some(weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_sent_only_when_accept_names_them() {
        let rows: [(&[&str], bool); 26] = [
            (&[], false),
            (&[""], false),
            (&["*/*"], false),
            (&["application/json"], false),
            (&["application/*, text/html;q=0.9, */*;q=0.8"], false),
            (&["application/problem+xml, application/xml"], false),
            (&["application/problem+json"], true),
            (&["Application/Problem+JSON"], true),
            (&["application/problem+json, application/json"], true),
            (&["application/json, application/problem+json"], true),
            (&["application/json", "application/problem+json"], true),
            (&["text/event-stream, application/problem+json;q=0.1"], true),
            (&["application/problem+json;q=0"], false),
            (&["application/problem+json;q=0.000"], false),
            (&["application/problem+json;q=0.001"], true),
            (&["application/problem+json; q=0.5, application/json; q=0.4"], true),
            (&["application/problem+json;q=0.5, application/json;q=0.5"], true),
            (&["application/problem+json;q=0.5, application/json"], false),
            (&["application/problem+json;q=0.5", "application/json;q=0.51"], false),
            (&["application/problem+json;charset=utf-8;Q=0, */*"], false),
            (&["application/problem+json;q=0.2, application/problem+json"], true),
            (&["application/problem+json;q=2"], false),
            (&["application/problem+json;q=1.001"], false),
            (&["application/problem+json;q=lots"], false),
            (&["application/problem+json;q=0.5, application/json;q=lots"], true),
            (&[",;=,;;q=;, , application/problem+json ;,,"], true),
        ];
        for (lines, expected) in rows {
            assert_eq!(prefers_problem(&lines.iter().copied()), expected, "{lines:?}");
        }
    }
}
