//! The CPU as an input.
//!
//! When a process starts, glibc picks string functions by CPUID, and numerical and cryptographic libraries pick
//! kernels. Such a process can continue on any CPU that has at least the features it was booted with; the model and
//! features that only a kernel uses do not count. The register states that the kernel has enabled (XCR0) must be equal,
//! since a library may have measured the space that saving them takes. A process that was frozen for a [`Level`] can
//! continue on any CPU of that level.

use core::fmt::{self, Write};

use image::{CpuLeaf, Error, Section, Tables};

use crate::arch::{bit_name, required_bits, Cpu, FEATURES, LEVELS};
use crate::words::Words;

pub use crate::arch::{HAS_LEVELS, IS_SUPPORTED};

/// A register of a CPU leaf that differs from what the image requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The leaf of CPUID, or [`CpuLeaf::XCR0`].
    pub leaf: u32,
    /// Its subleaf.
    pub subleaf: u32,
    /// 0 to 3 for eax, ebx, ecx and edx.
    pub register: usize,
    /// The required values of the bits that count.
    pub wanted: u32,
    /// The values on this CPU.
    pub found: u32,
}

impl Difference {
    /// The bits that differ, lowest first.
    pub fn bits(self) -> impl Iterator<Item = u32> {
        (0..32).filter(move |bit| (self.wanted ^ self.found) >> bit & 1 != 0)
    }

    /// Whether the image requires this bit to be set.
    pub fn wants(&self, bit: u32) -> bool {
        self.wanted >> bit & 1 != 0
    }

    /// The name of a bit; None if it has none.
    pub fn name(&self, bit: u32) -> Option<&'static str> {
        bit_name(self.leaf, self.subleaf, self.register, bit)
    }

    /// The message about the first feature that differs.
    pub(crate) fn words<'t, 'n>(&self) -> Words<'t, 'n> {
        let bit = self.bits().next().unwrap_or(0);
        let text = match self.wants(bit) {
            true => "stale: the image was made for a CPU with a feature that this one lacks",
            false => "stale: the image was made for a CPU without a feature of this one",
        };
        Words::about(text, self.name(bit).unwrap_or("a feature without a name").as_bytes())
    }

    /// Writes each feature that differs, one a line.
    pub(crate) fn write_details(&self, out: &mut dyn Write) -> fmt::Result {
        let mut end = "";
        self.bits().try_for_each(|bit| {
            write!(out, "{end}CPU: ")?;
            end = "\n";
            match self.name(bit) {
                Some(name) => out.write_str(name)?,
                None => {
                    let register = ["eax", "ebx", "ecx", "edx"][self.register];
                    write!(out, "bit {bit} of {register} in leaf {:#x}.{}", self.leaf, self.subleaf)?;
                }
            }
            out.write_str(if self.wants(bit) { ": there -> gone" } else { ": not there -> there" })
        })
    }
}

/// A level of x86-64 CPUs: a set of features that CPUs have together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// SSE4.2.
    V2,
    /// AVX2.
    V3,
    /// AVX-512.
    V4,
}

impl Level {
    /// All levels.
    pub const ALL: [Level; 3] = [Level::V2, Level::V3, Level::V4];

    /// The level of images for which nobody has asked for anything: all servers since 2015 have it.
    pub const DEFAULT: Level = Level::V3;

    /// Whether this CPU has the level.
    pub fn is_here(self) -> bool {
        HAS_LEVELS && self.lacks().next().is_none()
    }

    /// The highest level that this CPU has.
    pub fn highest() -> Option<Level> {
        Level::ALL.into_iter().rev().find(|level| level.is_here())
    }

    /// The features of the level. A process depends on these alone only if its C library and its other libraries have
    /// picked nothing else; `snapboot freeze --cpu` ensures that.
    pub fn features(self) -> impl Iterator<Item = CpuLeaf> {
        LEVELS[self as usize].iter().map(|&(leaf, subleaf, bits)| row(leaf, subleaf, bits, bits))
    }

    /// The features of the level that this CPU lacks.
    pub fn lacks(self) -> impl Iterator<Item = Difference> {
        let mut cpu = Cpu::default();
        self.features().flat_map(move |row| differences_of(row, cpu.read(row.leaf, row.subleaf)))
    }
}

/// The features of this CPU that programs can use, and the register states that the kernel has enabled.
pub fn native() -> impl Iterator<Item = CpuLeaf> {
    let mut cpu = Cpu::default();
    FEATURES.iter().map(move |&(leaf, subleaf, masks)| {
        let found = cpu.read(leaf, subleaf);
        let values = [0, 1, 2, 3].map(|register| found[register] & masks[register]);
        row(leaf, subleaf, required_bits(leaf, masks, values), values)
    })
}

