//! The answering side without a connection.

use futures_util::stream::{self, BoxStream};

use super::*;
use crate::frame::{PART_BYTES_MAX, take};

/// Answers with as many bytes as the request's first byte says, again and again.
struct Endless;

impl Answerer for Endless {
    fn answer(&self, _: NodeId, request: Vec<u8>) -> BoxStream<'static, Vec<u8>> {
        let answer = vec![0; usize::from(request[0]) * 1024];
        stream::repeat(answer).boxed()
    }
}

fn answering() -> Arc<Answering> {
    let limits = Limits { message_bytes_max: 4 * PART_BYTES_MAX };
    Answering::new(NodeId(1), Arc::new(Endless), Handle::current(), limits)
}

fn request(number: Number, is_last: bool, bytes: &[u8]) -> Frame {
    let bytes = BytesMut::from(bytes);
    Frame::Part { carried: Carried::Request, number, is_last, bytes }
}

/// Lets tasks run and takes everything that waits to be sent, until nothing comes.
async fn sent(answering: &Arc<Answering>) -> Vec<Frame> {
    let mut frames = Vec::new();
    loop {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let mut bytes = Vec::new();
        while answering.take(&mut bytes) {}
        if bytes.is_empty() {
            return frames;
        }
        let mut bytes = BytesMut::from(bytes.as_slice());
        while let Some(frame) = take(&mut bytes).unwrap() {
            frames.push(frame);
        }
    }
}

#[tokio::test]
async fn answers_stop_where_the_room_of_the_asker_ends() {
    let answering = answering();
    answering.receive(request(1, true, &[1])).unwrap();
    answering.receive(request(2, true, &[100])).unwrap();
    let frames = sent(&answering).await;
    let ends = |frames: &[Frame], of| {
        let is_end = |frame: &&Frame| matches!(frame, Frame::Part { number, is_last: true, .. } if *number == of);
        frames.iter().filter(is_end).count()
    };
    assert_eq!((ends(&frames, 1), ends(&frames, 2)), (16, 3), "by number, and by size");
    let room = Credit { messages: 5, bytes: 5 * 1024 };
    answering.receive(Frame::Control(Control::Room(1, room))).unwrap();
    let frames = sent(&answering).await;
    assert_eq!((ends(&frames, 1), ends(&frames, 2)), (5, 0));
}

#[tokio::test]
async fn room_that_askers_leave_is_used_by_others() {
    let answering = answering();
    for number in 0..100 {
        answering.receive(request(number, true, &[100])).unwrap();
    }
    let run = async || {
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
    };
    run().await;
    let most = answering.limits.queued_bytes_max();
    let queued = || answering.state().outbox.queued_bytes();
    assert!(queued() >= most);
    // those that have answered leave, while nothing is sent
    let answered = |number: &Number| match answering.state().exchanges.get(number) {
        Some(Exchange::Answering(exchange)) => exchange.has_answered,
        _ => false,
    };
    let gone: Vec<Number> = (0..100).filter(answered).collect();
    assert!(gone.len() < 100, "some wait for room");
    for number in gone {
        answering.receive(Frame::Control(Control::Gone(number))).unwrap();
    }
    assert_eq!(queued(), 0);
    run().await;
    assert!(queued() > 0, "the others answer");
}

#[tokio::test]
async fn a_connection_that_sends_nothing_asks_for_no_more_answers() {
    let answering = answering();
    for number in 0..100 {
        answering.receive(request(number, true, &[100])).unwrap();
    }
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let queued = answering.state().outbox.queued_bytes();
    let most = answering.limits.queued_bytes_max();
    assert!(queued >= most && queued < most + 100 * 1024, "{queued} of {most}");
    let numbers: std::collections::BTreeSet<Number> =
        sent(&answering).await.iter().filter_map(number_of).collect();
    assert_eq!(numbers.len(), 100, "each had its turn");
}

fn number_of(frame: &Frame) -> Option<Number> {
    match frame {
        Frame::Part { number, .. } => Some(*number),
        Frame::Control(_) => None,
    }
}

/// Receives full parts of requests with these numbers; returns the first refusal.
fn refused(numbers: impl IntoIterator<Item = Number>) -> Option<Violation> {
    let (answering, part) = (answering(), vec![0; PART_BYTES_MAX]);
    let mut numbers = numbers.into_iter();
    numbers.find_map(|number| answering.receive(request(number, false, &part)).err())
}

#[tokio::test]
async fn breaches_of_limits_are_refused() {
    assert_eq!(refused([1; 4]), None);
    assert_eq!(refused([1; 5]), Some(Violation::MessageTooLarge));
    assert_eq!(refused(0..8), None);
    assert_eq!(refused(0..9), Some(Violation::TooManyBytes));

    let answering = answering();
    answering.receive(request(1, true, &[1])).unwrap();
    assert_eq!(answering.receive(request(1, true, &[1])), Err(Violation::NumberUsed));
    for number in 2..=65_536 {
        answering.receive(request(number, false, &[])).unwrap();
    }
    let one_more = answering.receive(request(65_537, false, &[]));
    assert_eq!(one_more, Err(Violation::TooManyExchanges));
    for frame in [Control::Ended(1), Control::Failed(1)] {
        assert_eq!(answering.receive(Frame::Control(frame)), Err(Violation::Direction));
    }
}

#[tokio::test]
async fn requests_that_were_taken_back_are_no_longer_counted() {
    let answering = answering();
    for number in 0..100 {
        answering.receive(request(number, false, &[0; 4096])).unwrap();
        answering.receive(Frame::Control(Control::Gone(number))).unwrap();
    }
    assert_eq!(answering.state().partial_bytes, 0);
    answering.receive(request(100, false, &[1])).unwrap();
    answering.receive(request(100, true, &[2])).unwrap();
    assert_eq!(answering.state().partial_bytes, 0);
    answering.lose();
    assert!(answering.state().exchanges.is_empty() && sent(&answering).await.is_empty());
}
