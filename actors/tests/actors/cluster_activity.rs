//! Activity of several processes over one store, as each of them shows it.

use std::time::Duration;

use greenroom_actors::runtime::Activity;
use greenroom_actors::testkit::{pass, registry_of};

use crate::cluster_generations::{chat_of, writers};
use crate::processes::{Cluster, Process};
use crate::workflows::{run, workflow};

const MINUTE: Duration = Duration::from_secs(60);

impl Process {
    async fn activity(&self) -> Activity {
        self.runtime.activity().await
    }
}

#[actix::test]
async fn workflows_that_run_at_any_process_are_running() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    let idle = second.activity().await;
    assert_eq!(idle, Activity::default());
    let _id = first.begin("toils").await;
    let busy = second.activity().await;
    assert!(busy.is_workflow_running("toils"));
    assert!(!busy.is_workflow_running("w"));
    assert_eq!(first.activity().await, busy);

    cluster.cut(&first, &second);
    assert_eq!(second.activity().await, idle, "one that cannot be reached is left out");
    assert_eq!(first.activity().await, busy);
}

#[actix::test]
async fn agents_that_work_at_any_process_are_working() {
    let cluster = Cluster::linked_with(writers());
    let [first, second] = cluster.of(["a", "b"]).await;
    let id = first.chat(chat_of("anna")).await;
    assert!(second.activity().await.is_agent_working("writer"));
    assert_eq!(second.cancel(&id).await, Ok(()));
    assert!(!second.activity().await.is_agent_working("writer"));
}

#[actix::test]
async fn executions_that_are_stuck_at_any_process_are_listed() {
    let cluster = Cluster::linked_with(registry_of([workflow("w", vec![run("a", "nothing")])]));
    let [first, second] = cluster.of(["a", "b"]).await;
    let execution = first.begin("w").await;
    pass(5 * MINUTE).await;
    for process in [&first, &second] {
        let stuck = process.runtime.stuck().await;
        let ids: Vec<_> = stuck.into_iter().map(|stuck| stuck.execution_id).collect();
        assert_eq!(ids, std::slice::from_ref(&execution));
    }
}
