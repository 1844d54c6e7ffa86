//! Links the unwinder in.

include!("../archive/unwinder.rs");

fn main() {
    link_unwinder();
}
