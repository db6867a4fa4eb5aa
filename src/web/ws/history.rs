//! What a client is told of the time before it came.

use bytestring::ByteString;
use greenroom_actors::Runtime;
use greenroom_actors::observe::span::ObserverFilter;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use greenroom_actors::ports::store::LogFilter;

use crate::api::ApiError;
use crate::api::wire::envelope::ErrorFrame;
use crate::api::wire::log_frame::LogsFrame;
use crate::web::backlog::Held;
use crate::web::settings::Settings;
use crate::web::ws::frames::{key_of_record, text_of};
use crate::web::ws::replay::Replay;
use crate::web::ws::seam::Seam;

/// What is to be read from the record.
#[derive(Debug, Default)]
pub(super) enum History {
    #[default]
    None,
    /// The newest entries of the log, in one frame.
    Logs { filter: LogFilter, limit: usize },
    /// What happened lately in traces.
    Traces { filter: ObserverFilter, replay: Replay },
}

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) texts: Vec<ByteString>,
    pub(super) seam: Seam,
    /// Counts the texts as waiting.
    pub(super) held: Option<Held>,
}

impl History {
    /// Reads it; none when nothing was asked for. That the record cannot be read, or that too much
    /// waits for clients already, is told.
    pub(super) async fn read(self, runtime: &Runtime, settings: &Settings) -> Option<Read> {
        let read = match self {
            Self::None => return None,
            Self::Logs { filter, limit } => logs(runtime, &filter, limit, settings).await,
            Self::Traces { filter, replay } => {
                replay.read(&filter, runtime, settings.config.observed_content).await
            }
        };
        Some(read.and_then(|read| read.counted(settings)).unwrap_or_else(|refusal| Read {
            texts: text_of(&ErrorFrame::of(&refusal.to_string())).into_iter().collect(),
            ..Read::default()
        }))
    }
}

impl Read {
    /// Counts what was read as waiting; refused when that is more than one client may have wait.
    fn counted(mut self, settings: &Settings) -> Result<Self, ApiError> {
        let bytes = self.texts.iter().map(|text| text.len()).sum();
        let held = settings.backlog.try_hold_share(bytes);
        let refusal = || settings.backlog.refusal(settings.requests());
        self.held = Some(held.ok_or_else(refusal)?);
        Ok(self)
    }
}

async fn logs(
    runtime: &Runtime,
    filter: &LogFilter,
    limit: usize,
    settings: &Settings,
) -> Result<Read, ApiError> {
    let mut records = runtime.logs(filter, None, limit).await?.records;
    let mut seam = Seam::default();
    records.iter().for_each(|record| seam.add(key_of_record(record), record.at));
    let now = SystemClock.now();
    loop {
        let Some(text) = text_of(&LogsFrame::initial(&records, now)) else { break };
        // One frame is bounded like everything that waits for a client: the newest stay.
        if text.len() <= settings.config.subscriber_queue_bytes || records.is_empty() {
            return Ok(Read { texts: vec![text], seam, held: None });
        }
        records.drain(..records.len().div_ceil(2));
    }
    Ok(Read { seam, ..Read::default() })
}
