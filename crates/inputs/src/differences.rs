//! All kinds of inputs: how they differ from what an image recorded, and the messages about it.
//!
//! Each kind has a module with its comparison, the message of a launcher that falls back, and the line of `snapboot
//! inspect --why`. The launcher, `inspect --why`, `snapboot list` and the store all call the functions here, so they
//! agree about what is stale.

use core::fmt::{self, Write};

use image::Tables;

use crate::facts::Kernel;
use crate::system::{Check, System};
use crate::words::Words;
use crate::{cpu, directories, environment, facts, files};

/// A difference between the state that an image recorded and the present one.
pub enum Difference<'t, 'n> {
    /// A variable, the size of the environment, or the locale of text.
    Variable(environment::Difference<'t>),
    /// A fact about machine, user or process.
    Fact(facts::Difference<'t>),
    /// A register of the CPU.
    Cpu(cpu::Difference),
    /// A directory, or one of its answers.
    Directory(directories::Difference<'t, 'n>),
    /// A file, or one of its answers.
    File(files::Difference<'t>),
}

impl<'t, 'n> Difference<'t, 'n> {
    /// The message of a start that falls back for it.
    pub fn words(&self) -> Words<'t, 'n> {
        match self {
            Difference::Variable(difference) => difference.words(),
            Difference::Fact(difference) => difference.words(),
            Difference::Cpu(difference) => difference.words(),
            Difference::Directory(difference) => difference.words(),
            Difference::File(difference) => difference.words(),
        }
    }

    /// Writes the recorded and the present state: one line, or one for each feature of a CPU. `time` writes a time (ns
    /// since 1970).
    pub fn write_details(
        &self,
        kernel: &impl Kernel,
        system: &impl System,
        time: fn(i64, &mut dyn Write) -> fmt::Result,
        out: &mut dyn Write,
    ) -> fmt::Result {
        match self {
            Difference::Variable(difference) => difference.write_details(out),
            Difference::Fact(difference) => difference.write_details(kernel, out),
            Difference::Cpu(difference) => difference.write_details(out),
            Difference::Directory(difference) => difference.write_details(system, out),
            Difference::File(difference) => difference.write_details(time, out),
        }
    }
}

/// The first difference in the CPU, the terminal or the locale of text, by which a start chooses among the variants of
/// an image. None if this variant is for the start.
pub fn first_of_start_kind<'t, E>(
    tables: &Tables<'t>,
    environment: E,
    kernel: &impl Kernel,
) -> Result<Option<Difference<'t, 'static>>, image::Error>
where
    E: Iterator<Item = &'t [u8]> + Clone,
{
    if let Some(difference) = cpu::differences(tables)?.next() {
        return Ok(Some(Difference::Cpu(difference)));
    }
    if let Some(difference) = facts::first_terminal_difference(tables, kernel)? {
        return Ok(Some(Difference::Fact(difference)));
    }
    Ok(environment::locale_difference(tables, environment)?.map(Difference::Variable))
}

/// Compares the environment of a start, and the facts about machine, user and process.
pub fn compare_start<'t, E, C: Check<'t>>(
    tables: &Tables<'t>,
    environment: E,
    kernel: &impl Kernel,
    check: &mut C,
) -> Result<(), C::Stop>
where
    E: Iterator<Item = &'t [u8]> + Clone,
{
    for difference in environment::differences(tables, environment)? {
        check.differs(Difference::Variable(difference?))?;
    }
    facts::pass_differences(tables, kernel, |difference| check.differs(Difference::Fact(difference)))
}

/// Compares the CPU.
pub fn compare_cpu<'t, C: Check<'t>>(tables: &Tables<'t>, check: &mut C) -> Result<(), C::Stop> {
    for difference in cpu::differences(tables)? {
        check.differs(Difference::Cpu(difference))?;
    }
    Ok(())
}

/// Compares files and directories under a policy, one of [`image::policy`].
pub fn compare_files<'t, S, C>(tables: &Tables<'t>, policy: u32, system: &S, check: &mut C) -> Result<(), C::Stop>
where
    S: System<Stop = C::Stop>,
    C: Check<'t>,
{
    directories::compare_all(tables, policy, system, check)
}

/// Compares the mapped files, mostly libraries. A launcher compares them one by one as it maps them, also by
/// [`files::unchanged_by_metadata`].
pub fn compare_libraries<'t, S, C>(tables: &Tables<'t>, policy: u32, system: &S, check: &mut C) -> Result<(), C::Stop>
where
    S: System<Stop = C::Stop>,
    C: Check<'t>,
{
    files::compare_libraries(tables, policy, system, check)
}
