//! Patterns of routes: `METHOD /path`, with `:name` for any segment and `*` at the end for
//! everything below. Patterns that open routes match narrowly, those that close them widely.

use crate::api::catalogue::{Access, Catalogue, Method, Route};
use crate::api::ids::decode;

/// A pattern of routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    method: Method,
    path: String,
}

/// The part of a route that a pattern covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cover {
    Nothing,
    All,
    /// Paths with these texts at these segment indices.
    Where(Vec<(usize, String)>),
}

impl Pattern {
    /// Parses a pattern; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let example = "write it as \"POST /path\", with `:name` for a segment and `*` at the end \
                       for everything below";
        let (method, path) = text.split_once(' ').ok_or(example)?;
        let method = Method::parse(method).ok_or_else(|| {
            let known = Method::ALL.map(Method::as_str).join(", ");
            format!("`{method}` is not a supported method; expected one of {known}")
        })?;
        let path = path.trim();
        let segments: Vec<&str> = path.strip_prefix('/').ok_or(example)?.split('/').collect();
        let (last, before) = segments.split_last().ok_or(example)?;
        if before.iter().any(|segment| segment.contains('*'))
            || last.contains('*') && *last != "*"
            || path.contains(|c: char| c.is_whitespace() || c.is_control() || "?#%".contains(c))
        {
            return Err(example.to_owned());
        }
        Ok(Self { method, path: path.to_owned() })
    }

    /// Returns true if a rule with this pattern covers some route.
    pub fn closes_any(&self, catalogue: &Catalogue) -> bool {
        self.routes(catalogue).next().is_some()
    }

    /// Returns true if the pattern opens some route.
    pub fn opens_any(&self, catalogue: &Catalogue) -> bool {
        catalogue.rows().iter().any(|row| self.opened(row).is_some())
    }

    /// Returns true if all covered routes are probes or links, which are always open.
    pub fn is_about_open_routes_alone(&self, catalogue: &Catalogue) -> bool {
        self.routes(catalogue).all(|row| row.access == Access::Open)
    }

    fn routes<'a>(&'a self, catalogue: &'a Catalogue) -> impl Iterator<Item = &'a Route> {
        catalogue.rows().iter().filter(|row| self.closed(row).is_some())
    }

    /// Returns the part of a route that a rule covers: `:name` matches any segment.
    pub(super) fn closed(&self, route: &Route) -> Cover {
        self.cover(route, |_| true)
    }

    /// Returns the part of a route that the pattern opens: `:name` matches only a variable segment
    /// of the route, not a fixed one such as `executions` in `/workflows/executions`.
    pub(super) fn opened(&self, route: &Route) -> Cover {
        self.cover(route, |own| own.starts_with(':'))
    }

    fn cover(&self, route: &Route, is_named: impl Fn(&str) -> bool) -> Cover {
        if self.method != route.method {
            return Cover::Nothing;
        }
        let mut texts = Vec::new();
        let mut pattern = self.path.split('/');
        let mut own = route.path.split('/');
        for index in 0.. {
            match (pattern.next(), own.next()) {
                (None, None) | (Some("*"), Some(_)) => break,
                (Some(segment), Some(own)) if segment == own => {}
                // One segment is not everything below.
                (Some(_), Some("*")) => return Cover::Nothing,
                (Some(segment), Some(own)) if segment.starts_with(':') && is_named(own) => {}
                (Some(segment), Some(own)) if own.starts_with(':') && !segment.is_empty() => {
                    texts.push((index, segment.to_owned()));
                }
                _ => return Cover::Nothing,
            }
        }
        if texts.is_empty() { Cover::All } else { Cover::Where(texts) }
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method.as_str(), self.path)
    }
}

impl Cover {
    pub(super) fn is_some(&self) -> bool {
        *self != Self::Nothing
    }

    /// Returns true if the path of a request is covered. Segments are compared decoded, as handlers
    /// see them.
    pub(super) fn matches(&self, path: &str) -> bool {
        self.covers(path, false)
    }

    /// Returns true if the path may be covered. A segment that cannot be decoded counts as a match,
    /// since an added handler may interpret it in any way.
    pub(super) fn may_match(&self, path: &str) -> bool {
        self.covers(path, true)
    }

    fn covers(&self, path: &str, when_unreadable: bool) -> bool {
        match self {
            Self::Nothing => false,
            Self::All => true,
            Self::Where(texts) => texts.iter().all(|(index, text)| {
                let segment = path.split('/').nth(*index).and_then(decode);
                segment.map_or(when_unreadable, |segment| segment == text.as_str())
            }),
        }
    }
}
