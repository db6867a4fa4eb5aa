//! Limits of connections: those of the configuration, reduced to what the limit of open files
//! allows.

use std::io;

use greenroom_actors::Placement;

use crate::adapters::descriptors;
use crate::config::{CONNECTIONS_MAX, Config, LimitsConfig};
use crate::web::admission::{AdmissionLimits, Bounds};

/// Descriptors of a connection: its socket, a duplicate to disconnect it by, and a second
/// duplicate for a stream that waits for its client.
const DESCRIPTORS_EACH: u64 = 3;
/// Minimum number of descriptors reserved for the store, calls and programs.
const DESCRIPTORS_KEPT: u64 = 64;
/// Descriptors of each thread that serves connections or runs executions.
const DESCRIPTORS_OF_THREAD: usize = 4;
/// Descriptors of the process: signals, pools, the listener and a store in a file.
const DESCRIPTORS_OF_PROCESS: usize = 20;
/// Descriptors for a few connections and their calls.
const DESCRIPTORS_SPARE: usize = 16;
/// Connections per connection of the reserve, which is accepted only to answer with a refusal.
const RESERVE_SHARE: usize = 16;
const RESERVE_MIN: usize = 8;
const RESERVE_MAX: usize = 256;
/// Reserve of few connections where descriptors are left: a rush must not crowd out who asks for health.
const RESERVE_ROOMY: usize = 64;

/// Raises the limit of open files and checks that it suffices to start: the libraries below panic
/// without a free descriptor.
pub(super) fn ensure(config: &Config, workers: usize) -> io::Result<()> {
    descriptors::raise();
    let Placement::Threads(arbiters) = config.runtime_limits().placement else { return Ok(()) };
    let threads = workers.saturating_add(arbiters);
    let process = DESCRIPTORS_OF_PROCESS + config.store.sockets();
    let needed = process + DESCRIPTORS_OF_THREAD * threads + DESCRIPTORS_SPARE;
    descriptors::reserve(needed).map_err(|few| {
        io::Error::other(format!(
            "{few}; allow the process more (LimitNOFILE, ulimit -n) or lower server.workers and \
             limits.arbiters"
        ))
    })
}

/// Raises the limit of open files. Returns it, and the number of connections that it allows; an error
/// if it does not suffice to start.
#[cfg(feature = "cli")]
pub(crate) fn room_for_connections(config: &Config) -> io::Result<(String, usize)> {
    ensure(config, super::workers(config))?;
    let descriptors = descriptors::raise();
    let all = admission(&config.limits, connections_within(descriptors)).connections.all;
    Ok((descriptors::shown(descriptors), all))
}

/// Raises the limit of open files and returns the limits of connections, which are also logged.
pub(super) fn prepare(limits: &LimitsConfig) -> AdmissionLimits {
    let descriptors = descriptors::raise();
    let fitting = connections_within(descriptors);
    let admission = admission(limits, fitting);
    let AdmissionLimits { connections, reserve: _, streams } = admission;
    let open = descriptors::shown(descriptors);
    match limits.connections_max {
        Some(wanted) if wanted > connections.all => log::warn!(
            "limits.connections_max is {wanted}, but {open} open files leave room for {}; raise \
             the limit of open files (LimitNOFILE, ulimit -n)",
            connections.all
        ),
        Some(_) | None => log::info!(
            "room for {} connections, {} of them streams, with {open} open files",
            connections.all,
            streams.all
        ),
    }
    admission
}

/// Returns the limits if `fitting` connections fit.
pub(super) fn admission(limits: &LimitsConfig, fitting: usize) -> AdmissionLimits {
    let all = limits.connections_max.unwrap_or(CONNECTIONS_MAX).min(fitting);
    let or = |wanted: Option<usize>, default: usize| wanted.unwrap_or(default).clamp(1, all);
    let streams = or(limits.streams_max, all - all / 4);
    AdmissionLimits {
        connections: Bounds {
            all,
            per_address: or(limits.connections_per_address_max, all.div_ceil(2)),
        },
        reserve: reserve_of(all).max(RESERVE_ROOMY.min(fitting.saturating_sub(all))),
        streams: Bounds {
            all: streams,
            per_address: or(limits.streams_per_address_max, streams.div_ceil(2)),
        },
    }
}

fn reserve_of(connections: usize) -> usize {
    (connections / RESERVE_SHARE).clamp(RESERVE_MIN, RESERVE_MAX)
}

/// Returns the number of connections that fit in addition to their reserve, at least one.
fn connections_within(descriptors: Option<u64>) -> usize {
    let Some(descriptors) = descriptors else { return usize::MAX };
    let left = descriptors.saturating_sub(DESCRIPTORS_KEPT.max(descriptors / 4));
    let connections = usize::try_from(left / DESCRIPTORS_EACH).unwrap_or(usize::MAX);
    connections.saturating_sub(reserve_of(connections)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_store_and_calls() {
        let rows = [
            (None, 25_000),
            (Some(1_048_576), 25_000),
            (Some(20_000), 4_744),
            (Some(1024), 240),
            (Some(256), 56),
            (Some(80), 1),
            (Some(0), 1),
        ];
        for (descriptors, expected) in rows {
            let fitting = connections_within(descriptors);
            let admission = admission(&LimitsConfig::default(), fitting);
            assert_eq!(admission.connections.all, expected, "{descriptors:?}");
            let taken = (admission.connections.all + admission.reserve) as u64 * DESCRIPTORS_EACH;
            let kept = descriptors.map_or(u64::MAX, |limit| limit.saturating_sub(taken));
            assert!(kept >= DESCRIPTORS_KEPT || descriptors < Some(100), "{descriptors:?}");
        }
    }

    #[test]
    fn configured_limits_apply_as_far_as_descriptors_suffice() {
        let limits = LimitsConfig {
            connections_max: Some(100),
            connections_per_address_max: Some(1000),
            streams_max: Some(40),
            streams_per_address_max: Some(4),
            ..LimitsConfig::default()
        };
        let wanted = admission(&limits, 360);
        assert_eq!(wanted.connections, Bounds { all: 100, per_address: 100 });
        assert_eq!(wanted.streams, Bounds { all: 40, per_address: 4 });
        let scarce = admission(&limits, 20);
        assert_eq!(scarce.connections, Bounds { all: 20, per_address: 20 });
        assert_eq!(scarce.streams, Bounds { all: 20, per_address: 4 });
        let default = admission(&LimitsConfig::default(), 100);
        assert_eq!(default.connections, Bounds { all: 100, per_address: 50 });
        assert_eq!(default.streams, Bounds { all: 75, per_address: 38 });
        let narrow = LimitsConfig { connections_max: Some(340), ..LimitsConfig::default() };
        let reserves = [wanted, scarce, default, admission(&narrow, 360)].map(|it| it.reserve);
        assert_eq!(reserves, [64, 8, 8, 21], "more where descriptors are left");
    }
}
