//! Places where the JWT provider finds its token.

use std::borrow::Cow;

use super::{RequestHead, TokenSources, bearer, cookie};

impl TokenSources {
    /// Finds the token of a request. `Authorization: Bearer` takes precedence, because programs set
    /// it, whereas browsers send cookies automatically.
    pub fn find<'r>(&self, request: &'r dyn RequestHead) -> Option<Cow<'r, str>> {
        if has_bearer_scheme(request) {
            return bearer(request).map(Cow::Borrowed);
        }
        let is_upgrade = request.is_upgrade();
        let cookie_name = self.cookie.as_deref().filter(|_| !is_upgrade);
        if let Some(token) = cookie_name.and_then(|name| cookie(request, name)) {
            return Some(Cow::Borrowed(token));
        }
        if !is_upgrade && !self.query_anywhere {
            return None;
        }
        request.query(&self.query).filter(|token| !token.is_empty()).map(Cow::Owned)
    }
}

fn has_bearer_scheme(request: &dyn RequestHead) -> bool {
    let scheme = request.header("authorization").and_then(|value| value.split(' ').next());
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Head {
        authorization: Option<&'static str>,
        cookie: Option<&'static str>,
        query: Option<&'static str>,
        is_upgrade: bool,
    }

    impl RequestHead for Head {
        fn header(&self, name: &str) -> Option<&str> {
            match name {
                "authorization" => self.authorization,
                "cookie" => self.cookie,
                _ => None,
            }
        }

        fn query(&self, name: &str) -> Option<String> {
            self.query.filter(|_| name == "token").map(str::to_owned)
        }

        fn is_upgrade(&self) -> bool {
            self.is_upgrade
        }
    }

    fn everywhere() -> Head {
        Head {
            authorization: Some("Bearer header"),
            cookie: Some("session=cookie"),
            query: Some("query"),
            is_upgrade: false,
        }
    }

    #[test]
    fn the_header_precedes_the_cookie_and_the_cookie_the_query() {
        let usual = TokenSources::default();
        let with_cookie =
            TokenSources { cookie: Some("session".to_owned()), ..TokenSources::default() };
        let all = TokenSources { query_anywhere: true, ..with_cookie.clone() };
        let no_header = || Head { authorization: None, ..everywhere() };
        let query = || Head { query: Some("query"), ..Head::default() };
        let upgrade = |head: Head| Head { is_upgrade: true, ..head };
        let rows = [
            ("header before all", &all, everywhere(), Some("header")),
            ("cookie before query", &all, no_header(), Some("cookie")),
            ("no cookie unless configured", &usual, no_header(), None),
            ("query with query_anywhere", &all, query(), Some("query")),
            ("no query elsewhere", &with_cookie, query(), None),
            ("query of a WebSocket", &usual, upgrade(query()), Some("query")),
            ("no cookie of a WebSocket", &with_cookie, upgrade(no_header()), Some("query")),
            ("header of a WebSocket", &all, upgrade(everywhere()), Some("header")),
            ("nothing", &all, Head::default(), None),
            ("an empty query", &all, Head { query: Some(""), ..Head::default() }, None),
            (
                "an empty bearer is final",
                &all,
                Head { authorization: Some("bearer "), ..everywhere() },
                None,
            ),
            (
                "another scheme is ignored",
                &all,
                Head { authorization: Some("Basic eA=="), ..everywhere() },
                Some("cookie"),
            ),
        ];
        for (name, sources, head, token) in rows {
            assert_eq!(sources.find(&head).as_deref(), token, "{name}");
        }
    }
}
