//! Updates, the keys of telemetry, and access to them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::mpsc::channel;

use serde_json::{Value, json};

use super::site::Site;
use support::client::{Reply, Wire};
use support::server::Server;
use support::{PATIENCE, eventually};

/// Script that waits for a file `go` and creates files at its start and its end.
const GATED: &str = "touch begun; while [ ! -e go ]; do sleep 0.01; done; touch done";

/// Starts a server that installs with this script.
fn installing_by(script: &str) -> Site {
    let site = Site::with("[updates]\ninstall = [\"sh\", \"install\", \"{package}\"]");
    site.home.write("install", script);
    site
}

fn refused(reply: &Reply) -> (u16, String, String) {
    let code = reply.header("x-error-code").unwrap().to_owned();
    (reply.status, code, reply.error())
}

/// Returns the `data` of a 201.
fn made(reply: &Reply) -> Value {
    let mut body = reply.json();
    assert_eq!((reply.status, &body["success"]), (201, &json!(true)), "{}", reply.text());
    body["data"].take()
}

/// Starts a registry that gives every client the same answer; returns its address.
fn registry(status: u16, body: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            if lines.any(|line| line.is_empty()) {
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
    address
}

fn looking_at(address: &str) -> Site {
    Site::with(&format!("[updates]\nregistry = \"{address}\""))
}

#[test]
fn newer_versions_are_listed() {
    let installed = env!("CARGO_PKG_VERSION");
    let lines = "{\"name\":\"greenroom\",\"vers\":\"999.0.0\",\"yanked\":false}\n\
                 {\"name\":\"greenroom\",\"vers\":\"999.1.0-rc.1\",\"yanked\":false}\n\
                 {\"name\":\"greenroom\",\"vers\":\"1000.0.0\",\"yanked\":true}\n";
    let site = looking_at(&registry(200, lines));
    let update = json!({
        "name": "greenroom", "installed": installed, "latest": "999.0.0", "type": "major",
    });
    let message = format!("greenroom 999.0.0 is available, {installed} is installed");
    let expected =
        json!({ "hasUpdates": true, "updates": [update], "count": 1, "message": message });
    assert_eq!(site.get("/updates").data(), expected);

    let none = json!({
        "name": "greenroom", "installed": installed, "latest": installed, "type": "latest",
    });
    for (status, body) in [(200, lines.lines().nth(1).unwrap()), (404, "")] {
        let data = looking_at(&registry(status, body)).get("/updates").data();
        assert_eq!((&data["hasUpdates"], &data["count"]), (&json!(false), &json!(0)));
        assert_eq!(data["updates"], json!([none]));
    }
    let data = Site::start().get("/updates").data();
    assert_eq!((&data["hasUpdates"], &data["updates"]), (&json!(false), &json!([none])));
    assert!(data["message"].as_str().unwrap().contains("No registry is configured"), "{data}");
}

#[test]
fn a_failure_of_the_registry_has_our_own_text() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let rows = [
        (format!("http://{closed}/secret-path"), "the registry cannot be reached"),
        (registry(503, ""), "the registry answered with status 503"),
        (registry(200, "<html>"), "the registry's answer is not an index of greenroom"),
    ];
    for (address, why) in rows {
        let site = looking_at(&address);
        let expected =
            (500, "updates_unchecked".to_owned(), format!("Failed to check for updates: {why}"));
        assert_eq!(refused(&site.get("/updates")), expected);
        if why.ends_with("reached") {
            let line = site.says("the registry cannot be reached: ");
            assert!(line.contains("refused") && !line.contains("secret-path"), "{line}");
        }
    }
}

