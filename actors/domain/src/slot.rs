//! Slots: the parts into which executions are divided, by their ids. A process owns whole slots.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::hash::long_hash;
use crate::ids::{ExecutionId, InvalidExecutionId};

/// Number of slots. Ids imply their slots, so it never changes.
pub const SLOTS: usize = 4096;

/// Length of a UUID as text, with hyphens.
const UUID_CHARS: usize = 36;
/// Place of the digit that is the version of a UUID.
const UUID_VERSION_AT: usize = 14;
/// Hexadecimal digits at the end of an id that are its slot.
const SLOT_DIGITS: usize = 3;
/// Digits before those of the slot that are the cell: the database cluster of the execution.
const CELL: &str = "00";

const WORD_BITS: usize = 64;

/// A slot: 0 to 4095.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u16);

impl Slot {
    /// Returns the slot with this number, if there is one.
    pub const fn new(number: u16) -> Option<Self> {
        if (number as usize) < SLOTS { Some(Self(number)) } else { None }
    }

    /// Returns all slots, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..SLOTS as u16).map(Self)
    }

    /// Returns the number of the slot.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Returns the slot of the last 12 bits.
    const fn of_bits(bits: u16) -> Self {
        Self(bits % SLOTS as u16)
    }

    const fn word(self) -> usize {
        self.0 as usize / WORD_BITS
    }

    const fn bit(self) -> u64 {
        1 << (self.0 as usize % WORD_BITS)
    }
}

/// Writes the slot as three hexadecimal digits, as ids have them.
impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0SLOT_DIGITS$x}", self.0)
    }
}

/// Returns the slot of an execution: the last three digits of its id if that is a UUID with hyphens
/// in lower case, else the last 12 bits of the id's SHA-256.
pub fn slot_of(id: &ExecutionId) -> Slot {
    let text = id.as_str();
    if !is_uuid(text) {
        let digest: [u8; 32] = Sha256::digest(text).into();
        return Slot::of_bits(u16::from_be_bytes([digest[30], digest[31]]));
    }
    let digits = text.bytes().skip(UUID_CHARS - SLOT_DIGITS);
    Slot::of_bits(digits.fold(0, |number, digit| number << 4 | value_of(digit)))
}

/// Makes the id of an execution from a new UUID: in the first cell, and in the given slot or in
/// that of the UUID's last digits. Another text is returned unchanged.
pub fn execution_id(uuid: &str, slot: Option<Slot>) -> ExecutionId {
    if !is_uuid(uuid) {
        return ExecutionId::trusted(uuid);
    }
    let (rest, own) = uuid.split_at(UUID_CHARS - SLOT_DIGITS);
    let rest = &rest[..rest.len() - CELL.len()];
    ExecutionId::trusted(match slot {
        Some(slot) => format!("{rest}{CELL}{slot}"),
        None => [rest, CELL, own].concat(),
    })
}

/// Returns the id of an execution that follows from the parts: the same parts give the same id. It is
/// a UUID of version 8, whose bits are free.
pub fn derived_execution_id(parts: &[&str], slot: Slot) -> ExecutionId {
    let hash = long_hash(parts);
    let (head, third, fourth) = (&hash[..8], &hash[13..16], &hash[17..20]);
    let uuid = format!("{head}-{}-8{third}-8{fourth}-{}", &hash[8..12], &hash[20..]);
    execution_id(&uuid, Some(slot))
}

/// Refusal of an id that a caller chose for an execution.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidChosenId {
    #[error(transparent)]
    Malformed(#[from] InvalidExecutionId),
    #[error(
        "must not be a UUID of version 8: those are the ids of executions that undo what others did"
    )]
    Reserved,
}

/// Parses the id that a caller chose for an execution. Derived ids are reserved: a caller who knows
/// what an execution is named after knows its id before it starts, and could take it.
pub fn chosen_execution_id(text: &str) -> Result<ExecutionId, InvalidChosenId> {
    let id = ExecutionId::parse(text)?;
    let may_be_derived = is_uuid(text) && text.as_bytes()[UUID_VERSION_AT] == b'8';
    if may_be_derived { Err(InvalidChosenId::Reserved) } else { Ok(id) }
}

