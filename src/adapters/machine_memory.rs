//! Memory that the process may use: that of the machine, or the limit of its control group.

use std::fs;

/// One part in so many of the usable memory is for the values of executions. The rest is for what
/// is not counted: bodies being read, facts on their way to the store, responses, generations, the
/// store's cache, and memory held by the allocator.
const EXECUTIONS_SHARE: u64 = 3;
/// Memory of executions if the usable memory is unknown: as on a machine with 3 GiB.
const EXECUTIONS_UNKNOWN: u64 = 1024 * 1024 * 1024;

/// Returns the default limit of memory for executions, in bytes.
pub(crate) fn share_of_executions() -> u64 {
    let usable = usable(&|path| fs::read_to_string(path).ok());
    usable.map_or(EXECUTIONS_UNKNOWN, |usable| usable / EXECUTIONS_SHARE)
}

/// Returns the memory of the machine or the lowest limit of the process's control groups, whichever
/// is less.
fn usable(read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let machine = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        if controllers.is_empty() {
            limit_of_groups(read, "/sys/fs/cgroup", path, "memory.max")
        } else if controllers.split(',').any(|it| it == "memory") {
            limit_of_groups(read, "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes")
        } else {
            None
        }
    });
    machine.into_iter().chain(limits).filter(|bytes| *bytes > 0).min()
}

/// Returns the lowest limit of a group and its ancestors. In a container the path may be that of
/// the host: then only the root exists, which is the container's.
fn limit_of_groups(
    read: &dyn Fn(&str) -> Option<String>,
    root: &str,
    path: &str,
    file: &str,
) -> Option<u64> {
    let mut group = path.trim_end_matches('/');
    let mut least: Option<u64> = None;
    loop {
        // no limit is `max`, or in version 1 a number near the largest
        let limit = read(&format!("{root}{group}/{file}"));
        let limit = limit.and_then(|text| text.trim().parse::<u64>().ok());
        least = least.into_iter().chain(limit).min();
        let Some(end) = group.rfind('/') else { return least };
        group = group.get(..end).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: (&str, &str) = ("/proc/meminfo", "MemTotal:       25165824 kB\nMemFree: 1 kB\n");

    fn found(files: &[(&str, &str)]) -> Option<u64> {
        usable(&|path| {
            let file = files.iter().find(|(name, _)| *name == path);
            file.map(|(_, text)| (*text).to_owned())
        })
    }

    /// Name of the row, files with their texts, and the expected number of bytes.
    type Row = (&'static str, Vec<(&'static str, &'static str)>, Option<u64>);

    #[test]
    fn the_lowest_limit_applies() {
        let own = ("/proc/self/cgroup", "0::/a/b\n");
        let old = ("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/x\n0::/\n");
        let rows: [Row; 7] = [
            ("nothing is known", vec![], None),
            ("a machine alone", vec![MACHINE], Some(24 << 30)),
            (
                "a group",
                vec![MACHINE, own, ("/sys/fs/cgroup/a/b/memory.max", "2147483648\n")],
                Some(2 << 30),
            ),
            (
                "the one above it",
                vec![
                    MACHINE,
                    own,
                    ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
                    ("/sys/fs/cgroup/a/memory.max", "1073741824\n"),
                ],
                Some(1 << 30),
            ),
            (
                "a container that sees the top only",
                vec![MACHINE, own, ("/sys/fs/cgroup/memory.max", "1073741824\n")],
                Some(1 << 30),
            ),
            (
                "the older form",
                vec![MACHINE, old, ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912")],
                Some(512 << 20),
            ),
            (
                "no limit in the older form",
                vec![
                    MACHINE,
                    old,
                    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
                ],
                Some(24 << 30),
            ),
        ];
        for (what, files, expected) in rows {
            assert_eq!(found(&files), expected, "{what}");
        }
    }
}
