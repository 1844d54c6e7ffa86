//! Links the unwinder into the library.

include!("../archive/unwinder.rs");

fn main() {
    link_unwinder();
}
