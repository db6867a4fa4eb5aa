//! Texts in pages.

/// Escapes a text for HTML, including attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Escapes a text for the content of an element, with links for the addresses of pages in it. What is
/// shown of a link is its whole address; one that could be taken for another is no link.
pub(crate) fn with_links(text: &str) -> String {
    let (mut html, mut rest) = (String::new(), text);
    while let Some(at) = ["http://", "https://"].iter().filter_map(|it| rest.find(it)).min() {
        let (before, found) = rest.split_at(at);
        html.push_str(&escape(before));
        let end = found.find(|c: char| c.is_whitespace() || "<>\"".contains(c));
        let address = without_punctuation(&found[..end.unwrap_or(found.len())]);
        if is_plain(address) {
            html.push_str(&link(address, address));
        } else {
            html.push_str(&escape(address));
        }
        rest = &rest[at + address.len()..];
    }
    html + &escape(rest)
}

/// Returns a link to a page with a text that names its host; `None` for what is no address of a page, or one
/// that could be taken for another.
pub(crate) fn link_to(address: &str, text: impl FnOnce(&str) -> String) -> Option<String> {
    let is_page = address.starts_with("https://") || address.starts_with("http://");
    let host = host_of(address).filter(|_| is_page && is_plain(address))?;
    Some(link(address, &text(host)))
}

fn link(address: &str, text: &str) -> String {
    let (address, text) = (escape(address), escape(text));
    format!("<a href=\"{address}\" target=\"_blank\" rel=\"noreferrer noopener\">{text}</a>")
}

/// Removes what ends a sentence, and a bracket that was opened before the address.
fn without_punctuation(mut address: &str) -> &str {
    loop {
        let is_open = address.matches('(').count() >= address.matches(')').count();
        let ends: &[char] = match is_open {
            true => &['.', ',', ';', ':', '!', '?', '\''],
            false => &['.', ',', ';', ':', '!', '?', '\'', ')'],
        };
        match address.strip_suffix(ends) {
            Some(shorter) => address = shorter,
            None => return address,
        }
    }
}

/// Returns true if an address is what it looks like: whole, of the characters of addresses, with a host,
/// and without a user before that.
fn is_plain(address: &str) -> bool {
    let is_host = |host: &str| !host.is_empty() && !host.contains(['@', '\\']);
    host_of(address).is_some_and(is_host) && address.bytes().all(|b| b.is_ascii_graphic())
}

/// Returns the host of an address, with its port.
fn host_of(address: &str) -> Option<&str> {
    let (_, behind) = address.split_once("//")?;
    behind.split(['/', '?', '#']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_links_and_nothing_else_is_html() {
        let link = |address: &str| {
            let rel = "target=\"_blank\" rel=\"noreferrer noopener\"";
            format!("<a href=\"{address}\" {rel}>{address}</a>")
        };
        let rows = [
            ("no <b>page</b>", "no &lt;b&gt;page&lt;/b&gt;".to_owned()),
            (
                "Open https://a.example/x?b=1&c=2 (at a.example).",
                format!("Open {} (at a.example).", link("https://a.example/x?b=1&amp;c=2")),
            ),
            (
                "http://a.example, https://b.example/\"><script>",
                format!(
                    "{}, {}&quot;&gt;&lt;script&gt;",
                    link("http://a.example"),
                    link("https://b.example/")
                ),
            ),
            ("javascript:alert(1)", "javascript:alert(1)".to_owned()),
            ("https://", "https://".to_owned()),
            ("(https://a.example/b_(c))", format!("({})", link("https://a.example/b_(c)"))),
            ("https://a.example/long… (whole)", "https://a.example/long… (whole)".to_owned()),
            ("https://good.example@evil.example/", "https://good.example@evil.example/".to_owned()),
            ("https://\u{202e}moc.a/", "https://\u{202e}moc.a/".to_owned()),
        ];
        for (text, html) in rows {
            assert_eq!(with_links(text), html, "{text}");
        }
    }

    #[test]
    fn a_link_has_the_whole_address_and_says_its_host() {
        let text = |host: &str| format!("at {host}");
        let rel = "target=\"_blank\" rel=\"noreferrer noopener\"";
        for (address, host) in [
            ("https://a.example/x?b=1.", "a.example"),
            ("http://127.0.0.1:8080/(a", "127.0.0.1:8080"),
            ("https://a.example", "a.example"),
        ] {
            let expected = format!("<a href=\"{address}\" {rel}>at {host}</a>");
            assert_eq!(link_to(address, text), Some(expected));
        }
        for address in [
            "javascript://a.example/%0aalert(1)",
            "https://good.example@evil.example/",
            "https://",
            "https://a.example/\u{202e}",
            "https://a.example/ b",
            "a.example",
            "",
        ] {
            assert_eq!(link_to(address, text), None, "{address}");
        }
    }
}
