//! The server: its listener and its workers.

use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};
use socket2::{Domain, Protocol, Socket, Type};

use crate::handle::Handle;
use crate::web::admission::AdmissionLimits;
#[cfg(feature = "ui")]
use crate::web::browse::Browser;
#[cfg(feature = "ui")]
use crate::web::console::Console;
use crate::web::docs::Docs;
use crate::web::peer::Peer;
use crate::web::request_metrics::count_requests;
use crate::web::routes;
use crate::web::settings::{Settings, WebConfig};
use crate::web::shutdown::Shutdown;
use crate::web::ws::Channels;

/// Length of the queue of connections to accept.
const BACKLOG: i32 = 1024;
/// Timeout for the head of a request.
const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Binds the address. Connections are queued from now on until [`serve`] runs.
pub(crate) fn listen(config: &WebConfig) -> io::Result<TcpListener> {
    let host = config.host.trim_matches(['[', ']']);
    let address = (host, config.port)
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address")))?;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Returns the server of a listener; it runs when it is awaited. The caller handles signals: to
/// stop, fire `shutdown` and then stop the server through its handle.
pub(crate) fn serve(
    listener: TcpListener,
    handle: Handle,
    config: WebConfig,
    shutdown: Shutdown,
) -> io::Result<Server> {
    let workers = config.workers.max(1);
    let AdmissionLimits { connections, reserve, streams: _ } = config.admission;
    let connections = (connections.all + reserve).div_ceil(workers);
    let write_timeout = config.write_timeout;
    let keep_alive = config.keep_alive;
    let grace = config.shutdown_timeout.as_secs();
    let (runtime, handle) = (web::Data::new(handle.runtime().clone()), web::Data::new(handle));
    let stops = web::Data::new(shutdown.clone());
    let settings = web::Data::new(Settings::of(config, shutdown));
    let (docs, channels) = (web::Data::new(Docs::default()), web::Data::new(Channels::default()));
    #[cfg(feature = "ui")]
    let pages = (web::Data::new(Console::default()), web::Data::new(Browser::default()));
    let connected = settings.clone();
    let server = HttpServer::new(move || {
        let application = App::new();
        #[cfg(feature = "ui")]
        let application = application.app_data(pages.0.clone()).app_data(pages.1.clone());
        application
            .app_data(runtime.clone())
            .app_data(handle.clone())
            .app_data(settings.clone())
            .app_data(stops.clone())
            .app_data(docs.clone())
            .app_data(channels.clone())
            .wrap(from_fn(count_requests))
            .configure(|service| routes::bind(service, &settings.config))
    })
    .on_connect(move |connection, extensions| {
        Peer::limit_writes(connection, write_timeout);
        Peer::remember(connection, extensions);
        connected.admission.connect(connection, extensions, connected.requests());
    })
    .workers(workers)
    .max_connections(connections)
    .keep_alive(keep_alive)
    .client_request_timeout(REQUEST_HEAD_TIMEOUT)
    .tcp_nodelay(true)
    .disable_signals()
    .shutdown_timeout(grace)
    .listen(listener)?
    .run();
    Ok(server)
}
