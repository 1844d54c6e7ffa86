//! Finds the objects of a module's code that are needed only until the module has run: see [`super::bodies`].

use std::collections::HashMap;

/// The objects that refer to others, and their references, by number.
#[derive(Default)]
pub struct References {
    codes: HashMap<u16, Code>,
    tuples: HashMap<u16, Vec<u16>>,
    bytes: Vec<u16>,
}

struct Code {
    fields: Vec<u16>,
    is_function: bool,
}

impl References {
    /// `fields`: the first of them is the tuple of constants.
    pub fn add_code(&mut self, number: u16, fields: Vec<u16>, is_function: bool) {
        self.codes.insert(number, Code { fields, is_function });
    }

    pub fn add_tuple(&mut self, number: u16, items: Vec<u16>) {
        self.tuples.insert(number, items);
    }

    pub fn add_bytes(&mut self, number: u16) {
        self.bytes.push(number);
    }

    /// The code of the module, that of the bodies of its classes, and the tuples and bytes that only such code refers to. The contents of
    /// those tuples last: a module has them as its documentation, or as a value.
    pub fn passing(&self, module: u16) -> Vec<u16> {
        let mut passing = vec![module];
        let mut seen = 0;
        while let Some(body) = passing.get(seen).and_then(|number| self.codes.get(number)) {
            let constants = body.fields.first().and_then(|tuple| self.tuples.get(tuple));
            let classes =
                constants.into_iter().flatten().filter(|it| self.codes.get(it).is_some_and(|it| !it.is_function));
            passing.extend(classes);
            seen += 1;
        }
        let fields = passing.iter().flat_map(|number| &self.codes[number].fields);
        let fields = fields.filter(|field| self.tuples.contains_key(field) || self.bytes.contains(field));
        passing.extend(fields.copied().collect::<Vec<_>>());
        passing.sort_unstable();
        passing.dedup();
        loop {
            let before = passing.len();
            let lasting = self.lasting(&passing);
            passing.retain(|number| !lasting.contains(number));
            if passing.len() == before {
                return passing;
            }
        }
    }

    /// Those of `passing` that a lasting object refers to, or that a tuple may have given to the module.
    fn lasting(&self, passing: &[u16]) -> Vec<u16> {
        let passes = |number: &u16| passing.binary_search(number).is_ok();
        let of_codes = self.codes.iter().filter(|(number, _)| !passes(number)).flat_map(|(_, code)| &code.fields);
        let of_tuples = self.tuples.iter().flat_map(|(number, items)| {
            let is_passing = passes(number);
            items.iter().filter(move |item| !is_passing || !self.codes.contains_key(item))
        });
        of_codes.chain(of_tuples).filter(|number| passes(number)).copied().collect()
    }
}
