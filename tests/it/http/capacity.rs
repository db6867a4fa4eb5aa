//! More connections and streams than the limits allow, and clients that send invalid frames.

use std::io::{BufRead as _, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Message, client};

use super::site::{CONFIG, Site};
use super::sockets::Socket;
use crate::program::Programs;
use support::client::{Reply, Wire};
use support::eventually;
use support::server::{Home, Server};
use support::store::Store;

/// Starts the server with this limit of open files.
fn with_open_files(home: &Home, limit: &str) -> Server {
    let program = home.greenroom(&[]);
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit {limit}; exec \"$0\"")).arg(program.get_program());
    command.current_dir(home.path(""));
    Server::start(command)
}

/// Opens connections that stay open after an answer.
fn kept_connections(server: &Server, count: usize) -> Vec<Wire> {
    let open = |_| {
        let mut wire = Wire::open(server.address).unwrap();
        wire.send("GET", "/livez", &[], None).unwrap();
        assert_eq!(wire.reply().unwrap().status, 200);
        wire
    };
    (0..count).map(open).collect()
}

/// Opens a WebSocket, or returns the refusal.
fn open(server: &Server) -> Result<Socket, u16> {
    let stream = TcpStream::connect(server.address).unwrap();
    let request = format!("ws://{}/ws", server.address).into_client_request().unwrap();
    match client(request, stream) {
        Ok((socket, _)) => Ok(Socket(socket)),
        Err(error) => match error.to_string() {
            text if text.contains("503") => Err(503),
            text => panic!("{text}"),
        },
    }
}

fn is_at_capacity(reply: &Reply) -> bool {
    reply.status == 503
        && reply.header("x-error-code") == Some("at_capacity")
        && reply.header("retry-after") == Some("5")
}

#[test]
fn more_streams_than_fit_leave_room_for_requests() {
    let home = Home::new(CONFIG);
    let server = with_open_files(&home, "-n 256");
    let opened: Vec<_> = (0..100).map(|_| open(&server)).collect();
    let sockets: Vec<_> = opened.into_iter().filter_map(Result::ok).collect();
    assert_eq!(sockets.len(), 42, "three quarters of the connections that fit");
    server.says("refusing new streams: 42 are open");
    let body = serde_json::json!({ "input": { "n": 1 } });
    assert_eq!(server.post("/workflows/add/execute", &body).data()["status"], "completed");
    let stream = server.get("/workflows/add/executions/none/stream");
    assert!(is_at_capacity(&stream), "{stream:?}");
    assert_eq!(server.figure("greenroom_ws_connections"), Some(42.0));
    assert_eq!(server.figure("greenroom_refused_total{what=\"stream\"}"), Some(59.0));
    drop(sockets);
    eventually("room for a stream", || open(&server).ok());
}

#[test]
fn a_full_server_refuses_connections_but_answers_probes() {
    let home = Home::new(&format!("server.keep_alive = \"10m\"\n{CONFIG}"));
    let server = with_open_files(&home, "-n 256");
    let kept = kept_connections(&server, 56);
    let refused = server.get("/workflows");
    assert!(is_at_capacity(&refused), "{refused:?}");
    assert_eq!(refused.header("connection"), Some("close"));
    assert_eq!(refused.error(), "Too many connections are open");
    let said = server.says("refusing new connections: 56 are open");
    assert!(said.contains("limit 56"), "{said}");
    for path in ["/livez", "/readyz"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    assert_eq!(server.figure("greenroom_http_connections"), Some(56.0));
    drop(kept);
    eventually("room for a request", || (server.get("/workflows").status == 200).then_some(()));
    let _sockets: Vec<_> = (0..50).map(|_| open(&server)).filter_map(Result::ok).collect();
    server.says("refusing new streams: 42 are open");
    let refused = server.figure("greenroom_refused_total{what=\"connection\"}").unwrap();
    assert!(refused >= 3.0, "{refused}");
}

/// Returns the output of a server that exits with this limit of open files; `None` if it listens.
fn refused_with(home: &Home, files: usize) -> Option<Vec<String>> {
    let program = home.greenroom(&[]);
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit -n {files}; exec \"$0\"")).arg(program.get_program());
    command.current_dir(home.path("")).env_remove("RUST_BACKTRACE");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = Vec::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok) {
        if line.contains("greenroom listens at ") {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        said.push(line);
    }
    assert_eq!(child.wait().unwrap().code(), Some(1), "{files} files: {said:#?}");
    Some(said)
}

