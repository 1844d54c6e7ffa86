//! Who notes what a start does hears what else than modules was answered from the archive: `snapboot explain`.

use std::sync::OnceLock;
use std::time::Instant;

use pyo3::prelude::*;

static LISTENER: OnceLock<Py<PyAny>> = OnceLock::new();

/// listen(function) -> None. Has function(name, nanoseconds) called with each answer but those of imports: what was asked for, and how
/// long that took.
#[pyfunction]
pub fn listen(function: Py<PyAny>) {
    let _ = LISTENER.set(function);
}

/// When an answer is looked for; `None` where nobody listens.
pub fn begin() -> Option<Instant> {
    LISTENER.get().map(|_| Instant::now())
}

/// There is one. `begun`: what [`begin`] has returned.
pub fn tell(python: Python<'_>, name: &str, begun: Option<Instant>) {
    if let (Some(listener), Some(begun)) = (LISTENER.get(), begun) {
        // What it raises is none of the program's.
        let _ = listener.bind(python).call1((name, begun.elapsed().as_nanos() as u64));
    }
}
