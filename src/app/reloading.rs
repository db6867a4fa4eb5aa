//! Reloads of the configuration while the server runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::Runtime;
use greenroom_actors::agent::tool::ToolDefinition;
use greenroom_actors::registry::Registry;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use super::mcp::Tools;
use super::{Registered, StopsOn, Variables, access, checks, service_manager, serving};
use crate::adapters::outbound::OutboundClients;
use crate::api::catalogue::Catalogue;
use crate::config::{Changes, Config, ConfigProblem, Files, Names};
use crate::reload::{Readings, ReloadStatus, Watcher};
use crate::telemetry;

/// Pause before a change that the store did not take is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Checks changes of the configuration's files and applies them.
pub(super) struct Reloading {
    runtime: Runtime,
    tools: Tools,
    reload_status: Arc<ReloadStatus>,
    registered: Arc<Registered>,
    catalogue: Arc<Catalogue>,
    outbound: Arc<OutboundClients>,
    watcher: Option<Watcher<ConfigFiles>>,
    every: Option<Duration>,
    /// The configuration at the start of the process.
    started: Arc<Config>,
    /// The configuration in use.
    newest: Arc<Config>,
    /// `None` inside of another program, which signals are left to.
    hangup: Option<Signal>,
    /// A change that the store did not take, to try again.
    waiting: Option<Config>,
}

/// Findings about a rejected change.
struct Refused {
    problems: Vec<String>,
    /// Findings that alone would not have rejected the change.
    warnings: Vec<String>,
}

impl Refused {
    fn of(found: &[ConfigProblem]) -> Self {
        let lines = |is_error: bool| {
            let found = found.iter().filter(|problem| problem.is_error() == is_error);
            found.map(ToString::to_string).collect()
        };
        Self { problems: lines(true), warnings: lines(false) }
    }
}

impl From<String> for Refused {
    fn from(problem: String) -> Self {
        Self { problems: vec![problem], warnings: Vec::new() }
    }
}

/// The configuration's files, read and checked.
struct ConfigFiles {
    path: PathBuf,
    registered: Arc<Registered>,
    names: Names,
    started: Arc<Config>,
}

impl Readings for ConfigFiles {
    type Files = Files;
    type Made = Result<Config, Refused>;

    fn read(&self) -> (Self::Made, Files) {
        if self.path.exists() && !self.path.is_file() {
            // a pipe would hold this thread until something writes to it
            let file = self.path.display().to_string();
            let problem =
                ConfigProblem::of_file(&file, "not a regular file: it cannot be read again");
            return (Err(Refused::of(&[problem])), self.started.files.look());
        }
        let (read, files) = Config::look(&self.path, &self.names);
        let checked = read.map_err(|found| Refused::of(&found)).and_then(|mut config| {
            config.keep_choices_of(&self.started);
            let problems = checks::problems(&config, &self.registered, &self.names);
            config.warnings.extend(checks::warnings(&config, &self.registered));
            if problems.is_empty() {
                Ok(config)
            } else {
                let warnings = config.warnings.iter().map(ToString::to_string).collect();
                Err(Refused { problems, warnings })
            }
        });
        (checked, files)
    }

    fn look(&self, files: &Files) -> Files {
        files.look()
    }
}

/// Parts of the running server that a reload needs.
pub(super) struct ReloadContext {
    pub(super) runtime: Runtime,
    pub(super) tools: Tools,
    pub(super) reload_status: Arc<ReloadStatus>,
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) outbound: Arc<OutboundClients>,
}

impl Reloading {
    /// Prepares reloads; `None` if the configuration is not from a regular file.
    pub(super) fn new(
        config: Config,
        registered: Registered,
        context: ReloadContext,
        stops_on: StopsOn,
    ) -> std::io::Result<Option<Self>> {
        let Some(path) = config.path.clone().filter(|path| path.is_file()) else { return Ok(None) };
        let (started, registered) = (Arc::new(config), Arc::new(registered));
        let mut names = checks::names(&registered);
        names.tools.extend(started.coded_tools().map(|(name, _)| name.clone()));
        names.servers.extend(started.coded_mcp().map(|(name, _)| name.clone()));
        let files = ConfigFiles {
            path,
            names,
            registered: Arc::clone(&registered),
            started: Arc::clone(&started),
        };
        let ReloadContext { runtime, tools, reload_status, catalogue, outbound } = context;
        Ok(Some(Self {
            runtime,
            tools,
            reload_status,
            registered,
            catalogue,
            outbound,
            watcher: Some(Watcher::new(files, started.files.clone())),
            every: Some(started.system.reload_every).filter(|every| !every.is_zero()),
            newest: Arc::clone(&started),
            started,
            hangup: match stops_on {
                StopsOn::Signals => Some(signal(SignalKind::hangup())?),
                StopsOn::Handles => None,
            },
            waiting: None,
        }))
    }

