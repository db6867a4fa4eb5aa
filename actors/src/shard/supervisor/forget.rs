//! Erasing a user from the executions in memory.

use std::sync::Arc;

use actix::{Context, Handler, ResponseFuture};
use futures_util::FutureExt as _;
use futures_util::future::join_all;

use crate::shard::messages::ForgetUser;
use crate::shard::supervisor::{Entry, Supervisor};

impl Handler<ForgetUser> for Supervisor {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, forget: ForgetUser, _: &mut Context<Self>) -> Self::Result {
        let live = self.entries.values_mut().filter_map(|entry| match entry {
            Entry::Live(live) => Some(live.address.send(forget.clone())),
            Entry::Loading(loading) => {
                loading.forgotten.push(Arc::clone(&forget.0));
                None
            }
        });
        // An execution that ends in the meantime has no state left to change.
        join_all(live.collect::<Vec<_>>()).map(drop).boxed_local()
    }
}
