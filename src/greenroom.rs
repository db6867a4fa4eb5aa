//! The server as a library: a configuration file, and Rust code beside it.

pub(crate) mod error;
mod functions;
mod mcp;
mod parts;
mod routes;
mod tools;

use std::any::TypeId;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

pub use self::error::{Problems, ServeError};

use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::domain::ids::is_definition_id;
use greenroom_actors::ports::model::LanguageModel;
use greenroom_actors::registry::Registry;
use greenroom_actors::runtime::BULK_WORKFLOW;

use crate::app::{Application, Parts, Registered, StopsOn, checks, run, runs_in_system};
use crate::auth::{AuthProvider, Providers};
use crate::builder::{McpFace, Workflow};
#[cfg(feature = "testing")]
use crate::config::workflow_tests::WorkflowTest;
use crate::config::workflows::warnings;
use crate::config::{Config, ConfigProblem, Environment, Spot};
use crate::server::Server;
use crate::telemetry::logs::drain_screen;
use crate::typed::{Binding, State};
use crate::web::custom::Routes;

/// Builder of a server.
///
/// ```no_run
/// use greenroom::Greenroom;
/// use serde_json::json;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// Greenroom::from_config("config.toml")?
///     .function("charge", |step| async move {
///         let amount = step.data["amount"].as_f64().ok_or("amount is missing")?;
///         Ok(json!({ "charged": amount }).into())
///     })
///     .serve()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Greenroom {
    config: Config,
    registry: Registry,
    providers: Providers,
    routes: Routes,
    parts: Parts,
    state: State,
    /// Typed functions and tools, which find their state at the start.
    bindings: Vec<Binding>,
    /// Functions that came with steps and capture nothing.
    carried: HashMap<String, TypeId>,
    /// Names of tools that have problems.
    refused_tools: BTreeSet<String>,
    problems: Vec<String>,
}

impl Greenroom {
    /// Reads a configuration. Names that it does not define (functions, agents, tools, workflows)
    /// are looked up among the registered ones when the server starts.
    pub fn from_config(path: impl AsRef<Path>) -> Result<Self, Problems> {
        let config = Config::load_open(path.as_ref()).map_err(|problems| lines(&problems))?;
        Ok(Self::over(config))
    }

    /// Starts from the defaults, without a file.
    pub fn new() -> Self {
        Self::over(Config::default())
    }

    pub(crate) fn over(mut config: Config) -> Self {
        config.environment = Environment::of_process();
        Self {
            config,
            registry: Registry::default(),
            providers: Providers::default(),
            routes: Routes::default(),
            parts: Parts::default(),
            state: State::default(),
            bindings: Vec::new(),
            carried: HashMap::new(),
            refused_tools: BTreeSet::new(),
            problems: Vec::new(),
        }
    }

    /// Registers a workflow. Replaces one of the configuration with the same id; its `retention`
    /// stays unless the new one sets it.
    #[must_use]
    pub fn workflow(mut self, mut workflow: Workflow) -> Self {
        let code = workflow.take_code();
        code.functions.iter().for_each(|carried| self.add_carried(carried));
        for (name, closure) in code.closures {
            if !self.registry.closures.add(workflow.id(), &name, closure.code()) {
                self.problems.push(format!(
                    "workflow {}: the closure {name} is set twice: on one step, or on two of the same id, or \
                     because the workflow is registered twice",
                    workflow.id()
                ));
            }
        }
        if let Some((id, retention)) = workflow.configured_retention() {
            self.config.set_retention(id, retention);
        }
        let id = workflow.id().to_owned();
        match workflow.compile() {
            Ok(plan) => {
                self.config.warnings.extend(warnings(&plan));
                if id == BULK_WORKFLOW {
                    self.problems.push(format!("workflow {id}: the id is that of bulk operations"));
                }
                if self.registry.workflows.insert(id.clone(), Arc::new(plan)).is_some() {
                    self.problems.push(format!("workflow {id} is registered twice"));
                }
            }
            Err(problems) => self.problems.extend(problems.iter().map(|it| {
                let spot =
                    Spot { key: it.place.join("."), ..Spot::nowhere(&format!("workflow {id}")) };
                spot.error(&it.message).to_string()
            })),
        }
        self
    }