#[test]
fn updates_are_installed_by_the_configured_command() {
    let site = installing_by("echo \"$@\" > out; env | grep -c SECRET >> out; exit 0");
    let reply = site.post("/updates", &json!({ "packageName": "greenroom" }));
    let message = "greenroom was installed; restart the server to use it";
    assert_eq!(made(&reply), json!({ "message": message, "packageName": "greenroom" }));
    assert_eq!(std::fs::read_to_string(site.home.path("out")).unwrap(), "greenroom\n0\n");
    let reply = site.send("POST", "/updates", &[], None);
    assert_eq!(made(&reply), json!({ "message": message }));

    let refusal = refused(&site.post("/updates", &json!({ "packageName": "left-pad" })));
    let expected = (404, "package_not_found".to_owned(), "Package left-pad not found".to_owned());
    assert_eq!(refusal, expected);
    let refusal = refused(&site.post("/updates", &json!({ "packageName": 1 })));
    assert_eq!((refusal.0, refusal.1.as_str()), (400, "body_invalid"));
}

#[test]
fn a_failed_installation_reports_its_outcome() {
    let site = installing_by("printf 'no\\033[2Jspace\\n' >&2; exit 3");
    let text = "Failed to install updates: the command ended with exit code 3";
    let expected = (500, "install_failed".to_owned(), text.to_owned());
    assert_eq!(refused(&site.post("/updates", &json!({}))), expected);
    site.says("output of the install command: no\\u{1b}[2Jspace");

    let site = Site::with("[updates]\ninstall = [\"/no/such/program\"]");
    let text = "Failed to install updates: the command is not on this machine";
    assert_eq!(refused(&site.post("/updates", &json!({}))).2, text);

    let timeout = "install = [\"sleep\", \"1000\"]\ninstall_timeout = \"50ms\"";
    let site = Site::with(&format!("[updates]\n{timeout}"));
    let text = "Failed to install updates: the command did not end within 50ms";
    assert_eq!(refused(&site.post("/updates", &json!({}))).2, text);

    let refusal = refused(&Site::start().post("/updates", &json!({ "packageName": "x" })));
    assert_eq!((refusal.0, refusal.1.as_str()), (400, "install_off"));
}

/// Requests an installation and waits until it has begun.
fn begin(site: &Site) -> Wire {
    let mut wire = Wire::open(site.address).unwrap();
    wire.send("POST", "/updates", &[], None).unwrap();
    eventually("the beginning", || site.home.path("begun").exists().then_some(()));
    wire
}

#[test]
fn one_installation_runs_at_a_time() {
    let site = installing_by(GATED);
    let mut first = begin(&site);
    let text = "Updates are already being installed";
    let expected = (409, "install_running".to_owned(), text.to_owned());
    assert_eq!(refused(&site.post("/updates", &json!({}))), expected);
    site.home.write("go", "");
    assert_eq!(first.reply().unwrap().status, 201);
    assert_eq!(site.post("/updates", &json!({})).status, 201);
}

#[test]
fn an_installation_continues_without_its_client() {
    let site = installing_by(GATED);
    drop(begin(&site));
    assert_eq!(site.get("/livez").status, 200);
    assert_eq!(site.post("/updates", &json!({})).status, 409);
    site.home.write("go", "");
    eventually("the end", || site.home.path("done").exists().then_some(()));
    site.says("installed greenroom");
}

#[test]
fn an_installation_ends_with_its_server() {
    let mut site = installing_by("exec 3> pipe; sleep 1000 & touch begun; sleep 1000");
    let pipe = site.home.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (tell, ended) = channel();
    std::thread::spawn(move || {
        // reads until the last process with the pipe has ended
        let read = std::fs::File::open(pipe).and_then(|mut it| it.read_to_end(&mut Vec::new()));
        tell.send(read.unwrap()).unwrap();
    });
    let mut client = begin(&site);
    site.signal("TERM");
    let told = (503, "draining".to_owned(), "The server is shutting down".to_owned());
    assert_eq!(refused(&client.reply().unwrap()), told);
    assert!(site.server.ended().success());
    ended.recv_timeout(PATIENCE).unwrap();
}

fn keys() -> Value {
    json!({ "publicKey": "pk_1", "secretKey": "sk'2 #x" })
}

