//! Random events in the life of an execution.

use proptest::prelude::{Just, Strategy, any};
use proptest::{prop_oneof, sample};

pub(crate) const DATA: [&str; 6] = [
    "null",
    "{\"ok\":true}",
    "7",
    "{\"ok\":1}",
    "{\"action\":\"retry\"}",
    "{\"action\":\"skip\",\"output\":9}",
];

/// An event in the life of an execution. Indexes select among the possibilities of the moment.
#[derive(Debug, Clone)]
pub(crate) enum Happening {
    Ends {
        which: sample::Index,
        how: usize,
        is_stale: bool,
    },
    Due {
        which: sample::Index,
        is_early: bool,
    },
    /// Also backwards, since clocks are set.
    TimePasses(i64),
    Hold,
    Resume {
        target: Target,
        data: usize,
        repeats: usize,
    },
    ChildReports {
        which: sample::Index,
        how: usize,
        ahead: u64,
        is_repeated: bool,
    },
    ChildTook {
        which: sample::Index,
        ahead: u64,
    },
    Cancel,
    Crash {
        loses: usize,
        recovers: bool,
    },
    Restore {
        batches: sample::Index,
        recovers: bool,
    },
    /// The process restarts with other functions.
    Registry(bool),
    /// All facts so far become durable.
    Durable,
}

/// The step or the suspension that a resume names.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Shown,
    Any(sample::Index),
    Suspension(sample::Index),
    Unknown,
}

pub(crate) fn happening() -> impl Strategy<Value = Happening> {
    let index = any::<sample::Index>;
    let target = prop_oneof![
        3 => Just(Target::Shown),
        3 => index().prop_map(Target::Any),
        3 => index().prop_map(Target::Suspension),
        1 => Just(Target::Unknown),
    ];
    prop_oneof![
        8 => (index(), 0..6_usize, sample::select(vec![false, false, false, true]))
            .prop_map(|(which, how, is_stale)| Happening::Ends { which, how, is_stale }),
        4 => (index(), sample::select(vec![false, false, true]))
            .prop_map(|(which, is_early)| Happening::Due { which, is_early }),
        2 => (-600..600_i64).prop_map(Happening::TimePasses),
        3 => Just(Happening::Hold),
        6 => (target, 0..DATA.len(), 1..3_usize)
            .prop_map(|(target, data, repeats)| Happening::Resume { target, data, repeats }),
        6 => (index(), 0..6_usize, 0..3_u64, any::<bool>()).prop_map(
            |(which, how, ahead, is_repeated)| Happening::ChildReports {
                which, how, ahead, is_repeated,
            }
        ),
        1 => (index(), 0..3_u64).prop_map(|(which, ahead)| Happening::ChildTook { which, ahead }),
        2 => Just(Happening::Durable),
        2 => (0..3_usize, any::<bool>())
            .prop_map(|(loses, recovers)| Happening::Crash { loses, recovers }),
        1 => (index(), any::<bool>())
            .prop_map(|(batches, recovers)| Happening::Restore { batches, recovers }),
        1 => any::<bool>().prop_map(Happening::Registry),
        1 => Just(Happening::Cancel),
    ]
}
