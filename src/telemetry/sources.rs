//! Sources of a scrape of the metrics. Also compiled without the feature `metrics`.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use greenroom_actors::Runtime;
use greenroom_actors::domain::cluster::NodeId;

use crate::mcp_servers::McpServers;
use crate::reload::ReloadStatus;
use crate::telemetry::export::ExporterStats;

/// Sources of readings.
pub struct Sources {
    pub runtime: Runtime,
    /// `None` for a store without files.
    pub store: Option<ReadStore>,
    /// `None` without other servers.
    pub links: Option<ReadLinks>,
    /// `None` when export is off.
    pub exporter: Option<ExporterStats>,
    pub reload_status: Arc<ReloadStatus>,
    /// MCP servers whose tools are used; `None` if there are none.
    pub servers: Option<Arc<dyn McpServers>>,
}

/// Reads the figures of the store.
pub type ReadStore = Box<dyn Fn() -> StoreReading + Send + Sync>;

/// Queue length and sizes of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreReading {
    /// Requests queued for the writer.
    pub queued: usize,
    pub database_bytes: u64,
    /// `None` for a store whose log is another server's.
    pub wal_bytes: Option<u64>,
}

/// Reads the connections to the other servers.
pub type ReadLinks = Box<dyn Fn() -> Vec<LinkReading> + Send + Sync>;

/// The connection to one other server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkReading {
    pub node: NodeId,
    pub is_connected: bool,
    /// Size of the requests that wait to be sent.
    pub queued_bytes: usize,
}

/// Bytes held for clients, counted by the buffers themselves.
#[derive(Debug, Clone, Default)]
pub struct HeldBytes {
    /// Bytes of streams and WebSockets.
    pub streams: Arc<AtomicUsize>,
    /// Bytes of large answers.
    pub answers: Arc<AtomicUsize>,
    /// Bytes of request bodies.
    pub bodies: Arc<AtomicUsize>,
}
