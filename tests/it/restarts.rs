//! Three servers over one database behind nginx, restarted one after the other while pages of Node.js
//! use them: chats with the hook of the AI SDK, and executions with `EventSource`. The pages are in
//! `tests/clients/restarts.mjs`, the configuration of nginx is the one of `docs/deploy`.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use support::client::Wire;
use support::listener::reserved_port;
use support::postgres::Server as Database;
use support::server::{Home, Server};
use support::{eventually, not_tested};

use crate::clients::missing;
use crate::program::Programs as _;

const NGINX: &str = include_str!("../../docs/deploy/nginx.conf");
const NAMES: [&str; 3] = ["node-a", "node-b", "node-c"];

/// A model, and a workflow whose steps call a server: both are in the process of the pages.
const DEFINITIONS: &str = r#"
[models.steady]
provider = "openai"
model = "m-1"
base_url = "http://127.0.0.1:PORT/v1"

[agents.steady]
model = "steady"
chat = { resumable = true }

[[workflows.ticking.steps]]
id = "ticks"
type = "andForEach"
items = "data.n"
concurrency = 1
block = "tick"

[[workflows.ticking.blocks.tick]]
id = "look"
http = { url = "http://127.0.0.1:PORT/ticks/{{ data }}" }

[[workflows.ticking.blocks.tick]]
id = "nap"
type = "andSleep"
duration = "50ms"
"#;

/// A server that comes back at its address.
struct Member {
    name: &'static str,
    home: Home,
    address: SocketAddr,
    server: Option<Server>,
}

impl Member {
    fn new(url: &str, name: &'static str, provider: u16) -> Self {
        let home = Home::new("");
        let definitions = DEFINITIONS.replace("PORT", &provider.to_string());
        // all of them have one file, in which variables differ
        let config = format!(
            "[server]\nname = \"${{NODE}}\"\nshutdown_grace = \"20s\"\n[store]\nurl = \"{url}\"\n\
             [cluster]\nlisten = \"127.0.0.1:0\"\nlease = \"1200ms\"\n{definitions}"
        );
        home.write("config.toml", &config);
        let address = SocketAddr::from(([127, 0, 0, 1], reserved_port()));
        let mut member = Self { name, home, address, server: None };
        member.start();
        member
    }

    fn start(&mut self) {
        let port = self.address.port().to_string();
        let mut command = self.home.greenroom(&["--port", &port]);
        command.env("NODE", self.name);
        let server = Server::start(command);
        eventually("the server is ready", || (server.get("/readyz").status == 200).then_some(()));
        self.server = Some(server);
    }
}

/// Has a server stop: it refuses connections from then on, and ends what it has begun.
fn stop(member: &mut Member) {
    member.server.as_ref().unwrap().signal("TERM");
    eventually("no connection", || TcpStream::connect(member.address).err());
}

/// Waits until a server that stops has ended.
fn wait(member: &mut Member) {
    assert!(member.server.take().unwrap().ended().success());
}

fn kill(member: &mut Member) {
    member.server.take().unwrap().kill();
}

/// nginx with the file that `docs/deploy` has for it. It ends when it goes out of scope.
struct Balancer {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Balancer {
    fn start(members: &[Member]) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], reserved_port()));
        let mut site = NGINX.replace("listen 80;", &format!("listen {address};"));
        for (name, member) in NAMES.iter().zip(members) {
            let written = format!("server {name}:3141 ");
            assert!(site.contains(&written), "{site}");
            site = site.replace(&written, &format!("server {} ", member.address));
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("site.conf"), site).unwrap();
        std::fs::write(folder.path().join("nginx.conf"), main_file(folder.path())).unwrap();
        let mut nginx = Command::new("nginx");
        nginx.arg("-p").arg(folder.path()).args(["-e", "stderr", "-c", "nginx.conf"]);
        let child = nginx.stdin(Stdio::null()).spawn().unwrap();
        eventually("nginx listens", || TcpStream::connect(address).ok());
        Self { child, address, _folder: folder }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // its workers end with it, which they do not if it is killed
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-s", "TERM", &pid]).status();
        let _ = self.child.wait();
    }
}

/// Returns a configuration that runs a site in the foreground and writes to its folder only.
fn main_file(folder: &Path) -> String {
    let folder = folder.display();
    let mut text = String::from("daemon off;\nworker_processes 2;\nerror_log stderr crit;\n");
    // the folder of the test may be closed to other accounts; without effect unless root runs this
    text.push_str("user root;\n");
    writeln!(text, "pid {folder}/pid;\nevents {{ worker_connections 4096; }}").unwrap();
    text.push_str("http {\naccess_log off;\n");
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        writeln!(text, "{kind}_temp_path {folder}/{kind};").unwrap();
    }
    text.push_str("include site.conf;\n}\n");
    text
}

/// Runs the pages and restarts the servers in turn, each when the pages ask for it: they get a line
/// after `begin`, and another one when the server is back after `end`.
fn restart_in_turn(how: &str, begin: impl Fn(&mut Member), end: impl Fn(&mut Member)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let nginx = Command::new("nginx").arg("-v").output();
    let no_nginx = nginx.err().map(|_| "nginx is missing.".to_owned());
    if let Some(missing) = missing(&folder).or(no_nginx) {
        not_tested("clients while servers behind nginx are restarted", &missing);
        return;
    }
    let Some(url) = Database::shared().map(Database::fresh_url) else { return };
    let provider = reserved_port();
    let mut members = NAMES.map(|name| Member::new(&url, name, provider));
    let balancer = Balancer::start(&members);
    eventually("the servers know each other", || {
        let mut wire = Wire::open(balancer.address).unwrap();
        wire.send("GET", "/readyz", &[], None).unwrap();
        wire.reply().unwrap().text().contains("servers: 3").then_some(())
    });
    let mut pages = Command::new("node")
        .args(["--experimental-eventsource", "--no-warnings", "restarts.mjs"])
        .current_dir(&folder)
        .env("GREENROOM_URL", format!("http://{}", balancer.address))
        .env("GREENROOM_RESTARTS", how)
        .env("GREENROOM_PROVIDER_PORT", provider.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answers = pages.stdin.take().unwrap();
    let mut asked = BufReader::new(pages.stdout.take().unwrap()).lines();
    let mut restarts = 0;
    while let Some(line) = asked.next().transpose().unwrap() {
        assert_eq!(line, "restart");
        let member = &mut members[restarts];
        begin(member);
        // fails if the pages have given up, which their status says
        let _ = writeln!(answers, "begun");
        end(member);
        member.start();
        let _ = writeln!(answers, "done");
        restarts += 1;
    }
    let status = pages.wait().unwrap();
    assert!(status.success(), "the pages end with {status}");
    assert_eq!(restarts, NAMES.len());
}

#[test]
fn clients_lose_nothing_while_servers_are_stopped_in_turn() {
    restart_in_turn("stopped", stop, wait);
}

#[test]
fn clients_are_told_the_truth_while_servers_are_killed_in_turn() {
    restart_in_turn("killed", kill, |_| ());
}
