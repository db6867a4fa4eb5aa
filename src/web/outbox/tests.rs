//! Queues without a connection.

use futures_util::{FutureExt, StreamExt};

use super::*;
use crate::web::backlog::SHARE_MIN;

const LIMITS: Limits = Limits { events: 2, bytes: 10 };
const ONE: Weight = Weight { events: 1, bytes: 1 };

fn outbox<T>(limits: Limits) -> Outbox<T> {
    Outbox::new(limits, &Backlog::alone(1000))
}

fn next<T>(reader: &mut OutboxReader<T>) -> Option<Option<Out<T>>> {
    reader.next().now_or_never()
}

#[actix_web::test]
async fn what_finds_no_room_is_counted_at_its_place() {
    let outbox = outbox(LIMITS);
    let mut reader = outbox.reader(|| ());
    assert!(outbox.push('a', ONE) && outbox.push('b', ONE));
    assert!(!outbox.push('c', ONE) && !outbox.push('d', ONE));
    assert!(outbox.stalled_for().is_some());
    assert_eq!(next(&mut reader), Some(Some(Out::Item('a'))));
    assert!(outbox.stalled_for().is_none());
    assert!(outbox.push('e', ONE));
    let rest: Vec<_> = std::iter::from_fn(|| next(&mut reader).flatten()).collect();
    assert_eq!(rest, [Out::Item('b'), Out::Missed(2), Out::Item('e')]);
    outbox.finish();
    assert_eq!(next(&mut reader), Some(None));
}

#[actix_web::test]
async fn bytes_are_limited_too_but_something_always_fits() {
    let outbox = outbox(LIMITS);
    let mut reader = outbox.reader(|| ());
    assert!(outbox.push("large", Weight { events: 1, bytes: 50 }));
    assert!(!outbox.push("small", ONE));
    outbox.finish();
    assert_eq!(next(&mut reader), Some(Some(Out::Item("large"))));
    assert_eq!(next(&mut reader), Some(Some(Out::Missed(1))));
    assert_eq!(next(&mut reader), Some(None));
}

#[actix_web::test]
async fn what_nobody_misses_leaves_room_and_is_not_counted() {
    let outbox = outbox(Limits { events: 4, bytes: 10 });
    let mut reader = outbox.reader(|| ());
    for letter in ['a', 'b', 'c'] {
        outbox.push_if_roomy(letter, ONE);
    }
    outbox.push_if_roomy('x', Weight { events: 1, bytes: 9 });
    assert!(outbox.stalled_for().is_none());
    assert!(outbox.push('d', ONE) && outbox.push('e', ONE));
    let all: Vec<_> = std::iter::from_fn(|| next(&mut reader).flatten()).collect();
    assert_eq!(all, ['a', 'b', 'd', 'e'].map(Out::Item));
}

#[actix_web::test]
async fn a_writer_can_wait_for_room() {
    let outbox = outbox(LIMITS);
    let mut reader = outbox.reader(|| ());
    outbox.push_anyway('a', ONE);
    assert!(outbox.room().now_or_never().is_some());
    outbox.push_anyway('b', ONE);
    assert!(outbox.room().now_or_never().is_none());
    assert!(outbox.stalled_for().is_some());
    assert_eq!(next(&mut reader), Some(Some(Out::Item('a'))));
    assert!(outbox.room().now_or_never().is_some());
}

/// Bounds that what all hold reaches first.
const WIDE: Limits = Limits { events: 1000, bytes: 1 << 20 };

fn text(bytes: usize) -> Bytes {
    Bytes::from(vec![b'x'; bytes])
}

#[actix_web::test]
async fn all_queues_together_are_limited_but_who_reads_loses_nothing() {
    let backlog = Backlog::alone(1 << 20);
    let stalled = backlog.hold(2 << 20);
    let (slow, other) = (Outbox::new(WIDE, &backlog), Outbox::new(WIDE, &backlog));
    let (_slow_end, mut other_end) = (slow.reader(|| ()), other.reader(|| ()));
    for outbox in [&slow, &other] {
        assert_eq!(outbox.offer(text(3 * PIECE_BYTES), 1), Offered::Taken, "it was empty");
        assert_eq!(outbox.offer(text(1), 1), Offered::BeyondShare);
    }
    for _ in 0..3 {
        let Some(Some(Out::Item(piece))) = next(&mut other_end) else { panic!("no piece") };
        assert_eq!(piece.len(), PIECE_BYTES);
    }
    assert!(next(&mut other_end).is_none(), "nothing is said to be missing");
    assert_eq!(other.offer(text(SHARE_MIN / 2), 1), Offered::Taken);
    assert_eq!(other.offer(text(SHARE_MIN / 2), 1), Offered::Taken);
    assert_eq!(slow.offer(text(1), 1), Offered::BeyondShare);
    drop(stalled);
    assert_eq!(slow.offer(text(1), 1), Offered::BeyondShare, "a part of what is left");
    drop((other, other_end));
    assert_eq!(slow.offer(text(1), 1), Offered::Taken);
    let limits = Limits { events: 2, ..WIDE };
    let narrow = Outbox::new(limits, &backlog);
    let _narrow_end = narrow.reader(|| ());
    let offered = [(); 3].map(|()| narrow.offer(text(1), 1));
    assert_eq!(offered, [Offered::Taken, Offered::Taken, Offered::Missed]);
}

