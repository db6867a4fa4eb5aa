//! The configuration: `config.toml` as typed values, or every mistake in it.
//!
//! Each section is a plain struct with its defaults in code. Reading continues after a mistake, so
//! that one run reports all of them, each with file, line, column and key.

mod agents;
mod asked;
mod auth;
mod calls;
mod changes;
mod choices;
mod cluster;
mod console;
mod cors;
mod docs;
mod document;
#[cfg(feature = "cli")]
mod effective;
mod entry;
mod environment;
mod faces;
mod features;
mod files;
mod inbox;
mod include;
mod keys;
mod limits;
mod logs;
mod lone_role;
mod mcp;
mod metrics;
mod models;
mod names;
mod options;
mod problem;
mod programs;
mod reader;
mod retention;
pub(crate) mod routes;
#[cfg(feature = "cli")]
pub(crate) mod schema;
mod schema_file;
mod secret;
mod section;
mod server;
#[cfg(feature = "cli")]
pub(crate) mod shipped;
mod source;
pub(crate) mod steps;
mod store;
mod system;
mod telemetry;
#[cfg(test)]
mod tests;
mod texts;
pub(crate) mod tools;
mod updates;
mod variables;
pub(crate) mod workflow_tests;
pub(crate) mod workflows;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::domain::plan::{Callee, Plan};
use greenroom_actors::domain::schema::Schema;
use greenroom_actors::{Placement, RetentionRules, RuntimeLimits};

pub(crate) use self::agents::in_scope as agent_scope;
pub(crate) use self::asked::Assignment;
pub use self::auth::{AuthConfig, AuthProvider, DefaultAccess, RoutePattern, RouteRule};
#[cfg(feature = "jwt")]
pub use self::auth::{JwtConfig, KeySource};
pub(crate) use self::changes::Changes;
pub use self::cluster::{Advertised, ClusterConfig, ClusterTls};
pub use self::console::{Accent, ConsoleConfig, LoginUrl};
pub use self::cors::CorsConfig;
pub use self::docs::DocsConfig;
#[cfg(feature = "cli")]
pub(crate) use self::effective::{Effective, Origin};
pub use self::environment::Environment;
#[cfg(feature = "cli")]
pub(crate) use self::environment::Proxies;
pub(crate) use self::faces::{FACE_NAME_CHARS_MAX, face_text, face_url, is_face_name};
pub use self::faces::{FacesConfig, McpFace};
pub(crate) use self::files::Files;
pub use self::inbox::{InboxConfig, LinkBase, LinkSecret};
pub use self::limits::{CONNECTIONS_MAX, LimitsConfig};
pub use self::logs::LogsConfig;
pub use self::mcp::McpConfig;
pub use self::metrics::MetricsConfig;
pub use self::models::ModelConfig;
#[cfg(feature = "providers")]
pub use self::models::RemoteConfig;
pub(crate) use self::names::{Missing, Reference};
pub use self::names::{NameKind, Names};
pub use self::options::AgentOptions;
pub(crate) use self::problem::Spot;
pub use self::problem::{ConfigProblem, Severity};
pub(crate) use self::programs::programs;
pub use self::routes::{AgentAnswer, RouteConfig, RouteTarget, WorkflowAnswer, WorkflowBody};
pub use self::server::ServerConfig;
pub(crate) use self::store::NO_REPLICAS;
pub use self::store::{Durability, PasswordSource, StoreConfig, StoreUrl, StoreUrlError};
pub use self::system::SystemConfig;
pub use self::telemetry::{ConfiguredHeader, Exports, TelemetryConfig};
pub use self::tools::{ToolConfig, ToolKind};
pub use self::updates::UpdatesConfig;
pub use crate::faces::{Offered, OpenAiFace};

pub(crate) use self::entry::milliseconds;

use self::choices::AsRead;
use self::models::RuleCall;
use self::programs::Program;
use self::steps::Needs;
use self::workflow_tests::WorkflowTest;
use self::workflows::StepArguments;
use crate::adapters::machine_memory::share_of_executions;
use crate::telemetry::export::ExporterSettings;
use crate::telemetry::redact::Secrets;

