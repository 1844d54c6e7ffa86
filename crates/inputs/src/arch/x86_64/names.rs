//! Names of CPU features as in /proc/cpuinfo. The names of register states that the kernel has enabled begin with
//! `xcr0_`.

use image::CpuLeaf;

/// Leaf, subleaf, register (0 to 3 for eax, ebx, ecx and edx), and the names of its bits, lowest first; `-` for a bit
/// without a name.
const NAMES: [(u32, u32, usize, &str); 11] = [
    (
        0x0000_0001,
        0,
        2,
        "sse3 pclmulqdq dtes64 monitor ds_cpl vmx smx est tm2 ssse3 cid sdbg fma cx16 xtpr pdcm - pcid dca \
         sse4_1 sse4_2 x2apic movbe popcnt tsc_deadline_timer aes xsave osxsave avx f16c rdrand hypervisor",
    ),
    (
        0x0000_0001,
        0,
        3,
        "fpu vme de pse tsc msr pae mce cx8 apic - sep mtrr pge mca cmov pat pse36 pn clflush - dts acpi mmx \
         fxsr sse sse2 ss ht tm ia64 pbe",
    ),
    (
        0x0000_0007,
        0,
        1,
        "fsgsbase tsc_adjust sgx bmi1 hle avx2 fdp_excptn_only smep bmi2 erms invpcid rtm cqm zero_fcs_fds \
         mpx rdt_a avx512f avx512dq rdseed adx smap avx512ifma pcommit clflushopt clwb intel_pt avx512pf \
         avx512er avx512cd sha_ni avx512bw avx512vl",
    ),
    (
        0x0000_0007,
        0,
        2,
        "prefetchwt1 avx512vbmi umip pku ospke waitpkg avx512_vbmi2 shstk gfni vaes vpclmulqdq avx512_vnni \
         avx512_bitalg tme avx512_vpopcntdq - la57 mawau mawau mawau mawau mawau rdpid keylocker \
         bus_lock_detect cldemote - movdiri movdir64b enqcmd sgx_lc pks",
    ),
    (
        0x0000_0007,
        0,
        3,
        "- sgx_keys avx512_4vnniw avx512_4fmaps fsrm uintr - - avx512_vp2intersect srbds_ctrl md_clear \
         rtm_always_abort - tsx_force_abort serialize hybrid_cpu tsxldtrk - pconfig arch_lbr ibt - amx_bf16 \
         avx512_fp16 amx_tile amx_int8 spec_ctrl stibp flush_l1d arch_capabilities core_capabilities ssbd",
    ),
    (
        0x0000_0007,
        1,
        0,
        "sha512 sm3 sm4 rao_int avx_vnni avx512_bf16 lass cmpccxadd archperfmonext - fzrm fsrs fsrc - - - - \
         fred lkgs wrmsrns - amx_fp16 hreset avx_ifma - - lam msrlist",
    ),
    (
        0x0000_0007,
        1,
        3,
        "- - - - avx_vnni_int8 avx_ne_convert - - amx_complex - avx_vnni_int16 - - utmr prefetchiti user_msr \
         - uiret_uif cet_sss avx10 - apx_f",
    ),
    (0x0000_000d, 1, 0, "xsaveopt xsavec xgetbv1 xsaves xfd"),
    (
        0x8000_0001,
        0,
        2,
        "lahf_lm cmp_legacy svm extapic cr8_legacy abm sse4a misalignsse 3dnowprefetch osvw ibs xop skinit \
         wdt - lwp fma4 tce - nodeid_msr - tbm topoext perfctr_core perfctr_nb - bpext ptsc perfctr_llc \
         mwaitx addr_mask_ext",
    ),
    (
        0x8000_0001,
        0,
        3,
        "fpu vme de pse tsc msr pae mce cx8 apic - syscall mtrr pge mca cmov pat pse36 - mp nx - mmxext mmx \
         fxsr fxsr_opt pdpe1gb rdtscp - lm 3dnowext 3dnow",
    ),
    (
        CpuLeaf::XCR0,
        0,
        0,
        "xcr0_x87 xcr0_sse xcr0_avx xcr0_mpx_bndregs xcr0_mpx_bndcsr xcr0_avx512_opmask xcr0_avx512_zmm_hi256 \
         xcr0_avx512_hi16_zmm - xcr0_pkru - - - - - - - xcr0_amx_tilecfg xcr0_amx_tiledata xcr0_apx",
    ),
];

/// The name of a register bit (0 to 3 for eax, ebx, ecx and edx) of a leaf; None if it has none.
pub fn bit_name(leaf: u32, subleaf: u32, register: usize, bit: u32) -> Option<&'static str> {
    let (.., names) = NAMES.iter().find(|row| (row.0, row.1, row.2) == (leaf, subleaf, register))?;
    names.split(' ').nth(bit as usize).filter(|name| *name != "-")
}
