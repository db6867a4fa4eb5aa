//! Checks of the `Origin` and `Host` headers: pages that may call the server.

/// Configured origins.
#[derive(Debug, Clone)]
pub(crate) struct Origins {
    patterns: Vec<String>,
    /// Host names in the patterns.
    names: Vec<String>,
    /// True if the server listens on loopback. A page of another site can make its own host name
    /// resolve there, so only names of this machine count as the server's own.
    loopback_only: bool,
    /// Host name in the address of links to asks, if there are any.
    name_of_links: Option<String>,
}

impl Origins {
    pub(crate) fn new(patterns: &[String], loopback_only: bool, links: Option<&str>) -> Self {
        let patterns: Vec<_> =
            patterns.iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
        let authorities = patterns.iter().filter_map(|pattern| pattern.split_once("://"));
        let names = authorities.map(|(_, authority)| name_of(authority).to_owned()).collect();
        let authority = links.and_then(|url| url.split_once("://")).map(|(_, rest)| {
            let end = rest.find('/').unwrap_or(rest.len());
            &rest[..end]
        });
        let name_of_links = authority.map(|authority| name_of(authority).to_owned());
        Self { patterns, names, loopback_only, name_of_links }
    }

    /// Returns true if a page of this origin may read answers and change things.
    pub(crate) fn allow(&self, origin: &str, host: Option<&str>) -> bool {
        let origin = origin.to_ascii_lowercase();
        self.is_own(&origin, host) || self.patterns.iter().any(|pattern| matches(pattern, &origin))
    }

    /// Returns true if the server answers to this `Host`. A page of another site whose name
    /// resolves to loopback could otherwise read every answer as same-origin.
    pub(crate) fn answer_to(&self, host: &str) -> bool {
        let name = name_of(host);
        !self.loopback_only
            || is_local_name(name)
            || self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
            || self.allow_all()
    }

    /// Returns true if this `Host` is where people reach links. A page whose name resolves to
    /// loopback has another one.
    pub(crate) fn is_of_links(&self, host: &str) -> bool {
        let name = name_of(host);
        self.name_of_links.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(name))
    }

    /// Returns true if the configuration allows every origin.
    pub(crate) fn allow_all(&self) -> bool {
        self.patterns.iter().any(|pattern| pattern == "*")
    }

    fn is_own(&self, origin: &str, host: Option<&str>) -> bool {
        let Some(host) = host.map(str::to_ascii_lowercase) else { return false };
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        authority == Some(host.as_str()) && (!self.loopback_only || is_local_name(name_of(&host)))
    }
}

/// Matches `*` with all origins, `scheme://host:*` with any port, anything else exactly.
fn matches(pattern: &str, origin: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    match pattern.strip_suffix(":*") {
        Some(base) => origin.strip_prefix(base).is_some_and(|rest| {
            let port = rest.strip_prefix(':');
            rest.is_empty()
                || port.is_some_and(|port| {
                    !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
                })
        }),
        None => pattern == origin,
    }
}

/// Returns a host without its port; `*` counts as a port.
fn name_of(authority: &str) -> &str {
    let is_port = |port: &str| port == "*" || port.bytes().all(|byte| byte.is_ascii_digit());
    match authority.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        Some(_) | None => authority,
    }
}

/// Returns true if a host, with or without a port, is an address or `localhost`: neither is
/// resolved by a name server of someone else.
pub(crate) fn is_local_host(host: &str) -> bool {
    is_local_name(name_of(host))
}

fn is_local_name(name: &str) -> bool {
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let top = name.rsplit_once('.').map_or(name, |(_, top)| top);
    top.eq_ignore_ascii_case("localhost") || address.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(patterns: &[&str], loopback_only: bool) -> Origins {
        let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
        Origins::new(&patterns, loopback_only, Some("https://Green.example:8443/inbox"))
    }

    #[test]
    fn patterns_name_any_port_or_one() {
        let origins = origins(&["http://localhost:*", "https://app.example"], true);
        for good in ["http://localhost", "http://LOCALHOST:5173", "https://app.example"] {
            assert!(origins.allow(good, None), "{good} was refused");
        }
        let refused = [
            "null",
            "",
            "https://localhost:1",
            "http://localhost.evil:1",
            "http://localhost:",
            "http://localhost:1@evil",
            "https://app.example:444",
            "https://evil.example",
        ];
        for bad in refused {
            assert!(!origins.allow(bad, None), "{bad} was allowed");
        }
    }

    #[test]
    fn links_are_reached_at_their_own_host() {
        let origins = origins(&[], true);
        for host in ["green.example", "GREEN.example:443", "green.example:8443"] {
            assert!(origins.is_of_links(host) && !origins.answer_to(host), "{host}");
        }
        for host in ["green.example.evil", "evil.example", "a.green.example", ""] {
            assert!(!origins.is_of_links(host), "{host}");
        }
        assert!(!Origins::new(&[], true, None).is_of_links(""));
    }

    #[test]
    fn the_own_origin_is_allowed_unless_its_name_is_rebound() {
        let host = Some("10.0.0.5:3141");
        assert!(origins(&[], true).allow("http://10.0.0.5:3141", host));
        assert!(!origins(&[], true).allow("http://10.0.0.5:9", host));
        assert!(origins(&[], true).allow("http://[::1]:3141", Some("[::1]:3141")));
        let rebound = ("http://evil.example:3141", Some("evil.example:3141"));
        assert!(!origins(&[], true).allow(rebound.0, rebound.1));
        assert!(origins(&[], false).allow("https://app.example", Some("app.example")));
    }

    #[test]
    fn on_loopback_only_known_hosts_are_answered() {
        let origins = origins(&["http://localhost:*", "https://app.example:8443"], true);
        let good = [
            "localhost",
            "LocalHost:3141",
            "a.localhost:1",
            "127.0.0.1:3141",
            "10.0.0.5",
            "[::1]:3141",
            "App.Example",
            "app.example:3141",
        ];
        for host in good {
            assert!(origins.answer_to(host), "{host} was refused");
        }
        let bad = ["", ":80", "evil.example", "app.example.evil", "localhost.evil:1", "1.evil:2"];
        for host in bad {
            assert!(!origins.answer_to(host), "{host} was answered to");
        }
        assert!(self::origins(&[], false).answer_to("evil.example"));
        assert!(self::origins(&["*"], true).answer_to("evil.example"));
    }

    #[test]
    fn only_a_lone_star_allows_all_origins() {
        assert!(origins(&["*"], true).allow("https://evil.example", None));
        assert!(origins(&["*"], true).allow_all() && !origins(&["a*"], true).allow_all());
    }
}
