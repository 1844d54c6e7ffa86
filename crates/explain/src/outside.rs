//! The tree of a start that records nothing itself: for Python from the output of `-X importtime`, for Ruby the whole.

use std::collections::VecDeque;

use crate::start_tree::part;
use crate::tree::{Kind, Node};

/// The name of the part that contains modules.
const IMPORTS: &str = "imports";

/// The tree of a start that took so long (s) and has printed this to standard error.
pub fn tree(seconds: f64, printed: &[u8]) -> Node {
    let mut root = part("process", Kind::Process, 0.0);
    root.seconds = seconds;
    let mut imports = part(IMPORTS, Kind::Main, 0.0);
    imports.children = modules(printed);
    imports.seconds = imports.children.iter().map(|module| module.seconds).sum();
    if !imports.children.is_empty() {
        place(&mut imports, 0.0);
        root.children.push(imports);
    }
    root
}

/// The modules of `import time: SELF | CUMULATIVE | NAME`, in microseconds: a module follows those that it loads, which are indented by two
/// more blanks.
fn modules(printed: &[u8]) -> Vec<Node> {
    let mut done: VecDeque<(usize, Node)> = VecDeque::new();
    for line in String::from_utf8_lossy(printed).lines() {
        let Some((depth, mut module)) = module(line) else { continue };
        while done.back().is_some_and(|(other, _)| *other > depth) {
            module.children.extend(done.pop_back().map(|(_, child)| child));
        }
        module.children.reverse();
        done.push_back((depth, module));
    }
    done.into_iter().map(|(_, module)| module).collect()
}

fn module(line: &str) -> Option<(usize, Node)> {
    // The program may have printed something before it on the same line.
    let mut columns = line.rsplit_once("import time:")?.1.splitn(3, " | ");
    columns.next()?.trim().parse::<u64>().ok()?;
    let cumulative: u64 = columns.next()?.trim().parse().ok()?;
    let name = columns.next()?;
    let mut module = part(name.trim(), Kind::Body, 0.0);
    module.seconds = cumulative as f64 / 1e6;
    Some(((name.len() - name.trim_start().len()) / 2, module))
}

/// The output does not show when a module began, so they are placed one after the other.
fn place(node: &mut Node, mut start: f64) {
    node.start = start;
    for child in &mut node.children {
        place(child, start);
        start += child.seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_lie_in_what_loads_them() {
        let printed = "import time: self [us] | cumulative | imported package\nimport time:       100 |        100 |   json.scanner\n\
             noise import time:       200 |        200 |     enum\nimport time:        50 |        250 |   json.decoder\n\
             import time:       10 |        360 | json\nanything | else\nimport time:         5 |          5 | cut\n";
        let root = tree(1.0, printed.as_bytes());
        let imports = &root.children[0];
        let names = |node: &Node| node.children.iter().map(|child| child.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(imports), ["json", "cut"]);
        assert_eq!(names(&imports.children[0]), ["json.scanner", "json.decoder"]);
        let decoder = &imports.children[0].children[1];
        assert_eq!((names(decoder), decoder.seconds, decoder.start), (vec!["enum".to_owned()], 250e-6, 100e-6));
    }
}
