//! Assembly of the server: built from a configuration, run until a signal, drained.

mod access;
mod binding;
mod capacity;
pub(crate) mod checks;
#[cfg(feature = "postgres")]
mod cluster;
#[cfg(feature = "cli")]
mod document;
mod exporting;
#[cfg(feature = "cli")]
pub(crate) mod finding;
mod front_end;
mod maintenance;
mod mcp;
mod metrics;
mod models;
mod parts;
mod reloading;
mod routes;
mod running;
mod service_manager;
mod signals;
mod store;
mod threads;
mod tools;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Server;
use futures_util::future::BoxFuture;
use greenroom_actors::observe::log_record::LogRecord;
use greenroom_actors::ports::clock::SystemClock;
use greenroom_actors::ports::store::Store;
use greenroom_actors::registry::Registry;
use greenroom_actors::{Runtime, RuntimePorts};

use self::binding::binding;
pub(crate) use self::binding::check;
#[cfg(feature = "cli")]
pub(crate) use self::capacity::room_for_connections;
#[cfg(feature = "cli")]
pub(crate) use self::document::openapi;
use self::exporting::Telemetry;
pub(crate) use self::exporting::Variables;
pub use self::parts::Parts;
use self::reloading::{ReloadContext, Reloading};
pub(crate) use self::running::StopsOn;
#[cfg(feature = "cli")]
pub(crate) use self::running::StoreLost;
use self::signals::{outlive_early_hangups, outlive_file_size_limit};
use self::store::Opened;
#[cfg(all(feature = "cli", feature = "postgres"))]
pub(crate) use self::store::open_nodes;
#[cfg(all(feature = "cli", feature = "sqlite"))]
pub(crate) use self::store::{back_up, copy_store, restore};
#[cfg(feature = "cli")]
pub(crate) use self::store::{look as look_at_store, outline as outline_of_store};
pub(crate) use self::threads::{block_on, runs_in_system};
pub(crate) use self::tools::Outward;
#[cfg(feature = "testing")]
pub(crate) use self::tools::OutwardCall;
use crate::adapters::outbound::OutboundClients;
use crate::api::observability::Storage;
use crate::auth::Providers;
use crate::config::steps;
use crate::config::{Config, ConfigProblem, Environment, LimitsConfig};
use crate::handle::{Handle, Host};
use crate::reload::ReloadStatus;
use crate::telemetry;
use crate::telemetry::logs::{LogOptions, LogSink, LogStoreSettings, LogStoreWriter};
use crate::telemetry::sources::Sources;
use crate::web::binding::Binding;
use crate::web::custom::Routes;
use crate::web::server::{listen, serve};
use crate::web::settings::WebConfig;
use crate::web::shutdown::Shutdown;
use crate::web::stoppable_listener::StoppableListener;

/// Log targets of libraries that report misbehaving clients and MCP servers, notices of a database and
/// connections that it closed: the server says itself what an operator has to know of them.
const NOISY_TARGETS: &[&str] =
    &["actix_http", "deadpool.postgres", "rmcp", "tokio_postgres", "tracing::span"];

/// Time for connections to close after all requests have been answered.
const CONNECTIONS_GRACE: Duration = Duration::from_secs(5);

/// Definitions that Rust code adds to a configuration.
#[derive(Debug, Default)]
pub struct Registered {
    /// Functions, models, agents, tools and workflows.
    pub registry: Registry,
    /// Identity providers, which precede those of the configuration.
    pub providers: Providers,
    /// Routes in addition to those of the server and of the configuration.
    pub routes: Routes,
    /// Parts in place of those of the server.
    pub parts: Parts,
}

/// Serves a configuration, and the definitions of Rust code, until it stops. Blocks. `begun` is called
/// when the address is bound. Installs the logger unless the process has one; console lines may
/// still be queued when this returns.
pub(crate) fn run(
    config: Config,
    registered: Registered,
    stops_on: StopsOn,
    begun: impl FnOnce(Handle),
) -> io::Result<()> {
    let variables = Variables::of(&config);
    let mut secrets = config.secrets(|name| variables.value(name));
    for secret in steps::secrets(registered.registry.workflows.values()) {
        let value = variables.value(&secret.name);
        value.iter().for_each(|value| secrets.add_value(&secret.name, value));
    }
    let options = LogOptions { noisy: NOISY_TARGETS, ..config.logs.options() };
    telemetry::logs::install(&options, &secrets);
    capacity::ensure(&config, workers(&config))?;
    block_on(async move {
        if stops_on == StopsOn::Signals {
            outlive_early_hangups()?;
        }
        let application = Application::build_for(config, registered, stops_on).await?;
        begun(application.handle());
        Box::pin(application.run_until(stops_on)).await
    })
}

