//! Builds the tree of a start from its events.

use crate::count::Counts;
use crate::events::Event;
use crate::tree::{Kind, Node};

/// The prefix of the row for a program that the process executes.
pub const EXECUTED: &str = "executed: ";

/// The part between launcher and front end.
pub const RETURN: &str = "return from the fork, environment";
/// The part at the end of a thawed process, after its last event.
pub const END_OF_THAW: &str = "flushing, end of the process";

/// One start.
pub struct Run {
    /// When the process was started and had ended, in seconds of the monotonic clock.
    pub span: (f64, f64),
    /// Its events.
    pub events: Vec<Event>,
}

/// A part that is still open while events are read.
struct Open {
    node: Node,
    /// System calls and failed look-ups before it.
    before: (u64, u64),
}

/// The tree of a start. `counts`: of its system calls.
pub fn tree(run: &Run, counts: &Counts) -> Node {
    let (begun, ended) = run.span;
    let mut root = part("process", Kind::Process, 0.0);
    root.seconds = ended - begun;
    (root.system_calls, root.failed_lookups) = counts.total();
    let first = run.events.iter().find_map(time).unwrap_or(ended);
    let is_thaw = run.events.iter().any(|event| matches!(event, Event::Begin { kind: Kind::Launcher, .. }));
    let mut interpreter = match is_thaw {
        true => part("execution, opening the image", Kind::Launcher, 0.0),
        false => part("the interpreter's own start", Kind::Interpreter, 0.0),
    };
    if let Some(Event::HasRun { time }) = run.events.first() {
        // Its calls are not counted: counting begins with the program that it executes.
        let mut switch = part("snapboot run", Kind::Archive, 0.0);
        switch.seconds = time - begun;
        interpreter.start = switch.seconds;
        root.children.push(switch);
    }
    interpreter.seconds = first - begun - interpreter.start;
    (interpreter.system_calls, interpreter.failed_lookups) = counts.before(0);
    root.children.push(interpreter);

    let mut executed = None;
    let mut stack: Vec<Open> = Vec::new();
    let (mut now, mut last) = (first, counts.before(0));
    for (index, event) in run.events.iter().enumerate() {
        // An entry that a collection interrupted follows those of the collection, with an earlier time.
        now = time(event).unwrap_or(now).max(now);
        let before = counts.before(index);
        match event {
            Event::Begin { kind, name, .. } => {
                if stack.is_empty() && *kind != Kind::Launcher {
                    between(&mut root, now - begun, last, before);
                }
                let search = match kind {
                    Kind::Code => Some(Kind::Search),
                    Kind::Stored => Some(Kind::Lookup),
                    _ => None,
                };
                if let Some((above, search)) = stack.last_mut().zip(search) {
                    search_before(above, search, now - begun, before);
                }
                stack.push(Open { node: part(name, *kind, now - begun), before });
            }
            Event::End { detail, failed, .. } => {
                let Some(mut open) = stack.pop() else { continue };
                open.node.seconds = now - begun - open.node.start;
                open.node.system_calls = before.0.saturating_sub(open.before.0);
                open.node.failed_lookups = before.1.saturating_sub(open.before.1);
                open.node.detail.clone_from(detail);
                finish(&mut open.node, *failed);
                add(stack.last_mut().map_or(&mut root, |above| &mut above.node), open.node);
                last = before;
            }
            Event::HasRun { .. } => {}
            Event::Executed(program) => executed = Some(program),
            // Handled separately, see [`crate::thaw`].
            Event::Checked { .. } | Event::Mapped { .. } => {}
            Event::Collected { seconds } => {
                if let Some(above) = stack.last_mut() {
                    let start = (now - begun - seconds).max(above.node.start);
                    let collector = Node { seconds: *seconds, ..part("garbage collection", Kind::Collector, start) };
                    add(&mut above.node, collector);
                }
            }
        }
    }
    let name = if is_thaw { END_OF_THAW } else { "end of the interpreter" };
    let mut end = match executed {
        Some(program) => part(&format!("{EXECUTED}{program}"), Kind::Other, now - begun),
        None => part(name, Kind::Exit, now - begun),
    };
    end.seconds = ended - now;
    end.system_calls = root.system_calls.saturating_sub(last.0);
    end.failed_lookups = root.failed_lookups.saturating_sub(last.1);
    root.children.push(end);
    root
}

/// Adds the time between two parts as a part, if there is any: the frozen process resumes.
fn between(root: &mut Node, now: f64, last: (u64, u64), before: (u64, u64)) {
    /// The time between two readings of the clock (s).
    const NOTHING: f64 = 20e-6;
    let end = root.children.last().map_or(0.0, |child| child.start + child.seconds);
    if now - end > NOTHING {
        let mut gap = part(RETURN, Kind::Context, end);
        gap.seconds = now - end;
        gap.system_calls = before.0.saturating_sub(last.0);
        gap.failed_lookups = before.1.saturating_sub(last.1);
        root.children.push(gap);
    }
}

/// A part that takes no time yet.
pub fn part(name: &str, kind: Kind, start: f64) -> Node {
    Node {
        name: name.to_owned(),
        kind,
        detail: None,
        start,
        seconds: 0.0,
        spread: 0.0,
        system_calls: 0,
        failed_lookups: 0,
        children: Vec::new(),
    }
}

fn time(event: &Event) -> Option<f64> {
    match event {
        Event::Begin { time, .. } | Event::End { time, .. } => Some(*time),
        _ => None,
    }
}

