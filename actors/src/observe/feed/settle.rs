//! Waits until observers have received all events.

use actix::{Context, Handler, Message};

use super::{Feed, FeedHandle};

#[derive(Message)]
#[rtype(result = "()")]
struct Settle;

impl FeedHandle {
    /// Resolves once everything published before is in the mailboxes of observers.
    pub(crate) async fn settled(&self) {
        // a stopped feed publishes nothing
        let _ = self.feed.send(Settle).await;
    }
}

impl Handler<Settle> for Feed {
    type Result = ();

    fn handle(&mut self, _: Settle, _: &mut Context<Self>) {}
}
