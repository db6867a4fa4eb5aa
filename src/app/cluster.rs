//! This server among those that share its database: the listener for the others, and the
//! connections to them.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Weak};

use greenroom_actors::domain::cluster::NodeId;
use greenroom_actors::ports::links::Links;
use greenroom_actors::ports::members::{Members, View};
use greenroom_links::{LinkIdentity, LinkListener, LinkSettings, LinkTls, PeerFigures, TcpLinks};
use tokio::sync::watch;

use crate::config::ClusterConfig;
use crate::telemetry::metrics::{LinkReading, ReadLinks};

/// Addresses of the members.
type Addresses = Arc<BTreeMap<NodeId, String>>;

/// A listener that others cannot connect to yet.
pub(super) struct Listening {
    listener: LinkListener,
    /// Address that the others connect to.
    pub(super) address: String,
}

impl Listening {
    /// Listens where the configuration says; `None` if this server has its store for itself.
    pub(super) fn start(config: &ClusterConfig) -> io::Result<Option<Self>> {
        let Some(listen) = config.listen else { return Ok(None) };
        let tls = config.tls().map(|tls| LinkTls {
            certificate: tls.certificate.to_owned(),
            key: tls.key.to_owned(),
            authority: tls.ca.to_owned(),
        });
        let settings = LinkSettings {
            tls,
            trusted_network: config.trusted_network,
            ..LinkSettings::new(listen.to_string())
        };
        let listener = LinkListener::bind(&settings).map_err(io::Error::other)?;
        let advertised = config.advertise.as_ref().map(|advertised| advertised.0.clone());
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
                let is_new = **before != known;
                if is_new {
                    *before = Arc::new(known);
                }
                is_new
            });
            if views.changed().await.is_err() {
                return;
            }
        }
    });
    addresses
}

fn addresses_in(view: &View) -> BTreeMap<NodeId, String> {
    let members = view.members.iter();
    let with_address = members.filter_map(|it| Some((it.node, it.address.as_ref()?.to_string())));
    with_address.collect()
}
