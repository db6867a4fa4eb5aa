//! Random definitions, commands and crashes: the invariants hold, and the execution ends.

use std::collections::BTreeSet;
use std::sync::Arc;

use greenroom_domain::failure::{AttemptFailure, ErrorKind};
use greenroom_domain::ids::{StepPath, compensated_path};
use greenroom_domain::machine::{
    ChildStatus, Command, Decision, Effect, EffectKind, Handled, OwnCheck, Refusal, Resume, Spent,
    StepResult, Touched,
};
use greenroom_domain::status::Status;
use greenroom_domain::{time::Timestamp, usage::Usage};
use proptest::prelude::{ProptestConfig, any};
use proptest::test_runner::FileFailurePersistence;
use proptest::{collection, prop_assert, prop_assert_eq, proptest, sample};
use serde_json::{Value, json};

use crate::machine::build::workflow;
use crate::machine::child::child_status;
use crate::machine::compensated::{compensates, everything_is_compensated};
use crate::machine::happenings::{DATA, Happening, Target, happening};
use crate::machine::shapes::{build, shape};
use crate::machine::world::{Setting, World};

/// A world in which only durable work has started.
struct Drama {
    world: World,
    durable_batches: usize,
    /// Attempts that began when the facts about them became durable, and those that had begun when the
    /// machine was rebuilt.
    begun: BTreeSet<(StepPath, u32)>,
}

impl Drama {
    fn durable_seq(&self) -> u64 {
        let durable = self.world.batches.iter().take(self.durable_batches);
        durable.flatten().last().map_or(0, |fact| fact.next_seq() - 1)
    }

    /// Makes all batches durable, one after the other. What each begins is all that should run.
    fn becomes_durable(&mut self) {
        while self.durable_batches < self.world.batches.len() {
            let touched = Touched::by(&self.world.batches[self.durable_batches]);
            self.durable_batches += 1;
            let begun = self.world.machine.effects_in(&touched, self.durable_seq());
            self.begun.extend(begun.into_iter().map(|effect| (effect.path, effect.attempt)));
        }
        for Effect { path, attempt, .. } in self.world.machine.effects(self.durable_seq()) {
            assert!(self.begun.contains(&(Arc::clone(&path), attempt)), "{path} #{attempt}");
        }
    }

    /// Returns paths of bodies or children that may have started.
    fn running(&self, children: bool) -> Vec<(Arc<str>, u32)> {
        let effects = self.world.machine.effects(self.durable_seq());
        let wanted = |kind: EffectKind| (kind == EffectKind::Child) == children;
        effects
            .into_iter()
            .filter(|effect| wanted(effect.kind))
            .map(|effect| (effect.path, effect.attempt))
            .collect()
    }

    fn happens(&mut self, happening: Happening) {
        match happening {
            Happening::Ends { which, how, is_stale } => self.ends(which, how, is_stale),
            Happening::Due { which, is_early } => {
                let timers: Vec<_> =
                    self.world.timers.iter().map(|(p, t)| (p.clone(), *t)).collect();
                let Some((path, until)) = chosen(&timers, which) else { return };
                if !is_early {
                    self.world.now = self.world.now.max(*until);
                }
                self.world.send(Command::TimerFired { path: Arc::clone(path) });
            }
            Happening::TimePasses(ms) => self.world.now = Timestamp(self.world.now.0 + ms),
            Happening::Hold => self.holds(),
            Happening::Resume { target, data, repeats } => self.resumes(&target, data, repeats),
            Happening::ChildReports { which, how, ahead, is_repeated } => {
                let Some((path, _)) = chosen(&self.running(true), which).cloned() else { return };
                let (child, seq) = self.child(&path);
                for _ in 0..=usize::from(is_repeated) {
                    self.world.report_of(&path, &child, seq + ahead, child_status(how));
                }
            }
            Happening::ChildTook { which, ahead } => {
                let Some((path, _)) = chosen(&self.running(true), which).cloned() else { return };
                let (_, seq) = self.child(&path);
                self.world.child_took(&path, seq + ahead);
            }
            Happening::Cancel => self.cancels(),
            Happening::Crash { loses, recovers } => {
                let undurable = self.world.batches.len() - self.durable_batches;
                self.world.crash_losing(loses.min(undurable));
                self.rises(recovers);
            }
            Happening::Restore { batches, recovers } => {
                self.world.restore_from(batches.index(self.world.batches.len()) + 1);
                self.rises(recovers);
            }
            Happening::Registry(is_complete) => {
                let names = ["s1", "s3", "s4", "s7"].map(str::to_owned);
                self.world.missing = names.into_iter().filter(|_| !is_complete).collect();
            }
            Happening::Durable => self.becomes_durable(),
        }
        self.durable_batches = self.durable_batches.min(self.world.batches.len());
    }

