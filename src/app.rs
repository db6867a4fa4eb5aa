//! The server as a whole: built from a configuration, run until a signal, drained.

mod access;
mod capacity;
pub(crate) mod checks;
mod exporting;
mod metrics;
mod models;
mod reloading;
mod routes;
mod signals;
mod store;
mod threads;
mod tools;
mod upkeep;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use greenroom_actors::observe::log_record::LogRecord;
use greenroom_actors::ports::clock::SystemClock;
use greenroom_actors::ports::store::Store;
use greenroom_actors::registry::Registry;
use greenroom_actors::{Runtime, RuntimePorts};

use self::exporting::Telemetry;
pub(crate) use self::exporting::Variables;
use self::reloading::{Reloading, Surroundings};
use self::routes::Assembled;
use self::signals::{Signals, outlive_file_size_limit};
use self::store::Opened;
pub(crate) use self::store::back_up;
use crate::adapters::tools::OutboundClients;
use crate::api::access::Pattern;
use crate::api::observability::Storage;
use crate::auth::Providers;
use crate::config::steps;
use crate::config::{Config, ConfigProblem, Environment, LimitsConfig};
use crate::reload::Standing;
use crate::telemetry;
use crate::telemetry::logs::{Keeper, Keeping, LogOptions, LogSink};
use crate::telemetry::metrics::Sources;
use crate::web::binding::Binding;
use crate::web::custom::Routes;
use crate::web::gate::Auth;
use crate::web::server::{NOISY_TARGETS, listen, serve};
use crate::web::settings::WebConfig;
use crate::web::shutdown::Shutdown;

/// How long connections may take to end after everything they wait for has been answered.
const CONNECTIONS_GRACE: Duration = Duration::from_secs(5);

/// What Rust code adds to a configuration.
#[derive(Debug, Default)]
pub struct Registered {
    /// Functions, models, agents, tools and workflows.
    pub registry: Registry,
    /// Who checks tokens; asked before those of the configuration.
    pub providers: Providers,
    /// Routes beside those of the server and of the configuration.
    pub routes: Routes,
}

/// Serves until a signal to stop. Blocks.
pub fn run(config: Config) -> io::Result<()> {
    run_with(config, Registered::default())
}

/// Whether this thread runs a system of actors, which servers and executions are spawned in.
pub(crate) fn runs_in_system() -> bool {
    actix_web::rt::System::try_current().is_some()
}

/// The same with what Rust code adds. The process gets a logger unless it has one;
/// what its console has not shown yet when this returns, the caller may wait for.
pub(crate) fn run_with(config: Config, registered: Registered) -> io::Result<()> {
    let variables = Variables::of(&config);
    let mut secrets = config.secrets(|name| variables.value(name));
    for secret in steps::secrets(registered.registry.workflows.values()) {
        variables.value(&secret.name).iter().for_each(|value| secrets.add(value));
    }
    let options = LogOptions { noisy: NOISY_TARGETS, ..config.logs.options() };
    telemetry::logs::install(&options, &secrets);
    capacity::ensure(&config, workers(&config))?;
    actix_web::rt::System::new().block_on(async move {
        let application = Application::build(config, registered).await?;
        Box::pin(application.run_until_stopped()).await
    })
}

/// A server that is bound and ready to run.
pub struct Application {
    server: Server,
    address: SocketAddr,
    runtime: Runtime,
    shutdown: Shutdown,
    telemetry: Telemetry,
    grace: Duration,
    environment: Environment,
    /// Keeps what is logged, where that is wanted.
    keeper: Option<Keeper>,
    /// Takes changes of the configuration.
    reloading: Option<Reloading>,
}

