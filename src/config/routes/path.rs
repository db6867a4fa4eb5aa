//! Which paths a route may have.

/// Characters of a segment beside letters and digits: those that no client writes otherwise.
const OTHERS: &str = "-._~!$&'()+,;=@";

/// The name that handlers find what `*` stands for under.
const TAIL: &str = "tail";

/// What is wrong with the path of a route. `:name` stands for any segment; `*`, as the last one,
/// for everything below.
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
        return Some(format!("must not have the segment `{segment}`: clients take it away"));
    }
    if let Some(name) = segment.strip_prefix(':') {
        if name == TAIL {
            return Some(format!("has `:{TAIL}`, which is the name of `*`"));
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(fits);
        return (!is_name)
            .then(|| format!("has `{segment}`, which is no name: letters, digits and `_`"));
    }
    let is_odd = |c: &char| !c.is_ascii_alphanumeric() && !OTHERS.contains(*c);
    let odd = segment.chars().find(is_odd)?;
    Some(format!("has {odd:?}; letters, digits and {OTHERS} may be in a segment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_can_be_asked_for_in_one_way_only() {
        let good =
            ["/", "/a", "/a/b.c", "/.well-known/x", "/a/:id/b", "/a/*", "/*", "/:a/:b_2", "/a@b+c"];
        for path in good {
            assert_eq!(path_problem(path), None, "{path}");
        }
        let odd = |c: char| format!("has {c:?}; letters, digits and {OTHERS} may be in a segment");
        let rows = [
            ("", "must start with `/`".to_owned()),
            ("a/b", "must start with `/`".to_owned()),
            ("http://a", "must start with `/`".to_owned()),
            ("/a/", "must not end with `/`".to_owned()),
            ("//", "must not have `//`".to_owned()),
            ("/a//b", "must not have `//`".to_owned()),
            ("/*/a", "may have `*` as its last segment only".to_owned()),
            ("/a*", odd('*')),
            ("/a/../b", "must not have the segment `..`: clients take it away".to_owned()),
            ("/a/.", "must not have the segment `.`: clients take it away".to_owned()),
            ("/a?b", odd('?')),
            ("/a#b", odd('#')),
            ("/a%2fb", odd('%')),
            ("/a b", odd(' ')),
            ("/{a}", odd('{')),
            ("/a:b", odd(':')),
            ("/a\\b", odd('\\')),
            ("/ü", odd('ü')),
            ("/a\n", odd('\n')),
            ("/:", "has `:`, which is no name: letters, digits and `_`".to_owned()),
            ("/:a-b", "has `:a-b`, which is no name: letters, digits and `_`".to_owned()),
            ("/:2", "has `:2`, which is no name: letters, digits and `_`".to_owned()),
            ("/:a/x/:a", "has `:a` twice".to_owned()),
            ("/:tail/*", "has `:tail`, which is the name of `*`".to_owned()),
        ];
        for (path, expected) in rows {
            assert_eq!(path_problem(path), Some(expected), "{path:?}");
        }
    }
}