#[actix_web::test]
async fn what_is_gone_takes_no_room() {
    let backlog = Backlog::alone(1000);
    let outbox = Outbox::new(WIDE, &backlog);
    let reader = outbox.reader(|| ());
    outbox.push_anyway(text(10), ONE);
    drop(reader);
    outbox.push_anyway(text(10), ONE);
    assert_eq!(outbox.offer(text(PIECE_BYTES + 1), 1), Offered::Taken);
    assert_eq!(outbox.pass_on(text(5), 1, Some(backlog.hold(9))), Offered::Taken);
    assert_eq!(backlog.bounds(), (1000, 0), "nobody will read it");
}

#[actix_web::test]
async fn a_writer_waits_for_its_own_reader_and_for_nobody_else() {
    let backlog = Backlog::alone(1 << 20);
    let _stalled = backlog.hold(2 << 20);
    let outbox = Outbox::new(WIDE, &backlog);
    let mut reader = outbox.reader(|| ());
    for _ in 0..2 {
        let weight = Weight { events: 1, bytes: SHARE_MIN };
        assert!(outbox.push(text(SHARE_MIN), weight), "what others hold refuses nothing");
    }
    assert!(outbox.is_filling() && outbox.room().now_or_never().is_none());
    assert!(next(&mut reader).is_some());
    assert!(!outbox.is_filling() && outbox.room().now_or_never().is_some());
    outbox.push_anyway(text(1), Weight { events: 1, bytes: 9 * SHARE_MIN });
    assert!(next(&mut reader).is_some() && outbox.room().now_or_never().is_none());
    assert!(next(&mut reader).is_some() && outbox.room().now_or_never().is_some());
}

#[actix_web::test]
async fn nothing_is_fetched_for_a_reader_that_is_behind() {
    let outbox = outbox(LIMITS);
    let mut reader = outbox.reader(|| ());
    outbox.push_anyway('a', Weight { events: 1, bytes: 8 });
    let room = Room::plenty();
    assert!(outbox.drained(&room).now_or_never().is_none());
    assert!(outbox.stalled_for().is_some());
    assert_eq!(next(&mut reader), Some(Some(Out::Item('a'))));
    outbox.drained(&room).await;
    assert!(outbox.stalled_for().is_none());
}

#[actix_web::test]
async fn what_was_fetched_is_a_share_or_has_had_room_made_for_it() {
    let backlog = Backlog::alone(1 << 20);
    let others = backlog.hold(1 << 20);
    let outbox = Outbox::new(WIDE, &backlog);
    let mut reader = outbox.reader(|| ());
    let large = 2 * SHARE_MIN;
    assert_eq!(outbox.pass_on(text(large), 1, None), Offered::BeyondShare);
    assert!(next(&mut reader).is_none(), "it is not there");
    let mut waiting = Box::pin(outbox.room_of_all(large));
    assert!(waiting.as_mut().now_or_never().is_none());
    assert_eq!(outbox.pass_on(text(SHARE_MIN), 1, None), Offered::Taken);
    assert!(next(&mut reader).is_some());
    drop(others);
    let room = waiting.await;
    assert_eq!(backlog.bounds().1, large, "counted before it is there");
    assert_eq!(outbox.pass_on(text(large), 1, Some(room)), Offered::Taken);
    assert_eq!(backlog.bounds().1, large, "and once");
    drop(reader);
    assert_eq!(backlog.bounds().1, 0);
}

#[actix_web::test]
async fn a_reader_that_goes_is_heard_of() {
    let outbox = outbox::<char>(LIMITS);
    let heard = Rc::new(std::cell::Cell::new(false));
    let told = Rc::clone(&heard);
    drop(outbox.reader(move || told.set(true)));
    assert!(heard.get() && !outbox.has_reader());
}