/// Returns true for a UUID with hyphens and lower-case digits.
fn is_uuid(text: &str) -> bool {
    let is_in_place = |(place, byte): (usize, u8)| match place {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    text.len() == UUID_CHARS && text.bytes().enumerate().all(is_in_place)
}

/// Returns the value of a lower-case hexadecimal digit.
const fn value_of(digit: u8) -> u16 {
    match digit {
        b'a'..=b'f' => (digit - b'a') as u16 + 10,
        _ => (digit - b'0') as u16,
    }
}

/// A set of slots.
#[derive(Clone, PartialEq, Eq)]
pub struct SlotSet {
    words: [u64; SLOTS / WORD_BITS],
    count: usize,
}

impl SlotSet {
    /// Returns the empty set.
    pub const fn new() -> Self {
        Self { words: [0; SLOTS / WORD_BITS], count: 0 }
    }

    /// Returns the set of all slots.
    pub const fn all() -> Self {
        Self { words: [u64::MAX; SLOTS / WORD_BITS], count: SLOTS }
    }

    /// Returns true for the set of all slots.
    pub const fn is_all(&self) -> bool {
        self.count == SLOTS
    }

    /// Returns the number of slots in the set.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns true if no slot is in the set.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns true if the slot is in the set.
    pub const fn contains(&self, slot: Slot) -> bool {
        self.words[slot.word()] & slot.bit() != 0
    }

    /// Returns true if the slot of the execution is in the set.
    pub fn has(&self, id: &ExecutionId) -> bool {
        self.is_all() || !self.is_empty() && self.contains(slot_of(id))
    }

    /// Adds a slot; returns false if it was in the set.
    pub const fn insert(&mut self, slot: Slot) -> bool {
        let is_new = !self.contains(slot);
        self.words[slot.word()] |= slot.bit();
        self.count += is_new as usize;
        is_new
    }

    /// Removes a slot; returns false if it was not in the set.
    pub const fn remove(&mut self, slot: Slot) -> bool {
        let was_there = self.contains(slot);
        self.words[slot.word()] &= !slot.bit();
        self.count -= was_there as usize;
        was_there
    }

    /// Returns the slot at this place in the order of the set, counted from 0.
    pub fn nth(&self, mut place: usize) -> Option<Slot> {
        for (index, word) in self.words.iter().enumerate() {
            let here = word.count_ones() as usize;
            if place < here {
                let first = index * WORD_BITS;
                let slots = (first..first + WORD_BITS).map(|number| Slot(number as u16));
                return slots.filter(|slot| self.contains(*slot)).nth(place);
            }
            place -= here;
        }
        None
    }

    /// Returns the slots that are in this set and not in the other.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.iter().filter(|slot| !other.contains(*slot)).collect()
    }

    /// Returns the slots of the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        Slot::all().filter(|slot| self.contains(*slot))
    }
}

impl Default for SlotSet {
    fn default() -> Self {
        Self::new()
    }
}

impl Extend<Slot> for SlotSet {
    fn extend<T: IntoIterator<Item = Slot>>(&mut self, slots: T) {
        for slot in slots {
            self.insert(slot);
        }
    }
}

impl FromIterator<Slot> for SlotSet {
    fn from_iter<T: IntoIterator<Item = Slot>>(slots: T) -> Self {
        let mut set = Self::new();
        set.extend(slots);
        set
    }
}

