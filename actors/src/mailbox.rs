//! The one place where a message may pass a mailbox's limit.

use actix::dev::ToEnvelope;
use actix::{Actor, Addr, Handler, Message, Recipient};

/// Sends what must not be lost and is bounded by its own cause: the outcome of an append (as many
/// as appends under way), that time has come for a step and where a child stands (as many as wait
/// for it), a child actor's notice of its end or rest (one per actor), what the
/// holder of a generation wants of it (a cancel, and a hold for each of the execution's), that what an
/// execution lacked has come (one for each registry).
#[expect(clippy::disallowed_methods, reason = "bounded by what causes the message, see above")]
pub(crate) fn tell<A, M>(address: &Addr<A>, message: M)
where
    A: Actor + Handler<M>,
    A::Context: ToEnvelope<A, M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    address.do_send(message);
}

/// The same to a recipient of one kind of message.
#[expect(clippy::disallowed_methods, reason = "bounded by what causes the message, see `tell`")]
pub(crate) fn report<M>(recipient: &Recipient<M>, message: M)
where
    M: Message + Send + 'static,
    M::Result: Send,
{
    recipient.do_send(message);
}
