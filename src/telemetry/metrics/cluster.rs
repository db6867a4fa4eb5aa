//! Metrics of a server that shares its database with others.

use std::collections::BTreeMap;

use greenroom_actors::runtime::ClusterStats;
use prometheus::proto::{MetricFamily, MetricType};

use super::readings::{counter, figures, gauge};
use crate::telemetry::sources::LinkReading;

/// Returns the metrics of a member, unsorted. Its links have the names of the servers that are
/// members now: as many series as there are servers.
pub(super) fn of_cluster(stats: &ClusterStats, links: Option<&[LinkReading]>) -> Vec<MetricFamily> {
    let mut families = Vec::from(of_slots(stats));
    families.extend(of_beats(stats));
    families.extend(of_forwarding(stats));
    families.extend(links.into_iter().flat_map(|links| of_links(stats, links)));
    families
}

fn of_slots(stats: &ClusterStats) -> [MetricFamily; 4] {
    [
        gauge(
            "greenroom_slots_owned",
            "Slots of the database that this server serves, of 4096",
            stats.slots_served,
        ),
        gauge(
            "greenroom_slots_unowned",
            "Slots of the database that no server serves, as this one knows it",
            stats.slots_unowned,
        ),
        counter(
            "greenroom_slots_taken_total",
            "Slots that this server has begun to serve",
            stats.slots_taken,
        ),
        counter(
            "greenroom_slots_given_total",
            "Slots that this server has handed over to others",
            stats.slots_given,
        ),
    ]
}

fn of_beats(stats: &ClusterStats) -> [MetricFamily; 4] {
    [
        gauge(
            "greenroom_cluster_members",
            "Servers that share the database, this one included",
            stats.members.len(),
        ),
        gauge(
            "greenroom_beat_age_seconds",
            "Time since the last sign of life that the database has confirmed",
            stats.beat_age,
        ),
        gauge(
            "greenroom_lease_seconds",
            "Time without a sign of life after which a server counts as gone (cluster.lease)",
            stats.lease,
        ),
        counter(
            "greenroom_takeovers_total",
            "Servers without a sign of life that this one has declared gone",
            stats.takeovers,
        ),
    ]
}

fn of_forwarding(stats: &ClusterStats) -> [MetricFamily; 2] {
    let ends = [
        ("answered", stats.forwarded_answered),
        ("here", stats.forwarded_here),
        ("refused", stats.forwarded_refused),
    ];
    let rows = ends.map(|(outcome, count)| (vec![("outcome", outcome)], count));
    [
        figures(
            MetricType::COUNTER,
            "greenroom_forwarded_total",
            "Commands for executions of other servers: answered there, carried out here after \
             all, or refused because their server was lost or none was found",
            rows,
        ),
        gauge(
            "greenroom_forwarding",
            "Commands and streams that wait for other servers now",
            stats.forwarding,
        ),
    ]
}

fn of_links(stats: &ClusterStats, links: &[LinkReading]) -> [MetricFamily; 2] {
    // one series for each name, also if two views of the members were mixed here
    let by_name: BTreeMap<&str, &LinkReading> =
        links.iter().filter_map(|link| Some((&**stats.members.get(&link.node)?, link))).collect();
    let peer = |name| vec![("peer", name)];
    let up = by_name.iter().map(|(name, link)| (peer(*name), usize::from(link.is_connected)));
    let queued = by_name.iter().map(|(name, link)| (peer(*name), link.queued_bytes));
    [
        figures(
            MetricType::GAUGE,
            "greenroom_link_up",
            "1 while this server is connected to another one of the database",
            up,
        ),
        figures(
            MetricType::GAUGE,
            "greenroom_link_queued_bytes",
            "Requests to another server that wait to be sent",
            queued,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use greenroom_actors::domain::cluster::NodeId;

    use super::*;

    #[test]
    fn links_are_those_to_members_by_name() {
        let names = [(1, "a"), (3, "b")];
        let members = names.map(|(node, name)| (NodeId(node), Arc::from(name)));
        let stats = ClusterStats {
            slots_served: 4096,
            slots_unowned: 0,
            members: members.into(),
            is_leaving: false,
            has_newer_tables: false,
            is_believed: true,
            beat_age: Duration::from_millis(250),
            lease: Duration::from_secs(6),
            takeovers: 1,
            slots_taken: 4096,
            slots_given: 0,
            forwarded_answered: 2,
            forwarded_here: 0,
            forwarded_refused: 0,
            forwarding: 0,
        };
        let link = |node, is_connected, queued_bytes| LinkReading {
            node: NodeId(node),
            is_connected,
            queued_bytes,
        };
        let links = vec![link(2, true, 7), link(3, false, 9)];
        let families = of_cluster(&stats, Some(&links));
        let text = prometheus::TextEncoder::new().encode_to_string(&families).unwrap();
        let expected = [
            "greenroom_beat_age_seconds 0.25",
            "greenroom_cluster_members 2",
            "greenroom_forwarded_total{outcome=\"answered\"} 2",
            "greenroom_link_up{peer=\"b\"} 0",
            "greenroom_link_queued_bytes{peer=\"b\"} 9",
        ];
        for line in expected {
            assert!(text.lines().any(|it| it == line), "{line} is missing: {text}");
        }
        assert_eq!(text.matches("{peer=").count(), 2, "the other one is a member no longer");
    }
}
