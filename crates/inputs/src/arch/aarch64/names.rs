//! Names of features, as /proc/cpuinfo has them.

/// The name of a bit of a word; None if it has none.
pub fn bit_name(word: u32, _: u32, part: usize, bit: u32) -> Option<&'static str> {
    let number = bit as usize + if part == 3 { 32 } else { 0 };
    match (word, part) {
        (16, 0 | 3) => name(FIRST, number),
        (26, 0 | 3) => name(SECOND, number),
        (29, 0 | 3) => name(THIRD, number),
        (super::SIZES, 0) => Some("cache_lines"),
        (super::SIZES, 1) => Some("clear_block"),
        (super::SIZES, 2) => Some("sve_length"),
        (super::SIZES, 3) => Some("sme_length"),
        _ => None,
    }
}

fn name(names: &'static str, number: usize) -> Option<&'static str> {
    names.split_ascii_whitespace().nth(number).filter(|name| *name != "-")
}

/// Those of HWCAP, by bit; a dash has no name (asm/hwcap.h).
const FIRST: &str = "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc \
                     dcpop sha3 sm3 sm4 asimddp sha512 sve asimdfhm dit uscat ilrcpc flagm ssbs sb paca pacg \
                     gcs cmpbr fprcvt f8mm8 f8mm4 svef16mm sveeltperm sveaes2 svebfscale sve2p2 sme2p2 smesbitperm \
                     smeaes smesfexpa smestmop smesmop4";

/// Those of HWCAP2.
const SECOND: &str = "dcpodp sve2 sveaes svepmull svebitperm svesha3 svesm4 flagm2 frint svei8mm svef32mm svef64mm \
                      svebf16 i8mm bf16 dgh rng bti mte ecv afp rpres mte3 sme smei16i64 smef64f64 smei8i32 smef16f32 \
                      smeb16f32 smef32f32 smefa64 wfxt ebf16 sveebf16 cssc rprfm sve2p1 sme2 sme2p1 smei16i32 \
                      smebi32i32 smeb16b16 smef16f16 mops hbc sveb16b16 lrcpc3 lse128 fpmr lut faminmax f8cvt f8fma \
                      f8dp4 f8dp2 f8e4m3 f8e5m2 smelutv2 smef8f16 smef8f32 smesf8fma smesf8dp4 smesf8dp2 poe";

/// Those of HWCAP3.
const THIRD: &str = "mtefar mtestoreonly lsfe";
