//! Parts of an execution's facts, limited in bytes.

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{FactCursor, Mark, Portion};
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::numbers::signed;
use greenroom_store_codec::portion::{Filling, Walk, Window};

use crate::columns::{Stored, bytes_of};
use crate::pieces::{
    BYTES, CHUNKS, Key, LENGTH, OWN, OWN_AND_CHUNKS, behind, first_above, key_of, next_key, pieces,
    window,
};
use crate::pool::{Failure, Reading};

/// Reads facts from a place on, about `bytes` in their stored size, including at least one with an
/// event if there is one.
pub(crate) async fn portion(
    reading: Reading,
    id: &ExecutionId,
    from: FactCursor,
    bytes: usize,
) -> Result<Portion, Failure> {
    match read(&reading, id, from, bytes).await {
        // the mark belongs to other content
        Err(Failure::Damaged(_)) if from.mark.is_some() => {
            read(&reading, id, FactCursor::above(from.above), bytes).await
        }
        read => read,
    }
}

async fn read(
    reading: &Reading,
    id: &ExecutionId,
    from: FactCursor,
    bytes: usize,
) -> Result<Portion, Failure> {
    let filling = Filling::new(from.above, bytes);
    let next = async |sql, key, offset, filling: &Filling| {
        let (window, start) = (filling.window(offset), filling.window(0).at);
        pieces(reading, sql, id, key, window, start, signed(window.length as u64)).await
    };
    let (mut rows, mut offset) = (Vec::new(), 0);
    if let Some(Mark { piece, offset: at }) = from.mark {
        offset = at;
        if let Some(key) = piece {
            rows = next(CHUNKS, key, offset, &filling).await?;
            if rows.first().map(key_of).transpose()? != Some(key) {
                (rows, offset) = (Vec::new(), 0);
            }
        }
    }
    if rows.is_empty() {
        rows = next(OWN_AND_CHUNKS, first_above(from.above), offset, &filling).await?;
    }
    if rows.is_empty() {
        return Ok(Portion { facts: Vec::new(), next: FactCursor::above(from.above) });
    }
    let mut passage = Passage::new(from.above, filling, offset);
    loop {
        let wanted;
        let bytes = bytes_of(&rows);
        (passage, wanted) = reading.decoders.decode(bytes, move || passage.take(&rows)).await?;
        rows = match wanted {
            Wanted::Pieces(key) => next(CHUNKS, key, 0, &passage.filling).await?,
            Wanted::Window(key, part) => window(reading, id, key, part).await?,
            Wanted::Nothing => return Ok(passage.into_portion()),
        };
    }
}

/// Rows to read next.
enum Wanted {
    /// Chunks from a key on.
    Pieces(Key),
    /// One row with a part of a piece.
    Window(Key, Window),
    Nothing,
}

/// A pass over pieces that fills a portion.
struct Passage {
    above: u64,
    filling: Filling,
    /// Place in the first piece from which to read.
    start: u64,
    /// The piece that was read last, and the place behind the facts that were taken from it.
    key: Key,
    offset: u64,
    /// The rest of that piece, if it is read in several windows.
    walk: Option<Walk>,
}

impl Passage {
    fn new(above: u64, filling: Filling, start: u64) -> Self {
        Self { above, filling, start, key: OWN, offset: 0, walk: None }
    }

    /// Takes facts from the rows that were read; returns what to read next.
    fn take(mut self, rows: &[Stored]) -> Result<(Self, Wanted), Failure> {
        let wanted = match self.walk.take() {
            Some(walk) => self.take_window(walk, rows)?,
            None => self.take_pieces(rows)?,
        };
        Ok((self, wanted))
    }

    fn take_pieces(&mut self, pieces: &[Stored]) -> Result<Wanted, Failure> {
        for piece in pieces {
            let key = key_of(piece)?;
            let Some(head) = piece.optional_bytes(BYTES)? else { return Ok(Wanted::Pieces(key)) };
            let (length, start) = (piece.unsigned(LENGTH)?, std::mem::take(&mut self.start));
            let mut walk = Walk::of_chunk(&mut self.filling, length, start);
            if walk.next_window(&self.filling).is_some() {
                walk.take(&mut self.filling, head)?;
            }
            self.key = key;
            if let Some(wanted) = self.note(walk) {
                return Ok(wanted);
            }
        }
        Ok(next_key(pieces)?.map_or(Wanted::Nothing, Wanted::Pieces))
    }

    fn take_window(&mut self, mut walk: Walk, rows: &[Stored]) -> Result<Wanted, Failure> {
        // another server may have deleted the execution meanwhile
        let row = rows.first().ok_or_else(|| Failure::Damaged("a part is missing".to_owned()))?;
        walk.take(&mut self.filling, row.bytes(0)?)?;
        let behind = match self.key {
            OWN => first_above(self.above),
            key => behind(key),
        };
        Ok(self.note(walk).unwrap_or(Wanted::Pieces(behind)))
    }

    /// Notes the place behind the facts that were taken from a piece. Returns what to read next,
    /// unless it is the next piece.
    fn note(&mut self, walk: Walk) -> Option<Wanted> {
        self.offset = walk.offset();
        if self.filling.is_full() {
            return Some(Wanted::Nothing);
        }
        let window = walk.next_window(&self.filling)?;
        self.walk = Some(walk);
        Some(Wanted::Window(self.key, window))
    }

    fn into_portion(self) -> Portion {
        let piece = (self.key != OWN).then_some(self.key);
        self.filling.into_portion(piece, self.offset)
    }
}
