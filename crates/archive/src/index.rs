//! Hash tables that are read in place: of the entries of a segment, and of the names in a directory.
//!
//! A table's number of slots is a power of two, and more than its number of items. An item is in the slot that the low bits of its checksum
//! select, or in the next free one (linear probing, downwards).

use record::Record;

use crate::records::Slot;

/// A table with a correct checksum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Index<'a> {
    slots: &'a [[u8; Slot::SIZE]],
}

impl<'a> Index<'a> {
    /// Parses a table of `slots` slots at the start of `bytes`; `None` if it cannot be one.
    pub fn parse(bytes: &'a [u8], slots: u32) -> Option<Self> {
        let size = (slots as usize).checked_mul(Slot::SIZE)?;
        let (slots, _) = bytes.get(..size)?.as_chunks();
        slots.len().is_power_of_two().then_some(Index { slots })
    }

    /// The places of the items that may have this checksum.
    pub fn places(self, sum: u32) -> impl Iterator<Item = u32> + 'a {
        let mask = self.slots.len() - 1;
        (0..self.slots.len())
            .map(move |step| Slot::decode(&self.slots[(sum as usize).wrapping_add(step) & mask]))
            .take_while(|slot| slot.place != 0)
            .filter(move |slot| slot.key_sum == sum)
            .map(|slot| slot.place)
    }

    /// The places of all items, in the order of the slots.
    pub fn all(self) -> impl Iterator<Item = u32> + 'a {
        self.slots.iter().map(|slot| Slot::decode(slot).place).filter(|place| *place != 0)
    }
}

/// The number of slots for this many items: at least a quarter of them stay free.
pub(crate) fn slots_for(things: usize) -> usize {
    (things * 4).div_ceil(3).max(4).next_power_of_two()
}

/// Encodes a table of items with these checksums and places.
pub(crate) fn build(things: &[(u32, u32)]) -> Vec<u8> {
    let slots = slots_for(things.len());
    let mut bytes = vec![0; slots * Slot::SIZE];
    let (chunks, _) = bytes.as_chunks_mut::<{ Slot::SIZE }>();
    for (key_sum, place) in things {
        let mut at = *key_sum as usize & (slots - 1);
        while Slot::decode(&chunks[at]).place != 0 {
            at = (at + 1) & (slots - 1);
        }
        Slot { key_sum: *key_sum, place: *place }.encode(&mut chunks[at]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_found_and_nothing_else() {
        // Few low bits differ, so that slots collide and wrap around the end.
        let things: Vec<(u32, u32)> = (1..200).map(|number| (number << 28 | 0xfe, number)).collect();
        let bytes = build(&things);
        let index = Index::parse(&bytes, slots_for(things.len()) as u32).unwrap();
        for (sum, place) in &things {
            assert!(index.places(*sum).any(|found| found == *place));
        }
        assert_eq!(index.places(0xff).count(), 0);
        assert_eq!(index.all().count(), things.len());
    }

    #[test]
    fn a_full_table_ends_too() {
        let full = [0xff; 4 * Slot::SIZE];
        assert_eq!(Index::parse(&full, 4).unwrap().places(7).count(), 0);
        assert!(
            Index::parse(&full, 3).is_none() && Index::parse(&full, 8).is_none() && Index::parse(&full, 0).is_none()
        );
    }
}
