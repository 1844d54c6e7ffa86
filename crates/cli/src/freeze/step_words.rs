//! The steps of a freeze in words, as the spinner shows them.

use std::io;

use freeze::{ProgramOutput, Step};

use crate::human;
use crate::spinner::Spinner;

impl freeze::Progress for Spinner {
    fn step(&self, step: &Step<'_>) {
        self.phase(words(step));
    }

    fn message(&self, message: &str) {
        Spinner::print_note(self, message);
    }

    fn program_output(&self) -> io::Result<ProgramOutput> {
        let (stdout, stderr, output) = self.output()?;
        Ok(ProgramOutput { stdout, stderr, finish: Box::new(|| output.finish()) })
    }
}

fn words(step: &Step<'_>) -> String {
    match step {
        Step::Probe(program) => format!("identifying {}", program.display()),
        Step::Train { count: 1, .. } => "training".to_owned(),
        Step::Train { number, count } => format!("training ({number} of {count})"),
        Step::Compare => "comparing the image with the training runs".to_owned(),
        Step::Boot { runtime, count: 1, .. } => format!("booting {runtime}"),
        Step::Boot { runtime, number, count } => format!("booting {runtime} ({number} of {count})"),
        Step::Dump(bytes) => format!("writing the image: {}", human::size(*bytes)),
        Step::Inputs => "checking the inputs, writing the tables".to_owned(),
        Step::BootForFiles => "booting again to see whether every start makes files of its own".to_owned(),
        Step::BootForOrigins => "booting again to see where that comes from".to_owned(),
        Step::BootForSecrets => "booting again with other made-up secrets to see what comes of them".to_owned(),
        Step::BootAsOtherStart => "booting again as another start to see what comes of it".to_owned(),
    }
}
