//! The native part of the Python package `snapboot`, for CPython 3.8 and later: the boot archive under `import`.
//!
//! One library serves every version: it uses the stable ABI, what every version exports, and, for code alone ([`code`]), layouts that it knows by version. `snapboot/archive` of the Python
//! package decides what is asked for, and gives what is found to the interpreter's own import system.
#![deny(unsafe_code)]

mod arenas;
mod audit;
mod boot;
mod code;
mod cwd;
mod data;
mod document;
mod entry_points;
mod json;
mod listener;
mod marshal;
mod methods;
mod notation;
mod objects;
mod patterns;
mod search;
mod served;
mod source;

use pyo3::prelude::*;

/// What `snapboot/archive/native.py` loads.
#[pymodule]
fn snapboot_python(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<source::Source>()?;
    module.add_class::<patterns::Compile>()?;
    objects::add_to(module)?;
    methods::add_to(module)
}