/// A server that is bound and ready to run.
pub struct Application {
    server: Server,
    /// Closed when the server begins to stop; `None` where no other server can be asked instead.
    listener: Option<StoppableListener>,
    handle: Handle,
    shutdown: Shutdown,
    telemetry: Telemetry,
    grace: Duration,
    environment: Environment,
    /// Stores log records; `None` if that is off.
    log_writer: Option<LogStoreWriter>,
    /// Reloads the configuration; `None` without a file.
    reloading: Option<Reloading>,
    /// Tools of MCP servers.
    mcp: mcp::Tools,
    /// Resolves with the reason when another server has taken the store over.
    store_lost: BoxFuture<'static, String>,
}

impl Application {
    /// Binds the address, then opens the store and starts the runtime. In this order, because a
    /// taken address may mean another server on the same store: nothing is resumed or written.
    pub async fn build(config: Config, registered: Registered) -> io::Result<Self> {
        Box::pin(Self::build_for(config, registered, StopsOn::Signals)).await
    }

    /// Builds the server of a process, or one inside of another program.
    async fn build_for(
        mut config: Config,
        registered: Registered,
        stops_on: StopsOn,
    ) -> io::Result<Self> {
        begin(&mut config, stops_on)?;
        let Registered { registry: registered, providers, routes, parts } = registered;
        let outbound = Arc::new(tools::outbound(&config));
        let registry = serving(&config, &outbound, &config.limits, registered.clone())?;
        let mut web = front_end(&config, &providers, &routes)?;
        warn(&config, &web.binding, &registry);
        threads::prepare(&config, &web)?;
        let listener = listen(&web).map_err(|error| unusable_address(&config, &error))?;
        let address = listener.local_addr()?;
        config.server.name.get_or_insert_with(|| default_name(address));
        let metrics = metrics::metrics(&config.metrics, &registry)?;
        let Opened { store, crash_marks, read, lost, members, links, read_links } =
            store::open(&config, &parts, metrics.as_deref())?;
        web.storage = Storage::of(&*store);
        let telemetry = Telemetry::start(&config, metrics.as_ref())?;
        web.is_telemetry_enabled = telemetry.is_on();
        let mut ports = RuntimePorts::new(Arc::clone(&store), parts.clock());
        (ports.members, ports.links) = (members, links);
        (ports.crash_marks, ports.answer_guard) = (crash_marks, parts.answer_guard.clone());
        let host = Host::new(address);
        ports.host = Some(Arc::new(host.clone()));
        ports.observers = telemetry.observers();
        ports.external_calls = Arc::clone(&outbound) as _;
        ports.meter = metrics::meter(metrics.as_deref());
        let (grace, environment) = (config.server.shutdown_grace, config.environment);
        let launched = Runtime::launch(registry, ports, config.runtime_limits()).await;
        let runtime = launched.map_err(io::Error::other)?;
        let mcp = mcp::Tools::start(&outbound, &runtime, Arc::clone(&store) as _, metrics.clone())?;
        let servers = mcp.servers();
        let reload_status = Arc::new(ReloadStatus::default());
        let log_writer = start_log_writer(&config, store, &runtime, &telemetry);
        warn_of_another_logger();
        if let Some(metrics) = &metrics {
            metrics.read_from(Sources {
                runtime: runtime.clone(),
                store: read,
                links: read_links,
                exporter: telemetry.stats(),
                reload_status: Arc::clone(&reload_status),
                servers: servers.clone(),
            });
        }
        web.metrics.clone_from(&metrics);
        (web.reload_status, web.servers) = (Arc::clone(&reload_status), servers);
        let catalogue = Arc::clone(&web.binding.catalogue);
        let shutdown = Shutdown::new();
        // callers reach the others through a load balancer, which repeats what was not connected
        let stoppable =
            config.cluster.listen.map(|_| StoppableListener::of(&listener)).transpose()?;
        let handle = Handle::new(runtime.clone(), host);
        let server = serve(listener, handle.clone(), web, shutdown.clone())?;
        // without the parts: the store belongs to the runtime alone
        let registered =
            Registered { registry: registered, providers, routes, parts: Parts::default() };
        let tools = mcp.clone();
        let context = ReloadContext { runtime, tools, reload_status, catalogue, outbound };
        let reloading = Reloading::new(config, registered, context, stops_on)?;
        Ok(Self {
            server,
            listener: stoppable,
            handle,
            shutdown,
            telemetry,
            grace,
            environment,
            log_writer,
            reloading,
            mcp,
            store_lost: lost,
        })
    }
}

/// Checks what has to hold before anything is opened, and completes the configuration.
fn begin(config: &mut Config, stops_on: StopsOn) -> io::Result<()> {
    outlive_file_size_limit()?;
    if stops_on == StopsOn::Signals {
        service_manager::starting();
    }
    Variables::fill(config).map_err(|problem| refused(&[problem]))?;
    capacity::ensure(config, workers(config))
}

