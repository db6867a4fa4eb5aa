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

/// Escapes a text for the content of an element, with links for the addresses of pages in it. What
/// is shown of a link is its whole address.
pub(crate) fn with_links(text: &str) -> String {
    let (mut html, mut rest) = (String::new(), text);
    while let Some(at) = ["http://", "https://"].iter().filter_map(|it| rest.find(it)).min() {
        let (before, found) = rest.split_at(at);
        html.push_str(&escape(before));
        let end = found.find(|c: char| c.is_whitespace() || c.is_control() || "<>\"".contains(c));
        let found = &found[..end.unwrap_or(found.len())];
        // what ends a sentence is no part of the address
        let address = found.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '\'']);
        let shown = escape(address);
        match address.ends_with("//") {
            true => html.push_str(&shown),
            false => {
                let rel = "noreferrer noopener";
                html.push_str(&format!("<a href=\"{shown}\" rel=\"{rel}\">{shown}</a>"));
            }
        }
        rest = &rest[at + address.len()..];
    }
    html + &escape(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_links_and_nothing_else_is_html() {
        let link = |address: &str| {
            format!("<a href=\"{address}\" rel=\"noreferrer noopener\">{address}</a>")
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
        ];
        for (text, html) in rows {
            assert_eq!(with_links(text), html, "{text}");
        }
    }
}
