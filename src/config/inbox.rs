//! `[inbox]`: the inbox.

use std::time::Duration;

use url::Url;

use super::auth::roles_of;
use super::entry::{Entry, web_address};
use super::keys::{Keys as _, Takes, Value, section};
use super::problem::{ConfigProblem, Spot};
use super::secret::{read_variable, variable_problem};
use super::section::Section;
use crate::auth::{LINK_TTL_MAX, LinkKey};

/// Variable in examples.
const EXAMPLE_VARIABLE: &str = "INBOX_KEY";

section! {
    /// The inbox.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct InboxConfig {
        /// Roles that may pass over the claims of others, and assign what others are asked, with
        /// `"force": true`.
        force_roles: Vec<String> = Vec::new(), Takes::Texts(roles_of, "an array of roles");
        /// Signs links with which an ask is answered without a token; at least 32 bytes, the same
        /// for all servers of a database. Needs `base_url`. Default: none, and there are no links.
        secret: Option<LinkSecret> = None, Takes::Secret;
        /// Address of this server in links, as people reach it. Default: none.
        base_url: Option<LinkBase> = None, Takes::Own("`\"https://HOST\"`, with a path or none");
        /// Time that links are good for, unless they are made for another one; at most 90 days.
        link_ttl: Duration = Duration::from_secs(7 * 24 * 60 * 60), Takes::Duration;
    }
}

/// An environment variable that has the secret of links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSecret {
    pub(super) variable: String,
    pub(super) spot: Spot,
}

/// Address of links, without the slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkBase(pub String);

impl InboxConfig {
    /// Reads the section. A secret is useless without an address.
    pub(super) fn read_all(section: Section<'_>) -> Self {
        let inbox = Self::read_keys(&section);
        if inbox.secret.is_some() && !section.has("base_url") {
            section.key_place("secret").refuse("needs `base_url`, which links begin with");
        }
        if inbox.link_ttl > LINK_TTL_MAX {
            section.key_place("link_ttl").refuse("must be at most 90 days (\"90d\")");
        }
        section.close();
        inbox
    }

    /// Returns the key that signs links, from the environment; `None` if there are no links.
    pub fn link_key(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<LinkKey>, ConfigProblem> {
        let Some(LinkSecret { variable, spot }) = &self.secret else { return Ok(None) };
        let secret = environment(variable).unwrap_or_default();
        let refused = |problem| spot.error(variable_problem(variable, problem));
        LinkKey::new(secret.as_bytes()).map(Some).map_err(refused)
    }
}

impl Value for LinkSecret {
    /// Reads the name of the variable. Errors do not repeat the text, which may be the secret.
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        let variable = read_variable(entry, EXAMPLE_VARIABLE)?;
        Some(Self { variable, spot: entry.place.spot() })
    }
}

impl Value for LinkBase {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        let url: Url = match web_address(&entry.filled_text()?) {
            Ok(url) => url,
            Err(problem) => return entry.refuse(problem),
        };
        if url.query().is_some() || url.fragment().is_some() {
            return entry.refuse("must end with the host or a path, before ? and #");
        }
        Some(Self(url.as_str().trim_end_matches('/').to_owned()))
    }
}
