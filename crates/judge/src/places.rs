//! Places in a program, as people read them.

/// A place as people read it: from the current directory where it lies below that.
pub fn shown(place: &str) -> String {
    let here = std::env::current_dir().ok();
    let relative = here.as_ref().and_then(|here| place.strip_prefix(here.to_str()?)?.strip_prefix('/'));
    relative.unwrap_or(place).to_owned()
}

/// Who reads there; None stands for C code.
pub fn reader(place: Option<&str>) -> String {
    place.map_or_else(|| "C code of the program".to_owned(), shown)
}
