//! A server from its start to its end.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use greenroom_actors::Runtime;

use super::reloading::Reloading;
use super::signals::Signals;
use super::{Application, service_manager};
use crate::handle::Handle;
use crate::telemetry;
use crate::web::shutdown::Shutdown;

/// Reasons for a server to stop, besides its handles. A process that is the server also reloads its
/// configuration on SIGHUP, and reports to its service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopsOn {
    /// The signals of a process that is this server.
    Signals,
    /// Nothing: the process belongs to another program.
    Handles,
}

/// Reason for the end of a server.
enum End {
    /// A signal of this name.
    Signal(&'static str),
    /// A handle of the server.
    Asked,
    StoreLost(StoreLost),
}

/// Loss of the store to another server, with the reason.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct StoreLost(String);

impl Application {
    /// Returns a handle of the server.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Returns the bound address, with the actual port if 0 was configured.
    pub fn address(&self) -> SocketAddr {
        self.handle.address()
    }

    /// Returns the runtime: executions and generations.
    pub fn runtime(&self) -> &Runtime {
        self.handle.runtime()
    }

    /// Runs until SIGTERM or SIGINT (without a file also SIGHUP), or until a handle stops it, then
    /// drains. A second signal ends the process at once. Also ends, with an error, when another
    /// server has taken the store over.
    pub async fn run_until_stopped(self) -> io::Result<()> {
        Box::pin(self.run_until(StopsOn::Signals)).await
    }

    pub(crate) async fn run_until(self, stops_on: StopsOn) -> io::Result<()> {
        let Self { server, handle: own, shutdown, telemetry, grace, .. } = self;
        let Self { listener, environment, log_writer, reloading, mcp, store_lost, .. } = self;
        let (address, runtime) = (own.address(), own.runtime().clone());
        let mut signals = match stops_on {
            StopsOn::Signals => Some(Signals::listen(reloading.is_some())?),
            StopsOn::Handles => None,
        };
        let handle = server.handle();
        let draining = runtime.clone();
        let stopping = async move {
            let end = tokio::select! {
                name = next(signals.as_mut()) => End::Signal(name),
                () = own.asked_to_stop() => End::Asked,
                reason = store_lost => End::StoreLost(StoreLost(reason)),
                () = reload(reloading) => return Ok(()),
                () = mcp.follow() => return Ok(()),
                () = serve_manager(stops_on, &draining, address) => return Ok(()),
            };
            if stops_on == StopsOn::Signals {
                service_manager::stopping();
            }
            let grace = match &end {
                End::Signal(name) => {
                    log::info!("{name}: stopping; running steps have {grace:?} to end");
                    grace
                }
                End::Asked => {
                    log::info!("asked to stop: running steps have {grace:?} to end");
                    grace
                }
                // another server runs them now
                End::StoreLost(_) => Duration::ZERO,
            };
            tokio::select! {
                () = async {
                    if let Some(listener) = listener {
                        listener.close(&handle).await;
                    }
                    stop(&draining, &shutdown, &handle, grace).await;
                    mcp.stop().await;
                    if let Some(log_writer) = log_writer {
                        log_writer.stop().await;
                    }
                    telemetry.finish(&draining).await;
                } => {}
                name = next(signals.as_mut()) => {
                    log::warn!("{name} again: ending at once, without waiting for running steps");
                    telemetry::logs::drain_screen();
                    std::process::exit(1);
                }
            }
            match end {
                End::Signal(_) | End::Asked => Ok(()),
                End::StoreLost(lost) => Err(io::Error::other(lost)),
            }
        };
        log::info!("greenroom listens at http://{address}");
        log::info!("environment: {environment}");
        let (served, ended) = tokio::join!(server, stopping);
        // the last owner of the store, which is closed here
        runtime.end();
        log::info!("stopped");
        served.and(ended)
    }
}

/// Returns the next signal, of those that are listened to.
async fn next(signals: Option<&mut Signals>) -> &'static str {
    match signals {
        Some(signals) => signals.next().await,
        None => std::future::pending().await,
    }
}

/// Keeps the service manager informed, if this server is what it started. Never resolves.
async fn serve_manager(stops_on: StopsOn, runtime: &Runtime, address: SocketAddr) {
    match stops_on {
        StopsOn::Signals => service_manager::follow(runtime, address).await,
        StopsOn::Handles => std::future::pending().await,
    }
}

/// Reloads the configuration until the future is dropped. Never resolves.
async fn reload(reloading: Option<Reloading>) {
    match reloading {
        Some(reloading) => Box::pin(reloading.run()).await,
        None => std::future::pending().await,
    }
}

/// Drains the runtime first, so that waiting callers are answered, then closes the connections.
async fn stop(runtime: &Runtime, shutdown: &Shutdown, server: &ServerHandle, grace: Duration) {
    runtime.drain(grace).await;
    shutdown.fire();
    server.stop(true).await;
}
