//! Large answers, given to the connection piece by piece.
//!
//! actix-web would copy a whole body for each connection before it writes any of it. Unsent bytes
//! are counted, separately from streams, unless they are shared with other answers.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::HttpResponse;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::web::Bytes;

use crate::web::backlog::{Backlog, Held};

/// Largest answer that is sent as a whole.
const LARGE_BYTES: u64 = 64 * 1024;
const PIECE_BYTES: usize = 32 * 1024;

/// Splits a large answer into pieces. If it may be refused and too many bytes are queued already,
/// returns its head as an error.
pub(crate) fn in_pieces(
    response: HttpResponse,
    may_refuse: bool,
    backlog: &Backlog,
) -> Result<HttpResponse, HttpResponse<()>> {
    if !matches!(response.body().size(), BodySize::Sized(length) if length > LARGE_BYTES) {
        return Ok(response);
    }
    let (head, body) = response.into_parts();
    let rest = match body.try_into_bytes() {
        Ok(bytes) => bytes,
        // A file, which is streamed in pieces anyway.
        Err(body) => return Ok(head.set_body(body)),
    };
    let held = match backlog.try_hold(rest.len()) {
        _ if !rest.is_unique() => None,
        None if may_refuse => return Err(head),
        None => Some(backlog.hold(rest.len())),
        held => held,
    };
    Ok(head.set_body(BoxBody::new(Pieces { rest, _held: held })))
}

struct Pieces {
    rest: Bytes,
    _held: Option<Held>,
}

impl MessageBody for Pieces {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.rest.len() as u64)
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Infallible>>> {
        let length = self.rest.len().min(PIECE_BYTES);
        Poll::Ready((length > 0).then(|| Ok(self.rest.split_to(length))))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn answer(bytes: impl Into<Bytes>) -> HttpResponse {
        HttpResponse::Ok().body(bytes.into())
    }

    #[test]
    fn a_large_answer_is_split_and_counted_until_it_is_sent() {
        let backlog = Backlog::alone(150_000);
        let small = in_pieces(answer(vec![1; 65_536]), true, &backlog).unwrap();
        assert_eq!(small.into_body().try_into_bytes().unwrap().len(), 65_536);
        let text: Vec<u8> = (0..100_000).map(|at| at.to_string().as_bytes()[0]).collect();
        let paced = in_pieces(answer(text.clone()), true, &backlog);
        let mut body = paced.unwrap().into_body();
        assert_eq!(body.size(), BodySize::Sized(100_000));
        let mut read = Vec::new();
        let mut next =
            || std::future::poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).now_or_never().unwrap();
        while let Some(Ok(piece)) = next() {
            assert!(piece.len() <= PIECE_BYTES);
            read.extend_from_slice(&piece);
        }
        assert_eq!(read, text);
        assert_eq!(backlog.bounds().1, 100_000, "counted as long as the connection holds it");
        drop(body);
        assert_eq!(backlog.bounds().1, 0);
    }

    #[test]
    fn only_reads_are_refused_when_the_backlog_is_full() {
        let backlog = Backlog::alone(150_000);
        let _first = in_pieces(answer(vec![1; 100_000]), true, &backlog);
        let refused = in_pieces(answer(vec![1; 100_000]), true, &backlog);
        assert!(refused.is_err());
        let done = in_pieces(answer(vec![1; 100_000]), false, &backlog);
        assert!(done.is_ok(), "a change is always answered");
        let page = Bytes::from(vec![1; 100_000]);
        let shown = in_pieces(answer(page.clone()), true, &backlog);
        assert!(shown.is_ok() && !page.is_empty(), "shared bytes are not counted");
    }
}
