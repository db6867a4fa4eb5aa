//! The processes that callers can reach. A caller picks one of them for every request, and repeats
//! one with a key elsewhere.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::Runtime;
use tokio_util::sync::CancellationToken;

use crate::simulator::callers::Caller;
use crate::simulator::dice::Dice;
use crate::simulator::promises::{Known, Promises};
use crate::simulator::requests::Request;
use crate::simulator::stage::Stage;

/// Attempts of a request with a key.
const ATTEMPTS_MAX: u64 = 8;
/// Maximum pause between two attempts.
const PAUSE_MS: u64 = 5_000;

/// A process, as its callers see it.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) name: &'static str,
    pub(crate) runtime: Runtime,
    /// Cancelled when the process ends, and its connections with it.
    pub(crate) closed: CancellationToken,
}

#[derive(Clone, Default)]
pub(crate) struct Doors(Rc<RefCell<Vec<Door>>>);

impl Doors {
    pub(crate) fn open(&self, door: Door) {
        self.0.borrow_mut().push(door);
    }

    pub(crate) fn close(&self, name: &str) {
        self.0.borrow_mut().retain(|door| {
            let stays = door.name != name;
            if !stays {
                door.closed.cancel();
            }
            stays
        });
    }

    pub(crate) fn pick(&self, dice: &mut Dice) -> Option<Door> {
        let doors = self.0.borrow();
        (!doors.is_empty()).then(|| dice.pick(&doors))
    }
}

/// A caller that sends a request to any process.
pub(crate) struct Client {
    pub(crate) stage: Arc<Stage>,
    pub(crate) promises: Arc<Promises>,
    pub(crate) doors: Doors,
    pub(crate) dice: Dice,
}

impl Client {
    pub(crate) async fn send(mut self, request: Request) {
        for _ in 0..ATTEMPTS_MAX {
            let door = self.doors.pick(&mut self.dice);
            if let Some(door) = door
                && self.is_settled(door, &request).await
            {
                return;
            }
            if !request.is_repeatable() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(self.dice.millis(PAUSE_MS))).await;
        }
    }

    async fn is_settled(&self, door: Door, request: &Request) -> bool {
        let caller = Caller {
            stage: Arc::clone(&self.stage),
            promises: Arc::clone(&self.promises),
            runtime: door.runtime,
            is_of_cluster: true,
        };
        self.stage.note(&format!("at {}:", door.name));
        tokio::select! {
            biased;
            is_settled = request.clone().send(caller) => is_settled,
            () = door.closed.cancelled() => {
                if let Some((wish, token)) = request.wish() {
                    self.promises.add(wish, token, Known::Nothing);
                }
                false
            }
        }
    }
}
