//! Size of a page of a list, in records and in bytes.

/// Size of a page. One that would have more bytes is refused rather than cut, because a
/// caller could take records that are left out for records that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize {
    /// Maximum number of records.
    pub records: usize,
    /// Maximum of the bytes of all records, about as they are stored. One record alone may have more.
    pub bytes: usize,
}

impl PageSize {
    /// Returns the size of a page with this many records, whatever their bytes.
    pub const fn of(records: usize) -> Self {
        Self { records, bytes: usize::MAX }
    }

    /// Begins to fill a page.
    pub fn room(self) -> PageRoom {
        PageRoom { left: self.bytes, taken: 0 }
    }
}

/// Room that is left in a page, while its records are read.
#[derive(Debug)]
pub struct PageRoom {
    left: usize,
    taken: usize,
}

impl PageRoom {
    /// Takes room for the bytes of the next record. The first one has room, whatever its bytes.
    pub fn take(&mut self, bytes: usize) -> Result<(), PageTooLarge> {
        let left = self.left.checked_sub(bytes);
        if left.is_none() && self.taken > 0 {
            return Err(PageTooLarge { fits: self.taken });
        }
        self.left = left.unwrap_or(0);
        self.taken += 1;
        Ok(())
    }
}

/// Refusal of a page whose records have too many bytes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the records have too many bytes: only the first {fits} fit in one page")]
pub struct PageTooLarge {
    /// Number of records, from the start of the page, that fit; at least 1.
    pub fits: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_room_until_their_bytes_are_too_many() {
        for (bytes, records, expected) in [
            (10, &[4, 6][..], Ok(())),
            (10, &[4, 6, 0], Ok(())),
            (10, &[4, 7], Err(1)),
            (10, &[4, 6, 1], Err(2)),
            (10, &[11], Ok(())),
            (10, &[11, 1], Err(1)),
            (10, &[11, 0], Ok(())),
            (0, &[], Ok(())),
            (usize::MAX, &[usize::MAX, usize::MAX], Err(1)),
        ] {
            let mut room = PageSize { bytes, ..PageSize::of(9) }.room();
            let taken: Result<(), _> = records.iter().try_for_each(|bytes| room.take(*bytes));
            assert_eq!(taken.map_err(|it| it.fits), expected, "{records:?}");
        }
    }
}