impl Application {
    /// Binds the address, opens the store and brings the runtime up. In this order: where the
    /// address is taken, perhaps by a server over the same store, nothing goes on and nothing is
    /// written.
    pub async fn build(config: Config, registered: Registered) -> io::Result<Self> {
        outlive_file_size_limit()?;
        capacity::ensure(&config, workers(&config))?;
        let Registered { registry: registered, providers, routes } = registered;
        let outbound = Arc::new(tools::outbound(&config));
        let registry = registry(&config, &outbound, &config.limits, registered.clone())?;
        let mut web = web_config(&config);
        web.admission = capacity::prepare(&config.limits);
        web.binding =
            binding(&config, providers.clone(), &routes).map_err(|problems| refused(&problems))?;
        warn(&config, &web.binding, &registry);
        threads::prepare(&config, &web)?;
        let listener = listen(&web).map_err(|error| unusable_address(&config, &error))?;
        let address = listener.local_addr()?;
        let metrics = metrics::metrics(&config.metrics, &registry)?;
        let Opened { store, crash_marks, read } = store::open(&config.store, metrics.as_deref())?;
        let telemetry = Telemetry::start(&config, metrics.as_ref())?;
        web.is_telemetry_enabled = telemetry.is_on();
        let mut ports = RuntimePorts::new(Arc::clone(&store), Arc::new(SystemClock));
        ports.crash_marks = crash_marks;
        ports.observers = telemetry.observers();
        ports.external_calls = Arc::clone(&outbound) as _;
        if let Some(metrics) = &metrics {
            ports.meter = metrics.meter();
        }
        let grace = config.server.shutdown_grace;
        let runtime = Runtime::launch(registry, ports, config.runtime_limits())
            .await
            .map_err(io::Error::other)?;
        let standing = Arc::new(Standing::default());
        let keeper = keeper(&config, store, &runtime, &telemetry);
        if !telemetry::logs::is_installed() {
            log::warn!(
                "the program has a logger of its own: records have no ids of executions, agents \
                 and requests, and /api/logs, /ws/logs and the logs of traces stay empty; \
                 Greenroom::serve installs the server's logger where there is none"
            );
        }
        if let Some(metrics) = &metrics {
            metrics.read_from(Sources {
                runtime: runtime.clone(),
                store: read,
                exporter: telemetry.stats(),
                standing: Arc::clone(&standing),
            });
        }
        web.metrics.clone_from(&metrics);
        web.standing = Arc::clone(&standing);
        let catalogue = Arc::clone(&web.binding.catalogue);
        let shutdown = Shutdown::new();
        let server = serve(listener, runtime.clone(), web, shutdown.clone())?;
        let environment = config.environment;
        let registered = Registered { registry: registered, providers, routes };
        let around =
            Surroundings { runtime: runtime.clone(), metrics, standing, catalogue, outbound };
        let reloading = Reloading::new(config, registered, around)?;
        Ok(Self {
            server,
            address,
            runtime,
            shutdown,
            telemetry,
            grace,
            environment,
            keeper,
            reloading,
        })
    }

    /// Where the server listens; the port is the real one when 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs until SIGTERM or SIGINT, then drains. A second signal ends the process at once.
    pub async fn run_until_stopped(self) -> io::Result<()> {
        let Self { server, address, runtime, shutdown, telemetry, grace, .. } = self;
        let Self { environment, keeper, reloading, .. } = self;
        let mut signals = Signals::listen()?;
        let handle = server.handle();
        let draining = runtime.clone();
        let stopping = async move {
            let name = tokio::select! {
                name = signals.next() => name,
                () = reload(reloading) => return,
            };
            log::info!("{name}: no new work; running steps get {grace:?}");
            tokio::select! {
                () = async {
                    stop(&draining, &shutdown, &handle, grace).await;
                    if let Some(keeper) = keeper {
                        keeper.stop().await;
                    }
                    telemetry.finish(&draining).await;
                } => {}
                name = signals.next() => {
                    log::warn!("{name} again: ending at once");
                    telemetry::logs::drain_screen();
                    std::process::exit(1);
                }
            }
        };
        log::info!("greenroom listens at http://{address}");
        log::info!("environment: {environment}");
        let (served, ()) = tokio::join!(server, stopping);
        // The last user of the store: it closes in order.
        runtime.end();
        log::info!("stopped");
        served
    }
}

/// Says what is odd about a configuration that is in order.
fn warn(config: &Config, binding: &Binding, registry: &Registry) {
    let Binding { catalogue, auth, .. } = binding;
    for warning in &config.warnings {
        log::warn!("{warning}");
    }
    for odd in access::strange_names(&config.auth, catalogue, registry) {
        log::warn!("{odd}");
    }
    if let Some(warning) = access::warning(config, auth, catalogue) {
        log::warn!("{warning}");
    }
}

/// Goes on until it is dropped, also when there is nothing to reload.
async fn reload(reloading: Option<Reloading>) {
    match reloading {
        Some(reloading) => reloading.run().await,
        None => std::future::pending().await,
    }
}

/// Drains the runtime first, so that whoever waits gets an answer, then ends the connections.
async fn stop(runtime: &Runtime, shutdown: &Shutdown, server: &ServerHandle, grace: Duration) {
    runtime.drain(grace).await;
    shutdown.fire();
    server.stop(true).await;
}

