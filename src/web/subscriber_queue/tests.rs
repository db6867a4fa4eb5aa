//! Queues without a connection.

use futures_util::{FutureExt, StreamExt};

use super::*;
use crate::web::backlog::SHARE_MIN;

const LIMITS: Limits = Limits { events: 2, bytes: 10 };
const ONE: Weight = Weight { events: 1, bytes: 1 };

fn queue<T>(limits: Limits) -> SubscriberQueue<T> {
    SubscriberQueue::new(limits, &Backlog::alone(1000))
}

fn next<T>(receiver: &mut QueueReceiver<T>) -> Option<Option<Delivery<T>>> {
    receiver.next().now_or_never()
}

#[actix_web::test]
async fn missed_events_are_counted_at_their_place() {
    let queue = queue(LIMITS);
    let mut receiver = queue.receiver(|| ());
    assert!(queue.push('a', ONE) && queue.push('b', ONE));
    assert!(!queue.push('c', ONE) && !queue.push('d', ONE));
    assert!(queue.stalled_for().is_some());
    assert_eq!(next(&mut receiver), Some(Some(Delivery::Item('a'))));
    assert!(queue.stalled_for().is_none());
    assert!(queue.push('e', ONE));
    let rest: Vec<_> = std::iter::from_fn(|| next(&mut receiver).flatten()).collect();
    assert_eq!(rest, [Delivery::Item('b'), Delivery::Missed(2), Delivery::Item('e')]);
    queue.finish();
    assert_eq!(next(&mut receiver), Some(None));
}

#[actix_web::test]
async fn bytes_are_limited_too_but_one_item_always_fits() {
    let queue = queue(LIMITS);
    let mut receiver = queue.receiver(|| ());
    assert!(queue.push("large", Weight { events: 1, bytes: 50 }));
    assert!(!queue.push("small", ONE));
    queue.finish();
    assert_eq!(next(&mut receiver), Some(Some(Delivery::Item("large"))));
    assert_eq!(next(&mut receiver), Some(Some(Delivery::Missed(1))));
    assert_eq!(next(&mut receiver), Some(None));
}

#[actix_web::test]
async fn optional_items_leave_room_and_are_not_counted_as_missed() {
    let queue = queue(Limits { events: 4, bytes: 10 });
    let mut receiver = queue.receiver(|| ());
    for letter in ['a', 'b', 'c'] {
        queue.push_if_roomy(letter, ONE);
    }
    queue.push_if_roomy('x', Weight { events: 1, bytes: 9 });
    assert!(queue.stalled_for().is_none());
    assert!(queue.push('d', ONE) && queue.push('e', ONE));
    let all: Vec<_> = std::iter::from_fn(|| next(&mut receiver).flatten()).collect();
    assert_eq!(all, ['a', 'b', 'd', 'e'].map(Delivery::Item));
}

#[actix_web::test]
async fn a_writer_can_wait_for_room() {
    let queue = queue(LIMITS);
    let mut receiver = queue.receiver(|| ());
    queue.push_anyway('a', ONE);
    assert!(queue.room().now_or_never().is_some());
    queue.push_anyway('b', ONE);
    assert!(queue.room().now_or_never().is_none());
    assert!(queue.stalled_for().is_some());
    assert_eq!(next(&mut receiver), Some(Some(Delivery::Item('a'))));
    assert!(queue.room().now_or_never().is_some());
}

/// Limits above the shared one.
const WIDE: Limits = Limits { events: 1000, bytes: 1 << 20 };

fn text(bytes: usize) -> Bytes {
    Bytes::from(vec![b'x'; bytes])
}

#[actix_web::test]
async fn the_shared_limit_drops_no_events_of_clients_that_read() {
    let backlog = Backlog::alone(1 << 20);
    let stalled = backlog.hold(2 << 20);
    let (slow, other) =
        (SubscriberQueue::new(WIDE, &backlog), SubscriberQueue::new(WIDE, &backlog));
    let (_slow_receiver, mut other_receiver) = (slow.receiver(|| ()), other.receiver(|| ()));
    for queue in [&slow, &other] {
        assert_eq!(queue.offer(text(3 * PIECE_BYTES), 1), Offered::Taken, "it was empty");
        assert_eq!(queue.offer(text(1), 1), Offered::BeyondShare);
    }
    for _ in 0..3 {
        let Some(Some(Delivery::Item(piece))) = next(&mut other_receiver) else {
            panic!("no piece")
        };
        assert_eq!(piece.len(), PIECE_BYTES);
    }
    assert!(next(&mut other_receiver).is_none(), "nothing is reported as missing");
    assert_eq!(other.offer(text(SHARE_MIN / 2), 1), Offered::Taken);
    assert_eq!(other.offer(text(SHARE_MIN / 2), 1), Offered::Taken);
    assert_eq!(slow.offer(text(1), 1), Offered::BeyondShare);
    drop(stalled);
    assert_eq!(slow.offer(text(1), 1), Offered::BeyondShare, "a part of what is left");
    drop((other, other_receiver));
    assert_eq!(slow.offer(text(1), 1), Offered::Taken);
    let limits = Limits { events: 2, ..WIDE };
    let narrow = SubscriberQueue::new(limits, &backlog);
    let _narrow_receiver = narrow.receiver(|| ());
    let offered = [(); 3].map(|()| narrow.offer(text(1), 1));
    assert_eq!(offered, [Offered::Taken, Offered::Taken, Offered::Missed]);
}

