//! Fixed-size little-endian records of images and boot archives, each declared once with [`record!`].
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

/// A value of fixed size in a record.
pub trait Scalar: Sized {
    /// Size in bytes.
    const SIZE: usize;
    /// Reads a value from the start of `bytes` (a shorter slice panics).
    fn get(bytes: &[u8]) -> Self;
    /// Writes the value to the start of `bytes` (a shorter slice panics).
    fn put(&self, bytes: &mut [u8]);
}

macro_rules! integer_scalar {
    ($($type:ty),*) => {$(
        impl Scalar for $type {
            const SIZE: usize = core::mem::size_of::<$type>();
            fn get(bytes: &[u8]) -> Self {
                let mut raw = [0; core::mem::size_of::<$type>()];
                raw.copy_from_slice(&bytes[..Self::SIZE]);
                Self::from_le_bytes(raw)
            }
            fn put(&self, bytes: &mut [u8]) {
                bytes[..Self::SIZE].copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
integer_scalar!(u8, u32, u64, i64);

impl<const N: usize> Scalar for [u8; N] {
    const SIZE: usize = N;
    fn get(bytes: &[u8]) -> Self {
        let mut raw = [0; N];
        raw.copy_from_slice(&bytes[..N]);
        raw
    }
    fn put(&self, bytes: &mut [u8]) {
        bytes[..N].copy_from_slice(self);
    }
}

/// Name, offset and size (bytes) of one field, as the format's document lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's name in the source.
    pub name: &'static str,
    /// Offset from the start of the record.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
}

/// A record of the format: fixed size, little endian, no padding.
pub trait Record: Sized {
    /// Size in bytes.
    const SIZE: usize;
    /// The record's name in the source and in the document.
    const NAME: &'static str;
    /// Its fields in file order.
    const FIELDS: &'static [Field];
    /// Reads a record from exactly [`Record::SIZE`] bytes (callers slice; a shorter slice panics).
    fn decode(bytes: &[u8]) -> Self;
    /// Writes the record into the first [`Record::SIZE`] bytes of `bytes`.
    fn encode(&self, bytes: &mut [u8]);
}

/// Declares a record: the struct, its decoder, its encoder and its field table.
#[macro_export]
macro_rules! record {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* pub $field:ident : $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

        impl $crate::Record for $name {
            const SIZE: usize = 0 $(+ <$type as $crate::Scalar>::SIZE)*;
            const NAME: &'static str = stringify!($name);
            const FIELDS: &'static [$crate::Field] = &{
                let mut offset = 0;
                [$({
                    let size = <$type as $crate::Scalar>::SIZE;
                    let field = $crate::Field { name: stringify!($field), offset, size };
                    offset += size;
                    let _ = offset;
                    field
                },)*]
            };
            fn decode(bytes: &[u8]) -> Self {
                let mut rest = &bytes[..Self::SIZE];
                $(
                    let (head, tail) = rest.split_at(<$type as $crate::Scalar>::SIZE);
                    let $field = <$type as $crate::Scalar>::get(head);
                    rest = tail;
                )*
                let _ = rest;
                $name { $($field,)* }
            }
            fn encode(&self, bytes: &mut [u8]) {
                let mut rest = &mut bytes[..Self::SIZE];
                $(
                    let (head, tail) = rest.split_at_mut(<$type as $crate::Scalar>::SIZE);
                    $crate::Scalar::put(&self.$field, head);
                    rest = tail;
                )*
                let _ = rest;
            }
        }
    };
}
