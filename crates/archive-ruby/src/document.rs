//! Makes the objects of a parsed document from the notation of `Snapboot::Archive::Data::Notation`, which describes the format.
#![allow(unsafe_code)]

use std::ffi::CStr;

use crate::ruby::{Maker, Protected, Ruby, Value};

/// Deeper than any document that is stored, and far from a stack overflow.
const DEEPEST: usize = 100;

/// The unread rest. It owns nothing, so that an exception may pass through.
struct Reader<'a, 'r> {
    rest: &'a [u8],
    /// An array of the objects that occur several times, and their number.
    shared: Value<'r>,
    shares: usize,
    maker: &'a Maker<'r>,
}

/// document(payload, a frozen String) -> the object in an array, or nil where the payload is none. May raise.
pub fn document<'r>(ruby: Ruby<'r>, _: Value<'r>, payload: Value<'r>) -> Protected<Value<'r>> {
    // SAFETY: an argument of a method, which stays on Ruby's stack until that returns.
    let Some(bytes) = (unsafe { ruby.frozen_bytes(payload) })? else { return Ok(ruby.nil()) };
    match read(ruby, bytes)? {
        Some(object) => ruby.array_of(&[object]),
        None => Ok(ruby.nil()),
    }
}

/// The object of a payload, if it is one.
fn read<'r>(ruby: Ruby<'r>, payload: &[u8]) -> Protected<Option<Value<'r>>> {
    let shared = ruby.array()?;
    let read = |maker: &Maker<'r>| {
        let mut reader = Reader { rest: payload, shared, shares: 0, maker };
        reader.object(0).filter(|_| reader.rest.is_empty())
    };
    // SAFETY: a reader owns nothing: it holds references, objects and numbers.
    unsafe { ruby.make(read) }
}

impl<'a, 'r> Reader<'a, 'r> {
    fn object(&mut self, depth: usize) -> Option<Value<'r>> {
        if depth > DEEPEST {
            return None;
        }
        Some(match self.byte()? {
            b'S' => self.maker.text(self.text()?),
            b's' => self.maker.interned(self.text()?),
            b':' => self.maker.symbol(self.text()?),
            b'i' => self.maker.integer(i64::from_le_bytes(self.number()?)),
            b'f' => self.maker.float(f64::from_le_bytes(self.number()?)),
            b'n' => self.maker.nil(),
            b'y' => self.maker.boolean(true),
            b'x' => self.maker.boolean(false),
            b'{' => self.hash(depth)?,
            b'<' => {
                let hash = self.hash(depth)?;
                self.maker.freeze_hash(hash);
                hash
            }
            b'[' => self.array(depth)?,
            b'(' => {
                let array = self.array(depth)?;
                self.maker.freeze_array(array);
                array
            }
            b'=' => {
                let object = self.object(depth + 1)?;
                self.maker.push(self.shared, object);
                self.shares += 1;
                object
            }
            b'*' => {
                let number = self.size()?;
                if number >= self.shares {
                    return None;
                }
                self.maker.entry_of(self.shared, number)
            }
            b'd' => {
                self.maker.evaluated(c"require 'date'");
                self.object(depth + 1)?
            }
            b'!' => self.maker.evaluated(CStr::from_bytes_with_nul(self.text()?).ok()?),
            _ => return None,
        })
    }

    fn hash(&mut self, depth: usize) -> Option<Value<'r>> {
        let hash = self.maker.hash();
        for _ in 0..self.size()? {
            let key = self.object(depth + 1)?;
            let value = self.object(depth + 1)?;
            self.maker.put(hash, key, value);
        }
        Some(hash)
    }

    fn array(&mut self, depth: usize) -> Option<Value<'r>> {
        let size = self.size()?;
        let array = self.maker.array(size);
        for _ in 0..size {
            let element = self.object(depth + 1)?;
            self.maker.push(array, element);
        }
        Some(array)
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// A number in groups of seven bits, the highest first; all but the last have the top bit (BER, `w` of Array#pack).
    fn size(&mut self) -> Option<usize> {
        let mut size = 0_usize;
        loop {
            let byte = self.byte()?;
            size = size.checked_mul(128)? | usize::from(byte & 0x7f);
            if byte < 0x80 {
                return Some(size);
            }
        }
    }

    /// Bytes after their number.
    fn text(&mut self) -> Option<&'a [u8]> {
        let size = self.size()?;
        let (text, rest) = self.rest.split_at_checked(size)?;
        self.rest = rest;
        Some(text)
    }

    fn number(&mut self) -> Option<[u8; 8]> {
        let (number, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*number)
    }
}
