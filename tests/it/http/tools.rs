//! Tools over HTTP.

use serde_json::json;

use super::site::Site;

#[test]
fn a_server_without_tools_lists_none() {
    let site = Site::start();
    assert_eq!(site.get("/tools").data(), json!([]));
    let call = site.post("/tools/nope/execute", &json!({ "input": {} }));
    assert_eq!((call.status, call.error().as_str()), (404, "Tool nope not found"));
    let get = site.get("/tools/nope/execute");
    assert_eq!((get.status, get.header("allow")), (405, Some("POST")));
}