/// The configuration of the server.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// `NODE_ENV` at the start of the program; development where only a text was parsed.
    pub environment: Environment,
    /// `[server]`
    pub server: ServerConfig,
    /// `[store]`
    pub store: StoreConfig,
    /// `[cluster]`
    pub cluster: ClusterConfig,
    /// `[auth]`
    pub auth: AuthConfig,
    /// `[cors]`
    pub cors: CorsConfig,
    /// `[console]`
    pub console: ConsoleConfig,
    /// `[docs]`
    pub docs: DocsConfig,
    /// `[faces]`
    pub faces: FacesConfig,
    /// `[inbox]`
    pub inbox: InboxConfig,
    /// `[limits]`
    pub limits: LimitsConfig,
    /// `[logs]`
    pub logs: LogsConfig,
    /// `[metrics]`
    pub metrics: MetricsConfig,
    /// `[retention]`, and the `retention` of workflows.
    pub retention: RetentionRules,
    /// `[system]`
    pub system: SystemConfig,
    /// `[updates]`
    pub updates: UpdatesConfig,
    /// `[telemetry]`
    pub telemetry: TelemetryConfig,
    /// `[models.*]`, by id.
    pub models: BTreeMap<String, ModelConfig>,
    /// `[agents.*]`, by id.
    pub agents: BTreeMap<String, AgentDefinition>,
    /// `[tools.*]`, by name.
    pub tools: BTreeMap<String, ToolConfig>,
    /// `[mcp.*]`, by name.
    pub mcp: BTreeMap<String, McpConfig>,
    /// `[workflows.*]`, compiled, by id.
    pub workflows: BTreeMap<String, Arc<Plan>>,
    /// `[[routes]]`, in the order of the file.
    pub routes: Vec<RouteConfig>,
    /// Warnings.
    pub warnings: Vec<ConfigProblem>,
    /// The place that set the host: a line of the file, or an option of the command line.
    host_spot: Option<Spot>,
    /// The lines that set `server.name`, and `advertise` and `certificate` of `[cluster]`.
    name_spot: Option<Spot>,
    advertise_spot: Option<Spot>,
    certificate_spot: Option<Spot>,
    references: Vec<Reference>,
    /// Tools that rules of mock models call.
    rule_calls: Vec<RuleCall>,
    /// Tests of workflows.
    pub(crate) tests: Vec<WorkflowTest>,
    /// Arguments of steps whose value or type is known before they run.
    arguments: Vec<StepArguments>,
    /// Programs and secrets that steps need on this machine.
    needs: Needs,
    /// The unread TOML, for comparing two versions of the file.
    written: toml::Table,
    /// Retention of workflows that was set from Rust code.
    coded_retention: HashMap<String, Option<Duration>>,
    /// Names of tools that Rust code added.
    coded_tools: BTreeSet<String>,
    /// Names of MCP servers that Rust code added.
    coded_mcp: BTreeSet<String>,
    /// Routes that Rust code added, which are among the others too.
    coded_routes: Vec<RouteConfig>,
    /// Faces that Rust code added, which are among the others too.
    coded_faces: Vec<McpFace>,
    /// Settings as the file has them; `None` for a text.
    as_read: Option<Arc<AsRead>>,
    /// The path of the file; `None` for a text.
    pub(crate) path: Option<PathBuf>,
    /// Files that were read.
    pub(crate) files: Files,
    /// Names in the text, including those of refused definitions.
    declared: Names,
}