    fn rises(&mut self, recovers: bool) {
        self.durable_batches = self.durable_batches.min(self.world.batches.len());
        let begun = self.world.machine.effects(self.durable_seq()).into_iter();
        self.begun = begun.map(|effect| (effect.path, effect.attempt)).collect();
        if recovers {
            self.world.recover();
        }
    }

    fn ends(&mut self, which: sample::Index, how: usize, is_stale: bool) {
        let Some((path, attempt)) = chosen(&self.running(false), which).cloned() else { return };
        let attempt = attempt - u32::from(is_stale);
        let result = match how {
            0 => StepResult::Failed(AttemptFailure::new(ErrorKind::Function, "boom")),
            1 => StepResult::Suspended { reason: None, payload: Some(Arc::new(Value::Null)) },
            2 => StepResult::Suspended { reason: Some("why".to_owned()), payload: None },
            _ => StepResult::Completed(Arc::new(json!({ "by": how }))),
        };
        let usage = Some(Usage { total_tokens: how as u64, ..Usage::default() });
        let spent = Spent { usage, mcp: None };
        let finished = Command::StepFinished { path: Arc::clone(&path), attempt, result, spent };
        let lines = self.world.send(finished);
        let ends = ["gives", "fails", "asks"].map(|what| format!("{path} {what}"));
        let is_recorded = lines.iter().any(|line| ends.iter().any(|end| line.starts_with(end)));
        assert_eq!(is_recorded, !is_stale, "the end of {path} in {lines:?}");
    }

    fn holds(&mut self) {
        let status = self.world.status();
        let told = self.world.try_send(Command::Suspend { reason: Arc::from("stop"), by: None });
        if status == Status::Running {
            assert!(matches!(told, Ok(Handled::Decided(Decision::Recorded(_)))));
            assert_eq!(self.world.status(), Status::Suspended);
        } else {
            assert_eq!(told, Err(Refusal::Already(status)));
        }
    }

    fn cancels(&mut self) {
        let status = self.world.status();
        let was_compensating = self.world.machine.state().compensating.is_some();
        let told = self.world.try_send(Command::Cancel {
            reason: Arc::from("enough"),
            by: None,
            compensate: false,
        });
        if status.is_terminal() {
            assert_eq!(told, Err(Refusal::Already(status)));
        } else if told == Err(Refusal::Compensating) {
            assert!(was_compensating, "a cancellation was refused");
        } else if self.world.machine.state().compensating.is_none() {
            assert_eq!(self.world.status(), Status::Cancelled);
        }
    }

