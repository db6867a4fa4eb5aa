//! Admission: how many connections and streams are open at once, in all and from one address.
//!
//! A connection beyond the bounds is still taken, from a small reserve: it is told so, and whether
//! the server lives can be asked over it. Programs of the same machine, a reverse proxy for one,
//! are counted in all, and not by their address.

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

/// How long a connection beyond the bounds may stay, asked something or not, unless more come than
/// there is room for.
const REFUSED_STAY: Duration = Duration::from_secs(2);
/// What is answered when the server is full, too.
const CONTROL_PATHS: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// How much of one kind may be open at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) all: usize,
    /// From one address: of IPv6, from one network of 64 bits.
    pub(crate) per_address: usize,
}

/// The bounds of everything that stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AdmissionLimits {
    pub(crate) connections: Bounds,
    /// Connections beyond the bounds that are taken to be refused.
    pub(crate) reserve: usize,
    /// Event streams, streams of generations and WebSockets.
    pub(crate) streams: Bounds,
}

/// Lets connections and streams in, or not.
#[derive(Debug)]
pub(crate) struct Admission {
    connections: Arc<Places>,
    streams: Arc<Places>,
    refused: Arc<RefusedPlaces>,
}

/// The connections beyond the bounds. They take up half of the reserve at most, so that there is
/// always a place for the next one, whoever holds the others.
#[derive(Default)]
struct RefusedPlaces {
    room: usize,
    open: Mutex<RefusedOpen>,
}

#[derive(Default)]
struct RefusedOpen {
    /// How many there were so far.
    count: u64,
    /// The oldest first, each with what ends it.
    disconnects: BTreeMap<u64, Disconnect>,
}

/// Has a place among the refused while it lives.
#[derive(Debug)]
struct RefusedPlace {
    places: Arc<RefusedPlaces>,
    number: u64,
}

/// What one kind has open.
#[derive(Debug)]
struct Places {
    what: &'static str,
    bounds: Bounds,
    /// What a refusal says, by the bound that was reached.
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

/// Counts as open while it lives.
#[derive(Debug)]
pub(crate) struct Admitted {
    places: Arc<Places>,
    address: Option<IpAddr>,
}

/// What a connection is, kept with it.
#[derive(Debug)]
enum Standing {
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

    /// Takes a connection in. For `HttpServer::on_connect`, after [`Peer::remember`].
    pub(crate) fn connect(
        &self,
        connection: &dyn Any,
        extensions: &mut Extensions,
        meter: Option<&RequestMeter>,
    ) {
        let stream = connection.downcast_ref::<actix_web::rt::net::TcpStream>();
        let address = stream.and_then(|stream| stream.peer_addr().ok()).map(|peer| peer.ip());
        let standing = match self.connections.take(address) {
            Ok(_place) => {
                Standing::Admitted { _place, _counted: meter.map(RequestMeter::connection) }
            }
            Err(shortage) => {
                if let Some(meter) = meter {
                    meter.refused_connection();
                }
                self.connections.tell();
                let disconnect = extensions.get::<Peer>().map(Peer::disconnect);
                let _place = disconnect.map(|disconnect| self.refused.take(disconnect));
                Standing::Refused { shortage, _place }
            }
        };
        extensions.insert(standing);
    }

    /// Takes a stream in; refused when there are too many.
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
            self.streams.tell();
            ApiError::AtCapacity(shortage)
        })
    }
}

/// Whether it is answered when the server is full, too.
pub(crate) fn is_control(path: &str) -> bool {
    CONTROL_PATHS.contains(&path)
}

/// What a request over a connection beyond the bounds is answered.
pub(crate) fn refusal_of(request: &ServiceRequest) -> Option<ApiError> {
    match request.conn_data::<Standing>()? {
        Standing::Admitted { .. } => None,
        Standing::Refused { .. } if is_control(request.path()) => None,
        Standing::Refused { shortage, .. } => Some(ApiError::AtCapacity(*shortage)),
    }
}

impl RefusedPlaces {
    /// Keeps a connection that was not let in for a while, and ends the oldest of those for which
    /// there is no room any more, so that the next one can be told so.
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

    /// Says that one was refused.
    fn tell(&self) {
        self.notice.refused(|| {
            let Self { what, bounds: Bounds { all, per_address }, .. } = self;
            let open = self.open().all;
            format!(
                "{what} are refused: {open} are open (at most {all}, and {per_address} from one \
                 address)"
            )
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

/// What an address counts as; `None`: it is one of this machine, and not counted apart.
fn counted_address(address: IpAddr) -> Option<IpAddr> {
    let address = address.to_canonical();
    let counted = match address {
        IpAddr::V4(_) => address,
        // Whoever has one address of a network has all of them.
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
        /// What is open, and from how many addresses.
        fn counts(&self) -> (usize, usize) {
            let open = self.open();
            (open.all, open.by_address.len())
        }
    }

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn places_are_bounded_in_all_and_by_address() {
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
    fn programs_of_this_machine_are_counted_in_all_alone() {
        let places = places(3, 1);
        let taken: Vec<_> = ["127.0.0.1", "127.0.0.1", "::1"]
            .map(|text| places.take(address(text)).unwrap())
            .into_iter()
            .collect();
        assert_eq!(places.take(address("127.0.0.1")).unwrap_err(), Shortage::Streams);
        drop(taken);
        assert_eq!(places.counts(), (0, 0));
    }

    /// The refused ones that are told to go, in their order.
    #[actix_web::test]
    async fn the_oldest_of_the_refused_make_room_for_the_next() {
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
        assert_eq!(gone_so_far(), ["first"], "one has left by itself");
        let _fifth = take("fifth");
        assert_eq!(gone_so_far(), ["first", "third"]);
    }

    #[test]
    fn what_is_closed_is_forgotten() {
        let places = places(1, 1);
        for round in 0..300_u16 {
            let [high, low] = round.to_be_bytes();
            drop(places.take(Some(IpAddr::from([192, 0, high, low]))).unwrap());
        }
        assert_eq!(places.counts(), (0, 0));
    }
}
