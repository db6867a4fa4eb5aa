//! Caching of answers, and concurrent requests.

use std::sync::Mutex as Lock;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::FutureExt as _;
use tokio::sync::Notify;

use super::*;

type Versions = Result<Vec<Version>, IndexError>;

/// A registry that always gives the same answer, after a second.
struct Registry {
    answer: Versions,
    requests: AtomicUsize,
}

impl Registry {
    fn answering(answer: Versions) -> Arc<Self> {
        Arc::new(Self { answer, requests: AtomicUsize::new(0) })
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl PackageIndex for Registry {
    fn versions(&self) -> BoxFuture<'_, Versions> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.answer.clone()
        }
        .boxed()
    }
}

/// An installer that ends on request.
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

struct Panicking;

impl Installer for Panicking {
    fn install(&self, _: &str) -> BoxFuture<'static, Result<(), InstallError>> {
        async { std::panic::panic_any("a bug") }.boxed()
    }
}

/// A file that records what is written, and fails on concurrent writes.
#[derive(Default)]
struct Recorder {
    writers: AtomicUsize,
    written: Lock<Vec<String>>,
}

impl VariableFile for Recorder {
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

fn with_registry(registry: &Arc<Registry>) -> Maintenance {
    Maintenance::new(Some(Arc::clone(registry) as Arc<_>), None, Arc::new(Recorder::default()))
}

fn with_installer(installer: Arc<dyn Installer>) -> Maintenance {
    Maintenance::new(None, Some(installer), Arc::new(Recorder::default()))
}

#[tokio::test(start_paused = true)]
async fn a_registry_is_asked_once_a_minute() {
    let registry = Registry::answering(Ok(vec![Version::new(1, 0, 0)]));
    let maintenance = with_registry(&registry);
    let answers = futures_util::future::join_all((0..50).map(|_| maintenance.published())).await;
    assert!(answers.iter().all(|answer| matches!(answer, Some(Ok(list)) if list.len() == 1)));
    assert_eq!(registry.requests(), 1);
    tokio::time::advance(ANSWER_CACHED - Duration::from_millis(1)).await;
    maintenance.published().await;
    assert_eq!(registry.requests(), 1);
    tokio::time::advance(Duration::from_millis(1)).await;
    maintenance.published().await;
    assert_eq!(registry.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_request_to_the_registry_is_repeated_sooner() {
    let registry = Registry::answering(Err(IndexError::Status(503)));
    let maintenance = with_registry(&registry);
    for _ in 0..3 {
        assert_eq!(maintenance.published().await, Some(Err(IndexError::Status(503))));
    }
    assert_eq!(registry.requests(), 1);
    tokio::time::advance(FAILURE_CACHED).await;
    maintenance.published().await;
    assert_eq!(registry.requests(), 2);
}

#[tokio::test]
async fn one_installation_runs_at_a_time_and_outlives_its_caller() {
    let slow = Arc::new(Slow::default());
    let maintenance = with_installer(Arc::clone(&slow) as Arc<_>);
    {
        let mut first = Box::pin(maintenance.install());
        assert!(first.as_mut().now_or_never().is_none());
        assert_eq!(maintenance.install().await, Installation::Busy);
        // its caller drops the future
    }
    assert_eq!(maintenance.install().await, Installation::Busy);
    slow.may_end.notify_one();
    slow.ended.notified().await;
    let again = async {
        loop {
            match maintenance.install().await {
                Installation::Busy => tokio::task::yield_now().await,
                outcome => return outcome,
            }
        }
    };
    slow.may_end.notify_one();
    assert_eq!(again.await, Installation::Done(Ok(())));
}

#[tokio::test]
async fn a_panicking_installer_does_not_block_the_next_installation() {
    let maintenance = with_installer(Arc::new(Panicking));
    for _ in 0..2 {
        let outcome = maintenance.install().await;
        assert_eq!(outcome, Installation::Done(Err(InstallError::GivenUp)));
    }
    let off = Maintenance::new(None, None, Arc::new(Recorder::default()));
    assert_eq!(off.install().await, Installation::Off);
    assert!(off.published().await.is_none() && !off.can_install());
}

#[tokio::test]
async fn keys_are_written_by_one_caller_after_the_other() {
    let recorder = Arc::new(Recorder::default());
    let maintenance = Maintenance::new(None, None, Arc::clone(&recorder) as Arc<_>);
    let keys = |number: usize| ServiceKeys { public: format!("p{number}"), secret: "s".to_owned() };
    let all = (0..40).map(|number| maintenance.keep_keys(keys(number)));
    for outcome in futures_util::future::join_all(all).await {
        assert_eq!(outcome, Ok(()));
    }
    let written = recorder.written.lock().unwrap();
    assert_eq!(written.len(), 40);
    assert!(
        written
            .contains(&r#"[("SERVICE_PUBLIC_KEY", "p7"), ("SERVICE_SECRET_KEY", "s")]"#.to_owned())
    );
}