    /// Registers an agent, for example from [`crate::builder::Agent`]. Replaces one of the
    /// configuration with the same id.
    ///
    /// ```
    /// use greenroom::Greenroom;
    /// use greenroom::builder::Agent;
    ///
    /// let desk = Agent::new("desk").model("offline").instructions("You help customers.");
    /// let server = Greenroom::new().agent(desk);
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn agent(mut self, agent: impl Into<AgentDefinition>) -> Self {
        let agent = agent.into();
        let id = agent.id.clone();
        if self.registry.agents.insert(id.clone(), Arc::new(agent)).is_some() {
            self.problems.push(format!("agent {id} is registered twice"));
        }
        self
    }

    /// Registers a language model under a name that agents use: a letter or digit, then letters,
    /// digits, `.`, `_` or `-`.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use greenroom::Greenroom;
    /// use greenroom::adapters::mock::{MockConfig, MockModel};
    ///
    /// # fn main() -> Result<(), greenroom::Problems> {
    /// let offline = MockModel::new(MockConfig::default())?;
    /// let server = Greenroom::new().model("offline", Arc::new(offline));
    /// # drop(server);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn model(mut self, name: &str, model: Arc<dyn LanguageModel>) -> Self {
        if !is_definition_id(name) {
            self.problems.push(format!(
                "model {name}: the name must be a letter or digit, then letters, digits, `.`, `_` \
                 or `-`"
            ));
        }
        if self.registry.models.insert(name.to_owned(), model).is_some() {
            self.problems.push(format!("model {name} is registered twice"));
        }
        self
    }

    /// Adds a provider that checks tokens. Providers are tried in this order, and before those of
    /// the configuration; the first that accepts a token determines the user.
    ///
    /// ```
    /// use futures_util::future::{BoxFuture, FutureExt, ready};
    /// use greenroom::Greenroom;
    /// use greenroom::auth::{AuthError, AuthProvider, User};
    /// use serde_json::json;
    ///
    /// struct Badge;
    ///
    /// impl AuthProvider for Badge {
    ///     fn kind(&self) -> &str {
    ///         "badge"
    ///     }
    ///
    ///     fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<User, AuthError>> {
    ///         let user = match token.strip_prefix("badge-") {
    ///             Some(number) => {
    ///                 let profile = json!({ "id": number, "roles": ["staff"] });
    ///                 User::new(profile.as_object().cloned().unwrap_or_default())
    ///             }
    ///             None => Err(AuthError::Foreign),
    ///         };
    ///         ready(user).boxed()
    ///     }
    /// }
    ///
    /// let server = Greenroom::new().auth(Badge);
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn auth(mut self, provider: impl AuthProvider + 'static) -> Self {
        self.providers.push(Arc::new(provider));
        self
    }

    /// Adds routes with actix-web handlers. They need a token if there is a provider, unless they
    /// are public, and otherwise behave like built-in routes. A path that overlaps with another
    /// route is refused when the server starts.
    ///
    /// ```
    /// use greenroom::Greenroom;
    /// use greenroom::actix_web::web;
    /// use greenroom::api::ApiError;
    /// use greenroom::routes::Authenticated;
    ///
    /// async fn greet(user: Authenticated, word: web::Path<String>) -> Result<String, ApiError> {
    ///     let Authenticated(user) = user;
    ///     let id = user.id().ok_or(ApiError::NotYours)?;
    ///     Ok(format!("{word}, {id}"))
    /// }
    ///
    /// let server = Greenroom::new().routes(|routes| {
    ///     routes.get("/greetings/:word", greet).summary("Greets the user");
    ///     routes.get("/weather", || async { "fine" }).public();
    /// });
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn routes(mut self, add: impl FnOnce(&mut Routes)) -> Self {
        add(&mut self.routes);
        self
    }

    /// Serves a face for clients of MCP beside those of the configuration.
    ///
    /// ```
    /// use greenroom::Greenroom;
    /// use greenroom::builder::{McpFace, Step, Workflow};
    /// use serde_json::json;
    ///
    /// let server = Greenroom::new()
    ///     .workflow(Workflow::new("trip").step(Step::map("plan", json!({ "days": "input.days" }))))
    ///     .face(McpFace::new().workflows(["trip"]).resources());
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn face(mut self, face: McpFace) -> Self {
        let (settings, problems) = face.into_settings();
        self.problems.extend(problems);
        self.problems.extend(self.config.add_face(settings));
        self
    }

    /// Changes the configuration, for example an address, a store or a limit.
    ///
    /// ```
    /// use greenroom::Greenroom;
    ///
    /// let server = Greenroom::new().configure(|config| {
    ///     config.server.port = 8080;
    ///     config.limits.runtime.executions_live_max = 1000;
    /// });
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Serves until SIGTERM or SIGINT. Blocks and starts a runtime: call it from an ordinary
    /// `fn main()`. A `main` that returns the error prints its lines. Installs a logger, also for
    /// panics, if the program has none.
    pub fn serve(self) -> Result<(), ServeError> {
        let (config, registered) = self.checked()?;
        if tokio::runtime::Handle::try_current().is_ok() {
            return Err(ServeError::InsideRuntime);
        }
        let served = run(config, registered, StopsOn::Signals, |_| {});
        drain_screen();
        Ok(served?)
    }

    /// Serves on another thread, beside the rest of a program, and returns when it is ready. May be
    /// awaited on any tokio runtime. Signals are left to the program, which ends the server with
    /// [`Server::stop`]. Installs a logger, also for panics, if the program has none.
    ///
    /// ```no_run
    /// use greenroom::Greenroom;
    /// use serde_json::json;
    ///
    /// #[tokio::main(flavor = "current_thread")]
    /// async fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let server = Greenroom::from_config("config.toml")?.start().await?;
    ///     let run = server.handle().start("expense-approval", &json!({ "amount": 12 })).await?;
    ///     println!("{} ended with {}", run.id(), run.result().await?);
    ///     server.stop().await?;
    ///     Ok(())
    /// }
    /// ```
    pub async fn start(self) -> Result<Server, ServeError> {
        let (config, registered) = self.checked()?;
        Server::start(config, registered).await
    }

    /// Binds the address without serving yet. Must be called inside an actix system, such as
    /// `#[greenroom::actix_web::main]`.
    pub async fn build(self) -> Result<Application, ServeError> {
        let (config, registered) = self.checked()?;
        if !runs_in_system() {
            return Err(ServeError::OutsideSystem);
        }
        // large, and so kept off the futures of its callers
        Ok(Box::pin(Application::build(config, registered)).await?)
    }

    /// Returns the tests of the configuration.
    #[cfg(feature = "testing")]
    pub(crate) fn configured_tests(&self) -> &[WorkflowTest] {
        &self.config.tests
    }

    /// Returns the configuration, what is registered, and what is wrong with either so far.
    pub(crate) fn assembled(self) -> (Config, Registered, Vec<String>) {
        let Self { config, registry, providers, routes, parts, state, bindings, .. } = self;
        let mut problems = self.problems;
        problems.extend(bindings.into_iter().filter_map(|binding| binding.bind(&state).err()));
        (config, Registered { registry, providers, routes, parts }, problems)
    }

    pub(crate) fn checked(mut self) -> Result<(Config, Registered), Problems> {
        let refused_tools = std::mem::take(&mut self.refused_tools);
        let (mut config, registered, mut problems) = self.assembled();
        let mut names = checks::names(&registered);
        names.tools.extend(refused_tools);
        problems.extend(config.check_names(&names).iter().map(ToString::to_string));
        problems.extend(checks::problems(&config, &registered, &names));
        config.warnings.extend(checks::warnings(&config, &registered));
        if problems.is_empty() { Ok((config, registered)) } else { Err(Problems(problems)) }
    }
}

impl Default for Greenroom {
    fn default() -> Self {
        Self::new()
    }
}

fn lines(problems: &[ConfigProblem]) -> Problems {
    Problems(problems.iter().map(ToString::to_string).collect())
}

#[cfg(test)]
mod tests;
