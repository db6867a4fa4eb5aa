//! `[[faces.mcp]]`.

use std::time::Duration;

use super::refusals::refused;
use crate::config::Config;
use crate::faces::Offered;

const DEFINITIONS: &str = "[models.m]\nprovider = \"mock\"\n[agents.a]\nmodel = \"m\"\n\
                           [workflows.w]\nsteps = [{ id = \"a\", map = 1 }]\n\
                           [tools.t]\nkind = \"workflow\"\nworkflow = \"w\"\ndescription = \"d\"\n";

#[test]
fn faces_offer_what_they_name() {
    let text = "[[faces.mcp]]\nworkflows = \"*\"\n\
                [[faces.mcp]]\nname = \"ops\"\nagents = [\"a\"]\ntask_after = \"1m\"\nsubscriptions_max = 7\n\
                tools = [\"t\"]\nsecret = \"secret:MCP_KEY\"\nurl = \"https://green.example/mcp/ops/mcp\"\n"
        .to_owned();
    let config = Config::parse(&(text + DEFINITIONS), "c.toml").unwrap();
    let [first, second] = config.faces.mcp.as_slice() else { panic!("{:?}", config.faces) };
    assert_eq!((&first.name, &first.workflows), (&None, &Offered::All));
    assert_eq!(first.agents, Offered::Only(Vec::new()));
    assert_eq!(first.task_after, Duration::from_secs(5));
    assert_eq!((first.subscriptions_max, second.subscriptions_max), (100, 7));
    assert_eq!(second.name.as_deref(), Some("ops"));
    assert_eq!(second.agents, Offered::Only(vec!["a".to_owned()]));
    assert_eq!((first.tools.len(), second.tools.as_slice()), (0, &["t".to_owned()][..]));
    assert_eq!(second.task_after, Duration::from_secs(60));
    let url = second.url.as_ref().map(|url| url.as_str());
    assert_eq!((&first.url, url), (&None, Some("https://green.example/mcp/ops/mcp")));
    assert!(first.key(|_| None).is_ok(), "a random one");
    let problem = second.key(|_| None).unwrap_err().to_string();
    assert!(problem.contains("the environment variable MCP_KEY is not set"), "{problem}");
    let short = |_: &str| Some("short".to_owned());
    assert_eq!(config.check_secrets(short).len(), 1);
    let long = |_: &str| Some("0123456789abcdef0123456789abcdef".to_owned());
    assert_eq!(config.check_secrets(long).len(), 0);
}

#[test]
fn mistakes_in_faces() {
    let many = "[[faces.mcp]]\nworkflows = \"*\"\nname = \"NUMBER\"\n";
    let many: String =
        (0..33).map(|number| many.replace("NUMBER", &format!("n{number}"))).collect();
    refused(&[
        (
            "[[faces.mcp]]\n",
            &["c.toml:1:1: faces.mcp[0]: offers nothing: name `workflows`, `agents` or `tools`"],
        ),
        (
            "[[faces.mcp]]\nworkflows = [\"a\"]\nagents = \"all\"\nname = \"a b\"\n\
             task_after = \"0s\"\nsecret = \"canary\"\nresource = true\n",
            &[
                "c.toml:2:14: faces.mcp[0].workflows[0]: workflow a is not configured",
                "c.toml:3:10: faces.mcp[0].agents: must be \"*\" or an array of ids of agents",
                "c.toml:4:8: faces.mcp[0].name: must be 1 to 64 letters, digits, `-` or `_`",
                "c.toml:5:14: faces.mcp[0].task_after: must be longer than 0ms",
                "c.toml:6:10: faces.mcp[0].secret: must name an environment variable, e.g. \
                 \"secret:INBOX_KEY\"",
                "c.toml:7:1: faces.mcp[0].resource: unknown key; did you mean resources?",
            ],
        ),
        (
            "[[faces.mcp]]\ntools = [\"nowhere\", \"ask_user\", 5]\n[[faces.mcp]]\ntools = \"*\"\n\
             name = \"a\"\n",
            &[
                "c.toml:2:10: faces.mcp[0].tools[0]: tool nowhere is not configured",
                "c.toml:2:21: faces.mcp[0].tools[1]: ask_user is for agents",
                "c.toml:2:33: faces.mcp[0].tools[2]: must be a string, not an integer",
                "c.toml:4:9: faces.mcp[1].tools: must be an array, not a string",
            ],
        ),
        (
            "[[faces.mcp]]\nagents = []\nurl = \"ftp://a.example\"\n",
            &["c.toml:3:7: faces.mcp[0].url: must begin with http:// or https://"],
        ),
        (
            "[[faces.mcp]]\nagents = []\nurl = \"https://a.example/mcp?a\"\n",
            &["c.toml:3:7: faces.mcp[0].url: must end with the path, before ? and #"],
        ),
        (
            "[[faces.mcp]]\nagents = []\n[[faces.mcp]]\nagents = []\n",
            &["c.toml:3:1: faces.mcp[1]: another face has no `name` either, and both would be at \
               /mcp"],
        ),
        (
            "[[faces.mcp]]\nagents = []\nname = \"a\"\n[[faces.mcp]]\nagents = []\nname = \"a\"\n",
            &["c.toml:4:1: faces.mcp[1]: another face has the name a"],
        ),
        (&many, &["c.toml:97:1: faces.mcp[32]: there are more than 32 faces"]),
    ]);
}
