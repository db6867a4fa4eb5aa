//! The one place where a message may exceed a mailbox's limit.

use actix::dev::ToEnvelope;
use actix::{Actor, Addr, Handler, Message, Recipient};

/// Sends a message that must not be lost and is bounded by its cause: outcomes of appends (as many
/// as appends under way), due timers and reports of children (as many as steps wait for them), an
/// actor's notice that it ends or unloads and the message that ends it (one per actor), a cancel or
/// a pause of a generation (one for each pause of the execution), and the notice that something
/// missing is configured again (one per registry).
#[expect(clippy::disallowed_methods, reason = "bounded by what causes the message, see above")]
pub(crate) fn force_send<A, M>(address: &Addr<A>, message: M)
where
    A: Actor + Handler<M>,
    A::Context: ToEnvelope<A, M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    address.do_send(message);
}

/// Sends such a message to a recipient of one kind of message.
#[expect(clippy::disallowed_methods, reason = "bounded by what causes the message, see above")]
pub(crate) fn report<M>(recipient: &Recipient<M>, message: M)
where
    M: Message + Send + 'static,
    M::Result: Send,
{
    recipient.do_send(message);
}
