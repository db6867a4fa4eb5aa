//! What is asked how often, and what runs beside what.

use std::sync::Mutex as Lock;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::FutureExt as _;
use tokio::sync::Notify;

use super::*;

type Said = Result<Vec<Version>, IndexError>;

/// A registry that says the same each time, a second later.
struct Registry {
    said: Said,
    asked: AtomicUsize,
}

impl Registry {
    fn saying(said: Said) -> Arc<Self> {
        Arc::new(Self { said, asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl PackageIndex for Registry {
    fn versions(&self) -> BoxFuture<'_, Said> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.said.clone()
        }
        .boxed()
    }
}

/// Installs when it is told to go on.
#[derive(Default)]
struct Slow {
    may_end: Arc<Notify>,
    ended: Arc<Notify>,
}

impl Installer for Slow {
    fn install(&self, package: &str) -> BoxFuture<'static, Result<(), InstallError>> {
        assert_eq!(package, PACKAGE);
        let (may_end, ended) = (Arc::clone(&self.may_end), Arc::clone(&self.ended));
        async move {
            may_end.notified().await;
            ended.notify_one();
            Ok(())
        }
        .boxed()
    }
}

struct Falling;

impl Installer for Falling {
    fn install(&self, _: &str) -> BoxFuture<'static, Result<(), InstallError>> {
        async { std::panic::panic_any("a bug") }.boxed()
    }
}

/// Notes what is written, and who else is at it.
#[derive(Default)]
struct Notebook {
    writers: AtomicUsize,
    written: Lock<Vec<String>>,
}

impl VariableFile for Notebook {
    fn set(&self, variables: &[(&str, &str)]) -> Result<(), FileError> {
        if self.writers.fetch_add(1, Ordering::SeqCst) > 0 {
            return Err(FileError("two at once".to_owned()));
        }
        std::thread::yield_now();
        self.written.lock().unwrap().push(format!("{variables:?}"));
        self.writers.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

fn looking_at(registry: &Arc<Registry>) -> Upkeep {
    Upkeep::new(Some(Arc::clone(registry) as Arc<_>), None, Arc::new(Notebook::default()))
}

fn installing_by(installer: Arc<dyn Installer>) -> Upkeep {
    Upkeep::new(None, Some(installer), Arc::new(Notebook::default()))
}

#[tokio::test(start_paused = true)]
async fn a_registry_is_asked_once_a_minute() {
    let registry = Registry::saying(Ok(vec![Version::new(1, 0, 0)]));
    let upkeep = looking_at(&registry);
    let answers = futures_util::future::join_all((0..50).map(|_| upkeep.published())).await;
    assert!(answers.iter().all(|answer| matches!(answer, Some(Ok(list)) if list.len() == 1)));
    assert_eq!(registry.asked(), 1);
    tokio::time::advance(ANSWER_COUNTS - Duration::from_millis(1)).await;
    upkeep.published().await;
    assert_eq!(registry.asked(), 1);
    tokio::time::advance(Duration::from_millis(1)).await;
    upkeep.published().await;
    assert_eq!(registry.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_silent_registry_is_asked_again_sooner() {
    let registry = Registry::saying(Err(IndexError::Status(503)));
    let upkeep = looking_at(&registry);
    for _ in 0..3 {
        assert_eq!(upkeep.published().await, Some(Err(IndexError::Status(503))));
    }
    assert_eq!(registry.asked(), 1);
    tokio::time::advance(SILENCE_COUNTS).await;
    upkeep.published().await;
    assert_eq!(registry.asked(), 2);
}

#[tokio::test]
async fn one_installation_runs_at_a_time_and_to_its_end() {
    let slow = Arc::new(Slow::default());
    let upkeep = installing_by(Arc::clone(&slow) as Arc<_>);
    {
        let mut first = Box::pin(upkeep.install());
        assert!(first.as_mut().now_or_never().is_none());
        assert_eq!(upkeep.install().await, Installation::Busy);
        // its caller leaves
    }
    assert_eq!(upkeep.install().await, Installation::Busy);
    slow.may_end.notify_one();
    slow.ended.notified().await;
    let again = async {
        loop {
            match upkeep.install().await {
                Installation::Busy => tokio::task::yield_now().await,
                outcome => return outcome,
            }
        }
    };
    slow.may_end.notify_one();
    assert_eq!(again.await, Installation::Done(Ok(())));
}

#[tokio::test]
async fn an_installer_that_panics_is_given_up_and_stands_in_nobodys_way() {
    let upkeep = installing_by(Arc::new(Falling));
    for _ in 0..2 {
        let outcome = upkeep.install().await;
        assert_eq!(outcome, Installation::Done(Err(InstallError::GivenUp)));
    }
    let off = Upkeep::new(None, None, Arc::new(Notebook::default()));
    assert_eq!(off.install().await, Installation::Off);
    assert!(off.published().await.is_none() && !off.can_install());
}

#[tokio::test]
async fn keys_are_written_by_one_caller_after_the_other() {
    let notebook = Arc::new(Notebook::default());
    let upkeep = Upkeep::new(None, None, Arc::clone(&notebook) as Arc<_>);
    let keys = |number: usize| ServiceKeys { public: format!("p{number}"), secret: "s".to_owned() };
    let all = (0..40).map(|number| upkeep.keep_keys(keys(number)));
    for outcome in futures_util::future::join_all(all).await {
        assert_eq!(outcome, Ok(()));
    }
    let written = notebook.written.lock().unwrap();
    assert_eq!(written.len(), 40);
    assert!(
        written
            .contains(&r#"[("SERVICE_PUBLIC_KEY", "p7"), ("SERVICE_SECRET_KEY", "s")]"#.to_owned())
    );
}