/// Compares this CPU with the image's requirements: yields every register that differs.
pub fn differences<'a>(tables: &Tables<'a>) -> Result<impl Iterator<Item = Difference> + use<'a>, Error> {
    let mut cpu = Cpu::default();
    Ok(tables.rows::<CpuLeaf>(Section::Cpu)?.flat_map(move |row| differences_of(row, cpu.read(row.leaf, row.subleaf))))
}

fn differences_of(row: CpuLeaf, found: [u32; 4]) -> impl Iterator<Item = Difference> {
    let masks = [row.eax_mask, row.ebx_mask, row.ecx_mask, row.edx_mask];
    let wanted = [row.eax, row.ebx, row.ecx, row.edx];
    let (leaf, subleaf) = (row.leaf, row.subleaf);
    (0..4).filter(move |&index| found[index] & masks[index] != wanted[index]).map(move |register| Difference {
        leaf,
        subleaf,
        register,
        wanted: wanted[register],
        found: found[register] & masks[register],
    })
}

fn row(leaf: u32, subleaf: u32, masks: [u32; 4], values: [u32; 4]) -> CpuLeaf {
    let [eax_mask, ebx_mask, ecx_mask, edx_mask] = masks;
    let [eax, ebx, ecx, edx] = values;
    CpuLeaf { leaf, subleaf, eax_mask, ebx_mask, ecx_mask, edx_mask, eax, ebx, ecx, edx }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use image_writer::TablesWriter;
    use std::vec::Vec;

    use super::*;

    /// The differences of this CPU from an image that requires these leaves.
    fn found(leaves: &[CpuLeaf]) -> Vec<Difference> {
        let mut writer = TablesWriter::new();
        leaves.iter().for_each(|leaf| writer.push(Section::Cpu, leaf));
        let bytes = writer.finish();
        differences(&Tables::parse_unchecked_sum(&bytes).unwrap()).unwrap().collect()
    }

    #[test]
    fn a_cpu_is_the_one_that_it_is() {
        let native: Vec<_> = native().collect();
        assert_eq!(found(&native), []);
        assert!(native.iter().any(|leaf| leaf.leaf == CpuLeaf::XCR0), "XCR0 counts");
        assert!(native.iter().all(|leaf| leaf.leaf == CpuLeaf::XCR0 || leaf.eax_mask == leaf.eax), "more will do");
        assert!(native.iter().all(|leaf| leaf.leaf != 1 || leaf.eax_mask == 0), "the model does not count");
    }

    #[test]
    fn the_first_difference_names_the_register_and_the_bit() {
        let mut leaves: Vec<_> = native().collect();
        leaves[1].ecx |= 1 << 31;
        leaves[1].ecx_mask |= 1 << 31;
        leaves[5].eax ^= 1 << 17;
        let found = found(&leaves);
        assert_eq!(found.len(), 2);
        let names: Vec<_> = found.iter().flat_map(|it| it.bits().map(|bit| it.name(bit))).collect();
        assert_eq!(names, [Some("pks"), Some("xcr0_amx_tilecfg")]);
        assert!(found[0].wants(31));
    }

    #[test]
    fn bits_that_do_not_count_may_be_anything() {
        let leaf = CpuLeaf { ecx_mask: 1, ecx: 1, ..Level::V2.features().next().unwrap() };
        let here = |ecx| differences_of(leaf, [!0, !0, ecx, !0]).count();
        assert_eq!((here(1), here(!0), here(!1)), (0, 0, 1));
    }

    #[test]
    fn a_cpu_with_more_than_a_level_has_the_level() {
        let counts = Level::ALL.map(|level| {
            let all = || level.features().map(|leaf| (leaf, differences_of(leaf, [!0; 4]).count()));
            assert!(all().all(|(_, differences)| differences == 0));
            level.features().flat_map(|leaf| [leaf.eax, leaf.ebx, leaf.ecx]).map(u32::count_ones).sum::<u32>()
        });
        // x86-64-v2 has 7 features, plus AES and PCLMULQDQ; XCR0 adds 3 in v3 and 6 in v4.
        assert_eq!(counts, [9, 9 + 9 + 1 + 3, 9 + 9 + 1 + 5 + 6]);
        assert!(Level::V2.features().all(|leaf| leaf.leaf != CpuLeaf::XCR0));
        let lacks = |found| Level::V3.features().map(|leaf| differences_of(leaf, found).count()).sum::<usize>();
        assert_eq!((lacks([0; 4]), lacks([!0; 4])), (6, 0));
    }
}
