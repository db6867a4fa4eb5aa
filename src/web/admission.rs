//! Admission: how many connections and streams are open at once, in all and from one address.
//!
//! A small reserve accepts connections beyond the limits, so that they get a 503 and can still ask
//! for health and metrics. Clients on loopback, such as a reverse proxy, count toward the total
//! but not per address.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::dev::{Extensions, ServiceRequest};
use greenroom_actors::observe::disconnect::Disconnect;

use crate::api::ApiError;
use crate::api::error::Shortage;
use crate::telemetry::metrics::{Gauged, RequestMeter};
use crate::web::notice::Notice;
use crate::web::peer::Peer;

/// Time after which a connection beyond the limits is closed, used or not. It is closed earlier if
/// newer ones need its place.
const REFUSED_STAY: Duration = Duration::from_secs(2);
/// Paths that are answered even if the server is full.
const CONTROL_PATHS: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// Maximum number of open connections or streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) all: usize,
    /// Per client address; for IPv6, per /64 network.
    pub(crate) per_address: usize,
}

/// Limits of connections and streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AdmissionLimits {
    pub(crate) connections: Bounds,
    /// Connections beyond the limits that are accepted in order to be refused.
    pub(crate) reserve: usize,
    /// Event streams, streams of generations and WebSockets.
    pub(crate) streams: Bounds,
}

/// Admits or refuses connections and streams.
#[derive(Debug)]
pub(crate) struct Admission {
    connections: Arc<Places>,
    streams: Arc<Places>,
    refused: Arc<RefusedPlaces>,
}

/// Connections beyond the limits. They use at most half of the reserve, so that the next one always
/// finds a place, even if clients keep the others open.
#[derive(Default)]
struct RefusedPlaces {
    room: usize,
    open: Mutex<RefusedOpen>,
}

#[derive(Default)]
struct RefusedOpen {
    /// Number of refused connections so far.
    count: u64,
    /// By number, so oldest first.
    disconnects: BTreeMap<u64, Disconnect>,
}

/// Guard of a place among the refused connections.
#[derive(Debug)]
struct RefusedPlace {
    places: Arc<RefusedPlaces>,
    number: u64,
}

/// Open connections or streams, and their limits.
#[derive(Debug)]
struct Places {
    what: &'static str,
    bounds: Bounds,
    /// Reasons of refusals: the total, or the address, is at its limit.
    of_all: Shortage,
    of_address: Shortage,
    open: Mutex<Open>,
    notice: Notice,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// Guard of a counted connection or stream.
#[derive(Debug)]
pub(crate) struct Admitted {
    places: Arc<Places>,
    address: Option<IpAddr>,
}

/// Outcome of admission, stored with the connection.
#[derive(Debug)]
enum ConnectionState {
    Admitted { _place: Admitted, _counted: Option<Gauged> },
    Refused { shortage: Shortage, _place: Option<RefusedPlace> },
}

impl Admission {
    pub(crate) fn new(limits: AdmissionLimits) -> Self {
        let AdmissionLimits { connections, reserve, streams } = limits;
        let connections = Places {
            what: "connections",
            bounds: connections,
            of_all: Shortage::Connections,
            of_address: Shortage::ConnectionsOfAddress,
            open: Mutex::default(),
            notice: Notice::new(),
        };
        let streams = Places {
            what: "streams",
            bounds: streams,
            of_all: Shortage::Streams,
            of_address: Shortage::StreamsOfAddress,
            open: Mutex::default(),
            notice: Notice::new(),
        };
        let refused = RefusedPlaces { room: (reserve / 2).max(1), ..RefusedPlaces::default() };
        let (connections, streams) = (Arc::new(connections), Arc::new(streams));
        Self { connections, streams, refused: Arc::new(refused) }
    }