#[test]
fn a_server_without_enough_open_files_does_not_start() {
    let home = Home::new(&format!("server.workers = 1\nlimits.arbiters = 1\n{CONFIG}"));
    // a database needs connections
    let (needed, enough) = match Store::chosen() {
        Store::Sqlite => (" of 44 files and sockets can be opened: ", "-n 64"),
        Store::Postgres(_) => (" of 57 files and sockets can be opened: ", "-n 80"),
    };
    for files in [8, 12, 16, 18, 20, 22, 24, 28, 32, 40] {
        let said = refused_with(&home, files).unwrap();
        let plain: Vec<_> = said.iter().filter(|line| !line.starts_with('[')).collect();
        let [line] = plain[..] else { panic!("{files} files: {said:#?}") };
        let is_told = line.starts_with("greenroom: only ")
            && line.contains(needed)
            && line.contains("ulimit -n");
        assert!(is_told, "{files} files: {line}");
    }
    let server = with_open_files(&home, enough);
    assert_eq!(server.get("/workflows").status, 200);
}

#[test]
fn probes_are_answered_while_refused_connections_are_at_their_limit() {
    let home = Home::new(&format!("server.keep_alive = \"10m\"\n{CONFIG}"));
    let server = with_open_files(&home, "-n 256");
    let _kept = kept_connections(&server, 56);
    for _ in 0..10 {
        let _silent: Vec<_> = (0..8).map(|_| TcpStream::connect(server.address).unwrap()).collect();
        assert_eq!(server.get("/livez").status, 200);
    }
}

#[test]
fn the_soft_limit_of_open_files_is_raised() {
    let home = Home::new(CONFIG);
    let server = with_open_files(&home, "-Sn 64");
    assert!(server.figure("process_max_fds").unwrap() > 64.0);
    let sockets: Vec<_> = (0..100).map(|_| open(&server).unwrap()).collect();
    assert_eq!(server.figure("greenroom_ws_connections"), Some(100.0));
    drop(sockets);
}

#[test]
fn an_install_command_gets_the_limit_of_open_files_that_the_server_was_started_with() {
    // the limit is restored just after the program has started
    let script = "until [ \"$(ulimit -Sn)\" = 64 ]; do sleep 0.01; done";
    let install = format!("updates.install = [\"sh\", \"-c\", '{script}']\n");
    let home = Home::new(&format!("{install}updates.install_timeout = \"5s\"\n{CONFIG}"));
    let server = with_open_files(&home, "-Sn 64");
    let reply = server.post("/updates", &serde_json::json!({}));
    assert_eq!(reply.status, 201, "{}", reply.text());
}

/// Sends frames as they are and reads to the end of the connection; returns the close code.
fn closed_after(frames: &[u8]) -> CloseCode {
    let site = Site::with("limits.websocket_fragments_max = 50\n");
    let mut socket = Socket::open(&site, "/ws");
    socket.next();
    // The server may close before everything is written.
    let _ = socket.0.get_mut().write_all(frames);
    loop {
        match socket.0.read() {
            Ok(Message::Close(Some(frame))) => return frame.code,
            Ok(Message::Pong(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Returns the head of an empty frame of a client.
fn empty(kind: u8) -> [u8; 6] {
    [kind, 0x80, 0, 0, 0, 0]
}

const FIRST: u8 = 0x01;
const CONTINUATION: u8 = 0x00;
const PING: u8 = 0x89;

#[test]
fn endless_empty_fragments_end_the_connection() {
    let frames = [empty(FIRST).to_vec(), empty(CONTINUATION).repeat(200)].concat();
    assert_eq!(closed_after(&frames), CloseCode::Size);
}

#[test]
fn endless_pings_end_the_connection() {
    assert_eq!(closed_after(&empty(PING).repeat(200)), CloseCode::Policy);
    let inside = [empty(FIRST).to_vec(), empty(PING).repeat(200)].concat();
    assert_eq!(closed_after(&inside), CloseCode::Policy);
}

#[test]
fn a_message_with_the_maximum_of_fragments_is_accepted() {
    let site = Site::with("limits.websocket_fragments_max = 50\n");
    let mut socket = Socket::open(&site, "/ws");
    socket.next();
    for _ in 0..3 {
        let last = [0x80, 0x82, 0, 0, 0, 0, b'{', b'}'];
        let frames = [&empty(FIRST)[..], &empty(CONTINUATION).repeat(48), &last].concat();
        socket.0.get_mut().write_all(&frames).unwrap();
        assert_eq!(socket.next()["type"], "ECHO");
    }
}
