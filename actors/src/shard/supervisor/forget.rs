//! Forgetting a user in the executions that are in memory.

use std::sync::Arc;

use actix::{Context, Handler, ResponseFuture};
use futures_util::FutureExt as _;
use futures_util::future::join_all;

use crate::execution::ForgetUser;
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
        // One that ends meanwhile has nothing left to strike.
        join_all(live.collect::<Vec<_>>()).map(drop).boxed_local()
    }
}