    /// Admits a connection or marks it as refused. For `HttpServer::on_connect`, after
    /// [`Peer::remember`].
    pub(crate) fn connect(
        &self,
        connection: &dyn Any,
        extensions: &mut Extensions,
        meter: Option<&RequestMeter>,
    ) {
        let stream = connection.downcast_ref::<actix_web::rt::net::TcpStream>();
        let address = stream.and_then(|stream| stream.peer_addr().ok()).map(|peer| peer.ip());
        let state = match self.connections.take(address) {
            Ok(_place) => {
                ConnectionState::Admitted { _place, _counted: meter.map(RequestMeter::connection) }
            }
            Err(shortage) => {
                if let Some(meter) = meter {
                    meter.refused_connection();
                }
                self.connections.log_refusal();
                let disconnect = extensions.get::<Peer>().map(Peer::disconnect);
                let _place = disconnect.map(|disconnect| self.refused.take(disconnect));
                ConnectionState::Refused { shortage, _place }
            }
        };
        extensions.insert(state);
    }

    /// Admits a stream; refuses it if too many are open.
    pub(crate) fn stream(
        &self,
        request: &HttpRequest,
        meter: Option<&RequestMeter>,
    ) -> Result<Admitted, ApiError> {
        let address = request.peer_addr().map(|peer| peer.ip());
        self.streams.take(address).map_err(|shortage| {
            if let Some(meter) = meter {
                meter.refused_stream();
            }
            self.streams.log_refusal();
            ApiError::AtCapacity(shortage)
        })
    }
}

/// Returns true for paths that are answered even if the server is full.
pub(crate) fn is_control(path: &str) -> bool {
    CONTROL_PATHS.contains(&path)
}

/// Returns true for the path of a link to an ask, `/inbox/link/:token`.
pub(crate) fn is_link(path: &str) -> bool {
    path.strip_prefix("/inbox/link/").is_some_and(|token| !token.contains('/'))
}

/// Returns the refusal of a request on a connection beyond the limits.
pub(crate) fn refusal_of(request: &ServiceRequest) -> Option<ApiError> {
    match request.conn_data::<ConnectionState>()? {
        ConnectionState::Admitted { .. } => None,
        ConnectionState::Refused { .. } if is_control(request.path()) => None,
        ConnectionState::Refused { shortage, .. } => Some(ApiError::AtCapacity(*shortage)),
    }
}

impl RefusedPlaces {
    /// Keeps a refused connection open for a while, and closes the oldest ones if there are more
    /// than there is room for, so that the next one can be accepted and refused.
    fn take(self: &Arc<Self>, disconnect: Disconnect) -> RefusedPlace {
        let late = Arc::clone(&disconnect);
        actix_web::rt::spawn(async move {
            tokio::time::sleep(REFUSED_STAY).await;
            late();
        });
        let mut open = self.open();
        let number = open.count;
        open.count += 1;
        open.disconnects.insert(number, disconnect);
        let mut crowded_out = Vec::new();
        while open.disconnects.len() > self.room
            && let Some((_, oldest)) = open.disconnects.pop_first()
        {
            crowded_out.push(oldest);
        }
        drop(open);
        crowded_out.into_iter().for_each(|disconnect| disconnect());
        RefusedPlace { places: Arc::clone(self), number }
    }

    fn open(&self) -> MutexGuard<'_, RefusedOpen> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RefusedPlaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.open().disconnects.len();
        f.debug_struct("RefusedPlaces").field("room", &self.room).field("open", &open).finish()
    }
}

impl Drop for RefusedPlace {
    fn drop(&mut self) {
        self.places.open().disconnects.remove(&self.number);
    }
}

impl Places {
    fn take(self: &Arc<Self>, address: Option<IpAddr>) -> Result<Admitted, Shortage> {
        let address = address.and_then(counted_address);
        let mut open = self.open();
        if open.all >= self.bounds.all {
            return Err(self.of_all);
        }
        if let Some(address) = address {
            let of_address = open.by_address.entry(address).or_default();
            if *of_address >= self.bounds.per_address {
                return Err(self.of_address);
            }
            *of_address += 1;
        }
        open.all += 1;
        Ok(Admitted { places: Arc::clone(self), address })
    }