    /// Sends the same resume several times: at most one is accepted, unless a following step
    /// suspends.
    #[expect(clippy::too_many_lines, reason = "an arm for each refusal")]
    fn resumes(&mut self, target: &Target, data: usize, repeats: usize) {
        let waiting = self.world.machine.state().waiting(self.world.machine.plan());
        let mut suspension_id = None;
        let mut taken = false;
        let step_id = match target {
            Target::Shown => None,
            Target::Suspension(which) => match chosen(&waiting, *which) {
                Some(suspension) => {
                    suspension_id = suspension.id.as_deref().map(str::to_owned);
                    None
                }
                None => return,
            },
            Target::Any(which) => match chosen(&waiting, *which) {
                Some(suspension) => Some(suspension.path.to_string()),
                None => return,
            },
            Target::Unknown => Some("nobody".to_owned()),
        };
        let data: Arc<Value> = Arc::new(serde_json::from_str(DATA[data]).unwrap());
        for repeat in 0..repeats {
            let before = self.answers();
            let status = self.world.status();
            let resume = Resume {
                step_id: step_id.clone(),
                suspension_id: suspension_id.clone(),
                data: Arc::clone(&data),
                // also ends waits for the asks of a generation
                is_of_generation: true,
                // of every second one, the program checks the answer
                own_check: if repeat % 2 == 0 { OwnCheck::Needed } else { OwnCheck::NotNeeded },
                ..Resume::default()
            };
            let mut told = self.world.try_send(Command::Resume(resume));
            if let Ok(Handled::Decided(Decision::Check { resume, .. })) = told {
                told = self.world.try_send(Command::Resume(resume));
            }
            match told {
                Ok(Handled::Decided(Decision::Recorded(_))) => {
                    assert!(suspension_id.is_none() || !taken, "a suspension was resumed twice");
                    taken = true;
                    assert!(!status.is_terminal(), "an ended execution was resumed");
                    assert!(self.answers() > before, "a resume left no trace");
                }
                Ok(Handled::PutOff(_)) => panic!("no command is that costly"),
                Ok(Handled::Decided(Decision::Admit { .. } | Decision::Check { .. }))
                | Err(Refusal::NotAssigned) => panic!("nobody is named, and all is checked"),
                Ok(Handled::Decided(Decision::Forward { path, child, .. })) => {
                    let (known, seq) = self.child(&path);
                    assert_eq!(known, child);
                    self.world.child_took(&path, seq + 1);
                }
                Err(Refusal::NotSuspended) => {
                    assert!(status != Status::Suspended, "it was suspended");
                }
                Err(Refusal::UnknownStep(step)) => assert_eq!(step, "nobody"),
                Err(Refusal::InvalidData(_)) => {
                    let compensates = self.world.machine.state().compensating.is_some();
                    assert!(compensates || DATA[1] != data.to_string());
                }
                // Resumed before, or its deadline has passed during the pause.
                Err(Refusal::StepNotSuspended(_)) => {
                    assert!(repeat > 0 || self.world.machine.state().hold.is_some());
                }
                Err(Refusal::SeveralWait { .. }) => {
                    // the one before may have ended a pause, during which none had begun
                    let machine = &self.world.machine;
                    let waits_now = machine.state().waiting(machine.plan()).len();
                    assert!(step_id.is_none() && suspension_id.is_none() && waits_now > 1);
                }
                Err(Refusal::SuspensionPassed { .. }) => {
                    assert!(suspension_id.is_some());
                    assert!(repeat > 0 || self.world.machine.state().hold.is_some());
                }
                Err(
                    refusal @ (Refusal::Ambiguous { .. }
                    | Refusal::Already(_)
                    | Refusal::Compensating
                    | Refusal::AsksOpen(_)),
                ) => {
                    panic!("no reason to answer {refusal:?}")
                }
            }
        }
    }

    /// Returns the number of recorded resumes of steps and of pauses.
    fn answers(&self) -> usize {
        let lines = self.world.all_lines();
        lines.iter().filter(|line| line.contains(" answered ") || line.contains("lifted")).count()
    }

    fn child(&self, path: &str) -> (greenroom_domain::ids::ExecutionId, u64) {
        let (_, node) = self.world.machine.node(path).unwrap();
        let child = node.child.as_ref().unwrap();
        (child.id.clone(), child.seq)
    }

