//! Streamed answers, in pieces of any size, and disconnects.

use std::time::Duration;

use futures_util::StreamExt as _;
use greenroom_actors::ports::model::{LanguageModel, ModelErrorKind, ModelEvent};

use super::{FORMATS, asked, asking, config, event, frames, left, model, says};
use support::provider::{Deed, Provider, piece, stream_end, stream_head, whole};

#[tokio::test]
async fn streamed_and_whole_answers_work_with_each_provider() {
    for provider in FORMATS {
        let server = Provider::start([says(provider, "Grüße 🙂"), says(provider, "Grüße 🙂")]);
        let model = model(config(provider, &server));
        let answer = model.generate(asking("hi")).await.unwrap();
        assert_eq!(answer.text, "Grüße 🙂");
        let events: Vec<_> = model.stream(asking("hi")).collect().await;
        assert_eq!(events[0], Ok(ModelEvent::TextDelta("Grüße 🙂".to_owned())), "{provider}");
        assert!(matches!(events[1], Ok(ModelEvent::Finished { .. })));
    }
}

#[tokio::test]
async fn chunks_are_delivered_as_they_arrive() {
    for provider in FORMATS {
        let told = frames(provider, "slow 🙂 token");
        let at = told.iter().position(|frame| frame.to_string().contains("slow")).unwrap();
        let bytes = event(&told[at]);
        // cuts inside the emoji, the JSON and the line
        let cut = bytes.iter().position(|byte| *byte == 0xf0).unwrap() + 2;
        let mut script = says(provider, "slow 🙂 token");
        let pieces = [piece(&bytes[..cut]), Deed::Wait, piece(&bytes[cut..]), Deed::Wait];
        script.splice(at + 1..at + 2, pieces);
        let server = Provider::start([script]);
        let mut events = model(config(provider, &server)).stream(asking("hi"));
        let early = tokio::time::timeout(Duration::from_millis(20), events.next()).await;
        assert!(early.is_err(), "{provider}: {early:?}");
        server.permit();
        let first = events.next().await;
        assert_eq!(first, Some(Ok(ModelEvent::TextDelta("slow 🙂 token".to_owned()))));
        // Gemini sends the end with the text, but it is final only when the connection ends
        server.permit();
        assert!(matches!(events.next().await, Some(Ok(ModelEvent::Finished { .. }))));
        assert_eq!(events.next().await, None);
    }
}

#[tokio::test]
async fn a_dropped_stream_cancels_the_upstream_call() {
    for provider in FORMATS {
        let told = frames(provider, "x");
        let at = told.iter().position(|frame| frame.to_string().contains("\"x\"")).unwrap();
        let begin = piece(&told[..=at].iter().flat_map(event).collect::<Vec<_>>());
        let server = Provider::start([
            vec![Deed::Hold],
            vec![stream_head(), Deed::Hold],
            vec![stream_head(), begin, Deed::Hold],
        ]);
        let model = model(config(provider, &server));
        for count in 1..=3 {
            let model = model.clone();
            let begun = tokio::sync::oneshot::channel();
            let call = tokio::spawn(async move {
                if count == 1 {
                    drop(model.generate(asking("hi")).await);
                    return;
                }
                let mut events = model.stream(asking("hi"));
                while let Some(Ok(_)) = events.next().await {
                    // the third answer has begun
                    if count == 3 {
                        break;
                    }
                }
                begun.0.send(()).unwrap();
                let _ = events.next().await;
            });
            asked(&server, count).await;
            if count == 3 {
                begun.1.await.unwrap();
            }
            call.abort();
            let waited = left(&server, count).await;
            assert!(waited < Duration::from_secs(1), "{provider} {count}: {waited:?}");
        }
    }
}

#[tokio::test]
async fn kinds_of_lost_connections_have_different_errors() {
    let some = |provider: &str| vec![stream_head(), piece(&event(&frames(provider, "x")[0]))];
    // script, error, events before it
    let rows = [
        (vec![], "openai closed the connection early", 0),
        (vec![stream_head()], "openai closed the connection early", 0),
        (vec![stream_head(), stream_end()], "openai ended the connection without an answer", 0),
        (some("openai"), "openai closed the connection early", 1),
        (
            [some("openai"), vec![stream_end()]].concat(),
            "openai ended the connection before its answer was complete",
            1,
        ),
    ];
    for (script, expected, before) in rows {
        let server = Provider::start([script.clone()]);
        let events: Vec<_> = model(config("openai", &server)).stream(asking("hi")).collect().await;
        let error = events.last().unwrap().as_ref().unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::Unavailable, expected));
        assert_eq!(events.len(), before + 1, "{script:?}");
    }
}

#[tokio::test]
async fn an_unstreamed_answer_to_a_streamed_request_is_accepted() {
    let body = r#"{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}"#;
    let server = Provider::start([whole(200, &[("content-type", "text/plain")], body)]);
    let events: Vec<_> = model(config("openai", &server)).stream(asking("hi")).collect().await;
    assert_eq!(events[0], Ok(ModelEvent::TextDelta("whole".to_owned())));
}

#[tokio::test]
async fn an_endless_event_ends_the_call() {
    // one line that has no end
    let line = vec![b'x'; 64 * 1024];
    let Deed::Send(chunk) = piece(&line) else { panic!("a piece is sent") };
    let server = Provider::start([vec![stream_head(), piece(b"data: "), Deed::Repeat(chunk)]]);
    let error = model(config("openai", &server)).generate(asking("hi")).await.unwrap_err();
    assert_eq!(error.message, "openai sent an event of more than 16 MiB");
    left(&server, 1).await;
}
