//! Reports answers from the archive, other than modules, to the recorder of a start: `snapboot explain`.

use std::sync::OnceLock;
use std::time::Instant;

use pyo3::prelude::*;

static LISTENER: OnceLock<Py<PyAny>> = OnceLock::new();

/// listen(function) -> None. Calls function(name, nanoseconds) for each answer except those of imports: its name and duration.
#[pyfunction]
pub fn listen(function: Py<PyAny>) {
    let _ = LISTENER.set(function);
}

/// The start of a look-up; `None` without a listener.
pub fn begin() -> Option<Instant> {
    LISTENER.get().map(|_| Instant::now())
}

/// Reports an answer. `begun`: the result of [`begin`].
pub fn report(python: Python<'_>, name: &str, begun: Option<Instant>) {
    if let (Some(listener), Some(begun)) = (LISTENER.get(), begun) {
        // Its exceptions do not concern the program.
        let _ = listener.bind(python).call1((name, begun.elapsed().as_nanos() as u64));
    }
}
