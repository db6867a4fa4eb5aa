//! Attempts, pauses and fallbacks, in paused time.

use greenroom_actors::ports::model::ModelAnswer;
use greenroom_actors::ports::model::scripted::{ScriptedAnswer, ScriptedModel};
use tokio::time::Instant;

use super::*;

const TOTAL: Duration = Duration::from_secs(300);

fn failure(kind: ModelErrorKind, retry_after: Option<u64>) -> ScriptedAnswer {
    let retry_after = retry_after.map(Duration::from_secs);
    ScriptedAnswer::Error(ModelError { kind, message: format!("{kind:?}"), retry_after })
}

fn saying(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::Text(text.to_owned())
}

fn retrying(model: &ScriptedModel, fallback: &[&ScriptedModel]) -> RetryingModel {
    let fallback = fallback
        .iter()
        .map(|model| -> Arc<dyn LanguageModel> { Arc::new(ScriptedModel::clone(model)) });
    let inner = Arc::new(model.clone());
    RetryingModel::new(inner, RetryPolicy::default(), TOTAL, fallback.collect())
}

/// Requests an answer, whole or as a stream, and returns its text or the error.
async fn answer(model: &RetryingModel, streams: bool) -> Result<String, String> {
    let answered = match streams {
        true => ModelAnswer::collect(model.stream(request())).await,
        false => model.generate(request()).await,
    };
    answered.map(|answer| answer.text).map_err(|error| error.message)
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_or_answered_by_a_fallback() {
    use ModelErrorKind::{Auth, Other, RateLimited, Timeout, Unavailable};
    let worn_out = || {
        vec![
            failure(Unavailable, None),
            failure(Timeout, None),
            failure(RateLimited, None),
            saying("never"),
        ]
    };
    // script, script of the fallback, answer, requests, requests to the fallback
    let rows = [
        (vec![failure(Unavailable, None), saying("a")], vec![], Ok("a"), 2, 0),
        (worn_out(), vec![saying("b")], Ok("b"), 3, 1),
        (worn_out(), vec![failure(Other, None)], Err("Other"), 3, 1),
        (vec![failure(Auth, None)], vec![saying("b")], Ok("b"), 1, 1),
        (vec![failure(Other, None)], vec![saying("b")], Err("Other"), 1, 0),
        (vec![failure(RateLimited, Some(400))], vec![saying("b")], Ok("b"), 1, 1),
    ];
    for (script, other, expected, calls, fallback_calls) in rows {
        for streams in [false, true] {
            let row = format!("{script:?} {streams}");
            let first = ScriptedModel::remote(script.clone());
            let second = ScriptedModel::remote(other.clone());
            let model = retrying(&first, &[&second]);
            let got = answer(&model, streams).await;
            assert_eq!(got.as_deref().map_err(String::as_str), expected, "{row}");
            assert_eq!((first.requests().len(), second.requests().len()), (calls, fallback_calls));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_model_that_answered_and_the_failed_attempts_are_recorded() {
    let down = || failure(ModelErrorKind::Unavailable, None);
    for streams in [false, true] {
        let first = ScriptedModel::remote([down(), saying("a"), down(), down(), down()]);
        let whole = Canned("whole", || vec![Ok(finished(FinishReason::Stop, [1, 0, 1, 0]))]);
        let fallback: Vec<Arc<dyn LanguageModel>> = vec![Arc::new(whole)];
        let model = RetryingModel::new(Arc::new(first), RetryPolicy::default(), TOTAL, fallback);
        for (name, failed) in [("scripted", 1), ("whole", 3)] {
            let answer = match streams {
                true => ModelAnswer::collect(model.stream(request())).await,
                false => model.generate(request()).await,
            };
            let served = answer.unwrap().served.unwrap();
            assert_eq!((&*served.model, served.failed_attempts), (name, failed), "{streams}");
        }
    }
}

/// A model with a name and the events of its stream.
struct Canned(&'static str, fn() -> Vec<Result<ModelEvent, ModelError>>);

impl LanguageModel for Canned {
    fn name(&self) -> &str {
        self.0
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn stream(&self, _: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        stream::iter((self.1)()).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn the_pause_that_the_provider_asks_for_is_kept() {
    let script = [failure(ModelErrorKind::RateLimited, Some(7)), saying("a")];
    let begin = Instant::now();
    assert_eq!(answer(&retrying(&ScriptedModel::remote(script), &[]), true).await.unwrap(), "a");
    let waited = begin.elapsed();
    assert!((7_000..7_100).contains(&waited.as_millis()), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_has_a_time_limit() {
    for streams in [false, true] {
        let model = ScriptedModel::remote([ScriptedAnswer::Hang]);
        let begin = Instant::now();
        let error = answer(&retrying(&model, &[]), streams).await.unwrap_err();
        assert_eq!(error, "scripted did not finish within 5m (timeouts.total)");
        assert_eq!((begin.elapsed(), model.abandoned()), (TOTAL, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_an_answer_cancels_the_request() {
    let model = ScriptedModel::remote([ScriptedAnswer::Hang, ScriptedAnswer::Hang]);
    let retrying = retrying(&model, &[]);
    for (count, streams) in [(1, false), (2, true)] {
        let gone = tokio::time::timeout(Duration::from_secs(1), answer(&retrying, streams)).await;
        assert!(gone.is_err());
        assert_eq!(model.abandoned(), count);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_has_begun_is_not_retried() {
    let other = ScriptedModel::remote([saying("b")]);
    let fallback: Vec<Arc<dyn LanguageModel>> = vec![Arc::new(other.clone())];
    let half = Canned("half", || {
        vec![Ok(text("half")), Err(ModelError::new(ModelErrorKind::Unavailable, "cut"))]
    });
    let model = RetryingModel::new(Arc::new(half), RetryPolicy::default(), TOTAL, fallback);
    let events: Vec<_> = model.stream(request()).collect().await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[0], Ok(text("half")));
    assert_eq!(events[1].as_ref().unwrap_err().message, "cut");
    assert_eq!(other.requests().len(), 0);
    // a whole answer has no consumed part
    assert_eq!(answer(&model, false).await.as_deref(), Ok("b"));
}
