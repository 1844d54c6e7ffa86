//! Warnings about an image, from the pipeline.

/// A warning about variants that protect each other less.
pub const SHARED_LAYOUT: &str =
    "the variants have the same memory layout, since the kernel gives every process the same one: address \
    randomization is switched off here (kernel.randomize_va_space, setarch -R)";

/// A warning about a process that the recorder could not watch.
pub const HIDDEN: &str =
    "a process that the program started while it booted hides its memory, so Snapboot cannot see which files it read: the image does not \
     become stale when they change";

/// A warning about output of the boot.
pub const OUTPUT: &str = "the program printed something while it booted (see above), and its thaws will not print that again; where each start should, \
                      do not preload what prints, or print in snapboot.defer (Python) or Snapboot.defer (Ruby)";
