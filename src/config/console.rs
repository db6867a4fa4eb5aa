//! `[console]`: the pages to watch and work with.

use url::Url;

use super::entry::{Entry, web_address};
use super::environment::Environment;
use super::features::UI;
use super::keys::{Takes, Value, section};

section! {
    /// The console.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ConsoleConfig {
        /// Serves `/console`. Default: `true`, but `false` if `NODE_ENV` is `production`.
        enabled: Option<bool> = None, Takes::FlagOf(UI, "serve the console");
        /// Shows no actions. That forbids nothing: what a caller may do is up to `[auth]`.
        read_only: bool = false, Takes::Flag;
        /// Name of this environment, above every page.
        title: String = "greenroom".to_owned(), Takes::Text;
        /// Colour of this environment, so that it is not mistaken for another one. Default: the
        /// console's own.
        accent: Option<Accent> = None, Takes::Own("`\"#rrggbb\"`");
        /// Address of the page where people get a token; the dialog for tokens links to it. Default: none.
        login_url: Option<LoginUrl> = None, Takes::Own("`\"https://HOST/PATH\"`");
    }
}

/// A colour, as `#rrggbb`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accent(pub String);

/// Address of a page where people get a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginUrl(pub String);

impl ConsoleConfig {
    /// Returns true if the console is served: as configured, else only outside of production, if
    /// this program has it.
    pub fn is_on(&self, environment: Environment) -> bool {
        let default = cfg!(feature = "ui") && environment == Environment::Development;
        self.enabled.unwrap_or(default)
    }
}

impl Value for Accent {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        let text = entry.filled_text()?;
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6);
        if digits.is_none_or(|digits| !digits.bytes().all(|digit| digit.is_ascii_hexdigit())) {
            return entry.refuse("must be a colour such as \"#b00020\"");
        }
        Some(Self(text))
    }
}

impl Value for LoginUrl {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        let url: Result<Url, _> = web_address(&entry.filled_text()?);
        match url {
            Ok(url) => Some(Self(url.into())),
            Err(problem) => entry.refuse(problem),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Environment};

    #[test]
    fn production_has_no_console_unless_it_is_configured() {
        let rows = [
            ("", true, false),
            ("console.enabled = true", true, true),
            ("console.enabled = false", false, false),
        ];
        for (text, in_development, in_production) in rows {
            let console = Config::parse(text, "config.toml").unwrap().console;
            assert_eq!(console.is_on(Environment::Development), in_development, "{text}");
            assert_eq!(console.is_on(Environment::Production), in_production, "{text}");
        }
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        let rows = [
            ("accent = \"red\"", "2:10: console.accent: must be a colour such as \"#b00020\""),
            ("accent = \"#b0002g\"", "2:10: console.accent: must be a colour such as \"#b00020\""),
            ("titel = \"x\"", "2:1: console.titel: unknown key; did you mean title?"),
        ];
        for (line, expected) in rows {
            let problems = Config::parse(&format!("[console]\n{line}"), "c").unwrap_err();
            let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
            assert_eq!(problems, [format!("c:{expected}")], "{line}");
        }
        for url in ["javascript:alert(1)", "login", "ftp://a.example/"] {
            let text = format!("[console]\nlogin_url = \"{url}\"");
            assert!(Config::parse(&text, "c").is_err(), "{url}");
        }
    }
}
