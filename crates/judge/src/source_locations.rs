//! Places in a program as users see them: relative to the current directory if they lie below it.

/// A place relative to the current directory if it lies below that, otherwise unchanged.
pub fn relative_location(place: &str) -> String {
    let here = std::env::current_dir().ok();
    let relative = here.as_ref().and_then(|here| place.strip_prefix(here.to_str()?)?.strip_prefix('/'));
    relative.unwrap_or(place).to_owned()
}

/// The reader at a place; None stands for C code.
pub fn reader(place: Option<&str>) -> String {
    place.map_or_else(|| "C code of the program".to_owned(), relative_location)
}
