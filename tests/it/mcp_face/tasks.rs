//! Calls that continue as tasks.

use serde_json::{Value, json};

use super::{Site, forms};
use support::eventually;
use support::store::Store;

const TASKS: &str = "io.modelcontextprotocol/tasks";

fn tasks() -> Value {
    json!({ "elicitation": { "form": {} }, "extensions": { TASKS: {} } })
}

fn begun(site: &Site, workflow: &str) -> String {
    let task = site.call(workflow, &json!({ "amount": 5 }), &tasks());
    assert_eq!(task["resultType"], "task", "{task}");
    assert_eq!(task["ttlMs"], Value::Null);
    task["taskId"].as_str().unwrap().to_owned()
}

fn now(site: &Site, id: &str) -> Value {
    let answer = site.ask("tasks/get", &json!({ "taskId": id }), &tasks());
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    answer["result"].clone()
}

fn update(site: &Site, id: &str, key: &str, content: &Value) -> Value {
    let responses = json!({ key: { "action": "accept", "content": content } });
    site.ask("tasks/update", &json!({ "taskId": id, "inputResponses": responses }), &tasks())
}

fn ended(site: &Site, id: &str) -> Value {
    eventually("the task ends", || {
        let task = now(site, id);
        (task["status"] != "working" && task["status"] != "input_required").then_some(task)
    })
}

#[test]
fn a_call_that_waits_becomes_a_task_that_outlives_the_server() {
    let site = Site::with(support::server::Home::on(Store::Sqlite, super::CONFIG));
    let id = begun(&site, "workflow_expense");
    let waiting = now(&site, &id);
    assert_eq!(waiting["status"], "input_required");
    let requests = waiting["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    let wrong = update(&site, &id, key, &json!({ "approved": "yes" }));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    assert!(wrong["error"]["message"].as_str().unwrap().contains("approved"), "{wrong}");
    let taken = update(&site, &id, key, &json!({ "approved": true }));
    assert_eq!(taken["result"]["resultType"], "complete", "{taken}");
    let site = site.killed();
    let task = ended(&site, &id);
    assert_eq!(task["status"], "completed");
    assert_eq!(task["result"]["structuredContent"]["approved"], true, "{task}");
    // late answers change nothing
    assert!(update(&site, &id, key, &json!({ "approved": false })).get("error").is_none());
    assert_eq!(now(&site, &id)["result"], task["result"]);
}

#[test]
fn a_slow_call_becomes_a_task_that_can_be_cancelled() {
    let site = Site::start();
    let id = begun(&site, "workflow_slow");
    assert_eq!(now(&site, &id)["status"], "working");
    let cancel = || site.ask("tasks/cancel", &json!({ "taskId": id }), &tasks());
    assert_eq!(cancel()["result"]["resultType"], "complete");
    assert_eq!(ended(&site, &id)["status"], "cancelled");
    assert_eq!(cancel()["result"]["resultType"], "complete", "again");
}

#[test]
fn what_ends_in_time_is_no_task() {
    let site = Site::start();
    let result = site.call("workflow_greet", &json!({ "who": "Ada" }), &tasks());
    assert_eq!(result["structuredContent"]["letters"], 10, "{result}");
}

#[test]
fn many_answers_at_once_have_one_winner() {
    let site = Site::start();
    let id = begun(&site, "workflow_expense");
    let key = now(&site, &id)["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    std::thread::scope(|scope| {
        for number in 0..50 {
            let (site, id, key) = (&site, &id, &key);
            scope.spawn(move || {
                let answer = json!({ "approved": true, "note": format!("{number}") });
                let taken = update(site, id, key, &answer);
                assert!(taken.get("error").is_none(), "{taken}");
            });
        }
    });
    let first = ended(&site, &id);
    assert_eq!(first["result"]["structuredContent"]["approved"], true, "{first}");
    assert_eq!(ended(&site, &id)["result"], first["result"]);
}

#[test]
fn unknown_tasks_are_refused() {
    let site = Site::start();
    let id = begun(&site, "workflow_slow");
    let other = id.replace("slow/", "greet/");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for bad in ["", "x", "slow/x.y", &id[..id.len() - 1], &other] {
            let refused = site.ask(method, &json!({ "taskId": bad }), &tasks());
            assert_eq!(refused["error"]["code"], -32602, "{method} {bad}");
            assert_eq!(refused["error"]["message"], "Invalid params: unknown task", "{bad}");
        }
        let reply = site.ask_as(&[], method, &json!({ "taskId": id }), &forms());
        assert_eq!(
            (reply.status, &reply.json()["error"]["code"]),
            (400, &json!(-32021)),
            "{method}"
        );
    }
    assert_eq!(now(&site, &id)["status"], "working");
}
