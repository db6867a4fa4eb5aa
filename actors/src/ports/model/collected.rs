//! Whole answers from streams.

use futures_util::stream::{BoxStream, StreamExt as _};

use super::{ModelAnswer, ModelError, ModelEvent};

impl ModelAnswer {
    /// Collects the pieces of a stream up to [`ModelEvent::Finished`], and then drops the stream.
    /// Without that piece the answer has broken off, which is an error.
    pub async fn collect(
        mut pieces: BoxStream<'_, Result<ModelEvent, ModelError>>,
    ) -> Result<Self, ModelError> {
        let mut answer = Self::default();
        while let Some(piece) = pieces.next().await {
            match piece? {
                ModelEvent::TextDelta(delta) => answer.text.push_str(&delta),
                ModelEvent::ReasoningDelta(delta) => answer.reasoning.push_str(&delta),
                ModelEvent::ToolInputStart { .. } | ModelEvent::ToolInputDelta { .. } => {}
                ModelEvent::ToolCall(call) => answer.tool_calls.push(call),
                ModelEvent::ProviderState(state) => answer.provider_state = Some(state),
                ModelEvent::Finished { usage, finish_reason, served } => {
                    return Ok(Self { usage, finish_reason, served, ..answer });
                }
            }
        }
        Err(ModelError::incomplete())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use serde_json::json;

    use super::*;
    use crate::ports::model::{
        FinishReason, LanguageModel, ModelErrorKind, ModelRequest, ProviderState, Served, ToolCall,
        Usage,
    };

    /// A model of which only the stream is written.
    struct Streaming(Vec<Result<ModelEvent, ModelError>>);

    impl LanguageModel for Streaming {
        fn name(&self) -> &str {
            "streaming"
        }

        fn is_remote(&self) -> bool {
            false
        }

        fn stream(&self, _: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
            stream::iter(self.0.clone()).boxed()
        }
    }

    fn text(text: &str) -> Result<ModelEvent, ModelError> {
        Ok(ModelEvent::TextDelta(text.to_owned()))
    }

    fn thought(text: &str) -> Result<ModelEvent, ModelError> {
        Ok(ModelEvent::ReasoningDelta(text.to_owned()))
    }

    fn called(id: &str) -> ToolCall {
        let (tool_call_id, tool_name) = (id.to_owned(), "add".to_owned());
        ToolCall { tool_call_id, tool_name, input: json!({ "n": 1 }) }
    }

    fn state(number: u64) -> ProviderState {
        ProviderState { provider: "p".to_owned(), state: json!(number) }
    }

    fn finished(finish_reason: FinishReason, tokens: u64) -> Result<ModelEvent, ModelError> {
        let usage = Usage { total_tokens: tokens, ..Usage::default() };
        let served = Some(Box::new(Served::of("m")));
        Ok(ModelEvent::Finished { usage, finish_reason, served })
    }

    fn whole(text: &str, finish_reason: FinishReason, tokens: u64) -> ModelAnswer {
        ModelAnswer {
            text: text.to_owned(),
            usage: Usage { total_tokens: tokens, ..Usage::default() },
            finish_reason,
            served: Some(Box::new(Served::of("m"))),
            ..ModelAnswer::default()
        }
    }

    #[tokio::test]
    async fn an_answer_is_collected_up_to_its_end() {
        use FinishReason::{Length, Stop, ToolCalls};
        let failed = ModelError::new(ModelErrorKind::RateLimited, "too many requests");
        let early = ModelError::new(ModelErrorKind::Unavailable, "the model's answer ended early");
        let begun = |id: &str| {
            let (tool_call_id, tool_name) = (id.to_owned(), "add".to_owned());
            Ok(ModelEvent::ToolInputStart { tool_call_id, tool_name })
        };
        let piece = |id: &str| {
            let (tool_call_id, delta) = (id.to_owned(), "{".to_owned());
            Ok(ModelEvent::ToolInputDelta { tool_call_id, delta })
        };
        let called_twice = ModelAnswer {
            reasoning: "hm, so".to_owned(),
            tool_calls: vec![called("c1"), called("c2")],
            provider_state: Some(state(2)),
            ..whole("", ToolCalls, 7)
        };
        let calls = vec![
            thought("hm, "),
            thought("so"),
            begun("c1"),
            piece("c1"),
            Ok(ModelEvent::ToolCall(called("c1"))),
            Ok(ModelEvent::ToolCall(called("c2"))),
            Ok(ModelEvent::ProviderState(state(1))),
            Ok(ModelEvent::ProviderState(state(2))),
            finished(ToolCalls, 7),
        ];
        let rows = [
            ("text", vec![text("a "), text("b"), finished(Stop, 3)], Ok(whole("a b", Stop, 3))),
            ("calls", calls, Ok(called_twice)),
            ("an end alone", vec![finished(Length, 1)], Ok(whole("", Length, 1))),
            (
                "no piece after the end",
                vec![finished(Stop, 1), text("late")],
                Ok(whole("", Stop, 1)),
            ),
            ("a failure", vec![text("a"), Err(failed.clone()), finished(Stop, 1)], Err(failed)),
            ("no end", vec![text("half")], Err(early.clone())),
            ("nothing", vec![], Err(early)),
        ];
        for (name, pieces, expected) in rows {
            let answer = Streaming(pieces).generate(ModelRequest::default()).await;
            assert_eq!(answer, expected, "{name}");
        }
    }
}
