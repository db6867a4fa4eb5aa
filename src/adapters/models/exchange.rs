//! One request and its answer, driven by the consumer of the events. Dropping it closes the
//! connection.

use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt as _};
use greenroom_actors::ports::model::{FinishReason, ModelError, ModelEvent};
use reqwest::{RequestBuilder, Response};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::answer::Answer;
use super::failure::Failures;
use super::format::Reader;
use super::frames::{Frame, FrameError, Frames};

/// Bytes read from the body of an error.
const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;

/// Time in which the body of an error is read.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Text for a connection that ended before the answer did.
const CLOSED_EARLY: &str = "closed the connection early";

type Body = BoxStream<'static, Result<Vec<u8>, reqwest::Error>>;

/// A request, or the answer to it while it arrives.
pub(super) struct Exchange {
    state: State,
    reader: Box<dyn Reader>,
    frames: Frames,
    answer: Answer,
    failures: Failures,
    /// Longest silence of the provider.
    silence_max: Duration,
    /// Time at which the current silence has lasted that long.
    deadline: Instant,
    /// True after the first frame.
    has_begun: bool,
}

pub(super) enum State {
    Unsent(Box<RequestBuilder>),
    /// The body that arrives.
    Open(Body),
    Closed,
}

impl Exchange {
    pub(super) fn new(
        state: State,
        reader: Box<dyn Reader>,
        answer: Answer,
        failures: Failures,
        silence_max: Duration,
    ) -> Self {
        let deadline = Instant::now() + silence_max;
        let frames = Frames::default();
        Self { state, reader, frames, answer, failures, silence_max, deadline, has_begun: false }
    }

    /// Streams the answer; ends after `Finished` or the first error.
    pub(super) fn events(self) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        stream::unfold(Some(self), |exchange| async move {
            let mut exchange = exchange?;
            match exchange.next().await {
                Ok(Some(event)) => Some((Ok(event), Some(exchange))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
        .boxed()
    }

    async fn next(&mut self) -> Result<Option<ModelEvent>, ModelError> {
        // time that the consumer takes is not the provider's silence
        self.deadline = Instant::now() + self.silence_max;
        loop {
            if let Some(event) = self.answer.take() {
                return Ok(Some(event));
            }
            match std::mem::replace(&mut self.state, State::Closed) {
                State::Closed => return Ok(None),
                State::Unsent(call) => self.state = State::Open(self.send(*call).await?),
                State::Open(body) => self.read(body).await?,
            }
        }
    }

    async fn send(&mut self, call: RequestBuilder) -> Result<Body, ModelError> {
        let sent = timeout_at(self.deadline, call.send()).await;
        let response = sent.map_err(|_| self.silence())?.map_err(|error| {
            let what = if error.is_connect() { "cannot be reached" } else { CLOSED_EARLY };
            self.failures.of_transport(error, what)
        })?;
        let (status, headers) = (response.status(), response.headers().clone());
        if !status.is_success() {
            let body = error_body(response).await;
            return Err(self.failures.of_status(status, &headers, &body));
        }
        let pieces = response.bytes_stream();
        Ok(pieces.map(|piece| piece.map(|bytes| bytes.to_vec())).boxed())
    }

    /// Reads the next frame, or more of it; keeps the body open unless the answer is complete.
    async fn read(&mut self, mut body: Body) -> Result<(), ModelError> {
        if let Some(frame) = self.frames.next().map_err(|error| self.unreadable(error))? {
            self.deadline = Instant::now() + self.silence_max;
            if !self.take(frame)? {
                self.state = State::Open(body);
            }
            return Ok(());
        }
        let piece = timeout_at(self.deadline, body.next()).await.map_err(|_| self.silence())?;
        match piece {
            Some(Ok(piece)) => {
                self.frames.feed(&piece).map_err(|error| self.unreadable(error))?;
                self.state = State::Open(body);
                Ok(())
            }
            Some(Err(error)) => Err(self.failures.of_transport(error, CLOSED_EARLY)),
            None => {
                while let Some(frame) =
                    self.frames.rest().map_err(|error| self.unreadable(error))?
                {
                    if self.take(frame)? {
                        return Ok(());
                    }
                }
                self.end()
            }
        }
    }

    /// Reads a frame; returns true if it completes the answer.
    fn take(&mut self, frame: Frame) -> Result<bool, ModelError> {
        self.has_begun = true;
        let is_done = match frame {
            Frame::Json(Value::Array(items)) => {
                items.iter().try_for_each(|item| self.read_frame(item))?;
                self.reader.is_done()
            }
            Frame::Json(frame) => {
                self.read_frame(&frame)?;
                self.reader.is_done()
            }
            Frame::Done => {
                self.answer.finish_reason.get_or_insert(FinishReason::Stop);
                true
            }
        };
        if is_done {
            self.end()?;
        }
        Ok(is_done)
    }

    fn read_frame(&mut self, frame: &Value) -> Result<(), ModelError> {
        match self.failures.of_frame(frame) {
            Some(error) => Err(error),
            None => self.reader.read(frame, &mut self.answer),
        }
    }

    fn end(&mut self) -> Result<(), ModelError> {
        if self.reader.end(&mut self.answer)? {
            return Ok(());
        }
        let what = match self.frames.had_data() {
            true => "ended the connection before its answer was complete",
            false => "ended the connection without an answer",
        };
        Err(self.failures.unavailable(what))
    }

    fn unreadable(&self, error: FrameError) -> ModelError {
        self.failures.unreadable(&error.to_string())
    }

    fn silence(&self) -> ModelError {
        let silence = humantime::format_duration(self.silence_max);
        let what =
            if self.has_begun { "sent nothing for" } else { "did not begin to answer within" };
        self.failures.timeout(&format!("{what} {silence} (timeouts.first_token)"))
    }
}

/// Reads the beginning of an error's body, as far as it arrives in time.
async fn error_body(response: Response) -> Vec<u8> {
    let deadline = Instant::now() + ERROR_BODY_TIMEOUT;
    let mut pieces = response.bytes_stream();
    let mut body = Vec::new();
    while let Ok(Some(Ok(piece))) = timeout_at(deadline, pieces.next()).await {
        body.extend_from_slice(&piece[..piece.len().min(ERROR_BODY_BYTES_MAX - body.len())]);
        if body.len() >= ERROR_BODY_BYTES_MAX {
            break;
        }
    }
    body
}
