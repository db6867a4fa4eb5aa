//! Figures of processes over one store, and a process that leaves though it does not end.

use greenroom_actors::RuntimeLimits;
use greenroom_actors::ports::store::Status;
use greenroom_actors::runtime::ClusterStats;
use greenroom_actors::testkit::{World, pass, registry_of};

use crate::processes::{Cluster, LEASE, Process, SHARED_OUT, TAKEN_OVER};
fn figures(process: &Process) -> ClusterStats {
    process.runtime.cluster_stats().unwrap()
}

#[actix::test]
async fn a_process_that_is_alone_has_no_figures_of_members() {
    let world = World::launch(registry_of([]), RuntimeLimits::default()).await;
    assert_eq!(world.runtime.cluster_stats(), None);
}

#[actix::test]
async fn slots_and_takeovers_are_counted() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    let [a, b] = [&first, &second].map(figures);
    assert_eq!((a.slots_served + b.slots_served, a.slots_unowned), (4096, 0));
    assert_eq!((a.slots_taken, b.slots_taken), (4096, a.slots_given));
    assert_eq!(a.members.values().map(|name| &**name).collect::<Vec<_>>(), ["a", "b"]);
    assert!(a.is_believed && !a.is_leaving && a.beat_age <= LEASE / 6, "{a:?}");
    assert_eq!((a.lease, a.takeovers), (LEASE, 0));

    first.kill().await;
    pass(TAKEN_OVER).await;
    let b = figures(&second);
    assert_eq!((b.takeovers, b.members.len(), b.slots_served), (1, 1, 4096), "{b:?}");
    assert_eq!((b.slots_taken, b.slots_unowned), (4096, 0), "{b:?}");
}

#[actix::test]
async fn slots_of_a_process_that_has_ended_are_taken_over_before_its_lease_is_over() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    cluster.network.as_ref().unwrap().refuse(first.node);
    pass(LEASE * 2).await;
    assert_eq!(figures(&second).takeovers, 0, "it beats");
    first.kill().await;
    pass(LEASE * 2 / 3).await;
    let b = figures(&second);
    assert_eq!((b.takeovers, b.slots_served), (1, 4096), "{b:?}");
}

#[actix::test]
async fn a_silent_process_does_not_believe() {
    let cluster = Cluster::new();
    let [first, second] = cluster.of(["a", "b"]).await;
    first.store.set_silent(true);
    pass(LEASE).await;
    let silent = figures(&first);
    assert!(!silent.is_believed && silent.beat_age >= LEASE, "{silent:?}");
    assert!(figures(&second).is_believed);
}

#[actix::test]
async fn forwarded_commands_are_counted_by_their_end() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    let [one, two, three] =
        [first.start("w").await, first.start("w").await, first.start("w").await];
    assert_eq!(second.resume(&one).await, Ok(Status::Completed));
    let counts = |figures: ClusterStats| {
        let ClusterStats { forwarded_answered, forwarded_here, forwarded_refused, .. } = figures;
        (forwarded_answered, forwarded_here, forwarded_refused, figures.forwarding)
    };
    assert_eq!(counts(figures(&second)), (1, 0, 0, 0));
    cluster.cut(&first, &second);
    assert!(second.resume(&two).await.is_err());
    assert_eq!(counts(figures(&second)), (1, 0, 1, 0));
    let (resumed, waiting) = tokio::join!(second.resume(&three), async {
        first.kill().await;
        pass(LEASE / 6).await;
        figures(&second).forwarding
    });
    assert_eq!((resumed, waiting), (Ok(Status::Completed), 1));
    assert_eq!(counts(figures(&second)), (1, 1, 1, 0));
}

#[actix::test]
async fn a_process_that_is_to_leave_hands_its_slots_over_and_stays_a_gateway() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    let id = first.start("w").await;
    // as another program does in the store
    first.store.members().unwrap().set_leaving().await.unwrap();
    pass(LEASE).await;
    let (a, b) = (figures(&first), figures(&second));
    assert!(a.is_leaving && a.is_believed && !b.is_leaving, "{a:?}");
    assert_eq!((a.slots_served, b.slots_served, b.slots_unowned), (0, 4096, 0));
    assert!(first.runtime.is_ready(), "it takes requests for the others");
    assert_eq!(first.resume(&id).await, Ok(Status::Completed));
    let started = first.start("w").await;
    assert_eq!(second.resume(&started).await, Ok(Status::Completed));

    pass(SHARED_OUT).await;
    assert_eq!(figures(&first).slots_served, 0, "it takes none back");
    second.kill().await;
    pass(TAKEN_OVER).await;
    assert_eq!(figures(&first).slots_served, 0, "nor those of others");
}
