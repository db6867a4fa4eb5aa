//! Choice of the tools of a server that are used.

use std::collections::BTreeSet;
use std::sync::Arc;

use greenroom_actors::domain::failure::shortened;
use greenroom_actors::domain::nesting::check_depth;
use greenroom_actors::domain::schema::Schema;
use rmcp::model::Tool;
use serde_json::{Value, json};

use crate::adapters::mcp::secrets::Sent;
use crate::adapters::mcp::secrets::clean_value;
use crate::adapters::mcp::settings::{LEFT_OUT_BY_CHOICE, McpServer};
use crate::adapters::mcp::tools::changes::{Change, DefinitionHashes};
use crate::adapters::tools::secrets::Known;
use crate::mcp_servers::{ChangedTool, LeftOut, Unmatched};

/// Longest name of a tool with that of its server, in characters: providers accept no longer ones.
const NAME_CHARS_MAX: usize = 64;
/// Largest schema of arguments.
const SCHEMA_BYTES_MAX: usize = 64 << 10;
/// Deepest schema of arguments.
const SCHEMA_DEPTH_MAX: usize = 64;
/// Longest description for models.
const DESCRIPTION_BYTES_MAX: usize = 16 << 10;
/// Bound of the descriptions and schemas of all tools of a server: callers get all of them at once.
const LIST_BYTES_MAX: usize = 4 << 20;
/// Maximum number of tools that are read of a list.
const LISTED_MAX: usize = 10_000;
/// Longest name that is shown of a tool that is left out.
const SHOWN_BYTES_MAX: usize = 128;
/// Maximum number of left-out tools that are shown.
const LEFT_OUT_MAX: usize = 1000;

/// A tool of a server that is used.
#[derive(Debug, Clone)]
pub(crate) struct RemoteTool {
    /// Its name at the server.
    pub(crate) name: String,
    pub(crate) description: String,
    /// JSON Schema of its arguments, an object.
    pub(crate) parameters: Value,
    /// Compiled `parameters`.
    pub(crate) arguments: Arc<Schema>,
    /// True if a call may be made again when it is not known whether it had its effect.
    pub(crate) is_repeatable: bool,
    /// Hashes of its definition.
    pub(crate) prints: DefinitionHashes,
    /// Set if its definition is not accepted: calls need an approval.
    pub(crate) change: Option<Arc<Change>>,
}

impl PartialEq for RemoteTool {
    fn eq(&self, other: &Self) -> bool {
        // `arguments` follow from `parameters`
        self.name == other.name
            && self.description == other.description
            && self.parameters == other.parameters
            && self.is_repeatable == other.is_repeatable
            && self.prints == other.prints
            && self.change == other.change
    }
}

/// The tools of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Listed {
    /// In the order of the server.
    pub(crate) tools: Vec<RemoteTool>,
    pub(crate) left_out: Vec<LeftOut>,
    /// Tools whose definitions are not the accepted ones.
    pub(crate) changed: Vec<ChangedTool>,
    /// Patterns of the configuration that match no tool.
    pub(crate) unmatched: Vec<Unmatched>,
    /// True if the server has no tool of a name in `approval`: the tool that was meant may have another
    /// name, so that all of them need approval.
    pub(crate) is_guarded: bool,
}

/// Choice of the tools of a list, page by page, so that what is left out is not kept.
pub(crate) struct Admission {
    server: Arc<McpServer>,
    /// Secrets that are removed from its texts.
    secrets: Sent,
    /// The list before, whose compiled schemas are used again.
    before: Arc<Listed>,
    listed: Listed,
    /// Names so far that tools may have.
    seen: BTreeSet<String>,
    /// Number of tools so far.
    count: usize,
    /// Size of the descriptions and schemas so far.
    bytes: usize,
}

impl Admission {
    pub(crate) fn of(server: &Arc<McpServer>, secrets: Sent, before: Arc<Listed>) -> Self {
        Self {
            server: Arc::clone(server),
            secrets,
            before,
            listed: Listed::default(),
            seen: BTreeSet::new(),
            count: 0,
            bytes: 0,
        }
    }

    /// Decides about the tools of a page, which may take seconds. Returns false if the list has become
    /// too long, or is no longer wanted.
    pub(crate) fn take(&mut self, page: Vec<Tool>, is_wanted: impl Fn() -> bool) -> bool {
        for tool in page {
            self.count += 1;
            if self.count > LISTED_MAX || !is_wanted() {
                return false;
            }
            self.decide(tool);
        }
        true
    }

