//! Validation of the paths of routes.

/// Characters of a segment beside letters and digits: those that clients never escape.
const OTHERS: &str = "-._~!$&'()+,;=@";

/// Name of the path parameter of `*`.
const TAIL: &str = "tail";

/// Returns the problem of a route's path. `:name` matches any segment; `*`, as the last segment,
/// everything below.
pub(crate) fn path_problem(path: &str) -> Option<String> {
    let Some(rest) = path.strip_prefix('/') else {
        return Some("must start with `/`".to_owned());
    };
    if rest.is_empty() {
        return None;
    }
    let segments: Vec<&str> = rest.split('/').collect();
    let mut names = Vec::new();
    for (index, segment) in segments.iter().enumerate() {
        let is_last = index + 1 == segments.len();
        if let Some(problem) = segment_problem(segment, is_last) {
            return Some(problem);
        }
        if let Some(name) = segment.strip_prefix(':') {
            if names.contains(&name) {
                return Some(format!("has `:{name}` twice"));
            }
            names.push(name);
        }
    }
    None
}

fn segment_problem(segment: &str, is_last: bool) -> Option<String> {
    if segment.is_empty() {
        let problem = if is_last { "must not end with `/`" } else { "must not have `//`" };
        return Some(problem.to_owned());
    }
    if segment == "*" {
        return (!is_last).then(|| "may have `*` as its last segment only".to_owned());
    }
    if segment == "." || segment == ".." {
        return Some(format!("must not have the segment `{segment}`: clients remove it"));
    }
    if let Some(name) = segment.strip_prefix(':') {
        if name == TAIL {
            return Some(format!("must not have `:{TAIL}`: the name is reserved for `*`"));
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(fits);
        return (!is_name).then(|| format!("has `{segment}`; names are letters, digits and `_`"));
    }
    let is_odd = |c: &char| !c.is_ascii_alphanumeric() && !OTHERS.contains(*c);
    let odd = segment.chars().find(is_odd)?;
    Some(format!("has {odd:?}; segments are letters, digits and {OTHERS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_only_one_spelling() {
        let good =
            ["/", "/a", "/a/b.c", "/.well-known/x", "/a/:id/b", "/a/*", "/*", "/:a/:b_2", "/a@b+c"];
        for path in good {
            assert_eq!(path_problem(path), None, "{path}");
        }
        let odd = |c: char| format!("has {c:?}; segments are letters, digits and {OTHERS}");
        let rows = [
            ("", "must start with `/`".to_owned()),
            ("a/b", "must start with `/`".to_owned()),
            ("http://a", "must start with `/`".to_owned()),
            ("/a/", "must not end with `/`".to_owned()),
            ("//", "must not have `//`".to_owned()),
            ("/a//b", "must not have `//`".to_owned()),
            ("/*/a", "may have `*` as its last segment only".to_owned()),
            ("/a*", odd('*')),
            ("/a/../b", "must not have the segment `..`: clients remove it".to_owned()),
            ("/a/.", "must not have the segment `.`: clients remove it".to_owned()),
            ("/a?b", odd('?')),
            ("/a#b", odd('#')),
            ("/a%2fb", odd('%')),
            ("/a b", odd(' ')),
            ("/{a}", odd('{')),
            ("/a:b", odd(':')),
            ("/a\\b", odd('\\')),
            ("/ü", odd('ü')),
            ("/a\n", odd('\n')),
            ("/:", "has `:`; names are letters, digits and `_`".to_owned()),
            ("/:a-b", "has `:a-b`; names are letters, digits and `_`".to_owned()),
            ("/:2", "has `:2`; names are letters, digits and `_`".to_owned()),
            ("/:a/x/:a", "has `:a` twice".to_owned()),
            ("/:tail/*", "must not have `:tail`: the name is reserved for `*`".to_owned()),
        ];
        for (path, expected) in rows {
            assert_eq!(path_problem(path), Some(expected), "{path:?}");
        }
    }
}
