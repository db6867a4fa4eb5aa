//! MCP servers.

use super::Greenroom;
use crate::builder::McpServer;

impl Greenroom {
    /// Connects an MCP server, whose tools agents and steps use as `NAME.tool`. The name has 1 to 32
    /// letters, digits, `_` or `-`. Replaces one of the configuration with the same name.
    ///
    /// ```
    /// use greenroom::Greenroom;
    /// use greenroom::builder::{Agent, McpServer};
    ///
    /// let files = McpServer::command(["mcp-server-filesystem", "/srv/files"]).tools(["read_*"]);
    /// let clerk = Agent::new("clerk").model("offline").tools(["files.read_text_file"]);
    /// let server = Greenroom::new().mcp("files", files).agent(clerk);
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn mcp(mut self, name: &str, server: McpServer) -> Self {
        let (made, problems) = server.compile(name);
        self.note(problems);
        if made.is_some_and(|made| !self.config.add_mcp(name, made)) {
            self.problems.push(format!("MCP server {name} is registered twice"));
        }
        self
    }
}

#[cfg(test)]
#[cfg(feature = "mcp")]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::builder::OAuth;
    use crate::config::Config;
    use crate::tool::Approval;

    fn file(keys: &str) -> Config {
        Config::parse(&format!("[mcp.s]\n{keys}"), "c.toml").unwrap()
    }

    #[test]
    fn servers_are_like_those_of_a_file() {
        let seconds = Duration::from_secs;
        let rows = [
            (
                McpServer::command(["serve", "-v"])
                    .env("TOKEN", "secret:PATH")
                    .cwd("/")
                    .memory_bytes_max(1 << 28)
                    .tools(["get_*", "!get_secret"])
                    .approval(["get_all"])
                    .retry(["get_one"])
                    .restart(seconds(2), seconds(9))
                    .refuse_questions()
                    .older_protocol()
                    .drop_changed()
                    .tools_seen_max(9)
                    .timeout(seconds(3))
                    .task_timeout(seconds(5))
                    .connect_timeout(seconds(4)),
                "command = [\"serve\", \"-v\"]\nenv = { TOKEN = \"secret:PATH\" }\ncwd = \"/\"\n\
                 memory_bytes_max = 268435456\ntools = [\"get_*\", \"!get_secret\"]\n\
                 approval = [\"get_all\"]\nretry = [\"get_one\"]\n\
                 restart = { delay = \"2s\", max_delay = \"9s\" }\n\
                 protocol = \"2025-11-25\"\non_change = \"drop\"\ntools_seen_max = 9\non_input = \"refuse\"\ntimeout = \"3s\"\ntask_timeout = \"5s\"\nconnect_timeout = \"4s\"\n",
            ),
            (
                McpServer::url("https://a.example/mcp")
                    .header("authorization", "Bearer secret:PATH")
                    .approval_by(["*"], Approval::always())
                    .concurrency(3)
                    .use_changed()
                    .questions_to(["role:staff"])
                    .questions_deadline(seconds(60))
                    .message_bytes_max(1 << 20)
                    .tools_max(5),
                "url = \"https://a.example/mcp\"\nheaders = { authorization = \"Bearer secret:PATH\" }\n\
                 approval = [\"*\"]\non_input = { to = [\"role:staff\"], deadline = \"60s\" }\nconcurrency = 3\non_change = \"use\"\nmessage_bytes_max = 1048576\ntools_max = 5\n",
            ),
            (
                McpServer::url("https://a.example/mcp").oauth(
                    OAuth::client_credentials("id", "secret:PATH")
                        .scope("a b")
                        .token_url("https://b.example/token")
                        .secret_in_body(),
                ),
                "url = \"https://a.example/mcp\"\noauth = { client_id = \"id\", client_secret = \
                 \"secret:PATH\", scope = \"a b\", token_url = \"https://b.example/token\", \
                 client_auth = \"post\" }\n",
            ),
        ];
        for (server, keys) in rows {
            let greenroom = Greenroom::new().mcp("s", server);
            assert!(greenroom.problems.is_empty(), "{:?}", greenroom.problems);
            let (coded, read) = (&greenroom.config.mcp["s"], &file(keys).mcp["s"]);
            assert_eq!(format!("{:?}", coded.server), format!("{:?}", read.server));
            assert_eq!(coded.secrets().collect::<Vec<_>>(), ["PATH"]);
        }
    }

    #[test]
    fn mistakes_are_named_with_their_server() {
        let greenroom = Greenroom::new()
            .mcp("a b", McpServer::command(["true"]))
            .mcp("s", McpServer::url("ftp://a.example"))
            .mcp("t", McpServer::command(["true"]).header("x", "y"))
            .mcp("u", McpServer::command(["true"]))
            .mcp("u", McpServer::command(["true"]).approval(["u.write"]));
        assert_eq!(
            greenroom.problems,
            [
                "MCP server a b: mcp.\"a b\": must be 1 to 32 of the characters A-Z a-z 0-9 _ -",
                "MCP server s: url: must begin with http:// or https://",
                "MCP server t: headers: belongs to a server with `url`",
                "MCP server u is registered twice",
            ]
        );
        let warnings: Vec<_> = greenroom.config.warnings.iter().map(ToString::to_string).collect();
        let expected = "MCP server u: warning: approval: names u.write; here tools have their own names, as write";
        assert_eq!(warnings, [expected]);
    }

    #[test]
    fn a_reload_of_the_file_keeps_servers_of_rust() {
        let started = Greenroom::new().mcp("s", McpServer::command(["true"]).tools_max(3)).config;
        let mut changed = file("command = [\"true\"]\n");
        changed.keep_choices_of(&started);
        assert_eq!(changed.mcp["s"].server.limits.tools_max, 3);
    }
}
