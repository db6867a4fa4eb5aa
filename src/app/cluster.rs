//! This server among those that share its database: the listener for the others, and the
//! connections to them.

use std::io;
use std::sync::{Arc, Weak};

use greenroom_actors::ports::links::Links;
use greenroom_actors::ports::members::{Member, Members, View};
use greenroom_links::{
    Addresses, LinkIdentity, LinkListener, LinkSettings, LinkTls, PeerAddress, PeerFigures,
    TcpLinks,
};
use tokio::sync::watch;

use crate::config::{ClusterTls, Config};
use crate::telemetry::sources::{LinkReading, ReadLinks};

/// Room in a message beside the values of a caller or of an execution.
const MESSAGE_BYTES_BESIDE: usize = 16 * 1024 * 1024;

/// A listener that others cannot connect to yet.
pub(super) struct Listening {
    listener: LinkListener,
    /// Address that the others connect to.
    pub(super) address: String,
}

impl Listening {
    /// Listens where the configuration says; `None` if this server has its store for itself.
    pub(super) fn start(config: &Config) -> io::Result<Option<Self>> {
        let cluster = &config.cluster;
        let Some(listen) = cluster.listen else { return Ok(None) };
        let settings = LinkSettings {
            tls: cluster.tls().map(tls_of),
            trusted_network: cluster.trusted_network,
            message_bytes_max: message_bytes_max(config),
            ..LinkSettings::new(listen.to_string())
        };
        let listener = LinkListener::bind(&settings).map_err(io::Error::other)?;
        let advertised = cluster.advertise.as_ref().map(|advertised| advertised.0.clone());
        let address = advertised.unwrap_or_else(|| listener.address().to_string());
        Ok(Some(Self { listener, address }))
    }

    /// Connects to the other members; returns the connections, and what reads their figures.
    pub(super) fn connect(
        self,
        members: Arc<dyn Members>,
        identity: &LinkIdentity,
    ) -> io::Result<(Arc<dyn Links>, ReadLinks)> {
        let links = self.listener.start(identity, addresses(members.views()));
        let links: TcpLinks = links.map_err(io::Error::other)?;
        log::info!("other servers of the database reach this one at {}", self.address);
        let links = Arc::new(links);
        // weak, because the runtime closes them
        let read = Arc::downgrade(&links);
        actix_web::rt::spawn(note_unreachable(members, Weak::clone(&read)));
        let read = move || read.upgrade().map_or_else(Vec::new, |links| readings_of(&links));
        Ok((links, Box::new(read)))
    }
}

/// Returns the files as links take them.
pub(super) fn tls_of(files: ClusterTls<'_>) -> LinkTls {
    let ClusterTls { certificate, key, ca } = files;
    LinkTls { certificate: certificate.to_owned(), key: key.to_owned(), authority: ca.to_owned() }
}

/// Returns the maximum size of what servers send to each other: a body with values, or the values of
/// an execution.
fn message_bytes_max(config: &Config) -> u32 {
    let values = config.limits.runtime.machine.execution_bytes_max;
    let values = usize::try_from(values).unwrap_or(usize::MAX).max(config.server.body_bytes_max);
    u32::try_from(values.saturating_add(MESSAGE_BYTES_BESIDE)).unwrap_or(u32::MAX)
}

/// Notes the members that this server has no connection to, with each view of them.
async fn note_unreachable(members: Arc<dyn Members>, links: Weak<TcpLinks>) {
    let mut views = members.views();
    while views.changed().await.is_ok() {
        let Some(links) = links.upgrade() else { return };
        let figures = links.figures().into_iter();
        let unreachable = figures.filter(|(_, figures)| !figures.is_connected);
        members.note_unreachable(unreachable.map(|(node, _)| node).collect());
    }
}

fn readings_of(links: &TcpLinks) -> Vec<LinkReading> {
    let figures = links.figures().into_iter();
    let reading = |(node, PeerFigures { is_connected, queued_bytes, .. })| LinkReading {
        node,
        is_connected,
        queued_bytes,
    };
    figures.map(reading).collect()
}

/// Returns the addresses of the members, as long as there are views of them.
fn addresses(mut views: watch::Receiver<Option<Arc<View>>>) -> watch::Receiver<Addresses> {
    let (sender, addresses) = watch::channel(Addresses::default());
    actix_web::rt::spawn(async move {
        loop {
            let known = views.borrow_and_update().as_deref().map(addresses_in).unwrap_or_default();
            sender.send_if_modified(|before| {
                let is_new = *before != known;
                *before = known;
                is_new
            });
            if views.changed().await.is_err() {
                return;
            }
        }
    });
    addresses
}

fn addresses_in(view: &View) -> Addresses {
    let address = |member: &Member| {
        let (name, address) = (Arc::clone(&member.name), Arc::clone(member.address.as_ref()?));
        Some((member.node, PeerAddress { name, address }))
    };
    Arc::new(view.members.iter().filter_map(address).collect())
}
