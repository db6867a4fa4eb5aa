//! Past events for a new subscription.

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
use crate::web::ws::deduplicator::Deduplicator;
use crate::web::ws::frames::{key_of_record, text_of};
use crate::web::ws::replay::Replay;

/// Past events to read from the store.
#[derive(Debug, Default)]
pub(super) enum History {
    #[default]
    None,
    /// Newest entries of the log, in one frame.
    Logs { filter: LogFilter, limit: usize },
    /// Latest events of traces.
    Traces { filter: ObserverFilter, replay: Replay },
}

/// Past events that were read.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) texts: Vec<ByteString>,
    pub(super) deduplicator: Deduplicator,
    /// Counts the texts in the backlog.
    pub(super) held: Option<Held>,
}

impl History {
    /// Reads the history; `None` if none was requested. If the read fails or the backlog is full,
    /// the result is one error frame.
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
    /// Counts the texts in the backlog; fails if they exceed the share of one client.
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
    let mut deduplicator = Deduplicator::default();
    records.iter().for_each(|record| deduplicator.add(key_of_record(record), record.at));
    let now = SystemClock.now();
    loop {
        let Some(text) = text_of(&LogsFrame::initial(&records, now)) else { break };
        // A frame is limited like the queue of a client: only the newest entries that fit are sent.
        if text.len() <= settings.config.subscriber_queue_bytes || records.is_empty() {
            return Ok(Read { texts: vec![text], deduplicator, held: None });
        }
        records.drain(..records.len().div_ceil(2));
    }
    Ok(Read { deduplicator, ..Read::default() })
}
