//! The CPU as an input.
//!
//! glibc picks string functions by CPUID when a process starts, numerical and cryptographic libraries pick kernels, and glibc sizes
//! the area in which lazy binding saves registers by the register states that the kernel has enabled (XCR0). A process that did so
//! on one CPU goes on only where all of that is the same, or where it took care to need less: see [`baseline`].

use image::{CpuLeaf, Error, Section, Tables};

use crate::arch::{bit_name, Cpu, BASELINE, LEAVES};

pub use crate::arch::IS_SUPPORTED;

/// Where the CPU is another one than an image wants: one register of one leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The leaf of CPUID, or [`CpuLeaf::XCR0`].
    pub leaf: u32,
    /// Its subleaf.
    pub subleaf: u32,
    /// 0 to 3 for eax, ebx, ecx and edx.
    pub register: usize,
    /// What the image wants of the bits that count.
    pub wanted: u32,
    /// What they are here.
    pub found: u32,
}

impl Difference {
    /// The bits that differ, from the lowest on.
    pub fn bits(self) -> impl Iterator<Item = u32> {
        (0..32).filter(move |bit| (self.wanted ^ self.found) >> bit & 1 != 0)
    }

    /// Whether the image wants this bit to be set.
    pub fn wants(&self, bit: u32) -> bool {
        self.wanted >> bit & 1 != 0
    }

    /// The name of one of the bits; None where it has none.
    pub fn name(&self, bit: u32) -> Option<&'static str> {
        bit_name(self.leaf, self.subleaf, self.register, bit)
    }

    /// Whether the register is a number that stands for the model and not a set of features.
    pub fn is_model(&self) -> bool {
        self.register == 0 && matches!(self.leaf, 0x0000_0001 | 0x8000_0001)
    }
}

/// What this CPU is: signature, features, and the register states that the kernel has enabled.
pub fn native() -> impl Iterator<Item = CpuLeaf> {
    let mut cpu = Cpu::default();
    LEAVES.iter().map(move |&(leaf, subleaf, masks)| {
        let [eax, ebx, ecx, edx] = cpu.read(leaf, subleaf);
        row(leaf, subleaf, masks, [eax & masks[0], ebx & masks[1], ecx & masks[2], edx & masks[3]])
    })
}

/// What the baseline has. A process may count on it alone when neither its C library nor its libraries have picked
/// anything else: `snapboot freeze --cpu baseline` sees to that.
pub fn baseline() -> impl Iterator<Item = CpuLeaf> {
    BASELINE.iter().map(|&(leaf, subleaf, masks)| row(leaf, subleaf, masks, masks))
}

/// Compares this CPU with what the image wants: yields every register that differs.
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

    /// What differs from this CPU when the image wants these leaves.
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
    }

    #[test]
    fn the_first_difference_names_the_register_and_the_bit() {
        let mut leaves: Vec<_> = native().collect();
        leaves[0].ecx ^= 1 << 28;
        leaves[5].eax ^= 1 << 17;
        let found = found(&leaves);
        assert_eq!(found.len(), 2);
        let names: Vec<_> = found.iter().flat_map(|it| it.bits().map(|bit| it.name(bit))).collect();
        assert_eq!(names, [Some("avx"), Some("xcr0_amx_tilecfg")]);
        assert_eq!(found[0].wants(28), leaves[0].ecx >> 28 & 1 != 0);
        assert!(!found[0].is_model());
        leaves[0].eax ^= 1;
        assert!(self::found(&leaves)[0].is_model());
    }

    #[test]
    fn bits_that_do_not_count_may_be_anything() {
        let leaf = CpuLeaf { ecx_mask: 1, ecx: 1, ..baseline().next().unwrap() };
        let here = |ecx| differences_of(leaf, [!0, !0, ecx, !0]).count();
        assert_eq!((here(1), here(!0), here(!1)), (0, 0, 1));
    }

    #[test]
    fn a_cpu_with_more_than_the_baseline_has_the_baseline() {
        for leaf in baseline() {
            assert_eq!(differences_of(leaf, [!0; 4]).count(), 0);
            assert_eq!(differences_of(leaf, [0; 4]).count(), 2, "ecx and edx");
            assert!(leaf.leaf != CpuLeaf::XCR0);
        }
        assert_eq!(
            baseline().map(|leaf| leaf.ecx.count_ones()).sum::<u32>(),
            9,
            "x86-64-v2 has 7 of these, AES and PCLMULQDQ"
        );
    }
}
