//! Knowing that observers were told of everything that has happened.

use actix::{Context, Handler, Message};

use super::{Feed, FeedHandle};

#[derive(Message)]
#[rtype(result = "()")]
struct Settle;

impl FeedHandle {
    /// Returns when everything that was published before is in the mailboxes of observers.
    pub(crate) async fn settled(&self) {
        // a feed that is gone tells nobody anything
        let _ = self.feed.send(Settle).await;
    }
}

impl Handler<Settle> for Feed {
    type Result = ();

    fn handle(&mut self, _: Settle, _: &mut Context<Self>) {}
}