/// Keeps what is logged from now on, and what was logged since the start; tells those who listen,
/// in this order: who reads the log and then listens misses nothing.
fn keeper(
    config: &Config,
    store: Arc<dyn Store>,
    runtime: &Runtime,
    telemetry: &Telemetry,
) -> Option<Keeper> {
    let listened = runtime.clone();
    let tell = move |batch: &[Arc<LogRecord>]| listened.publish_logs(batch.into());
    let mut sinks: Vec<Arc<dyn LogSink>> = vec![Arc::new(tell)];
    sinks.extend(telemetry.log_sinks());
    Keeper::start(Keeping {
        store,
        clock: Arc::new(SystemClock),
        keep: config.logs.retention,
        rows_max: config.logs.rows_max,
        sinks,
    })
}

/// What is configured, with what Rust code registered; a name of both is the code's.
fn registry(
    config: &Config,
    outbound: &OutboundClients,
    limits: &LimitsConfig,
    registered: Registry,
) -> io::Result<Registry> {
    let mut registry = Registry {
        workflows: config.workflows.clone(),
        agents: config
            .agents
            .iter()
            .map(|(id, agent)| (id.clone(), Arc::new(agent.clone())))
            .collect(),
        ..Registry::default()
    };
    registry.models = models::language_models(&config.models, &registered.models)?;
    registry.workflows.extend(registered.workflows);
    registry.agents.extend(registered.agents);
    registry.models.extend(registered.models);
    registry.functions.extend(registered.functions);
    registry.tools = tools::definitions(&config.tools, outbound, limits, &registry.workflows)?;
    registry.tools.extend(registered.tools);
    Ok(registry)
}

/// What is wrong with the routes, and with who may call them.
pub(crate) fn check(config: &Config, registered: &Registered) -> Vec<ConfigProblem> {
    let assembled = routes::assemble(config, &registered.routes);
    let policy = assembled
        .and_then(|assembled| access::policy(config, &registered.providers, &assembled.catalogue));
    policy.err().unwrap_or_default()
}

/// The routes, and who may call them.
fn binding(
    config: &Config,
    registered: Providers,
    added: &Routes,
) -> Result<Binding, Vec<ConfigProblem>> {
    let Assembled { catalogue, custom } = routes::assemble(config, added)?;
    let mut policy = access::policy(config, &registered, &catalogue)?;
    policy.public.extend(added.public_routes().filter_map(|route| Pattern::parse(&route).ok()));
    let mut providers = registered;
    let configured = config.auth.providers(|name| std::env::var(name).ok());
    configured.map_err(|problem| vec![problem])?.into_iter().for_each(|it| providers.push(it));
    let auth = Auth { providers, policy };
    Ok(Binding { catalogue: Arc::new(catalogue), auth: Arc::new(auth), custom })
}

fn refused(problems: &[ConfigProblem]) -> io::Error {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    io::Error::other(lines.join("\n"))
}

pub(crate) fn web_config(config: &Config) -> WebConfig {
    let Config { server, limits, cors, system, updates, telemetry, .. } = config;
    let (storage, is_persistent) = config.store.url.technology();
    WebConfig {
        host: server.host.clone(),
        is_loopback: server.is_loopback(),
        port: server.port,
        workers: workers(config),
        body_bytes_max: server.body_bytes_max,
        body_timeout: server.body_timeout,
        write_timeout: server.write_timeout,
        keep_alive: server.keep_alive,
        compression: server.compression,
        heartbeat: limits.heartbeat,
        subscriber_queue: limits.subscriber_queue,
        subscriber_queue_bytes: limits.subscriber_queue_bytes,
        subscribers_bytes_max: limits.subscribers_bytes_max,
        subscriber_stall: limits.runtime.subscriber_stall_timeout,
        origins: cors.origins.clone(),
        websocket_frame_bytes_max: limits.websocket_frame_bytes_max,
        websocket_fragments_max: limits.websocket_fragments_max,
        admission: capacity::admission(limits, usize::MAX),
        shutdown_timeout: CONNECTIONS_GRACE,
        environment: config.environment.as_str(),
        storage: Storage { name: storage, is_persistent },
        observed_content: telemetry.content,
        is_telemetry_enabled: false,
        binding: Binding::default(),
        upkeep: Arc::new(upkeep::upkeep(system, updates)),
        metrics: None,
        standing: Arc::default(),
    }
}

/// Threads that serve connections.
fn workers(config: &Config) -> usize {
    match config.server.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        workers => workers,
    }
}

fn unusable_address(config: &Config, error: &io::Error) -> io::Error {
    let (host, port) = (&config.server.host, config.server.port);
    io::Error::new(error.kind(), format!("cannot listen at {host}:{port}: {error}"))
}

/// The configuration's own defaults.
#[cfg(test)]
impl Default for WebConfig {
    fn default() -> Self {
        web_config(&Config::default())
    }
}
