//! Faces built in Rust.

use std::time::Duration;

use crate::config::{FACE_NAME_CHARS_MAX, McpFace as Settings, face_text, face_url, is_face_name};
use crate::faces::Offered;

/// Word for all workflows or agents.
const ALL: &str = "*";

/// Builder of a face for clients of MCP, for [`crate::Greenroom::face`]. It has the keys of
/// `[[faces.mcp]]`.
///
/// ```
/// use std::time::Duration;
///
/// use greenroom::Greenroom;
/// use greenroom::builder::McpFace;
/// use greenroom::tool::Content;
/// use serde_json::json;
///
/// let server = Greenroom::new()
///     .tool("logo", "Shows the logo", json!({ "type": "object" }), |_, _| async {
///         Ok(Content::result([Content::image("image/png", b"...")]))
///     })
///     .face(McpFace::new().tools(["logo"]).workflows(["*"]).task_after(Duration::from_secs(10)));
/// # drop(server);
/// ```
#[derive(Debug, Clone)]
pub struct McpFace {
    settings: Settings,
    problems: Vec<String>,
}

impl McpFace {
    /// Creates a face at `/mcp` that offers nothing yet.
    pub fn new() -> Self {
        Self { settings: Settings::default(), problems: Vec::new() }
    }

    /// Sets the name: the address is `/mcp/NAME/mcp`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        if !is_face_name(&name) {
            let max = FACE_NAME_CHARS_MAX;
            self.problems.push(format!("name: must be 1 to {max} letters, digits, `-` or `_`"));
        }
        self.settings.name = Some(name);
        self
    }

    /// Offers workflows by their ids, or all with `"*"`.
    #[must_use]
    pub fn workflows<T: Into<String>>(mut self, ids: impl IntoIterator<Item = T>) -> Self {
        self.settings.workflows = offered(ids);
        self
    }

    /// Offers agents by their ids, or all with `"*"`.
    #[must_use]
    pub fn agents<T: Into<String>>(mut self, ids: impl IntoIterator<Item = T>) -> Self {
        self.settings.agents = offered(ids);
        self
    }

    /// Offers registered tools by their names.
    #[must_use]
    pub fn tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.settings.tools = names.into_iter().map(Into::into).collect();
        self
    }

    /// Shows executions as resources.
    #[must_use]
    pub fn resources(mut self) -> Self {
        self.settings.has_resources = true;
        self
    }

    /// Sets the address of the face, as clients reach it.
    #[must_use]
    pub fn url(mut self, url: &str) -> Self {
        match face_url(url) {
            Ok(url) => self.settings.url = Some(url),
            Err(problem) => self.problems.push(format!("url: {problem}")),
        }
        self
    }

    /// Sets the time after which a call becomes a task, for clients that follow tasks.
    #[must_use]
    pub fn task_after(mut self, time: Duration) -> Self {
        self.settings.task_after = time;
        self
    }

    /// Sets how many resources and tasks a client may watch with one stream, at most 1000.
    #[must_use]
    pub fn subscriptions_max(mut self, count: usize) -> Self {
        self.settings.subscriptions_max = count;
        self
    }

    /// Names the environment variable whose secret, of at least 32 bytes, seals what clients keep.
    #[must_use]
    pub fn secret_variable(mut self, variable: &str) -> Self {
        self.settings = self.settings.with_secret(variable);
        self
    }

    /// Returns the settings, and what is wrong with them.
    pub(crate) fn into_settings(self) -> (Settings, Vec<String>) {
        let Self { settings, problems } = self;
        let face = face_text(settings.name.as_deref());
        (settings, problems.into_iter().map(|problem| format!("{face}: {problem}")).collect())
    }
}

impl Default for McpFace {
    fn default() -> Self {
        Self::new()
    }
}

fn offered<T: Into<String>>(ids: impl IntoIterator<Item = T>) -> Offered {
    let ids: Vec<String> = ids.into_iter().map(Into::into).collect();
    if ids.iter().any(|id| id == ALL) { Offered::All } else { Offered::Only(ids) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Greenroom;

    #[test]
    fn what_is_wrong_with_a_face_is_refused_before_the_start() {
        let tools = |names: &[&str]| McpFace::new().tools(names.iter().copied());
        let agents = || McpFace::new().agents(["*"]);
        let refused = |server: Greenroom| server.checked().err().unwrap().to_string();
        let rows = [
            (McpFace::new(), "face without a name: offers nothing"),
            (tools(&["nowhere"]), "tools: tool nowhere is not configured"),
            (McpFace::new().workflows(["w"]), "workflows: workflow w is not configured"),
            (agents().name("a b"), "face a b: name: must be 1 to 64 letters"),
            (agents().url("here"), "face without a name: url: is not a valid address"),
            (agents().url("ftp://a.example"), "url: must begin with http:// or https://"),
            (agents().url("https://ann:key@a.example"), "url: must not contain a user name"),
            (agents().url("https://a.example/mcp?a"), "url: must end with the path, before ?"),
            (agents().url("https://a.example/mcp#a"), "url: must end with the path, before ?"),
            (tools(&["ask_user"]), "face without a name: tools: ask_user is for agents"),
            (agents().task_after(Duration::ZERO), "task_after: must be longer than 0ms"),
            (agents().task_after(Duration::MAX), "task_after: must be at most 3650 days"),
            (agents().subscriptions_max(1001), "subscriptions_max: must be from 0 to 1000"),
            (agents().subscriptions_max(usize::MAX), "subscriptions_max: must be from 0 to 1000"),
        ];
        for (face, problem) in rows {
            let said = refused(Greenroom::new().face(face));
            assert!(said.contains(problem), "{said}");
        }
        let all = || McpFace::new().workflows(["*"]);
        let twins = refused(Greenroom::new().face(all()).face(all()));
        assert!(
            twins.contains("face without a name: there is another one of this name"),
            "{twins}"
        );
        let many = (0..33)
            .fold(Greenroom::new(), |server, number| server.face(all().name(format!("n{number}"))));
        assert!(refused(many).contains("face n32: there are more than 32 faces"));
        let whole = all().name("ops").url("https://a.example/mcp/ops/mcp").subscriptions_max(1000);
        assert!(Greenroom::new().face(all().subscriptions_max(0)).face(whole).checked().is_ok());
    }
}