/// Before Ruby reads a feature's code it searches, without an event: no other event came before. So does the boot archive before it has the
/// code of a file that it has found. `kind`: of that search.
fn search_before(above: &mut Open, kind: Kind, now: f64, calls: (u64, u64)) {
    let node = &mut above.node;
    if node.kind != Kind::Body || node.children.iter().any(|child| child.kind != Kind::Collector) {
        return;
    }
    let mut search = part(&node.name, kind, node.start);
    search.seconds = (now - node.start - node.children.iter().map(|child| child.seconds).sum::<f64>()).max(0.0);
    search.system_calls = calls.0.saturating_sub(above.before.0);
    search.failed_lookups = calls.1.saturating_sub(above.before.1);
    node.children.insert(0, search);
}

/// Completes a part that has ended: a module was found where its search has found it, or where its code was; a failed search stays a
/// search.
fn finish(node: &mut Node, failed: bool) {
    if node.kind != Kind::Body {
        return;
    }
    let is_search = |kind| matches!(kind, Kind::Search | Kind::Lookup);
    let found = node.children.iter_mut().find(|child| is_search(child.kind) && child.name == node.name);
    if let Some(search) = found {
        let origin = search.detail.take();
        node.detail = node.detail.take().or(origin);
    }
    if node.detail.is_none() {
        let code = node.children.iter().find(|child| matches!(child.kind, Kind::Code | Kind::Stored));
        node.detail = code.and_then(|code| code.detail.clone());
    }
    if failed && node.children.iter().all(|child| is_search(child.kind) || child.kind == Kind::Collector) {
        node.kind = Kind::Search;
        node.detail = Some("not there".to_owned());
        node.children.retain(|child| child.kind == Kind::Collector);
    }
}

/// Adds a part to its parent. Each parent has one part for all collections, and one for data of the same name.
fn add(above: &mut Node, node: Node) {
    if matches!(node.kind, Kind::Collector | Kind::Data) {
        let is_same =
            |child: &&mut Node| child.kind == node.kind && (node.kind == Kind::Collector || child.name == node.name);
        if let Some(same) = above.children.iter_mut().find(is_same) {
            same.seconds += node.seconds;
            same.system_calls += node.system_calls;
            same.failed_lookups += node.failed_lookups;
            return;
        }
    }
    above.children.push(node);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::parse;

    fn tree_of(text: &str) -> Node {
        let events = parse(text.replace('|', "\0").as_bytes()).unwrap();
        tree(&Run { span: (1.0, 10.0), events }, &Counts::default())
    }

    #[test]
    fn the_parts_of_a_process_are_all_of_it() {
        let text =
            "begin=2000000000 main __main__|begin=3000000000 body a|begin=3000000000 search a|end=4000000000 /a.py|\
                    begin=4500000000 collector gc|end=4600000000 |begin=4600000000 collector gc|end=4700000000 |\
                    end=6000000000 |end=8000000000 |";
        let root = tree_of(text);
        let names: Vec<_> = root.children.iter().map(|child| (child.kind, child.seconds)).collect();
        assert_eq!(names, [(Kind::Interpreter, 1.0), (Kind::Main, 6.0), (Kind::Exit, 2.0)]);
        assert_eq!(root.own(), 0.0);
        let module = &root.children[1].children[0];
        assert_eq!((module.detail.as_deref(), module.children.len()), (Some("/a.py"), 2));
        assert!((module.children[1].seconds - 0.2).abs() < 1e-9);
        assert!((module.own() - 1.8).abs() < 1e-9);
    }

    #[test]
    fn what_ruby_does_before_a_file_is_found_is_a_search() {
        let text = "begin=2000000000 body a|begin=3000000000 code /a.rb|end=3500000000 /a.rb|end=4000000000 |";
        let module = &tree_of(text).children[1];
        let kinds: Vec<_> = module.children.iter().map(|child| (child.kind, child.seconds)).collect();
        assert_eq!(kinds, [(Kind::Search, 1.0), (Kind::Code, 0.5)]);
        assert_eq!(module.detail.as_deref(), Some("/a.rb"));
    }

    #[test]
    fn a_start_with_the_archive_tells_what_comes_from_there() {
        let text = "run=1500000000|begin=2000000000 main __main__|begin=2000000000 archive opening the boot archive|end=2500000000 |\
                    begin=3000000000 body a|begin=3500000000 stored /a.rb|end=4000000000 /a.rb|begin=4000000000 data regular expressions|\
                    end=4500000000 |begin=4500000000 data regular expressions|end=4750000000 |end=5000000000 |end=8000000000 |";
        let root = tree_of(text);
        let parts = |node: &Node| node.children.iter().map(|child| (child.kind, child.seconds)).collect::<Vec<_>>();
        assert_eq!(
            parts(&root),
            [(Kind::Archive, 0.5), (Kind::Interpreter, 0.5), (Kind::Main, 6.0), (Kind::Exit, 2.0)]
        );
        assert_eq!(root.children.iter().map(|child| child.start).collect::<Vec<_>>(), [0.0, 0.5, 1.0, 7.0]);
        let module = &root.children[2].children[1];
        assert_eq!(parts(module), [(Kind::Lookup, 0.5), (Kind::Stored, 0.5), (Kind::Data, 0.75)]);
        assert_eq!(module.detail.as_deref(), Some("/a.rb"));
    }

    #[test]
    fn a_program_that_is_executed_has_a_row() {
        let root = tree_of("begin=2000000000 main __main__|executed=/bin/ls|end=4000000000 |");
        let last = root.children.last().unwrap();
        assert_eq!((last.name.as_str(), last.kind, last.seconds), ("executed: /bin/ls", Kind::Other, 6.0));
    }

    #[test]
    fn what_is_not_there_was_a_search() {
        let text = "begin=2000000000 body a|begin=2000000000 search a|end=3000000000 |end=3000000000 failed|";
        let module = &tree_of(text).children[1];
        assert_eq!((module.kind, module.detail.as_deref()), (Kind::Search, Some("not there")));
    }
}
