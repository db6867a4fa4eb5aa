//! Links of the landing page, and compression.

use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::json;

use super::site::{Site, at};
use support::client::{Reply, Wire};

const GZIP: (&str, &str) = ("accept-encoding", "br, gzip;q=0.8");

#[test]
fn no_link_of_the_landing_page_is_dead() {
    for config in [
        "",
        "docs.ui = false\n",
        "[tools.sum]\nkind = \"workflow\"\nworkflow = \"add\"\ndescription = \"Adds\"\n",
    ] {
        let site = Site::with(config);
        let text = site.get("/").text();
        let links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let links: Vec<_> = links.filter(|link| !link.starts_with("data:")).collect();
        assert!(links.len() > 10, "{links:?}");
        for link in links {
            let path = link.split('#').next().unwrap();
            assert_eq!(site.get(&format!("/{path}")).status, 200, "{link} with {config:?}");
        }
        let is_tool_shown = text.contains("ui#/Tools/executeTool_sum\">sum</a>");
        assert_eq!(is_tool_shown, config.contains("sum"), "{text}");
    }
}

/// Checks that every link into the API's page names an operation of the document.
#[test]
fn links_of_the_landing_page_lead_to_their_operations() {
    let site = Site::start();
    let document = site.get("/doc").text();
    let text = site.get("/").text();
    let operations = text.split("href=\"ui#/").skip(1).filter_map(|rest| rest.split('"').next());
    let mut count = 0;
    for operation in operations {
        let (tag, id) = operation.split_once('/').unwrap();
        assert!(document.contains(&format!("\"operationId\":\"{id}\"")), "{operation}");
        assert!(document.contains(&format!("\"name\":\"{tag}\"")), "{operation}");
        count += 1;
    }
    assert!(count > 3, "{count}");
}

fn unpacked(reply: &Reply) -> Vec<u8> {
    assert_eq!(reply.header("content-encoding"), Some("gzip"), "{:?}", reply.headers);
    let varies = reply.headers.iter().filter(|(name, _)| name == "vary");
    assert!(varies.into_iter().any(|(_, value)| value == "accept-encoding"));
    let mut plain = Vec::new();
    GzDecoder::new(&*reply.body).read_to_end(&mut plain).unwrap();
    plain
}

#[test]
fn json_and_pages_are_compressed_on_request() {
    let site = Site::start();
    let ask = |path: &str, headers: &[(&str, &str)]| site.send("GET", path, headers, None);
    for path in ["/", "/doc", "/ui/swagger-ui-bundle.js", "/ui/swagger-ui.css"] {
        let plain = ask(path, &[]);
        assert_eq!((plain.status, plain.header("content-encoding")), (200, None), "{path}");
        assert!(plain.body.len() >= 1024, "{path} is small");
        let packed = ask(path, &[GZIP]);
        assert!(packed.body.len() < plain.body.len(), "{path}");
        assert_eq!(unpacked(&packed), plain.body, "{path}");
        for (name, value) in [("accept-encoding", "identity"), ("accept-encoding", "gzip;q=0")] {
            assert_eq!(ask(path, &[(name, value)]).body, plain.body, "{path} {value}");
        }
        // a cached copy in either encoding stays valid
        if let Some(tag) = packed.header("etag") {
            let known = [GZIP, ("if-none-match", tag)];
            assert_eq!(ask(path, &known).status, 304, "{path}");
            assert_eq!(ask(path, &[("if-none-match", tag)]).status, 304, "{path}");
        }
    }
    // more than is buffered for compression
    let text = "word ".repeat(30_000);
    let body = json!({ "input": text }).to_string();
    let reply = site.send("POST", "/agents/assistant/text", &[GZIP], Some(body.as_bytes()));
    assert_eq!(reply.status, 200);
    assert!(String::from_utf8(unpacked(&reply)).unwrap().contains(&text[..100_000]));
}

#[test]
fn small_responses_and_streams_are_not_compressed() {
    let site = Site::start();
    let body = json!({ "input": { "n": 1 }, "options": { "executionId": "s1" } }).to_string();
    let small = site.send("POST", "/workflows/add/execute", &[GZIP], Some(body.as_bytes()));
    assert_eq!((small.status, small.header("content-encoding")), (200, None));
    let metrics = site.send("GET", "/metrics", &[GZIP], None);
    assert_eq!((metrics.status, metrics.header("content-encoding")), (200, None));
    let question = json!({ "input": "word ".repeat(1_000) }).to_string();
    for (method, path, body) in [
        ("GET", at("add", "s1", "stream"), None),
        ("POST", "/agents/assistant/stream".to_owned(), Some(question.as_bytes())),
        ("POST", "/agents/assistant/chat".to_owned(), Some(question.as_bytes())),
    ] {
        let mut wire = Wire::open(site.address).unwrap();
        wire.send(method, &path, &[GZIP], body).unwrap();
        let reply = wire.reply().unwrap();
        assert_eq!(reply.header("content-type"), Some("text/event-stream"), "{path}");
        assert_eq!(reply.header("content-encoding"), None, "{path}");
        assert!(reply.text().contains("data: "), "{path}");
    }
    let off = Site::with("server.compression = false\n");
    for path in ["/", "/doc"] {
        assert_eq!(off.send("GET", path, &[GZIP], None).header("content-encoding"), None, "{path}");
    }
}
