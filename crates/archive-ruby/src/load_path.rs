//! $LOAD_PATH, expanded as Ruby expands it: real paths of directories, updated whenever the array has changed in any way.

use archive::session::{real_path, Directories, DirectoryId, NoRealPath};

use crate::names;
use crate::ruby::{Protected, Ruby, Value};

/// The directories in which features are looked up.
pub struct LoadPath {
    array: Value<'static>,
    /// A copy that shares its elements with the array until one of them changes (copy on write).
    copy: Value<'static>,
    length: usize,
    roots: Vec<DirectoryId>,
    /// The working directory, if an element is relative to it.
    cwd: Option<Vec<u8>>,
    /// Whether all elements are directories that do not depend on a home.
    is_usable: bool,
}

impl LoadPath {
    pub fn new(ruby: Ruby<'_>) -> Protected<Self> {
        let array = ruby.keep(ruby.global(c"$LOAD_PATH")?)?;
        Ok(LoadPath {
            array,
            copy: ruby.keep(ruby.array()?)?,
            length: usize::MAX,
            roots: Vec::new(),
            cwd: None,
            is_usable: true,
        })
    }

    /// The array.
    pub fn array(&self) -> Value<'static> {
        self.array
    }

    /// Whether the array, and what its elements are relative to, is unchanged.
    pub fn is_current(&self, ruby: Ruby<'_>) -> Protected<bool> {
        let is_same = self.length != usize::MAX && ruby.is_same_array(self.array, self.copy, self.length)?;
        Ok(is_same && self.cwd.as_ref().is_none_or(|cwd| working_directory().as_ref() == Some(cwd)))
    }

    /// Sets the elements of the array. `None`: not all are strings; Ruby converts others at each search.
    pub fn set(
        &mut self,
        ruby: Ruby<'_>,
        elements: Option<Vec<Vec<u8>>>,
        directories: &mut Directories,
    ) -> Protected<()> {
        self.length = ruby.length(self.array)?;
        self.is_usable = elements.is_some();
        let elements = elements.unwrap_or_default();
        let cwd = working_directory();
        self.is_usable &= !elements.iter().any(|element| element.starts_with(b"~"));
        let is_relative = elements.iter().any(|element| !element.starts_with(b"/"));
        self.is_usable &= !is_relative || cwd.is_some();
        self.cwd = cwd.filter(|_| is_relative);
        self.roots = (elements.iter())
            .filter(|element| !element.is_empty())
            .map(|element| match &self.cwd {
                Some(cwd) if !element.starts_with(b"/") => {
                    expanded(&[cwd, element.as_slice()].join(&b'/'), directories)
                }
                _ => expanded(element, directories),
            })
            .collect();
        directories.begin_round();
        ruby.replace(self.copy, self.array)
    }

    /// The directories in order. `None`: only Ruby itself knows what an element means.
    pub fn roots(&self) -> Option<&[DirectoryId]> {
        self.is_usable.then_some(&self.roots)
    }
}

/// The directory that an absolute element stands for.
fn expanded(element: &[u8], directories: &mut Directories) -> DirectoryId {
    let element = element.strip_suffix(b"/").filter(|rest| !rest.is_empty()).unwrap_or(element);
    if !names::is_plain(element) {
        let real = real_path(element).unwrap_or_else(|| element.to_vec());
        return directories.id(&real);
    }
    let id = directories.id(element);
    match directories.real(id) {
        Ok(Some(real)) => {
            let real = real.to_vec();
            directories.id(&real)
        }
        Ok(None) | Err(NoRealPath) => id,
    }
}

/// The elements of $LOAD_PATH, if all are strings.
pub fn elements(ruby: Ruby<'_>, array: Value<'_>) -> Protected<Option<Vec<Vec<u8>>>> {
    let mut elements = Vec::new();
    for position in 0..ruby.length(array)? {
        let element = ruby.entry_of(array, position);
        if !ruby.is_string(element) {
            return Ok(None);
        }
        // As Ruby does, so that it cannot change without the array.
        ruby.freeze(element)?;
        elements.push(ruby.c_bytes(ruby.path(element)?)?.into_bytes());
    }
    Ok(Some(elements))
}

fn working_directory() -> Option<Vec<u8>> {
    Some(std::env::current_dir().ok()?.into_os_string().into_encoded_bytes())
}