    fn decide(&mut self, tool: Tool) {
        let Self { server, secrets, before, listed, seen, bytes, .. } = self;
        let name = tool.name.to_string();
        let secrets = &secrets.known();
        let shown = secrets.removed_from(name.clone());
        let refused =
            (shown != name).then(|| "its name contains a secret of the connection".to_owned());
        let refused = refused.or_else(|| name_problem(server, &name)).or_else(|| {
            let is_new = seen.insert(name.clone());
            (!is_new).then(|| "the server has two tools of this name".to_owned())
        });
        let refused = refused.or_else(|| left_out_by_choice(server, &name));
        let refused = refused.or_else(|| {
            let max = server.limits.tools_max;
            let is_full = listed.tools.len() >= max;
            is_full.then(|| format!("the server has over {max} tools (tools_max)"))
        });
        let made = match refused {
            Some(why) => Err(why),
            None => {
                let known = before.tools.get(listed.tools.len()).filter(|it| it.name == name);
                let known = known.or_else(|| before.tools.iter().find(|it| it.name == name));
                remote(server, secrets, tool, known, bytes)
            }
        };
        match made {
            Ok(tool) => listed.tools.push(tool),
            Err(why) if listed.left_out.len() < LEFT_OUT_MAX => {
                let name = shortened(&shown, SHOWN_BYTES_MAX).to_owned();
                listed.left_out.push(LeftOut { name, why });
            }
            Err(_) => {}
        }
    }

    /// Returns the choice. `is_cut`: the list was not read to its end.
    pub(crate) fn finish(self, is_cut: bool) -> Listed {
        let Self { server, mut listed, seen, .. } = self;
        if is_cut {
            let why = "the tool list is too long; the rest was not read".to_owned();
            listed.left_out.push(LeftOut { name: "…".to_owned(), why });
        }
        let names: Vec<_> = seen.iter().map(String::as_str).collect();
        listed.unmatched = unmatched(&server, &names);
        let mut guarding = server.approval.iter().flat_map(|(globs, _)| globs.names());
        listed.is_guarded = guarding.any(|name| !seen.contains(name));
        listed
    }
}

fn unmatched(server: &McpServer, names: &[&str]) -> Vec<Unmatched> {
    let approval = server.approval.as_ref().map(|(globs, _)| ("approval", globs));
    let retry = server.retry.as_ref().map(|globs| ("retry", globs));
    let keys = [("tools", &server.tools)].into_iter().chain(approval).chain(retry);
    let idle = keys.flat_map(|(key, globs)| globs.idle(names).into_iter().map(move |it| (key, it)));
    idle.map(|(key, pattern)| Unmatched { key, pattern }).collect()
}

fn name_problem(server: &McpServer, name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let chars_max = NAME_CHARS_MAX.saturating_sub(server.name.len() + 1);
    if name.is_empty() || name.len() > chars_max || !name.chars().all(fits) {
        let problem = format!("its name is not 1 to {chars_max} of A-Z a-z 0-9 _ . -");
        return Some(problem);
    }
    None
}

fn left_out_by_choice(server: &McpServer, name: &str) -> Option<String> {
    (!server.tools.selects(name)).then(|| LEFT_OUT_BY_CHOICE.to_owned())
}

/// `known`: the tool of this name in the list before. `bytes`: size of the descriptions and schemas of
/// the tools before it.
fn remote(
    server: &McpServer,
    secrets: &Known,
    tool: Tool,
    known: Option<&RemoteTool>,
    bytes: &mut usize,
) -> Result<RemoteTool, String> {
    let name = tool.name.to_string();
    let prints = DefinitionHashes::of(&tool);
    let mut parameters = Value::Object((*tool.input_schema).clone());
    let mut description = tool.description.unwrap_or_default().into_owned();
    if !secrets.is_empty() {
        description = secrets.removed_from(description);
        clean_value(&mut parameters, &|text: &str| secrets.removed_from(text.to_owned()));
    }
    let description = shortened(&description, DESCRIPTION_BYTES_MAX).to_owned();
    let (parameters, schema_bytes) = checked(parameters)?;
    let with_this = bytes.saturating_add(description.len() + schema_bytes);
    if with_this > LIST_BYTES_MAX {
        let why = "the descriptions and schemas of the server's tools are larger than 4 MiB in all";
        return Err(why.to_owned());
    }
    let arguments = match known.filter(|known| known.parameters == parameters) {
        Some(known) => Arc::clone(&known.arguments),
        None => Arc::new(compiled(&parameters)?),
    };
    let hints = tool.annotations.unwrap_or_default();
    let is_said = hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true);
    let is_repeatable = is_said || server.may_repeat(&name);
    *bytes = with_this;
    Ok(RemoteTool { name, description, parameters, arguments, is_repeatable, prints, change: None })
}

