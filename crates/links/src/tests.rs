//! Both sides of a connection, with frames that travel at any time.

use std::sync::Arc;

use bytes::BytesMut;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use greenroom_actors::domain::cluster::NodeId;
use greenroom_actors::ports::links::Answerer;
use proptest::prelude::*;
use tokio::runtime::Handle;

use crate::answering::Answering;
use crate::asking::{Answers, Asking};
use crate::connection::Side;
use crate::frame::take;
use crate::limits::Limits;

/// Answers as the request says: two bytes for the size of each answer, in units.
struct Scripted;

const UNIT_BYTES: usize = 1000;

fn answers_of(request: &[u8]) -> Vec<Vec<u8>> {
    let size = |of: &[u8]| usize::from(of[0]) * 256 + usize::from(of[1]);
    let answer = |(index, of): (usize, &[u8])| vec![index as u8; size(of) * UNIT_BYTES];
    request.chunks(2).enumerate().map(answer).collect()
}

impl Answerer for Scripted {
    fn answer(&self, _: NodeId, request: Vec<u8>) -> BoxStream<'static, Vec<u8>> {
        stream::iter(answers_of(&request)).boxed()
    }
}

/// An event. Numbers choose among the exchanges there are.
#[derive(Debug, Clone)]
enum Happening {
    Ask(Vec<u16>),
    Read(usize),
    Leave(usize),
    /// So many frames arrive at the answerer.
    Forth(usize),
    /// So many frames arrive at the asker.
    Back(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    let size = prop_oneof![8 => 0u16..3, 1 => 60u16..400];
    prop_oneof![
        2 => prop::collection::vec(size, 0..40).prop_map(Happening::Ask),
        6 => any::<usize>().prop_map(Happening::Read),
        1 => any::<usize>().prop_map(Happening::Leave),
        4 => (1usize..5).prop_map(Happening::Forth),
        6 => (1usize..20).prop_map(Happening::Back),
    ]
}

/// Carries frames from one side to the other; returns false if there were none.
async fn carried(from: &impl Side, to: &impl Side, most: usize) -> bool {
    for index in 0..most {
        let mut bytes = Vec::new();
        if !from.take(&mut bytes) {
            return index > 0;
        }
        let frame = take(&mut BytesMut::from(bytes.as_slice())).unwrap().unwrap();
        to.receive(frame).unwrap();
        // tasks of answers
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    }
    true
}

struct Reader {
    answers: Answers,
    /// Answers that are expected, the next one last.
    expected: Vec<Vec<u8>>,
    has_ended: bool,
}

impl Reader {
    fn read(&mut self) -> bool {
        match self.answers.next().now_or_never() {
            Some(Some(answer)) => assert!(Some(answer.unwrap()) == self.expected.pop()),
            Some(None) => self.has_ended = true,
            None => return false,
        }
        !self.has_ended
    }
}

async fn played(happenings: Vec<Happening>) {
    let limits = Limits { message_bytes_max: 500 * UNIT_BYTES };
    let asking = Asking::new(limits);
    let answering = Answering::new(NodeId(1), Arc::new(Scripted), Handle::current(), limits);
    let mut readers: Vec<Reader> = Vec::new();
    for happening in happenings {
        match happening {
            Happening::Ask(sizes) => {
                let request: Vec<u8> = sizes.iter().flat_map(|size| size.to_be_bytes()).collect();
                let mut expected = answers_of(&request);
                expected.reverse();
                let answers = asking.ask(request.into()).unwrap();
                readers.push(Reader { answers, expected, has_ended: false });
            }
            Happening::Read(index) if !readers.is_empty() => {
                let count = readers.len();
                readers[index % count].read();
            }
            Happening::Leave(index) if !readers.is_empty() => {
                let count = readers.len();
                readers.swap_remove(index % count);
            }
            Happening::Read(_) | Happening::Leave(_) => {}
            Happening::Forth(frames) => {
                carried(&*asking, &answering, frames).await;
            }
            Happening::Back(frames) => {
                carried(&answering, &*asking, frames).await;
            }
        }
    }
    let mut is_moving = true;
    while is_moving {
        is_moving = carried(&*asking, &answering, 100).await;
        is_moving |= carried(&answering, &*asking, 100).await;
        for reader in &mut readers {
            is_moving |= reader.read();
        }
    }
    assert!(readers.iter().all(|reader| reader.has_ended && reader.expected.is_empty()));
    assert!(asking.is_idle() && answering.is_idle());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever the order in which frames arrive and answers are read, every answer arrives in its
    /// place, no limit is broken, and nothing is left.
    #[test]
    fn every_reader_receives_its_answers(
        happenings in prop::collection::vec(happening(), 0..120),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(played(happenings));
    }
}