/// Returns the settings of the front end with its routes.
fn front_end(config: &Config, providers: &Providers, routes: &Routes) -> io::Result<WebConfig> {
    let mut web = front_end::prepare(config).map_err(|problem| refused(&[problem]))?;
    let bound = binding(config, providers.clone(), routes);
    web.binding = bound.map_err(|problems| refused(&problems))?;
    Ok(web)
}

/// Logs a warning if the program has a logger of another kind.
fn warn_of_another_logger() {
    if !telemetry::logs::is_installed() {
        log::warn!(
            "the program installed another logger: log records have no ids of executions, agents \
             and requests, and /api/logs, /ws/logs and the logs of traces stay empty; \
             Greenroom::serve installs the server's logger if there is none"
        );
    }
}

/// Logs warnings about a valid configuration.
fn warn(config: &Config, binding: &Binding, registry: &Registry) {
    let Binding { catalogue, auth, .. } = binding;
    for warning in &config.warnings {
        log::warn!("{warning}");
    }
    for warning in access::unknown_names(&config.auth, catalogue, registry) {
        log::warn!("{warning}");
    }
    if let Some(warning) = access::warning(config, auth, catalogue) {
        log::warn!("{warning}");
    }
}

/// Starts to store log records, including those queued since the start, and then to publish them.
/// In this order, a client that subscribes and then reads the log misses no record.
fn start_log_writer(
    config: &Config,
    store: Arc<dyn Store>,
    runtime: &Runtime,
    telemetry: &Telemetry,
) -> Option<LogStoreWriter> {
    let publisher = runtime.clone();
    let publish = move |batch: &[Arc<LogRecord>]| publisher.publish_logs(batch.into());
    let mut sinks: Vec<Arc<dyn LogSink>> = vec![Arc::new(publish)];
    sinks.extend(telemetry.log_sinks());
    LogStoreWriter::start(LogStoreSettings {
        store,
        // that of the records
        clock: Arc::new(SystemClock),
        retention: config.logs.retention,
        rows_max: config.logs.rows_max,
        sinks,
    })
}

/// Merges the definitions of the configuration and of Rust code for a server, whose tools leave the
/// process.
fn serving(
    config: &Config,
    outbound: &OutboundClients,
    limits: &LimitsConfig,
    registered: Registry,
) -> io::Result<Registry> {
    registry(config, &tools::outward(outbound, limits), registered)
}

/// Merges the definitions of the configuration and of Rust code, which wins for equal names.
pub(crate) fn registry(
    config: &Config,
    outward: Outward<'_>,
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
    registry.closures = registered.closures;
    registry.tools = tools::definitions(&config.tools, outward, &registry.workflows)?;
    registry.tools.extend(registered.tools);
    mcp::add_placeholders(config, outward, &mut registry)?;
    Ok(registry)
}

fn refused(problems: &[ConfigProblem]) -> io::Error {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    io::Error::other(lines.join("\n"))
}

pub(crate) fn web_config(config: &Config) -> WebConfig {
    let Config { server, limits, cors, system, updates, telemetry, .. } = config;
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
        requests_bytes_max: limits.requests_bytes_max,
        subscriber_stall: limits.runtime.subscriber_stall_timeout,
        origins: cors.origins.clone(),
        websocket_frame_bytes_max: limits.websocket_frame_bytes_max,
        websocket_fragments_max: limits.websocket_fragments_max,
        admission: capacity::admission(limits, usize::MAX),
        shutdown_timeout: CONNECTIONS_GRACE,
        environment: config.environment.as_str(),
        openai: config.faces.openai.clone().map(Arc::new),
        storage: Storage::default(),
        #[cfg(feature = "ui")]
        console: front_end::console_settings(&config.console),
        force_roles: config.inbox.force_roles.clone(),
        links: None,
        mcp: Vec::new(),
        observed_content: telemetry.content,
        is_telemetry_enabled: false,
        binding: Binding::default(),
        maintenance: Arc::new(maintenance::maintenance(system, updates)),
        metrics: None,
        reload_status: Arc::default(),
        servers: None,
    }
}

/// Returns the number of threads that serve connections.
fn workers(config: &Config) -> usize {
    match config.server.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        workers => workers,
    }
}

/// Returns the name of a server without one: a restarted process has the same, and no other server
/// of a machine does. Containers may have equal names and addresses.
fn default_name(address: SocketAddr) -> String {
    let machine = rustix::system::uname();
    format!("{}:{address}", machine.nodename().to_string_lossy())
}

/// Binds the configured address as a server would, and gives it back.
#[cfg(feature = "cli")]
pub(crate) fn try_to_listen(config: &Config) -> io::Result<()> {
    listen(&web_config(config)).map(drop)
}

fn unusable_address(config: &Config, error: &io::Error) -> io::Error {
    let (host, port) = (&config.server.host, config.server.port);
    io::Error::new(error.kind(), format!("cannot listen at {host}:{port}: {error}"))
}

/// Settings of a default configuration.
#[cfg(test)]
impl Default for WebConfig {
    fn default() -> Self {
        web_config(&Config::default())
    }
}