#[actix_web::test]
async fn dropped_queues_use_no_backlog() {
    let backlog = Backlog::alone(1000);
    let queue = SubscriberQueue::new(WIDE, &backlog);
    let receiver = queue.receiver(|| ());
    queue.push_anyway(text(10), ONE);
    drop(receiver);
    queue.push_anyway(text(10), ONE);
    assert_eq!(queue.offer(text(PIECE_BYTES + 1), 1), Offered::Taken);
    assert_eq!(queue.push_fetched(text(5), 1, Some(backlog.hold(9))), Offered::Taken);
    assert_eq!(backlog.bounds(), (1000, 0), "without a receiver, nothing is kept");
}

#[actix_web::test]
async fn a_writer_waits_for_its_own_receiver_only() {
    let backlog = Backlog::alone(1 << 20);
    let _stalled = backlog.hold(2 << 20);
    let queue = SubscriberQueue::new(WIDE, &backlog);
    let mut receiver = queue.receiver(|| ());
    for _ in 0..2 {
        let weight = Weight { events: 1, bytes: SHARE_MIN };
        assert!(queue.push(text(SHARE_MIN), weight), "what others hold refuses nothing");
    }
    assert!(queue.is_filling() && queue.room().now_or_never().is_none());
    assert!(next(&mut receiver).is_some());
    assert!(!queue.is_filling() && queue.room().now_or_never().is_some());
    queue.push_anyway(text(1), Weight { events: 1, bytes: 9 * SHARE_MIN });
    assert!(next(&mut receiver).is_some() && queue.room().now_or_never().is_none());
    assert!(next(&mut receiver).is_some() && queue.room().now_or_never().is_some());
}

#[actix_web::test]
async fn nothing_is_fetched_for_a_client_that_is_behind() {
    let queue = queue(LIMITS);
    let mut receiver = queue.receiver(|| ());
    queue.push_anyway('a', Weight { events: 1, bytes: 8 });
    let send_buffer = SendBuffer::unlimited();
    assert!(queue.drained(&send_buffer).now_or_never().is_none());
    assert!(queue.stalled_for().is_some());
    assert_eq!(next(&mut receiver), Some(Some(Delivery::Item('a'))));
    queue.drained(&send_buffer).await;
    assert!(queue.stalled_for().is_none());
}

#[actix_web::test]
async fn fetched_events_need_a_share_or_reserved_room() {
    let backlog = Backlog::alone(1 << 20);
    let others = backlog.hold(1 << 20);
    let queue = SubscriberQueue::new(WIDE, &backlog);
    let mut receiver = queue.receiver(|| ());
    let large = 2 * SHARE_MIN;
    assert_eq!(queue.push_fetched(text(large), 1, None), Offered::BeyondShare);
    assert!(next(&mut receiver).is_none(), "it is not there");
    let mut waiting = Box::pin(queue.reserve_shared(large));
    assert!(waiting.as_mut().now_or_never().is_none());
    assert_eq!(queue.push_fetched(text(SHARE_MIN), 1, None), Offered::Taken);
    assert!(next(&mut receiver).is_some());
    drop(others);
    let room = waiting.await;
    assert_eq!(backlog.bounds().1, large, "counted before it is there");
    assert_eq!(queue.push_fetched(text(large), 1, Some(room)), Offered::Taken);
    assert_eq!(backlog.bounds().1, large, "and once");
    drop(receiver);
    assert_eq!(backlog.bounds().1, 0);
}

#[actix_web::test]
async fn a_dropped_receiver_is_noticed() {
    let queue = queue::<char>(LIMITS);
    let is_dropped = Rc::new(std::cell::Cell::new(false));
    let flag = Rc::clone(&is_dropped);
    drop(queue.receiver(move || flag.set(true)));
    assert!(is_dropped.get() && !queue.has_receiver());
}
