//! The frozen process that an image holds, once the image was found good.

use image::arch::Registers;
use image::{Head, Process, Rows, Section, Settings, Tables};

use crate::reason::Reason;
use crate::sys::Fd;
use crate::vdso::Vdso;

/// A frozen process whose image was found good.
pub struct Frozen {
    /// The image.
    pub file: Fd,
    /// Its tables, with all rows checked.
    pub tables: Tables<'static>,
    /// Registers.
    pub registers: Registers,
    /// Kernel state.
    pub process: Process,
    /// The vdso as the kernel has mapped it.
    pub vdso: Vdso,
    /// The head of this variant.
    pub head: Head,
    /// The number by which files beside the image name it.
    pub image_id: u64,
    /// How it wants to be used.
    pub settings: Settings,
}

impl Frozen {
    /// The rows of a section; an image that got here has only well-formed ones.
    pub fn rows<R: image::Record>(&self, section: Section) -> Result<Rows<'static, R>, Reason> {
        self.tables.rows(section).map_err(Reason::image)
    }

    /// A string with its NUL.
    pub fn text(&self, text: image::Text) -> Result<&'static [u8], Reason> {
        self.tables.text_with_nul(text).map_err(Reason::image)
    }
}
