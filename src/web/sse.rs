//! Event streams: a reader of an execution's events over server-sent events.
//!
//! A connection is an actor (`reader`) in front of a bounded queue that the response's body
//! drains. The actor runs whether or not the client reads.

mod reader;

use std::rc::Rc;
use std::sync::Arc;

use actix::Addr;
use actix_web::http::header::{CACHE_CONTROL, HeaderName};
use actix_web::web::{Bytes, Data};
use actix_web::{Error, HttpRequest, HttpResponse};
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use greenroom_actors::Runtime;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::observe::disconnect::Disconnect;
use greenroom_actors::ports::store::{Place, Portion};
use greenroom_actors::requests::{DescribeError, Subscriber, Target, Unavailable};
use greenroom_actors::runtime::Subscription;
use greenroom_actors::visibility::Visibility;

use crate::api::ApiError;
use crate::telemetry::metrics::{Gauged, RequestMeter};
use crate::web::admission::Admitted;
use crate::web::outbox::{Out, Outbox};
use crate::web::peer::{Peer, Room};
use crate::web::settings::Settings;
use crate::web::sse::reader::{EventReader, Line, ReadFrom, ReaderLeft, Record, subscriber_at};

pub(crate) use crate::web::sse::reader::Begin;

/// Asks proxies not to gather what should arrive at once.
pub(crate) const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A reader whose answer has not begun.
pub(crate) struct Reader {
    address: Addr<EventReader>,
    outbox: Outbox<Bytes>,
    disconnect: Disconnect,
    /// Counts it while the client reads.
    counted: Option<Gauged>,
    admitted: Admitted,
}

/// The executions of one workflow, as the runtime has them.
struct OfWorkflow {
    runtime: Arc<Runtime>,
    workflow_id: String,
}

impl Record for OfWorkflow {
    fn portion(
        &self,
        execution: ExecutionId,
        from: Place,
        bytes: usize,
    ) -> LocalBoxFuture<'static, Result<Portion, Unavailable>> {
        let runtime = Arc::clone(&self.runtime);
        Box::pin(async move { runtime.portion(&execution, from, bytes).await })
    }

    fn subscribe(
        &self,
        execution_id: ExecutionId,
        subscriber: Subscriber,
    ) -> LocalBoxFuture<'static, Result<Subscription, DescribeError>> {
        let runtime = Arc::clone(&self.runtime);
        // Whoever was let in to read it stays in: an execution never changes hands.
        let visibility = Visibility::Everything;
        let target = Target { workflow_id: self.workflow_id.clone(), execution_id, visibility };
        Box::pin(async move { runtime.subscribe(&target, subscriber).await })
    }
}

/// Starts a reader on this worker's thread, of an execution of this workflow.
pub(crate) fn open(
    request: &HttpRequest,
    runtime: &Data<Runtime>,
    settings: &Data<Settings>,
    workflow_id: &str,
    begin: Begin,
) -> Result<Reader, ApiError> {
    let admitted = settings.admit_stream(request)?;
    Peer::bound_send_buffer(request);
    let disconnect = Peer::disconnect_of(request);
    let outbox = settings.outbox();
    let counted = settings.requests().map(RequestMeter::stream);
    let runtime = Data::clone(runtime).into_inner();
    let record = Rc::new(OfWorkflow { runtime, workflow_id: workflow_id.to_owned() });
    let settings = Data::clone(settings).into_inner();
    let line = Line {
        outbox: outbox.clone(),
        disconnect: Arc::clone(&disconnect),
        room: Room::of(request),
    };
    let reader = EventReader::new(record, settings, line, begin);
    let address = reader.launch();
    Ok(Reader { address, outbox, disconnect, counted, admitted })
}

impl Reader {
    /// What the execution is told to send its events to.
    pub(crate) fn subscriber(&self) -> Subscriber {
        subscriber_at(&self.address, &self.disconnect)
    }

    /// Replays what was recorded before the subscription, from an event on, then goes on live.
    pub(crate) fn read_from(
        &self,
        execution: &ExecutionId,
        after: u64,
        subscription: Subscription,
    ) {
        let execution = execution.clone();
        let command = ReadFrom { execution, after, subscription };
        if self.address.try_send(command).is_err() {
            // The mailbox is full of events already: an honest end, the client comes back.
            self.outbox.finish();
        }
    }

    /// Ends a reader that nobody will listen to.
    pub(crate) fn abandon(&self) {
        // A full mailbox does as well: it holds a heartbeat that finds the reader alone.
        let _ = self.address.try_send(ReaderLeft);
    }

    /// The answer: a stream that ends with the execution.
    pub(crate) fn respond(self) -> HttpResponse {
        let Self { address, outbox, disconnect: _, counted, admitted } = self;
        let actor = address.downgrade();
        let body = outbox.reader(move || {
            drop((counted, admitted));
            if let Some(actor) = actor.upgrade() {
                // A full mailbox does as well: the next event finds the reader gone.
                let _ = actor.try_send(ReaderLeft);
            }
        });
        HttpResponse::Ok()
            .content_type("text/event-stream")
            .insert_header((CACHE_CONTROL, "no-cache"))
            .insert_header((X_ACCEL_BUFFERING, "no"))
            .streaming(body.map(|out| Ok::<_, Error>(bytes_of(out))))
    }
}

fn bytes_of(out: Out<Bytes>) -> Bytes {
    match out {
        Out::Item(bytes) => bytes,
        Out::Missed(count) => Bytes::from(format!(": dropped {count}\n\n")),
    }
}