/// Writes the number of slots, not each of them.
impl fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SlotSet({} of {SLOTS})", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "01932f6c-9d1e-7a3b-8c4d-5e6f70812abc";

    fn slot(number: u16) -> Slot {
        Slot::new(number).unwrap()
    }

    fn slot_of_text(text: &str) -> u16 {
        slot_of(&ExecutionId::trusted(text)).number()
    }

    #[test]
    fn the_slot_of_a_uuid_is_its_last_digits() {
        assert_eq!(slot_of_text(UUID), 0xabc);
        assert_eq!(slot_of_text("01932f6c-9d1e-7a3b-8c4d-5e6f70812000"), 0);
        assert_eq!(slot_of_text("01932f6c-9d1e-7a3b-8c4d-5e6f70812fff"), 0xfff);
    }

    #[test]
    fn other_ids_are_hashed() {
        // the last digits of `printf %s order-1 | sha256sum`, and so on: they never change
        for (id, slot) in [
            ("order-1", 0x057),
            ("", 0x855),
            ("01932F6C-9D1E-7A3B-8C4D-5E6F70812ABC", 0xa79),
            ("01932f6c9d1e7a3b8c4d5e6f70812abc", 0xc1a),
            ("01932f6c-9d1e-7a3b-8c4d-5e6f70812ab", 0xb34),
        ] {
            assert_eq!(slot_of_text(id), slot, "{id}");
        }
    }

    #[test]
    fn new_ids_are_in_the_first_cell_and_in_their_slot() {
        let own = execution_id(UUID, None);
        assert_eq!(own.as_str(), "01932f6c-9d1e-7a3b-8c4d-5e6f70800abc");
        let placed = execution_id(UUID, Some(slot(0x07f)));
        assert_eq!(placed.as_str(), "01932f6c-9d1e-7a3b-8c4d-5e6f7080007f");
        assert_eq!(slot_of(&placed), slot(0x07f));
        assert_eq!(execution_id("id-0001", Some(slot(5))).as_str(), "id-0001");
    }

    #[test]
    fn derived_ids_cannot_be_chosen() {
        let derived = derived_execution_id(&["o-1", "charge:compensate", "1"], slot(5));
        let others = ["order-8", "8", UUID].map(|id| (id, Ok(ExecutionId::trusted(id))));
        let refused = [
            (derived.as_str(), Err(InvalidChosenId::Reserved)),
            ("a b", Err(InvalidChosenId::Malformed(InvalidExecutionId))),
        ];
        for (id, expected) in others.into_iter().chain(refused) {
            assert_eq!(chosen_execution_id(id), expected, "{id}");
        }
    }

    #[test]
    fn a_set_has_the_slots_that_were_inserted() {
        assert_eq!(Slot::new(4096), None);
        let numbers = [0, 63, 64, 100, 4095];
        let mut set: SlotSet = numbers.map(slot).into_iter().collect();
        assert_eq!(set.iter().map(Slot::number).collect::<Vec<_>>(), numbers);
        assert!(!set.insert(slot(64)) && set.len() == 5, "inserted twice");
        assert!(set.remove(slot(64)) && !set.remove(slot(64)));
        assert!(!set.contains(slot(64)) && set.contains(slot(63)) && set.len() == 4);
        let in_order = [0, 1, 2, 3, 4].map(|place| set.nth(place).map(Slot::number));
        assert_eq!(in_order, [Some(0), Some(63), Some(100), Some(4095), None]);
        let others = [100, 200].map(slot).into_iter().collect();
        assert_eq!(set.without(&others), [0, 63, 4095].map(slot).into_iter().collect());
        assert!(set.has(&ExecutionId::trusted("01932f6c-9d1e-7a3b-8c4d-5e6f70800064")));
        assert!(!set.has(&ExecutionId::trusted(UUID)));
    }

    #[test]
    fn all_slots_are_a_set() {
        let all = SlotSet::all();
        assert!(all.is_all() && !all.is_empty() && all.iter().count() == SLOTS);
        let mut built = SlotSet::new();
        assert!(built.is_empty() && !built.is_all());
        built.extend((0..4096).map(slot));
        assert_eq!(built, all);
        assert!(built.remove(slot(1)) && !built.is_all());
    }
}
