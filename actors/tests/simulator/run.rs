//! Plays worlds on all processors, and prints how to replay a failed one.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use crate::simulator::cluster;
use crate::simulator::world::{self, Report};

/// The worlds: of one process at a time, and of several.
#[derive(Clone, Copy)]
enum Worlds {
    OfOne,
    OfSeveral,
}

impl Worlds {
    /// Returns the seeds of a normal run.
    fn seeds(self) -> Range<u64> {
        match self {
            Self::OfOne => 0..150,
            Self::OfSeveral => 0..6,
        }
    }

    /// Returns the name of the test that plays these worlds.
    fn test(self) -> &'static str {
        match self {
            Self::OfOne => "in_every_world",
            Self::OfSeveral => "in_every_cluster",
        }
    }
}

/// Runs a world on this thread. Virtual time stands while there is work to do.
pub(crate) fn virtual_time<T>(world: impl Future<Output = T>) -> T {
    let system = actix::System::with_tokio_rt(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    });
    system.block_on(world)
}

fn play(worlds: Worlds, seed: u64) -> Report {
    let played = std::panic::catch_unwind(|| match worlds {
        Worlds::OfOne => virtual_time(world::play(seed)),
        Worlds::OfSeveral => virtual_time(cluster::world::play(seed)),
    });
    played.unwrap_or_else(|panic| Report {
        digest: 0,
        executions: 0,
        facts: 0,
        counts: BTreeMap::new(),
        violations: vec![text(&*panic)],
        story: String::new(),
    })
}

fn text(panic: &(dyn Any + Send)) -> String {
    let owned = panic.downcast_ref::<String>().cloned();
    owned
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_default()
}

/// Suppresses the output of simulated panics.
fn silence_simulated_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload_as_str() != Some("a simulated defect") {
                loud(info);
            }
        }));
    });
}

fn play_all(worlds: Worlds, seeds: &[u64]) {
    silence_simulated_panics();
    let (next, executions, facts) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let failed: Mutex<Vec<String>> = Mutex::default();
    let counts: Mutex<BTreeMap<String, u64>> = Mutex::default();
    let began = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let report = play(worlds, *seed);
                    executions.fetch_add(report.executions as u64, Ordering::Relaxed);
                    facts.fetch_add(report.facts as u64, Ordering::Relaxed);
                    for (what, count) in report.counts {
                        *counts.lock().unwrap().entry(what).or_default() += count;
                    }
                    if !report.violations.is_empty() {
                        let what = report.violations.join("\n    ");
                        failed.lock().unwrap().push(format!("seed {seed}: {what}"));
                    }
                }
            });
        }
    });
    let (seconds, played) = (began.elapsed().as_secs_f64(), seeds.len());
    let (executions, facts) = (executions.into_inner(), facts.into_inner());
    let counts = counts.into_inner().unwrap();
    for (what, count) in &counts {
        println!("{count:>9} {what}");
    }
    println!(
        "{played} worlds, {executions} executions, {facts} facts in {seconds:.1} s: \
         {:.0} executions and {:.0} facts in a second",
        executions as f64 / seconds,
        facts as f64 / seconds,
    );
    let mut failed = failed.into_inner().unwrap();
    failed.sort();
    assert!(
        failed.is_empty(),
        "{} of {played} worlds failed. Replay one with: GREENROOM_SEED=<number> cargo test \
         -p greenroom-actors --test simulator {} -- --nocapture\n{}",
        failed.len(),
        worlds.test(),
        failed.join("\n"),
    );
}

/// Plays the worlds of the seeds in the environment, or those of a normal run.
fn play_wanted(worlds: Worlds) {
    if let Ok(seed) = std::env::var("GREENROOM_SEED") {
        silence_simulated_panics();
        let report = play(worlds, seed.parse().expect("GREENROOM_SEED is a number"));
        println!("{}", report.story);
        assert!(report.violations.is_empty(), "{}", report.violations.join("\n"));
        return;
    }
    let range = std::env::var("GREENROOM_SEEDS").ok();
    let seeds: Vec<u64> = match &range {
        Some(range) => {
            let (from, to) = range.split_once("..").expect("GREENROOM_SEEDS is a range, 0..100");
            let number = |text: &str| text.parse::<u64>().expect("a bound is a number");
            (number(from)..number(to)).collect()
        }
        None => worlds.seeds().collect(),
    };
    play_all(worlds, &seeds);
}

#[test]
fn invariants_hold_in_every_world() {
    play_wanted(Worlds::OfOne);
}

#[test]
fn invariants_hold_in_every_cluster() {
    play_wanted(Worlds::OfSeveral);
}

/// Checks that a seed determines the story completely.
#[test]
fn a_seed_always_gives_the_same_record() {
    silence_simulated_panics();
    let of_one = (1_000..1_020).map(|seed| (Worlds::OfOne, seed));
    let of_several = (1_000..1_001).map(|seed| (Worlds::OfSeveral, seed));
    for (worlds, seed) in of_one.chain(of_several) {
        let (first, second) = (play(worlds, seed), play(worlds, seed));
        if first.digest != second.digest {
            let lines = first.story.lines().zip(second.story.lines());
            let differ = lines.into_iter().find(|(a, b)| a != b);
            panic!("seed {seed} {} is not the same twice: {differ:#?}", worlds.test());
        }
    }
}
