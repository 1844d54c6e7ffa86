//! Tests with synthetic vdsos. tests/running.rs calls the vdso of the running kernel.

use std::vec::Vec;

use super::*;

extern crate std;

/// Size of a synthetic vdso, and the offsets of its tables.
const SIZE: usize = 4096;
const SYMBOLS: usize = 256;
const NAMES: usize = 1024;
const HEADERS: usize = 2048;

/// A vdso with these functions: name, offset, size.
fn vdso(functions: &[(&str, usize, usize)]) -> Vec<u8> {
    let mut bytes = std::vec![0xcc; SIZE];
    let mut put =
        |at: usize, value: u64, size: usize| bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
    put(0, 0x0001_0102_464c_457f, 8);
    put(40, HEADERS as u64, 8);
    put(58, 64, 2);
    put(60, 2, 2);
    let mut names = Vec::from([0]);
    for (index, (name, offset, size)) in functions.iter().enumerate() {
        let at = SYMBOLS + index * 24;
        put(at, names.len() as u64, 4);
        put(at + 4, 0x0012, 2);
        put(at + 6, 12, 2);
        put(at + 8, *offset as u64, 8);
        put(at + 16, *size as u64, 8);
        names.extend(name.bytes().chain([0]));
    }
    for (header, kind, offset, size, link) in
        [(HEADERS, 3, NAMES, names.len(), 0), (HEADERS + 64, 11, SYMBOLS, functions.len() * 24, 0)]
    {
        put(header + 4, kind, 4);
        put(header + 24, offset as u64, 8);
        put(header + 32, size as u64, 8);
        put(header + 40, link, 4);
    }
    bytes[NAMES..NAMES + names.len()].copy_from_slice(&names);
    bytes
}

const OLD: [(&str, usize, usize); 3] =
    [("clock_gettime", 3000, 32), ("__vdso_clock_gettime", 3000, 32), ("__vdso_sgx_enter_enclave", 3100, 64)];

#[test]
fn a_function_leads_to_the_one_of_its_name_and_all_else_stays() {
    let (mut copy, new) =
        (vdso(&OLD), vdso(&[("time", 3500, 20), ("__vdso_clock_gettime", 3300, 9), ("clock_gettime", 3300, 9)]));
    let before = copy.clone();
    redirect(&mut copy, Some(Running { bytes: &new, address: 0x7fff_1234_0000 })).unwrap();
    let code = arch::jump(0x7fff_1234_0000 + 3300);
    assert_eq!(copy[3000..3000 + code.len()], code);
    copy[3000..3000 + code.len()].fill(0xcc);
    assert_eq!(copy, before);
}

#[test]
fn without_a_function_of_that_name_the_system_call_is_made() {
    let number = arch::system_call(b"clock_gettime").unwrap().number;
    let code = arch::call(number);
    let (none, other) = (vdso(&[]), vdso(&[("__vdso_clock_getres", 3300, 40)]));
    for running in [None, Some(Running { bytes: &none, address: 0 }), Some(Running { bytes: &other, address: 0 })] {
        let mut copy = vdso(&OLD);
        redirect(&mut copy, running).unwrap();
        assert_eq!(copy[3000..3000 + code.len()], code);
    }
}

#[test]
fn random_bytes_come_from_the_system_call() {
    let functions = [("getrandom", 3000, 400)];
    let new = vdso(&functions);
    let mut copy = vdso(&functions);
    redirect(&mut copy, Some(Running { bytes: &new, address: 0x1000 })).unwrap();
    let code = arch::call(arch::system_call(b"getrandom").unwrap().number);
    assert_eq!(copy[3000..3000 + code.len()], code);
}

#[test]
fn a_function_without_room_is_an_error() {
    let new = vdso(&OLD);
    let running = Some(Running { bytes: &new, address: 0x1000 });
    assert_eq!(redirect(&mut vdso(&[("clock_gettime", 3000, 13)]), running), Err(Error::NoRoom));
    assert_eq!(redirect(&mut vdso(&[("clock_gettime", 3000, 7)]), None), Err(Error::NoRoom));
    assert_eq!(redirect(&mut vdso(&[("clock_gettime", SIZE - 4, 40)]), None), Err(Error::Damaged));
    assert_eq!(redirect(&mut vdso(&[("clock_gettime", usize::MAX, 40)]), None), Err(Error::Damaged));
}

#[test]
fn what_is_no_vdso_is_an_error() {
    assert_eq!(redirect(&mut [], None), Err(Error::Damaged));
    assert_eq!(redirect(&mut [0; 100], None), Err(Error::Damaged));
    // Any value in any byte of the header and the tables: no panic.
    for at in (0..64).chain(SYMBOLS..SYMBOLS + 72).chain(HEADERS..HEADERS + 128) {
        for value in [0, 1, 0x7f, 0xff] {
            let mut copy = vdso(&OLD);
            copy[at] = value;
            let _ = redirect(&mut copy, None);
        }
    }
    for size in 0..SIZE {
        let _ = redirect(&mut vdso(&OLD)[..size], None);
    }
}
