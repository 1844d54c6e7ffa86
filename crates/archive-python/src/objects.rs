//! Queries about many objects at once for the collector of `snapboot/archive/collector.py`.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};

use crate::audit;

/// Whether we ourselves are reading all objects.
static IS_LOOKING: AtomicBool = AtomicBool::new(false);

/// Adds the functions to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(all_objects, module)?)?;
    module.add_function(wrap_pyfunction!(kinds_of, module)?)?;
    module.add_function(wrap_pyfunction!(of_kinds, module)?)?;
    module.add_function(wrap_pyfunction!(watch, module)?)
}

/// all_objects(get_objects) -> the result of gc.get_objects; `watch` does not count it.
#[pyfunction]
fn all_objects<'py>(get_objects: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    IS_LOOKING.store(true, Ordering::Relaxed);
    let objects = get_objects.call0();
    IS_LOOKING.store(false, Ordering::Relaxed);
    objects
}

/// kinds_of(things) -> a list of the types of the objects in the list, each once.
#[pyfunction]
fn kinds_of<'py>(things: &Bound<'py, PyList>) -> Vec<Bound<'py, PyType>> {
    let (mut seen, mut last) = (HashSet::new(), std::ptr::null_mut());
    let mut kinds = Vec::new();
    for thing in things.iter() {
        let kind = thing.get_type_ptr();
        // Neighbours are often of one kind.
        if kind != last && seen.insert(kind) {
            kinds.push(thing.get_type());
        }
        last = kind;
    }
    kinds
}

/// of_kinds(things, kinds) -> a list of those objects whose type is one of these.
#[pyfunction]
fn of_kinds<'py>(things: &Bound<'py, PyList>, kinds: Vec<Bound<'py, PyType>>) -> Vec<Bound<'py, PyAny>> {
    let kinds: HashSet<_> = kinds.iter().map(|kind| kind.as_type_ptr()).collect();
    things.iter().filter(|thing| kinds.contains(&thing.get_type_ptr())).collect()
}

/// watch(function) -> None. Calls it, without arguments, before anybody reads all objects or the referrers of one.
#[pyfunction]
fn watch(python: Python<'_>, function: Py<PyAny>) {
    audit::listen(
        python,
        Box::new(move |python| {
            if IS_LOOKING.load(Ordering::Relaxed) {
                return Ok(());
            }
            function.call0(python).map(drop)
        }),
    );
}
