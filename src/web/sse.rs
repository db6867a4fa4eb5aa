//! Event streams: the events of an execution as server-sent events.
//!
//! A connection is an actor (`actor`) in front of a bounded queue that the response's body drains.
//! The actor runs whether or not the client reads.

mod actor;

use std::rc::Rc;
use std::sync::Arc;

use actix_web::web::Data;
use actix_web::{Error, HttpRequest, HttpResponse};
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use greenroom_actors::Runtime;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{FactCursor, Portion};
use greenroom_actors::requests::{DescribeError, Subscriber, Target, Unavailable};
use greenroom_actors::runtime::Subscription;
use greenroom_actors::visibility::Visibility;

use crate::api::ApiError;
use crate::web::peer::SendBuffer;
use crate::web::pending_stream::PendingStream;
use crate::web::settings::Settings;
use crate::web::sse::actor::{Connection, EventSource, EventStreamActor, ReadFrom, subscriber_at};

pub(crate) use crate::web::sse::actor::Begin;

/// The executions of one workflow, as event sources.
struct WorkflowEvents {
    runtime: Arc<Runtime>,
    workflow_id: String,
}

impl EventSource for WorkflowEvents {
    fn portion(
        &self,
        execution: ExecutionId,
        from: FactCursor,
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
        // The caller was checked when the stream was opened, and an execution never changes owner.
        let visibility = Visibility::Everything;
        let target = Target { workflow_id: self.workflow_id.clone(), execution_id, visibility };
        Box::pin(async move { runtime.subscribe(&target, subscriber).await })
    }
}

/// Opens a stream of an execution of this workflow.
pub(crate) fn open(
    request: &HttpRequest,
    runtime: &Data<Runtime>,
    settings: &Data<Settings>,
    workflow_id: &str,
    begin: Begin,
) -> Result<PendingStream<EventStreamActor>, ApiError> {
    PendingStream::open(request, settings, |queue, disconnect| {
        let runtime = Data::clone(runtime).into_inner();
        let source = Rc::new(WorkflowEvents { runtime, workflow_id: workflow_id.to_owned() });
        let connection = Connection { queue, disconnect, send_buffer: SendBuffer::of(request) };
        let settings = Data::clone(settings).into_inner();
        EventStreamActor::new(source, settings, connection, begin).launch()
    })
}

impl PendingStream<EventStreamActor> {
    /// Returns the subscriber for the execution to send its events to.
    pub(crate) fn subscriber(&self) -> Subscriber {
        subscriber_at(&self.address, &self.disconnect)
    }

    /// Starts the stream after an event: recorded events first, then live ones.
    pub(crate) fn read_from(
        &self,
        execution: &ExecutionId,
        after: u64,
        subscription: Subscription,
    ) {
        let execution = execution.clone();
        let command = ReadFrom { execution, after, subscription };
        if self.address.try_send(command).is_err() {
            // The mailbox is full of events already: end the stream, the client reconnects.
            self.queue.finish();
        }
    }

    /// Returns the answer: a stream that ends with the execution.
    pub(crate) fn respond(self) -> HttpResponse {
        let (mut head, body) = self.into_answer();
        head.content_type("text/event-stream")
            .streaming(body.map(|delivery| Ok::<_, Error>(delivery.into_bytes())))
    }
}
