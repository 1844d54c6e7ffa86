//! The native part of the Python package `snapboot`, for CPython 3.8 and later: the boot archive under `import`.
//!
//! One library serves every version: it uses the stable ABI, functions that every version exports, and, for code alone ([`code`]), layouts
//! that it knows by version. `snapboot/archive` of the Python package decides what to look up, and passes results to the interpreter's own
//! import system.
#![deny(unsafe_code)]

mod audit;
mod boot;
mod calm;
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
mod sys_path;

use pyo3::prelude::*;

/// Loaded by `load_library` in `snapboot/archive/imports.py`.
#[pymodule]
fn snapboot_python(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<source::Source>()?;
    module.add_class::<patterns::Compile>()?;
    objects::add_to(module)?;
    methods::add_to(module)
}
