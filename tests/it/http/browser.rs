//! The pages in a real browser, without a network.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::site::Site;
use crate::program::{browser, exits_within};
use support::PATIENCE;

/// The DOM of a loaded page, and the addresses that it requested.
struct Loaded {
    dom: String,
    asked: Vec<String>,
}

/// A browser of this machine.
struct Browser {
    program: &'static str,
    folder: TempDir,
}

impl Browser {
    fn find() -> Option<Self> {
        let program = browser("pages in a browser")?;
        Some(Self { program, folder: tempfile::tempdir().unwrap() })
    }

    /// Loads a page without resolving any host name. The browser itself requests its maker's hosts
    /// all the same: only requests of the page count.
    fn load(&self, address: &str) -> Loaded {
        let log = self.folder.path().join("net.json");
        let mut child = Command::new(self.program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
            .args(["--virtual-time-budget=20000", "--dump-dom"])
            .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
            .arg(format!("--user-data-dir={}", self.folder.path().join("profile").display()))
            .arg(format!("--log-net-log={}", log.display()))
            .arg(address)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut dom = child.stdout.take().unwrap();
        let reading = std::thread::spawn(move || {
            let mut text = String::new();
            dom.read_to_string(&mut text).unwrap();
            text
        });
        if !exits_within(&mut child, 3 * PATIENCE) {
            child.kill().unwrap();
            panic!("{} does not finish with {address}", self.program);
        }
        let log: Value = serde_json::from_slice(&std::fs::read(log).unwrap()).unwrap();
        let origin: String = address.split('/').take(3).collect::<Vec<_>>().join("/");
        let events = log["events"].as_array().unwrap().iter().map(|event| &event["params"]);
        let asked = events.filter(|asked| asked["initiator"] == origin.as_str());
        let asked = asked.map(|asked| asked["url"].as_str().unwrap().to_owned()).collect();
        Loaded { dom: reading.join().unwrap(), asked }
    }
}

/// Serves one page to the first client.
fn serve_once(page: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close";
        let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{page}", page.len());
    });
    address
}

#[test]
fn pages_request_only_from_the_server() {
    let Some(browser) = Browser::find() else { return };
    let elsewhere = "http://elsewhere.example/x.png";
    let control = browser.load(&serve_once("<img src=\"http://elsewhere.example/x.png\">"));
    assert!(control.asked.iter().any(|it| it == elsewhere), "unseen: {:?}", control.asked);
    let site = Site::start();
    let origin = format!("http://{}/", site.address);
    for (page, expected) in [("", 0), ("ui", 6)] {
        let Loaded { asked, .. } = browser.load(&format!("{origin}{page}"));
        let others: Vec<_> = asked.iter().filter(|it| !it.starts_with(&origin)).collect();
        assert!(others.is_empty(), "/{page} asks {others:?}");
        assert!(asked.len() >= expected, "/{page} asks only {asked:?}");
    }
}

#[test]
fn every_operation_can_be_browsed() {
    let Some(browser) = Browser::find() else { return };
    let site = Site::start();
    let origin = format!("http://{}/", site.address);
    let document = site.get("/doc").json();
    let Loaded { dom, .. } = browser.load(&format!("{origin}ui"));
    let items = document["paths"].as_object().unwrap().values();
    let operations = items.flat_map(|item| item.as_object().unwrap().values());
    let mut count = 0;
    for operation in operations {
        let (tag, id) = (&operation["tags"][0], &operation["operationId"]);
        let place = format!("operations-{}-{}", tag.as_str().unwrap(), id.as_str().unwrap());
        assert!(dom.contains(&format!("id=\"{place}\"")), "{place} is not there");
        count += 1;
    }
    assert!(count > 50, "{count}");
    let address = format!("{origin}ui#/Workflows/executeWorkflow_add");
    let Loaded { dom, .. } = browser.load(&address);
    assert!(dom.contains(">Execute</button>"), "the operation cannot be tried");
    assert!(dom.contains("\"n\": 1"), "its body has no example");
}

#[test]
fn the_landing_page_shows_workflows_and_agents() {
    let Some(browser) = Browser::find() else { return };
    let site = Site::start();
    let Loaded { dom, .. } = browser.load(&format!("http://{}/", site.address));
    for shown in [
        "href=\"ui\"",
        "href=\"doc\"",
        "href=\"ui#/Workflows/executeWorkflow_approval\"",
        "assistant",
    ] {
        assert!(dom.contains(shown), "{shown} is missing");
    }
    assert!(dom.contains("/workflows/add/execute' \\"), "{dom}");
}