#[test]
fn keys_are_written_into_the_environment_file() {
    let site = Site::start();
    site.home.write(".env", "# mine\r\nA=1\r\nexport SERVICE_SECRET_KEY=old\r\nB=2");
    for _ in 0..2 {
        let data = site.post("/setup-observability", &keys()).data();
        let message = "Keys saved; restart the server to use them";
        assert_eq!(data, json!({ "message": message }));
        let path = site.home.path(".env");
        let expected = "# mine\r\nA=1\r\nexport SERVICE_SECRET_KEY=\"sk'2 #x\"\r\nB=2\r\n\
                        SERVICE_PUBLIC_KEY=pk_1\r\n";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn wrong_keys_change_nothing() {
    let site = Site::start();
    let what = "must be 1 to 4096 characters, no control characters";
    let rows = [
        (json!({}), "publicKey: missing".to_owned()),
        (json!({ "publicKey": "p" }), "secretKey: missing".to_owned()),
        (json!({ "publicKey": "p", "secretKey": "" }), format!("secretKey: {what}")),
        (json!({ "publicKey": "p\nPATH=/", "secretKey": "s" }), format!("publicKey: {what}")),
        (
            json!({ "publicKey": ["p"], "secretKey": "s" }),
            "publicKey: invalid type: sequence, expected a string".to_owned(),
        ),
    ];
    for (body, what) in rows {
        let reply = site.post("/setup-observability", &body);
        assert_eq!((reply.status, reply.error()), (400, format!("Invalid request body: {what}")));
    }
    assert!(!site.home.path(".env").exists());
}

#[test]
fn a_write_failure_is_logged_and_not_sent_to_the_client() {
    let site = Site::with("system.env_file = \"kept/secret.env\"");
    std::fs::create_dir_all(site.home.path("kept/secret.env")).unwrap();
    let text = "Failed to write the environment file";
    let expected = (500, "environment_file_failed".to_owned(), text.to_owned());
    assert_eq!(refused(&site.post("/setup-observability", &keys())), expected);
    let line = site.says("failed to write the environment file");
    assert!(line.contains("file: reading: it is not a regular file request="), "{line}");
}

#[test]
fn concurrent_writes_of_keys_leave_one_whole_file() {
    let site = Site::start();
    site.home.write(".env", "A=1\n");
    std::thread::scope(|scope| {
        for number in 0..16 {
            let server: &Server = &site;
            scope.spawn(move || {
                let key = format!("k{number}");
                let body = json!({ "publicKey": key, "secretKey": key });
                server.post("/setup-observability", &body).data();
            });
        }
    });
    let text = std::fs::read_to_string(site.home.path(".env")).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let [first, public, secret] = lines[..] else { panic!("{text}") };
    let value = |line: &str| line.split_once('=').unwrap().1.to_owned();
    assert_eq!((first, value(public)), ("A=1", value(secret)), "{text}");
}

#[test]
fn proxied_callers_cannot_install_updates() {
    let site = installing_by("touch out");
    let body = keys().to_string();
    for name in ["x-forwarded-for", "X-Real-IP", "Forwarded", "x-forwarded-proto", "via"] {
        for path in ["/updates", "/setup-observability"] {
            let headers = [(name, "for=10.0.0.1"), ("content-type", "application/json")];
            let reply = site.send("POST", path, &headers, Some(body.as_bytes()));
            let text = "Only callers on this machine, or with a token, may do this";
            assert_eq!(refused(&reply), (403, "local_only".to_owned(), text.to_owned()));
            // answered without waiting for the body
            let mut wire = Wire::open(site.address).unwrap();
            let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{name}: x\r\n");
            wire.write(format!("{head}content-length: 1000\r\n\r\n").as_bytes()).unwrap();
            assert_eq!(wire.reply().unwrap().status, 403);
        }
        assert_eq!(site.send("GET", "/updates", &[(name, "10.0.0.1")], None).status, 200);
    }
    assert!(!site.home.path("out").exists() && !site.home.path(".env").exists());
}
