//! Three servers over one database.

use std::fmt;
use std::net::SocketAddr;
use std::process::Command;
use std::str::FromStr;
use std::time::{Duration, Instant};

use support::client::Wire;
use support::postgres;
use support::server::Server;
use tempfile::TempDir;

use crate::Outcome;
use crate::share::wait_until_shared;

const SERVERS: usize = 3;
/// For each slot, the number of servers that joined before its owner.
const OWNERS: &str = "SELECT (SELECT count(*) FROM nodes n WHERE n.node < s.node)
    FROM slots s ORDER BY slot";
const CONFIG: &str = include_str!("../http/greenroom.toml");
const NAP: &str = "
[[workflows.nap.steps]]
id = \"nap\"
type = \"andSleep\"
duration = \"1h\"
";
/// Time in which executions must be unloaded.
const UNLOAD_TIMEOUT: Duration = Duration::from_secs(120);
/// Time in which their number must have stayed the same.
const STILL: Duration = Duration::from_secs(3);

/// The way in which a server is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Its process ends without a word.
    Killed,
    /// Its process stands still.
    Paused,
}

impl Loss {
    /// Returns the target of the time until the first answer for each of its slots.
    pub(crate) fn target(self, lease: Duration) -> Duration {
        match self {
            Self::Killed => lease * 2 / 3,
            Self::Paused => lease + Duration::from_secs(2),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Killed => "killed",
            Self::Paused => "paused",
        })
    }
}

impl FromStr for Loss {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Killed, Self::Paused];
        let found = all.into_iter().find(|loss| loss.to_string() == text);
        found.ok_or_else(|| format!("unknown loss {text}"))
    }
}

/// Servers that have joined in this order, and their folders.
pub(crate) struct Cluster {
    servers: Vec<(Server, TempDir)>,
    /// Index of the server that has each slot.
    pub(crate) owners: Vec<usize>,
}

impl Cluster {
    /// Starts servers over a new schema, and waits until they have shared the slots out.
    pub(crate) fn start(database: &postgres::Server, lease: Duration) -> Outcome<Self> {
        let url = database.fresh_url();
        let servers = (0..SERVERS).map(|_| start(&url, lease)).collect::<Outcome<_>>()?;
        let cluster = Self { servers, owners: Vec::new() };
        wait_until_shared(&cluster.addresses())?;
        let owners = database.answer(&url, OWNERS)?;
        let owners = owners.lines().map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { owners, ..cluster })
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(|(server, _)| server.address).collect()
    }

    /// Waits until the number of executions in memory stays the same.
    pub(crate) fn wait_until_unloaded(&self) -> Outcome<()> {
        let begun = Instant::now();
        let (mut last, mut since) = (self.live()?, Instant::now());
        while since.elapsed() < STILL {
            if begun.elapsed() > UNLOAD_TIMEOUT {
                return Err("executions stay in memory".into());
            }
            std::thread::sleep(STILL / 10);
            let live = self.live()?;
            if live != last {
                (last, since) = (live, Instant::now());
            }
        }
        Ok(())
    }

    /// Returns what each server says about the executions that it has in memory.
    fn live(&self) -> Outcome<Vec<String>> {
        let of_one = |(server, _): &(Server, TempDir)| {
            let mut wire = Wire::open(server.address)?;
            wire.send("GET", "/metrics", &[], None)?;
            let metrics = wire.reply()?.text();
            let live = metrics.lines().find(|it| it.starts_with("greenroom_executions_live "));
            Ok(live.ok_or("no such metric")?.to_owned())
        };
        self.servers.iter().map(of_one).collect()
    }

    /// Loses the first server; returns the others.
    pub(crate) fn lose_first(&mut self, loss: Loss) -> Vec<SocketAddr> {
        let (server, _) = &self.servers[0];
        server.signal(match loss {
            Loss::Killed => "KILL",
            Loss::Paused => "STOP",
        });
        self.addresses().split_off(1)
    }
}

fn start(url: &str, lease: Duration) -> Outcome<(Server, TempDir)> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let lease = lease.as_millis();
    let more = format!(
        "\n[store]\nurl = \"{url}\"\n[logs]\nlevel = \"warn\"\n\
         [cluster]\nlisten = \"127.0.0.1:0\"\nlease = \"{lease}ms\"\n"
    );
    std::fs::write(folder.path().join("config.toml"), format!("{CONFIG}{NAP}{more}"))?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command.current_dir(folder.path());
    Ok((Server::start(command), folder))
}
