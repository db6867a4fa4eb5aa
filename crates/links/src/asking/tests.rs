//! The asking side without a connection.

use futures_util::{FutureExt as _, StreamExt as _};

use super::*;
use crate::frame::{PART_BYTES_MAX, take};

fn asking() -> Arc<Asking> {
    Asking::new(Limits { message_bytes_max: 4 * PART_BYTES_MAX })
}

/// Takes one frame that waits to be sent.
fn sent(asking: &Asking) -> Option<Frame> {
    let mut bytes = Vec::new();
    asking.take(&mut bytes).then(|| take(&mut BytesMut::from(bytes.as_slice())).unwrap().unwrap())
}

fn answer(number: Number, bytes: &[u8]) -> Frame {
    let bytes = BytesMut::from(bytes);
    Frame::Part { carried: Carried::Answer, number, is_last: true, bytes }
}

/// Returns what the reader has now; `None`: nothing yet.
fn read(answers: &mut Answers) -> Option<Option<Result<Vec<u8>, LinkError>>> {
    answers.next().now_or_never()
}

#[test]
fn a_request_is_lost_only_if_all_of_it_was_sent() {
    let asking = asking();
    let mut whole = asking.ask(vec![1].into()).unwrap();
    let mut part = asking.ask(vec![0; 2 * PART_BYTES_MAX].into()).unwrap();
    let mut none = asking.ask(vec![0; 2 * PART_BYTES_MAX].into()).unwrap();
    sent(&asking).unwrap();
    sent(&asking).unwrap();
    asking.lose();
    assert_eq!(read(&mut whole), Some(Some(Err(LinkError::Lost))));
    assert_eq!(read(&mut part), Some(Some(Err(LinkError::NotSent))));
    assert_eq!(read(&mut none), Some(Some(Err(LinkError::NotSent))));
    assert_eq!(read(&mut none), Some(None), "it ends after the failure");
    assert!(asking.ask(vec![1].into()).is_err() && sent(&asking).is_none());
}

#[test]
fn answers_that_arrived_are_read_before_the_failure() {
    let asking = asking();
    let mut answers = asking.ask(vec![1].into()).unwrap();
    assert_eq!(read(&mut answers), None);
    sent(&asking).unwrap();
    asking.receive(answer(1, b"first")).unwrap();
    asking.receive(answer(1, b"second")).unwrap();
    asking.lose();
    assert_eq!(read(&mut answers), Some(Some(Ok(b"first".to_vec()))));
    assert_eq!(read(&mut answers), Some(Some(Ok(b"second".to_vec()))));
    assert_eq!(read(&mut answers), Some(Some(Err(LinkError::Lost))));
}

#[test]
fn the_answerer_learns_that_the_asker_is_gone_if_it_knows_the_request() {
    let asking = asking();
    let unsent = asking.ask(vec![1].into()).unwrap();
    drop(unsent);
    assert_eq!(sent(&asking), None);
    let partly_sent = asking.ask(vec![0; 2 * PART_BYTES_MAX].into()).unwrap();
    sent(&asking).unwrap();
    drop(partly_sent);
    assert_eq!(sent(&asking), Some(Frame::Control(Control::Gone(2))));
    assert_eq!((sent(&asking), asking.queued_bytes()), (None, 0), "the rest is not sent");
    let ended = asking.ask(vec![1].into()).unwrap();
    sent(&asking).unwrap();
    asking.receive(Frame::Control(Control::Ended(3))).unwrap();
    drop(ended);
    assert_eq!(sent(&asking), None);
    asking.receive(answer(2, b"late")).unwrap();
}

#[test]
fn requests_are_refused_when_too_much_waits() {
    let asking = asking();
    let too_large = asking.ask(vec![0; 4 * PART_BYTES_MAX + 1].into());
    assert_eq!(too_large.unwrap_err(), LinkError::TooLarge);
    let waiting: Vec<_> = (0..2).map(|_| asking.ask(vec![0; 4 * PART_BYTES_MAX].into())).collect();
    assert!(waiting.iter().all(Result::is_ok));
    assert!(asking.ask(vec![1].into()).is_err());
    sent(&asking).unwrap();
    assert!(asking.ask(vec![1].into()).is_ok());
    let small: Vec<_> = std::iter::from_fn(|| asking.ask(Bytes::new()).ok()).collect();
    assert_eq!(small.len(), Limits::EXCHANGES_MAX - 2, "one has ended");
}

#[test]
fn an_answerer_that_sends_more_than_there_is_room_for_is_refused() {
    let asking = asking();
    let mut answers = asking.ask(vec![1].into()).unwrap();
    sent(&asking).unwrap();
    for _ in 0..16 {
        asking.receive(answer(1, b"x")).unwrap();
    }
    assert_eq!(asking.receive(answer(1, b"x")), Err(Violation::NoRoom));
    for _ in 0..8 {
        assert_eq!(sent(&asking), None);
        read(&mut answers).unwrap();
    }
    let room = Credit { messages: 8, bytes: 8 };
    assert_eq!(sent(&asking), Some(Frame::Control(Control::Room(1, room))));
    asking.receive(answer(1, b"x")).unwrap();
    let part = |bytes: usize, is_last| Frame::Part {
        carried: Carried::Answer,
        number: 1,
        is_last,
        bytes: BytesMut::from(vec![0; bytes].as_slice()),
    };
    for _ in 0..4 {
        asking.receive(part(PART_BYTES_MAX, false)).unwrap();
    }
    assert_eq!(asking.receive(part(1, true)), Err(Violation::MessageTooLarge));
}

#[test]
fn frames_of_the_other_direction_are_refused() {
    let asking = asking();
    let bytes = BytesMut::new();
    let request = Frame::Part { carried: Carried::Request, number: 1, is_last: true, bytes };
    for frame in [request, Frame::Control(Control::Gone(1))] {
        assert_eq!(asking.receive(frame), Err(Violation::Direction));
    }
}