    /// Completes all work, resumes all suspensions and fires all timers; returns true if the
    /// execution ends.
    fn goes_well(&mut self) -> bool {
        self.world.missing.clear();
        self.world.crash();
        self.rises(true);
        for _ in 0..400 {
            self.becomes_durable();
            if self.world.status().is_terminal() {
                return true;
            }
            if !self.moves_on() {
                return false;
            }
        }
        false
    }

    fn moves_on(&mut self) -> bool {
        if let Some((path, attempt)) = self.running(false).into_iter().next() {
            let (result, spent) = (StepResult::Completed(Arc::new(json!(1))), Spent::default());
            self.world.send(Command::StepFinished { path, attempt, result, spent });
            return true;
        }
        let waiting = self.world.machine.state().waiting(self.world.machine.plan());
        let waits = |path: &str| waiting.iter().any(|suspension| &*suspension.path == path);
        let child = self.running(true).into_iter().next();
        if let Some((path, _)) = child {
            let (child, seq) = self.child(&path);
            if waits(&path) {
                self.world.child_took(&path, seq + 1);
            } else {
                let result = Arc::new(json!("done"));
                self.world.report_of(
                    &path,
                    &child,
                    seq + 1,
                    ChildStatus::Completed {
                        result,
                        compensable: seq % 2 == 0,
                        skipped: seq % 4 == 1,
                    },
                );
            }
            return true;
        }
        if self.world.machine.state().hold.is_some() {
            self.world.send(answer(None, Value::Null));
            return true;
        }
        if let Some(suspension) = waiting.first() {
            let is_step = compensated_path(&suspension.path).is_none();
            let data = if is_step { json!({ "ok": true }) } else { json!({ "action": "retry" }) };
            self.world.send(answer(Some(&*suspension.path), data));
            return true;
        }
        let timer = self.world.timers.keys().next().cloned();
        timer.is_some_and(|path| !self.world.due(&path).is_empty())
    }
}

fn chosen<T>(things: &[T], which: sample::Index) -> Option<&T> {
    (!things.is_empty()).then(|| which.get(things))
}

/// `PROPTEST_CASES` overrides the number of cases.
fn cases(number: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let seeds = FileFailurePersistence::Direct("proptest-regressions/machine.txt");
    let is_set = default.cases != 256;
    ProptestConfig {
        cases: if is_set { default.cases } else { number },
        failure_persistence: Some(Box::new(seeds)),
        ..default
    }
}

proptest! {
    #![proptest_config(cases(384))]

    #[test]
    fn invariants_hold_and_every_execution_ends(
        shapes in collection::vec(shape(), 1..5),
        happenings in collection::vec(happening(), 0..40),
        on_cancel in any::<bool>(),
        starts_without_functions in sample::select(vec![false, false, false, true]),
    ) {
        let mut definition = workflow(build(shapes, &mut 0));
        definition.compensate_on_cancel = on_cancel && compensates(&definition.steps);
        let mut setting = Setting::default();
        if starts_without_functions {
            setting.missing = ["s1", "s3", "s4", "s7"].map(str::to_owned).into();
        }
        let world = setting.start(definition);
        let mut drama = Drama { world, durable_batches: 0, begun: BTreeSet::new() };
        drama.becomes_durable();
        for happening in happenings {
            drama.happens(happening);
        }
        prop_assert!(drama.goes_well(), "it makes no progress: {:#?}", drama.world.all_lines());
        everything_is_compensated(&drama.world);
        let facts = drama.world.facts().len();
        drama.world.recover();
        prop_assert_eq!(drama.world.facts().len(), facts, "an ended execution recorded facts");
    }
}

/// Returns a resume that also ends waits for the asks of a generation.
fn answer(step: Option<&str>, data: Value) -> Command {
    let (step_id, data) = (step.map(str::to_owned), Arc::new(data));
    Command::Resume(Resume { step_id, data, is_of_generation: true, ..Resume::default() })
}
