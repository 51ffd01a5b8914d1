//! Best-fit allocation of the bytes of an arena before it exists.

use crate::error::{Error, Result};

/// Bytes to which every value is aligned: one cache line, one vector of the widest set.
const ALIGNMENT: usize = crate::array::ALIGNMENT;

/// The bytes that a value takes.
pub(super) fn padded(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(ALIGNMENT)
}

/// Free regions, sorted and merged.
#[derive(Default)]
pub(super) struct Regions {
    free: Vec<(usize, usize)>,
    size: usize,
}

impl Regions {
    /// How many bytes were in use at once, holes included.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The offset of so many bytes, from the smallest region that has them.
    pub(super) fn take(&mut self, bytes: usize) -> Result<usize> {
        let fits = self.free.iter().enumerate().filter(|(_, region)| region.1 >= bytes);
        if let Some((index, &(offset, room))) = fits.min_by_key(|(_, region)| region.1) {
            if room == bytes {
                self.free.remove(index);
            } else {
                self.free[index] = (offset + bytes, room - bytes);
            }
            return Ok(offset);
        }
        // A region at the end grows.
        let offset = match self.free.last() {
            Some(&(offset, room)) if offset + room == self.size => {
                self.free.pop();
                offset
            }
            _ => self.size,
        };
        self.size =
            offset.checked_add(bytes).filter(|&end| end <= isize::MAX as usize).ok_or_else(
                || Error::memory("Program", "working memory that an address space holds", "more"),
            )?;
        Ok(offset)
    }

    /// Gives a region back.
    pub(super) fn give(&mut self, offset: usize, bytes: usize) {
        let at = self.free.partition_point(|region| region.0 < offset);
        self.free.insert(at, (offset, bytes));
        if let Some(&(next, room)) = self.free.get(at + 1)
            && offset + bytes == next
        {
            self.free[at].1 += room;
            self.free.remove(at + 1);
        }
        if at > 0 && self.free[at - 1].0 + self.free[at - 1].1 == offset {
            self.free[at - 1].1 += self.free[at].1;
            self.free.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_merged_and_used_again() {
        let mut regions = Regions::default();
        let taken: Vec<_> = [64, 128, 64].iter().map(|&n| regions.take(n).unwrap()).collect();
        assert_eq!(taken, [0, 64, 192]);
        regions.give(0, 64);
        regions.give(192, 64);
        regions.give(64, 128);
        assert_eq!(regions.free, [(0, 256)]);
        assert_eq!(regions.take(256).unwrap(), 0);
        assert_eq!(regions.size(), 256);
    }

    #[test]
    fn the_smallest_region_that_fits_is_taken_and_the_last_one_grows() {
        let mut regions = Regions::default();
        for bytes in [256, 64, 128, 64] {
            regions.take(bytes).unwrap();
        }
        regions.give(0, 256);
        regions.give(320, 128);
        assert_eq!(regions.take(64).unwrap(), 320);
        assert_eq!(regions.free, [(0, 256), (384, 64)]);
        regions.give(448, 64);
        assert_eq!(regions.take(512).unwrap(), 384);
        assert_eq!(regions.size(), 896);
    }

    #[test]
    fn more_than_an_address_space_is_an_error() {
        let mut regions = Regions::default();
        assert!(regions.take(1 << 62).is_ok());
        assert!(regions.take(1 << 62).is_err());
    }
}