    /// Logs a refusal, rate-limited.
    fn log_refusal(&self) {
        self.notice.refused(|| {
            let Self { what, bounds: Bounds { all, per_address }, .. } = self;
            let open = self.open().all;
            format!("refusing new {what}: {open} are open (limit {all}, {per_address} per address)")
        });
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut open = self.places.open();
        open.all -= 1;
        if let Some(address) = self.address
            && let Some(of_address) = open.by_address.get_mut(&address)
        {
            *of_address -= 1;
            if *of_address == 0 {
                open.by_address.remove(&address);
            }
        }
    }
}

/// Returns the address or network to count under; `None` for loopback, which is not limited per
/// address.
fn counted_address(address: IpAddr) -> Option<IpAddr> {
    let address = address.to_canonical();
    let counted = match address {
        IpAddr::V4(_) => address,
        // A client with one address of a network has all of them.
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    };
    (!address.is_loopback()).then_some(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(all: usize, per_address: usize) -> Arc<Places> {
        let bounds = Bounds { all, per_address };
        let limits = AdmissionLimits { connections: bounds, reserve: 1, streams: bounds };
        Admission::new(limits).streams
    }

    impl Places {
        /// Returns the number of open places and of addresses.
        fn counts(&self) -> (usize, usize) {
            let open = self.open();
            (open.all, open.by_address.len())
        }
    }

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn places_are_limited_in_total_and_per_address() {
        let places = places(4, 2);
        let first = places.take(address("192.0.2.1")).unwrap();
        let _second = places.take(address("::ffff:192.0.2.1")).unwrap();
        assert_eq!(places.take(address("192.0.2.1")).unwrap_err(), Shortage::StreamsOfAddress);
        let _third = places.take(address("192.0.2.2")).unwrap();
        let _unknown = places.take(None).unwrap();
        assert_eq!(places.take(address("192.0.2.3")).unwrap_err(), Shortage::Streams);
        drop(first);
        let _again = places.take(address("192.0.2.1")).unwrap();
        assert_eq!(places.take(None).unwrap_err(), Shortage::Streams);
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        let places = places(10, 1);
        let _first = places.take(address("2001:db8:0:1::1")).unwrap();
        assert_eq!(
            places.take(address("2001:db8:0:1:ffff::2")).unwrap_err(),
            Shortage::StreamsOfAddress
        );
        let _other = places.take(address("2001:db8:0:2::1")).unwrap();
    }

    #[test]
    fn loopback_clients_have_no_limit_per_address() {
        let places = places(3, 1);
        let taken: Vec<_> = ["127.0.0.1", "127.0.0.1", "::1"]
            .map(|text| places.take(address(text)).unwrap())
            .into_iter()
            .collect();
        assert_eq!(places.take(address("127.0.0.1")).unwrap_err(), Shortage::Streams);
        drop(taken);
        assert_eq!(places.counts(), (0, 0));
    }

    #[actix_web::test]
    async fn the_oldest_refused_connections_are_closed_for_newer_ones() {
        let places = Arc::new(RefusedPlaces { room: 2, ..RefusedPlaces::default() });
        let gone = Arc::new(Mutex::new(Vec::new()));
        let take = |name: &'static str| {
            let gone = Arc::clone(&gone);
            places.take(Arc::new(move || gone.lock().unwrap().push(name)))
        };
        let gone_so_far = || gone.lock().unwrap().clone();
        let _first = take("first");
        let second = take("second");
        assert!(gone_so_far().is_empty());
        let _third = take("third");
        assert_eq!(gone_so_far(), ["first"]);
        drop(second);
        let _fourth = take("fourth");
        assert_eq!(gone_so_far(), ["first"], "one has closed by itself");
        let _fifth = take("fifth");
        assert_eq!(gone_so_far(), ["first", "third"]);
    }

    #[test]
    fn closed_connections_are_no_longer_counted() {
        let places = places(1, 1);
        for round in 0..300_u16 {
            let [high, low] = round.to_be_bytes();
            drop(places.take(Some(IpAddr::from([192, 0, high, low]))).unwrap());
        }
        assert_eq!(places.counts(), (0, 0));
    }
}
