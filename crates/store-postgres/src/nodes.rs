//! The servers that a database knows, for people. Looking at them changes nothing, and needs none of
//! them to answer.

mod leaving;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::ports::members::Lease;
use greenroom_actors::threads::Driver;
use tokio_postgres::{Client, Row};

pub use self::leaving::LeaveError;
use crate::connector::{Connector, Purpose};
use crate::membership::BEAT;
use crate::migration::{self, Schema};
use crate::open::{OpenError, Use, checks, start_driver};
use crate::replication::CanceledWaits;
use crate::settings::PostgresSettings;

/// Reads the servers. One that was fenced is shown until a server of the same name starts.
const NODES: &str = "SELECT n.node, n.name, n.version, n.address, n.state, n.lease, n.beat,
        (SELECT count(*) FROM slots s WHERE s.node = n.node), n.unreachable
    FROM nodes n WHERE n.state < 2
        OR NOT EXISTS (SELECT FROM nodes o WHERE o.name = n.name AND o.node > n.node)
    ORDER BY n.name, n.node";

const UNOWNED: &str = "SELECT count(*) FROM slots WHERE node IS NULL";

/// Looks, each one beat after the last, that a server has to show a sign of life.
const LOOKS_MAX: u32 = 3;

/// A connection that looks at the servers of a database.
#[derive(Debug)]
pub struct NodeReader {
    driver: Driver,
    client: Arc<Client>,
}

/// The servers of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes {
    /// The servers by name; the newer ones of a name last.
    pub nodes: Vec<Node>,
    /// Slots that have no owner: all of them while a server has the database for itself.
    pub slots_unowned: u64,
}

/// A server, as the database has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Number of this process.
    pub node: i64,
    pub name: String,
    pub version: String,
    /// Address for the other servers, as `host:port`.
    pub address: Option<String>,
    pub state: NodeState,
    /// `None` for a server that has the database for itself.
    pub lease: Option<Duration>,
    /// True if it has shown a sign of life between two looks.
    pub is_beating: bool,
    pub slots: u64,
    /// Numbers of the servers that it has no connection to.
    pub unreachable: Vec<i64>,
    beat: i64,
}

/// State of a server in its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    Active,
    /// Hands its slots over.
    Leaving,
    /// Was declared gone by another one.
    Gone,
}

impl NodeReader {
    /// Connects to a database that has the tables of this version; blocks.
    pub fn open(settings: &PostgresSettings) -> Result<Self, OpenError> {
        let driver = start_driver()?;
        let connector = Connector::new(settings, driver.handle().clone())
            .map_err(|problem| OpenError::Authorities(problem.to_string()))?;
        let address = settings.address.clone();
        let connecting = async move {
            let name = "greenroom/nodes".to_owned();
            let waits = CanceledWaits::default();
            let connected = connector.connect_to_any(name, Purpose::Beat, waits).await;
            let (mut client, _) =
                connected.map_err(|failure| OpenError::of_connecting(failure, &address))?;
            check(&mut client).await?;
            Ok::<_, OpenError>(client)
        };
        let client = driver.run(connecting, None).ok_or_else(panicked)??;
        Ok(Self { driver, client: Arc::new(client) })
    }

    /// Looks at the servers, at least twice if there are any; blocks.
    pub fn look(&self) -> Result<Nodes, OpenError> {
        let client = Arc::clone(&self.client);
        self.driver.run(async move { look(&client).await }, None).ok_or_else(panicked)?
    }
}

fn panicked() -> OpenError {
    OpenError::Failed("it panicked".to_owned())
}

/// Checks that a server of this version could use the tables.
async fn check(client: &mut Client) -> Result<(), OpenError> {
    let transaction = client.transaction().await?;
    let tables = migration::find(&transaction).await?.ok_or(OpenError::Missing)?;
    let (found, known) = (tables.version, Schema::OWN.version());
    if found < known {
        return Err(OpenError::Older { found, known });
    }
    checks::allow_version(tables, Use::Serving, Schema::OWN)
}

/// Looks until every server has shown a sign of life, or has had the time for that. Numbers are
/// compared, and no clocks.
async fn look(client: &Client) -> Result<Nodes, OpenError> {
    let first = read(client).await?;
    let beats: HashMap<i64, i64> = first.nodes.iter().map(|it| (it.node, it.beat)).collect();
    let Some(every) = first.beat_interval() else { return Ok(first) };
    let mut looks = 0;
    loop {
        tokio::time::sleep(every).await;
        let mut nodes = read(client).await?;
        nodes.note_beats(&beats);
        looks += 1;
        if looks == LOOKS_MAX || nodes.live().all(|node| node.is_beating) {
            return Ok(nodes);
        }
    }
}

async fn read(client: &Client) -> Result<Nodes, OpenError> {
    let rows = client.query(NODES, &[]).await?;
    let nodes = rows.iter().map(node_of).collect::<Result<_, _>>()?;
    let unowned: i64 = client.query_one(UNOWNED, &[]).await?.try_get(0)?;
    Ok(Nodes { nodes, slots_unowned: unowned.unsigned_abs() })
}

fn node_of(row: &Row) -> Result<Node, tokio_postgres::Error> {
    let lease: Option<i64> = row.try_get(5)?;
    Ok(Node {
        node: row.try_get(0)?,
        name: row.try_get(1)?,
        version: row.try_get(2)?,
        address: row.try_get(3)?,
        state: match row.try_get::<_, i16>(4)? {
            0 => NodeState::Active,
            1 => NodeState::Leaving,
            _ => NodeState::Gone,
        },
        lease: lease.map(|ms| Duration::from_millis(ms.unsigned_abs())),
        is_beating: false,
        beat: row.try_get(6)?,
        slots: row.try_get::<_, i64>(7)?.unsigned_abs(),
        unreachable: row.try_get(8)?,
    })
}

impl Nodes {
    /// Returns the servers that were not declared gone.
    fn live(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.state != NodeState::Gone)
    }

    /// Returns the server that has the database for itself.
    pub fn alone(&self) -> Option<&Node> {
        self.live().find(|node| node.lease.is_none())
    }

    /// Returns the names of the servers that a server which is alive has no connection to, as far as
    /// these were not declared gone.
    pub fn unreachable_from<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a str> {
        let others =
            self.live().filter(|other| node.is_beating && node.unreachable.contains(&other.node));
        others.map(|other| other.name.as_str())
    }

    /// Returns the longest time between two beats of a server; `None` if there are no servers.
    fn beat_interval(&self) -> Option<Duration> {
        self.live().map(|node| node.lease.map_or(BEAT, |lease| Lease::new(lease).interval())).max()
    }

    /// Notes which servers have another beat than before, or were not there.
    fn note_beats(&mut self, before: &HashMap<i64, i64>) {
        for node in &mut self.nodes {
            let is_new = before.get(&node.node) != Some(&node.beat);
            node.is_beating = is_new && node.state != NodeState::Gone;
        }
    }
}
