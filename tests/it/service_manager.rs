//! Messages to a service manager, as systemd receives them with `Type=notify`.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use serde_json::json;
use support::client::Wire;
use support::server::{Home, Server};
use support::{PATIENCE, eventually};

use crate::program::Programs as _;
use crate::test_server::{BESIDE, GOES_ON, HELD};

/// The other end of `NOTIFY_SOCKET`.
struct Manager {
    socket: UnixDatagram,
    /// Value of the variable.
    address: String,
}

impl Manager {
    fn at_path(home: &Home) -> Self {
        let path = home.path("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        Self::with(socket, path.to_str().unwrap().to_owned())
    }

    fn abstract_of(home: &Home) -> Self {
        let name = home.path("notify").to_str().unwrap().to_owned();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        Self::with(UnixDatagram::bind_addr(&address).unwrap(), format!("@{name}"))
    }

    fn with(socket: UnixDatagram, address: String) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, address }
    }

    /// Returns the next message, or `None` if there is none for some time.
    fn next(&self) -> Option<String> {
        let mut message = [0; 1024];
        let length = self.socket.recv(&mut message).ok()?;
        Some(String::from_utf8(message[..length].to_vec()).unwrap())
    }

    /// Returns the message that has a line, and the messages before it.
    fn until(&self, line: &str) -> (Vec<String>, String) {
        let mut before = Vec::new();
        loop {
            let Some(message) = self.next() else { panic!("no {line} in {before:#?}") };
            if message.lines().any(|it| it == line) {
                return (before, message);
            }
            before.push(message);
        }
    }

    /// Discards the messages that are there.
    fn forget(&self) {
        self.socket.set_nonblocking(true).unwrap();
        while self.next().is_some() {}
        self.socket.set_nonblocking(false).unwrap();
    }
}

/// A step that counts the variables of a service manager in its environment.
const COUNTS: &str = r#"
[[workflows.counts.steps]]
id = "variables"
command = { argv = ["sh", "-c", "env | grep -c -e NOTIFY_SOCKET -e WATCHDOG_ || true"] }
"#;

#[test]
fn a_start_a_reload_and_a_stop_are_reported() {
    for manager_of in [Manager::at_path, Manager::abstract_of] {
        let home = Home::new(COUNTS);
        let manager = manager_of(&home);
        let mut command = home.greenroom(&[]);
        // the watchdog is for another process
        command.env("NOTIFY_SOCKET", &manager.address).env("WATCHDOG_USEC", "40000");
        command.env("WATCHDOG_PID", "1");
        let mut server = Server::start(command);
        let (before, ready) = manager.until("READY=1");
        assert_eq!(server.get("/readyz").status, 200);
        assert_eq!(before, ["STATUS=opening the store\n"]);
        assert_eq!(ready, format!("READY=1\nSTATUS=ready at http://{}\n", server.address));

        server.signal("HUP");
        let (_, reloading) = manager.until("RELOADING=1");
        let since = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
        assert!(since.unwrap().parse::<u64>().unwrap() > 0, "{reloading}");
        manager.until("READY=1");

        let counted = server.post("/workflows/counts/execute", &json!({ "input": {} })).data();
        assert_eq!(counted["result"], 0, "{counted}");

        server.signal("TERM");
        let (between, _) = manager.until("STOPPING=1");
        assert!(between.is_empty(), "{between:?}");
        assert!(server.ended().success());
    }
}

#[test]
fn a_server_without_a_service_manager_starts() {
    let home = Home::new("");
    let mut command = home.greenroom(&[]);
    command.env("NOTIFY_SOCKET", home.path("nothing"));
    let server = Server::start(command);
    assert!(server.says("cannot tell the service manager").contains("No such file"));
    assert_eq!(server.get("/readyz").status, 200);
}

#[test]
fn a_server_inside_of_a_program_leaves_signals_and_the_service_manager_to_it() {
    let home = Home::new("system.reload_every = \"20ms\"\n");
    let manager = Manager::at_path(&home);
    let mut command = home.test_server();
    command.env(BESIDE, "stop").env("NOTIFY_SOCKET", &manager.address);
    command.env("WATCHDOG_USEC", "40000");
    let server = Server::start(command);
    eventually("readiness", || (server.get("/readyz").status == 200).then_some(()));
    home.configure(
        "system.reload_every = \"20ms\"\nworkflows.w.steps = [{ id = \"a\", map = 1 }]\n",
    );
    server.says("workflows: added w");
    home.write("stop", "");
    server.says(GOES_ON);
    manager.socket.set_nonblocking(true).unwrap();
    assert_eq!(manager.next(), None);
    let status = format!("/proc/{}/status", server.child.id());
    let status = std::fs::read_to_string(status).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
    for (name, number) in [("SIGHUP", 1), ("SIGINT", 2), ("SIGTERM", 15)] {
        assert_eq!(caught & 1 << (number - 1), 0, "{name} is handled");
    }
}

#[test]
fn a_blocked_thread_of_executions_stops_the_signs_of_life() {
    let home = Home::new("limits.arbiters = 1\n");
    let manager = Manager::at_path(&home);
    let mut command = home.test_server();
    command.env("NOTIFY_SOCKET", &manager.address).env("WATCHDOG_USEC", "400000");
    let server = Server::start(command);
    for _ in 0..3 {
        manager.until("WATCHDOG=1");
    }
    home.write(HELD, "");
    let mut wire = Wire::open(server.address).unwrap();
    let json = [("content-type", "application/json")];
    wire.send("POST", "/workflows/blocking/execute", &json, Some(b"{\"input\":{}}")).unwrap();
    // two seconds of silence are a stall
    server.says("has not responded for");
    manager.socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    eventually("silence", || {
        manager.forget();
        manager.next().is_none().then_some(())
    });
    std::fs::remove_file(home.path(HELD)).unwrap();
    manager.socket.set_read_timeout(Some(PATIENCE)).unwrap();
    manager.until("WATCHDOG=1");
}