impl Config {
    /// Loads a file and checks all of it. Every name that it refers to must be defined in it.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Vec<ConfigProblem>> {
        reader::load(path.as_ref(), Some(&Names::default())).0
    }

    /// Loads a file whose workflows may refer to what Rust code registers. The references stay
    /// unchecked until [`Config::check_names`].
    pub fn load_open(path: impl AsRef<Path>) -> Result<Self, Vec<ConfigProblem>> {
        reader::load(path.as_ref(), None).0
    }

    /// Loads a file that may refer to what Rust code registers. Returns the files that were read
    /// also when the configuration is refused: a change to any of them may repair it.
    pub(crate) fn look(
        path: &Path,
        registered: &Names,
    ) -> (Result<Self, Vec<ConfigProblem>>, Files) {
        reader::load(path, Some(registered))
    }

    /// Checks a text as [`Config::load`] would. Included files are relative to the folder of
    /// `file_name`.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, Vec<ConfigProblem>> {
        reader::parse(text, file_name, Some(&Names::default()))
    }

    /// Returns references to agents, models, tools, workflows and functions that neither the
    /// configuration nor `registered` has, and rules of access without a provider that checks
    /// tokens.
    pub fn check_names(&self, registered: &Names) -> Vec<ConfigProblem> {
        let mut missing = self.check_definitions(registered);
        let configured = self.names();
        missing.extend(self.tests.iter().flat_map(|it| it.misnamed(&configured, registered)));
        missing
    }

    /// Does the same without the tests of workflows.
    pub(crate) fn check_definitions(&self, registered: &Names) -> Vec<ConfigProblem> {
        let configured = self.names();
        let references = self.references.iter();
        let missing = references.filter_map(|it| it.check(&configured, registered));
        let missing = missing.chain(self.auth.check(registered));
        missing.chain(self.check_mcp(self.references.iter())).collect()
    }

    /// Warns of rules of mock models that call a tool that no agent has. Agents of Rust code may
    /// have any, and clients of OpenAI bring theirs.
    fn check_rules(&self, registered: &Names) -> Vec<ConfigProblem> {
        let is_known = registered.agents.is_empty() && self.faces.openai.is_none();
        let calls = self.rule_calls.iter().filter(|_| is_known);
        calls.filter_map(|call| call.check(&self.agents)).collect()
    }

    /// Returns arguments of steps that the called workflow or tool does not accept. `schema_of`
    /// returns the schema of a callee.
    pub(crate) fn check_arguments(
        &self,
        schema_of: impl Fn(Callee, &str) -> Option<Schema>,
    ) -> Vec<ConfigProblem> {
        self.arguments.iter().filter_map(|it| it.check(&schema_of)).collect()
    }

    /// Returns the input schema of a workflow or a tool of the configuration, if it has one.
    pub(crate) fn schema_of(&self, callee: Callee, name: &str) -> Option<Schema> {
        match callee {
            Callee::Workflow => self.workflows.get(name)?.input_schema.clone(),
            Callee::Tool => {
                let parameters = self.tools.get(name)?.parameters_in(&self.workflows)?;
                Schema::compile(&parameters).ok()
            }
        }
    }

    /// Returns the names in the configuration, including those of refused definitions.
    pub(crate) fn names(&self) -> Names {
        let mut names = self.declared.clone();
        names.agents.extend(self.agents.keys().cloned());
        names.models.extend(self.models.keys().cloned());
        names.servers.extend(self.mcp.keys().cloned());
        names.tools.extend(self.tools.keys().cloned());
        names.workflows.extend(self.workflows.keys().cloned());
        names
    }

    /// Sets the address to listen at, overriding the file. `chosen_by` names the option in errors.
    pub fn set_host(&mut self, host: String, chosen_by: &str) {
        self.host_spot = Some(Spot::nowhere(chosen_by));
        self.server.host = host;
    }

    /// Sets a workflow's retention from Rust code, overriding the file.
    pub(crate) fn set_retention(&mut self, workflow: String, retention: Option<Duration>) {
        self.retention.workflows.insert(workflow.clone(), retention);
        self.coded_retention.insert(workflow, retention);
    }

    /// Refuses an address that other machines can reach while no provider, neither a configured nor
    /// a `registered` one, checks tokens. Called before the server starts, when the host is final.
    pub fn check_exposure(&self, registered: &Names) -> Result<(), ConfigProblem> {
        if self.server.is_loopback() || self.auth.is_settled(registered) {
            return Ok(());
        }
        let host = &self.server.host;
        let message = format!(
            "other machines can reach {host} and nothing is protected; configure a provider in \
             [auth.jwt] or [[auth.api_keys]], or set provider = \"none\" under [auth] if that is \
             intended"
        );
        let spot = self.host_spot.clone().unwrap_or_else(|| Spot::nowhere("server.host"));
        Err(spot.error(message))
    }

    /// Returns the environment variables that are missing or contain no valid key, name or address.
    /// Called before the server starts; reading a configuration needs none.
    pub fn check_secrets(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Vec<ConfigProblem> {
        let models = self.models.values().filter_map(|model| match model {
            #[cfg(feature = "providers")]
            ModelConfig::Remote(remote) => remote.check_key(&environment),
            ModelConfig::Mock(_) => None,
        });
        let exports = self.telemetry.exports(&environment, self.environment);
        let headers = exports.problems.into_iter();
        let steps = self.needs.secrets.iter().filter_map(|secret| secret.check(&environment));
        let providers = self.auth.providers(&environment).err();
        let password = self.store.check_password(&environment);
        let variables = self.check_variables(&environment);
        let links = self.inbox.link_key(&environment).err();
        let faces = self.faces.mcp.iter().filter_map(|face| face.key(&environment).err());
        let servers = self.mcp.values().flat_map(|server| server.check_secrets(&environment));
        let rest = headers.chain(steps).chain(password).chain(variables).chain(links);
        let rest = rest.chain(faces).chain(servers);
        models.chain(providers).chain(rest).collect()
    }

    /// Returns a warning if `check` refuses the certificate for other servers. No error: a
    /// configuration is also checked on machines where it does not run.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "there are no links"))]
    pub(crate) fn check_certificate(
        &self,
        check: impl Fn(ClusterTls<'_>) -> Result<(), String>,
    ) -> Option<ConfigProblem> {
        self.cluster.listen?;
        let problem = check(self.cluster.tls()?).err()?;
        let spot = self.certificate_spot.as_ref()?;
        Some(spot.warning(format!("cannot be used with `key` and `ca`: {problem}")))
    }

    /// Returns warnings about missing programs of steps and tools. Called before the server starts.
    pub(crate) fn check_programs(&self) -> Vec<ConfigProblem> {
        let tools = self.tools.values().filter_map(|tool| match &tool.kind {
            ToolKind::Command(call) => {
                let (name, has_folder) = (Arc::clone(&call.program), call.cwd.is_some());
                Some(Program::new(name, has_folder, tool.spot.clone()))
            }
            ToolKind::Workflow(_) | ToolKind::Agent(_) | ToolKind::Http(_) => None,
        });
        let path = std::env::var_os("PATH");
        let steps = self.needs.programs.iter().cloned();
        let servers = self.mcp.values().filter_map(McpConfig::program);
        let programs = steps.chain(tools).chain(servers);
        programs.filter_map(|program| program.check(path.as_deref())).collect()
    }

    /// Returns the values that must not appear in a log: secrets that the configuration names, and
    /// those of the server.
    pub fn secrets(&self, environment: impl Fn(&str) -> Option<String>) -> Secrets {
        let mut secrets = Secrets::default();
        let models = self.models.values().filter_map(|model| match model {
            #[cfg(feature = "providers")]
            ModelConfig::Remote(remote) => remote.key_variable.as_deref(),
            ModelConfig::Mock(_) => None,
        });
        let signs = self.auth.secret_variable();
        let headers = self.telemetry.headers.iter().flat_map(ConfiguredHeader::secrets);
        let seals = self.faces.mcp.iter().filter_map(|face| face.secret.as_ref());
        let links = self.inbox.secret.iter().chain(seals).map(|secret| &*secret.variable);
        let variables =
            models.chain(signs).chain(links).chain(headers).chain(["SERVICE_SECRET_KEY"]);
        let mut add =
            |name: &str| environment(name).iter().for_each(|it| secrets.add_value(name, it));
        variables.for_each(&mut add);
        for tool in self.tools.values() {
            match &tool.kind {
                ToolKind::Http(call) => call.secrets().for_each(&mut add),
                ToolKind::Command(call) => call.secrets().for_each(&mut add),
                ToolKind::Workflow(_) | ToolKind::Agent(_) => {}
            }
        }
        self.mcp.values().flat_map(McpConfig::secrets).for_each(&mut add);
        self.needs.secrets.iter().for_each(|it| add(&it.name));
        for value in self.store.secrets(&environment) {
            secrets.add(&value);
        }
        let exports = self.telemetry.exports(&environment, self.environment);
        for value in exports.settings.iter().flat_map(ExporterSettings::header_values) {
            secrets.add(value);
        }
        secrets
    }

    /// Returns the bounds of the runtime, from all keys that set one.
    pub fn runtime_limits(&self) -> RuntimeLimits {
        let limits = &self.limits;
        let placement = match limits.arbiters {
            0 => RuntimeLimits::default().placement,
            arbiters => Placement::Threads(arbiters),
        };
        RuntimeLimits {
            placement,
            executions_memory_max: limits.executions_memory_max.unwrap_or_else(share_of_executions),
            passivate_after: self.store.passivate_after,
            store_patience: self.store.patience,
            retention: self.retention.clone(),
            ..limits.runtime.clone()
        }
    }
}