/// Returns a schema of an object that is small, with its size in bytes.
fn checked(mut schema: Value) -> Result<(Value, usize), String> {
    if schema.get("type").is_none() {
        schema["type"] = json!("object");
    }
    if schema["type"] != "object" {
        return Err("its arguments are not an object".to_owned());
    }
    check_depth(&schema, SCHEMA_DEPTH_MAX).map_err(|why| format!("its schema is {why}"))?;
    let bytes = schema.to_string().len();
    if bytes > SCHEMA_BYTES_MAX {
        return Err(format!("its schema is larger than {SCHEMA_BYTES_MAX} bytes"));
    }
    Ok((schema, bytes))
}

/// Compiles a schema, without looking elsewhere.
fn compiled(schema: &Value) -> Result<Schema, String> {
    Schema::compile(schema).map_err(|error| {
        format!("its schema cannot be used: {}", shortened(&error.to_string(), 500))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use rmcp::model::ToolAnnotations;

    use super::*;
    use crate::adapters::mcp::settings::{McpLimits, McpServer, tests::server};
    use crate::globs::Globs;

    fn tool(name: &str, schema: &Value) -> Tool {
        let schema = schema.as_object().cloned().unwrap();
        Tool::new(name.to_owned(), "Does it", Arc::new(schema))
    }

    fn admitted(server: &McpServer, tools: Vec<Tool>, is_cut: bool) -> Listed {
        let mut admission =
            Admission::of(&Arc::new(server.clone()), Sent::default(), Arc::default());
        assert!(admission.take(tools, || true));
        admission.finish(is_cut)
    }

    fn globs(patterns: &[&str]) -> Globs {
        Globs::parse(&patterns.iter().map(|&it| it.to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn tools_that_cannot_be_used_are_left_out_with_the_reason() {
        let server = McpServer {
            tools: globs(&["*", "!secret"]),
            limits: McpLimits { tools_max: 3, ..McpLimits::default() },
            ..server("s")
        };
        let long = "x".repeat(63);
        let deep = (0..70).fold(json!({}), |inner, _| json!({ "not": inner }));
        let many: Vec<String> = (0..9000).map(|number| format!("property {number}")).collect();
        let tools = vec![
            tool("a", &json!({})),
            tool("a", &json!({})),
            tool("secret", &json!({})),
            tool("b c", &json!({})),
            tool(&long, &json!({})),
            tool("text", &json!({ "type": "string" })),
            tool("bad", &json!({ "properties": 1 })),
            tool("away", &json!({ "properties": { "a": { "$ref": "https://a.example/b.json" } } })),
            tool("deep", &deep),
            tool("large", &json!({ "required": many })),
            tool(&long[1..], &json!({ "type": "object", "required": ["n"] })),
            tool("third", &json!({})),
            tool("fourth", &json!({})),
        ];
        let listed = admitted(&server, tools, true);
        let names: Vec<_> = listed.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["a", &long[1..], "third"]);
        assert_eq!(listed.tools[0].parameters, json!({ "type": "object" }));
        let expected = [
            ("a", "two tools of this name"),
            ("secret", "`tools` leaves it out"),
            ("b c", "its name is not 1 to 62"),
            (long.as_str(), "its name is not 1 to 62"),
            ("text", "its arguments are not an object"),
            ("bad", "its schema cannot be used"),
            ("away", "its schema cannot be used"),
            ("deep", "its schema is nested deeper than 64 levels"),
            ("large", "its schema is larger than 65536 bytes"),
            ("fourth", "over 3 tools"),
            ("…", "too long"),
        ];
        assert_eq!(listed.left_out.len(), expected.len(), "{:?}", listed.left_out);
        for (LeftOut { name, why }, (of, part)) in listed.left_out.iter().zip(expected) {
            assert!(name == of && why.contains(part), "{name}: {why}");
        }
    }

    #[test]
    fn a_name_in_approval_that_the_server_does_not_have_guards_all_tools() {
        for (patterns, unmatched, is_guarded) in [
            (&["write", "remove_*"][..], &["remove_*"][..], false),
            (&["writes"], &["writes"], true),
            (&["*", "!gone"], &["!gone"], false),
            (&["secret"], &[], false),
        ] {
            let approval = Some((globs(patterns), Arc::default()));
            let tools = globs(&["*", "!secret"]);
            let server = McpServer { approval, tools, ..server("s") };
            let tools = vec![tool("write", &json!({})), tool("secret", &json!({}))];
            let listed = admitted(&server, tools, false);
            let found: Vec<_> = listed.unmatched.iter().map(|it| it.pattern.as_str()).collect();
            assert_eq!((found.as_slice(), listed.is_guarded), (unmatched, is_guarded));
        }
    }

    #[test]
    fn calls_are_repeatable_if_the_server_or_the_configuration_says_so() {
        let server = McpServer { retry: Some(globs(&["by_name"])), ..server("s") };
        let hinted = |name: &str, hints: ToolAnnotations| {
            let mut tool = tool(name, &json!({}));
            tool.annotations = Some(hints);
            tool
        };
        let none = ToolAnnotations::new;
        let tools = vec![
            tool("plain", &json!({})),
            tool("by_name", &json!({})),
            hinted("reads", none().read_only(true)),
            hinted("same", none().idempotent(true)),
            hinted("writes", none().read_only(false).destructive(true)),
        ];
        let listed = admitted(&server, tools, false);
        let repeatable: Vec<_> =
            listed.tools.iter().filter(|tool| tool.is_repeatable).map(|it| &*it.name).collect();
        assert_eq!(repeatable, ["by_name", "reads", "same"]);
    }

    #[test]
    fn descriptions_and_schemas_are_bounded_in_all() {
        let described = |name: usize, bytes: usize| {
            let mut tool = tool(&format!("t{name}"), &json!({ "type": "object" }));
            tool.description = Some("x".repeat(bytes).into());
            tool
        };
        let own = DESCRIPTION_BYTES_MAX - "{\"type\":\"object\"}".len();
        let server = McpServer {
            limits: McpLimits { tools_max: 1000, ..McpLimits::default() },
            ..server("s")
        };
        let fitting = LIST_BYTES_MAX / DESCRIPTION_BYTES_MAX;
        let mut tools: Vec<_> = (0..fitting).map(|name| described(name, own)).collect();
        tools.extend([described(fitting, 0), described(fitting + 1, 1)]);
        let listed = admitted(&server, tools, false);
        assert_eq!(listed.tools.len(), fitting, "at the bound");
        assert_eq!(listed.left_out.len(), 2);
        assert!(listed.left_out[0].why.contains("larger than 4 MiB in all"));
    }

    #[test]
    fn lists_have_no_secrets() {
        let secrets = Sent::of(["k3y-of-it"]);
        let mut admission = Admission::of(&Arc::new(server("s")), secrets, Arc::default());
        let schema = json!({ "properties": { "k3y-of-it": { "default": "k3y-of-it" } } });
        let mut described = tool("a", &schema);
        let cut = "x".repeat(DESCRIPTION_BYTES_MAX - 4);
        described.description = Some(format!("{cut}k3y-of-it").into());
        let invalid = tool("c", &json!({ "properties": { "a": { "pattern": "(k3y-of-it" } } }));
        let tools = vec![described, tool("the-k3y-of-it", &json!({})), invalid];
        assert!(admission.take(tools, || true));
        let listed = admission.finish(false);
        let expected = json!({
            "type": "object", "properties": { "[secret]": { "default": "[secret]" } },
        });
        assert_eq!(listed.tools[0].parameters, expected);
        assert_eq!(listed.tools[0].description, format!("{cut}[sec"));
        assert_eq!(listed.left_out[0].name, "the-[secret]");
        assert_eq!(listed.left_out[0].why, "its name contains a secret of the connection");
        assert!(!format!("{listed:?}").contains("k3y"), "{listed:?}");
    }

    #[test]
    fn schemas_that_stay_are_compiled_once() {
        let server = Arc::new(server("s"));
        let list = |before: &Arc<Listed>, tools: Vec<Tool>| {
            let mut admission = Admission::of(&server, Sent::default(), Arc::clone(before));
            assert!(admission.take(tools, || true));
            Arc::new(admission.finish(false))
        };
        let (plain, other) = (json!({}), json!({ "required": ["n"] }));
        let first = list(&Arc::default(), vec![tool("a", &plain), tool("b", &plain)]);
        let moved = list(&first, vec![tool("b", &plain), tool("a", &other)]);
        let is_kept =
            |old: &RemoteTool, new: &RemoteTool| Arc::ptr_eq(&old.arguments, &new.arguments);
        assert!(is_kept(&first.tools[1], &moved.tools[0]));
        assert!(!is_kept(&first.tools[0], &moved.tools[1]), "another schema");
        assert!(
            first != moved && *first == *list(&moved, vec![tool("a", &plain), tool("b", &plain)])
        );
    }

    #[test]
    fn a_list_that_is_no_longer_wanted_is_not_checked_on() {
        let mut admission = Admission::of(&Arc::new(server("s")), Sent::default(), Arc::default());
        let tools = vec![tool("a", &json!({})), tool("b", &json!({}))];
        let looks = std::cell::Cell::new(0);
        assert!(!admission.take(tools, || looks.replace(looks.get() + 1) == 0));
        assert_eq!(admission.finish(true).tools.len(), 1);
    }
}