    /// Checks the files at intervals and on SIGHUP. Never returns.
    pub(super) async fn run(mut self) {
        let ticking = |every| {
            let mut ticks = interval(every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        let (mut ticks, mut retries) = (self.every.map(ticking), ticking(RETRY_EVERY));
        let tick = async |ticks: &mut Option<tokio::time::Interval>| match ticks {
            Some(ticks) => drop(ticks.tick().await),
            None => std::future::pending().await,
        };
        loop {
            let is_asked = tokio::select! {
                () = hung_up(self.hangup.as_mut()) => true,
                () = tick(&mut ticks) => false,
                _ = retries.tick(), if self.waiting.is_some() => {
                    if let Some(config) = self.waiting.take() {
                        self.take(config, true).await;
                    }
                    continue;
                }
            };
            // the end of a reload is said by the word for the end of a start
            let is_reported = is_asked && self.runtime.is_ready();
            if is_asked {
                log::info!("SIGHUP: reloading the configuration");
            }
            if is_reported {
                service_manager::reloading();
            }
            match self.look(is_asked).await {
                None => {}
                // whatever it is, it replaces what waits
                Some(Ok(config)) => self.take(config, false).await,
                Some(Err(refused)) => {
                    self.waiting = None;
                    self.refuse(&refused);
                }
            }
            if is_reported {
                service_manager::reloaded();
            }
        }
    }

    /// Checks the files on a thread that may block. Returns a change, if there is one.
    async fn look(&mut self, at_once: bool) -> Option<Result<Config, Refused>> {
        let mut watcher = self.watcher.take()?;
        let looked = crate::threads::aside(move || {
            let seen = if at_once { Some(watcher.now()) } else { watcher.tick() };
            (watcher, seen)
        });
        match looked.await {
            Ok((watcher, seen)) => {
                self.watcher = Some(watcher);
                seen
            }
            Err(error) => {
                log::error!("stopped watching the configuration; restart to reload it: {error}");
                None
            }
        }
    }

    /// Puts a change in use. One that the store does not take for a time is kept, and is tried again:
    /// its files may not change again.
    async fn take(&mut self, config: Config, is_repeated: bool) {
        self.waiting = None;
        let changes = Changes::between(&self.started, &self.newest, &config);
        // first, so that new secrets are redacted from everything that is logged
        let variables = Variables::of(&config);
        let secrets = config.secrets(|name| variables.value(name));
        telemetry::logs::redact_also(&secrets);
        let registry = match self.registry(&config, &changes) {
            Ok(registry) => registry,
            Err(error) => return self.refuse(&error.to_string().into()),
        };
        let unknown = access::unknown_names(&self.started.auth, &self.catalogue, &registry);
        match self.tools.exchange(registry, &config).await {
            Ok(()) => {}
            Err(error) if error.is_passing() => {
                if !is_repeated {
                    log::warn!(
                        "the changed configuration is not in use yet: the store does not take its \
                         definitions; trying again every second: {error}"
                    );
                }
                self.waiting = Some(config);
                return;
            }
            Err(error) => {
                return self.refuse(&format!("cannot store the definitions: {error}").into());
            }
        }
        for warning in unknown {
            log::warn!("{warning}");
        }
        for warning in &config.warnings {
            log::warn!("{warning}");
        }
        for section in &changes.at_next_start {
            log::warn!("{section} has changed: restart the server to apply it");
        }
        if let Some(warning) = changes.warning_of_removed() {
            log::warn!("{warning}");
        }
        self.reload_status.take();
        log::info!("reloaded the configuration: {changes}");
        self.newest = Arc::new(config);
    }

    /// Builds the new serving, within the limits of the start. Unchanged definitions are kept:
    /// models keep their connections, tools their permits.
    fn registry(&self, config: &Config, changes: &Changes) -> std::io::Result<Registry> {
        let (outbound, limits) = (&self.outbound, &self.started.limits);
        let mut registry = serving(config, outbound, limits, self.registered.registry.clone())?;
        let before = self.runtime.registry();
        if changes.leaves("models") {
            registry.models.clone_from(&before.models);
        }
        for (name, tool) in &mut registry.tools {
            if let Some(known) = before.tools.get(name)
                && changes.leaves_one("tools", name)
            {
                let made = ToolDefinition::clone(tool);
                *tool = Arc::new(ToolDefinition { permits: known.permits.clone(), ..made });
            }
        }
        Ok(registry)
    }

    fn refuse(&self, Refused { problems, warnings }: &Refused) {
        self.reload_status.refuse();
        log::error!("rejected the changed configuration; the previous one stays in use:");
        problems.iter().for_each(|problem| log::error!("{problem}"));
        warnings.iter().for_each(|warning| log::warn!("{warning}"));
    }
}

/// Waits for a SIGHUP, if it is listened to.
async fn hung_up(hangup: Option<&mut Signal>) {
    match hangup {
        Some(hangup) => drop(hangup.recv().await),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_separate_from_problems() {
        let text = "[retention]\nexecutions = \"1h\"\n[sever]\n";
        let found = Config::parse(text, "c.toml").unwrap_err();
        let Refused { problems, warnings } = Refused::of(&found);
        assert_eq!(problems, ["c.toml:3:2: sever: unknown key; did you mean server?"]);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].starts_with("c.toml:2:14: warning: retention.executions: "),
            "{warnings:?}"
        );
    }
}
