//! Settings that Rust code and the command line have chosen, which stay when the file is read again.

use super::{
    AuthConfig, Config, ConsoleConfig, DocsConfig, InboxConfig, MetricsConfig, OpenAiFace,
    TelemetryConfig,
};

/// Settings as a file has them, before Rust code changes them. A server uses those of its start until
/// it ends, and checks each change of the file together with those that code has changed.
#[derive(Debug, Clone)]
pub(super) struct AsRead {
    auth: AuthConfig,
    console: ConsoleConfig,
    docs: DocsConfig,
    host: String,
    inbox: InboxConfig,
    metrics: MetricsConfig,
    openai: Option<OpenAiFace>,
    telemetry: TelemetryConfig,
}

impl AsRead {
    pub(super) fn of(config: &Config) -> Self {
        Self {
            auth: config.auth.clone(),
            console: config.console.clone(),
            docs: config.docs.clone(),
            host: config.server.host.clone(),
            inbox: config.inbox.clone(),
            metrics: config.metrics.clone(),
            openai: config.faces.openai.clone(),
            telemetry: config.telemetry.clone(),
        }
    }
}

impl Config {
    /// Copies the settings that code or the command line chose at the start, so that the file is
    /// checked together with them, as it will be at the next start.
    pub(crate) fn keep_choices_of(&mut self, started: &Self) {
        self.environment = started.environment;
        self.coded_retention.clone_from(&started.coded_retention);
        self.retention.workflows.extend(started.coded_retention.clone());
        for (name, tool) in started.coded_tools() {
            self.add_tool(name, tool.clone());
        }
        for (name, server) in started.coded_mcp() {
            self.add_mcp(name, server.clone());
        }
        self.coded_routes.clone_from(&started.coded_routes);
        self.routes.extend(started.coded_routes.iter().cloned());
        self.coded_faces.clone_from(&started.coded_faces);
        self.faces.mcp.extend(started.coded_faces.iter().cloned());
        // also where the file has changed it: a password for the next start may be set only then
        self.store.clone_from(&started.store);
        let mut is_chosen = started.host_spot.as_ref().is_some_and(|spot| spot.line == 0);
        if let Some(read) = &started.as_read {
            is_chosen |= started.server.host != read.host;
            keep(&mut self.auth, &read.auth, &started.auth);
            keep(&mut self.console, &read.console, &started.console);
            keep(&mut self.docs, &read.docs, &started.docs);
            keep(&mut self.inbox, &read.inbox, &started.inbox);
            keep(&mut self.metrics, &read.metrics, &started.metrics);
            keep(&mut self.faces.openai, &read.openai, &started.faces.openai);
            keep(&mut self.telemetry, &read.telemetry, &started.telemetry);
        }
        if is_chosen {
            self.host_spot.clone_from(&started.host_spot);
            self.server.host.clone_from(&started.server.host);
        }
    }
}

/// Copies a setting that code has changed since the file was read.
fn keep<T: Clone + PartialEq>(new: &mut T, read: &T, started: &T) {
    if started != read {
        new.clone_from(started);
    }
}
