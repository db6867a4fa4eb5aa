//! The program of `examples/desk.rs`, asked as its comments say.

use serde_json::json;

use super::orders::start_example;
use super::rig::server::Home;

#[test]
fn the_desk_is_an_agent_beside_the_configured_ones() {
    let home = Home::new(super::site::CONFIG);
    let server = start_example(&home, "desk");
    let agents = server.get("/agents").data();
    let desk = agents.as_array().unwrap().iter().find(|agent| agent["id"] == "desk").unwrap();
    assert_eq!(desk["name"], "Service desk");
    let reply = server.post("/agents/desk/text", &json!({ "input": "hello" }));
    assert_eq!(reply.data()["text"], "hello");
}
