//! The page in a browser: Chromium shows the page of a Rails boot, at the widths of a desktop and a phone, in light and dark.

mod driver;
#[path = "../synthetic/mod.rs"]
mod synthetic;

use driver::Browser;
use serde_json::{json, Value};
use snapboot_explain::{page, Node, Report};

const DESKTOP: u32 = 1440;
const PHONE: u32 = 390;
const ENTER: char = '\u{e007}';
const ESCAPE: char = '\u{e00c}';
const DOWN: char = '\u{e015}';
const UP: char = '\u{e013}';

/// Text that would do harm if it were not treated as text.
const HOSTILE: &str = "</script><img src=x onerror='hacked=1'><!--<script>&lt;\u{2028}\"'`${hacked=1}🦀DATA";

/// The sizes of all text, as a user sees it.
const FONT_SIZES: &str = "[...document.querySelectorAll('main *, header *, footer *')]
    .filter((at) => [...at.childNodes].some((child) => child.nodeType === 3 && child.data.trim()) && at.getClientRects().length)
    .map((at) => parseFloat(getComputedStyle(at).fontSize))";

/// The least contrast of text and its background, as WCAG defines it, with its element.
const LEAST_CONTRAST: &str = "(() => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const seen = (colours) => {
        canvas.clearRect(0, 0, 1, 1);
        for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
        const linear = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((value) => value / 255)
            .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    };
    const least = [99, ''];
    for (const at of document.querySelectorAll('main *, header *, footer *')) {
        if (!at.getClientRects().length || ![...at.childNodes].some((child) => child.nodeType === 3 && child.data.trim())) continue;
        const behind = [];
        for (let up = at; up; up = up.parentElement) behind.unshift(getComputedStyle(up).backgroundColor);
        const [ground, ink] = [seen(behind), seen([...behind, getComputedStyle(at).color])];
        const contrast = (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05);
        if (contrast < least[0]) { least[0] = contrast; least[1] = `${at.className}: ${at.textContent}`; }
    }
    return least;
})()";

#[test]
fn it_is_legible_on_desktops_and_phones_in_light_and_dark() {
    let page = page(&synthetic::rails(""));
    for (scheme, is_dark) in [("light", false), ("dark", true)] {
        let Some(browser) = Browser::show(&page, DESKTOP, scheme) else { return };
        let ground = browser.value("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]");
        assert_eq!(ground.as_f64().expect("a number") < 128.0, is_dark, "{scheme}: {ground}");
        for width in [DESKTOP, PHONE] {
            browser.resize(width);
            browser.wait(&format!("innerWidth === {width} && document.querySelector('.rows').clientWidth < {width}"));
            for shown in [1, 2, 3, 4] {
                browser.click(&format!("#shown button:nth-child({shown})"));
                let context = format!("{scheme}, {width} wide, choice {shown}");
                let needed = browser.value("document.documentElement.scrollWidth");
                assert_eq!(needed, json!(width), "something is wider than the window: {context}");
                let sizes = browser.value(FONT_SIZES);
                let smallest = sizes.as_array().expect("a list").iter().filter_map(Value::as_f64).fold(99.0, f64::min);
                assert!(smallest >= 12.0, "text of {smallest} pixels: {context}");
                let least = browser.value(LEAST_CONTRAST);
                assert!(least[0].as_f64().expect("a number") >= 4.5, "contrast of {least}: {context}");
            }
        }
        assert_eq!(browser.complaints(), Vec::<Value>::new());
        assert_eq!(browser.value("performance.getEntriesByType('resource').length"), json!(0), "it loads something");
    }
}

#[test]
fn starts_can_be_seen_side_by_side() {
    let Some(browser) = Browser::show(&page(&synthetic::rails("")), DESKTOP, "light") else { return };
    let places =
        "panels.map((panel) => panel.element.getBoundingClientRect()).map((at) => [at.width > 0, at.left, at.top])";
    let shown = |places: &Value| places.as_array().expect("a list").iter().filter(|place| place[0] == true).count();
    assert_eq!(shown(&browser.value(places)), 1);
    browser.click("#shown button:last-child");
    let beside = browser.value(places);
    assert_eq!(shown(&beside), 3);
    assert_eq!(beside[0][2], beside[2][2], "they are not beside each other: {beside}");
    assert!(beside[0][1].as_f64() < beside[1][1].as_f64(), "they are not beside each other: {beside}");
    browser.resize(PHONE);
    browser.wait(&format!("innerWidth === {PHONE}"));
    let below = browser.value(places);
    assert_eq!(below[0][1], below[2][1], "a phone has no room for them beside each other: {below}");
}

#[test]
fn the_start_with_the_archive_has_a_chart_and_colours_of_its_own() {
    let mut report = synthetic::rails("");
    for scheme in ["light", "dark"] {
        let Some(browser) = Browser::show(&page(&report), PHONE, scheme) else { return };
        browser.click("#shown button:nth-child(2)");
        assert_eq!(browser.value("document.querySelector('#shown [aria-pressed=true]').textContent"), "With archive");
        let shown =
            "panels.filter((panel) => !panel.element.hidden).map((panel) => panel.element.getAttribute('aria-label'))";
        assert_eq!(browser.value(shown), json!(["With archive"]));
        assert_eq!(browser.value("byId('headline').textContent.endsWith('thawed')"), json!(true));
        let legend = browser.value("[...document.querySelectorAll('#legend li')].map((at) => at.textContent)");
        for label in ["Archive", "Archived search", "Archived code", "Archived data"] {
            assert!(legend.as_array().expect("a list").contains(&json!(label)), "{label}: {legend}");
        }
        // Answers of the archive have another colour than the work that they save.
        let colours =
            "[...document.querySelectorAll('#legend .swatch')].map((at) => getComputedStyle(at).backgroundColor)";
        let colours = browser.value(colours);
        let mut different: Vec<String> = colours.as_array().expect("a list").iter().map(Value::to_string).collect();
        let all = different.len();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), all, "{colours}");
        // In the table, search and code of a module belong to the module.
        let row = browser
            .value("panels[1].table.all.filter((row) => ['lookup', 'stored'].includes(row.largest.kind.id)).length");
        assert_eq!(row, json!(0));
        assert_eq!(browser.value("byId('no-archive').getClientRects().length"), json!(0));
        assert_eq!(browser.complaints(), Vec::<Value>::new());
    }
    report.starts.remove(1);
    report.no_archive = Some(format!("There is no start with the boot archive to show: {HOSTILE}."));
    let Some(browser) = Browser::show(&page(&report), PHONE, "light") else { return };
    assert_eq!(browser.value("byId('no-archive').textContent"), json!(report.no_archive));
    assert_eq!(browser.value("byId('no-archive').getClientRects().length"), json!(1));
    assert_eq!(browser.value("document.documentElement.scrollWidth"), json!(PHONE));
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}

#[test]
fn two_commands_are_told_apart() {
    let mut report = synthetic::rails("");
    report.starts[1].command = "bin/rails other".to_owned();
    let Some(browser) = Browser::show(&page(&report), DESKTOP, "light") else { return };
    let commands = browser.value("[...document.querySelectorAll('.start .command')].map((at) => at.textContent)");
    assert_eq!(commands[1], "bin/rails other");
    assert_eq!(commands[0], json!(report.starts[0].command));
}

#[test]
fn all_parts_are_in_the_page_with_their_figures() {
    let report = synthetic::rails("");
    let Some(browser) = Browser::show(&page(&report), DESKTOP, "light") else { return };
    let told = "starts.map((start) => start.parts.map((at) =>
        [at.name, at.detail, at.kind.id, at.depth, at.time, at.spread, at.calls, at.lookups]))";
    let told = browser.value(told);
    for (start, told) in report.starts.iter().zip(told.as_array().expect("a list")) {
        let mut expected = Vec::new();
        list(&start.root, 0, &mut expected);
        assert_eq!(expected.len(), told.as_array().expect("a list").len());
        for (expected, told) in expected.iter().zip(told.as_array().expect("a list")) {
            assert_eq!(expected, told);
        }
    }
    let nested = "starts.every((start) => start.parts.every((at) => at.begin <= at.end &&
        (!at.parent || (at.parent.begin <= at.begin && at.end <= at.parent.end))))";
    assert_eq!(browser.value(nested), json!(true));
    // The rows of the table add up to the whole time.
    let sums = browser
        .value("panels.map(({ table, start }) => table.all.reduce((sum, row) => sum + row.own, 0) - start.total)");
    assert!(
        sums.as_array().expect("a list").iter().all(|sum| sum.as_f64().expect("a number").abs() < 1000.0),
        "{sums}"
    );
}

fn list(node: &Node, depth: usize, into: &mut Vec<Value>) {
    let micro = |seconds: f64| ((seconds * 1e9).round() as u64 + 500) / 1000; // nanoseconds in between
    let Node { name, kind, detail, system_calls, failed_lookups, .. } = node;
    let detail = detail.as_deref().unwrap_or("");
    let (time, spread) = (micro(node.seconds), micro(node.spread));
    into.push(json!([name, detail, kind, depth, time, spread, system_calls, failed_lookups]));
    node.children.iter().for_each(|child| list(child, depth + 1, into));
}

#[test]
fn the_search_finds_and_highlights() {
    let report = synthetic::rails("");
    let Some(browser) = Browser::show(&page(&report), DESKTOP, "light") else { return };
    browser.press("/nokogiri");
    assert_eq!(browser.value("document.activeElement.id"), json!("search"));
    browser.wait("byId('found').textContent.startsWith('Ordinary: ')");
    let expected = matching(&report, "nokogiri");
    assert!(expected > 100, "{expected} parts to be found");
    let said = browser.value("byId('found').textContent").to_string();
    assert!(said.contains(&format!("Ordinary: {expected}\u{a0}parts")), "{said}");
    browser.wait("document.querySelector('.box.match') !== null");
    // Only matches have the colour of matches.
    browser.run(
        "boxes = [...document.querySelectorAll('.rows [role=treeitem]')];
        has = (box) => `${box.one.name} ${box.one.detail}`.includes('nokogiri');
        stands_out = (box) => getComputedStyle(box).backgroundColor === getComputedStyle(document.querySelector('.brand')).color",
    );
    assert_eq!(browser.value("boxes.some(has)"), json!(true));
    assert_eq!(browser.value("boxes.every((box) => has(box) === stands_out(box))"), json!(true));
    let rows = "[...document.querySelectorAll('.panel:not([hidden]) .costs tbody th')].every((at) => at.textContent.includes('nokogiri'))";
    assert_eq!(browser.value(rows), json!(true));
    browser.press(&ENTER.to_string());
    browser.wait(
        "panels[0].chart.current.detail.includes('nokogiri') && panels[0].chart.boxes.has(panels[0].chart.current)",
    );
    browser.press(&ESCAPE.to_string());
    browser.wait("document.querySelector('.box.match') === null && byId('found').textContent === ''");
}

fn matching(report: &Report, text: &str) -> usize {
    fn count(node: &Node, text: &str) -> usize {
        let found = node.name.contains(text) || node.detail.as_deref().is_some_and(|detail| detail.contains(text));
        usize::from(found) + node.children.iter().map(|child| count(child, text)).sum::<usize>()
    }
    count(&report.starts[0].root, text)
}

#[test]
fn it_zooms_by_mouse_and_keys() {
    let Some(browser) = Browser::show(&page(&synthetic::rails("")), DESKTOP, "light") else { return };
    browser.run("chart = panels[0].chart; seen = (from, to) => chart.element.dataset.view === `${Math.round(from)}-${Math.round(to)}`");
    let whole = "seen(0, chart.whole[1])";
    assert_eq!(browser.value(whole), json!(true));
    // A click shows a part at full width, with its description.
    browser.run(
        "wide = starts[0].root.children.reduce((most, part) => (part.time > most.time ? part : most)); \
                 chart.boxes.get(wide).id = 'wide'",
    );
    browser.click("#wide");
    browser.wait("seen(wide.left, wide.right)");
    assert_eq!(browser.value("chart.boxes.get(wide).offsetWidth >= chart.rows.clientWidth - 2"), json!(true));
    assert_eq!(browser.value("document.querySelector('.chosen strong').textContent === wide.label"), json!(true));
    // Then the keys: down and up, zoom, back to the whole.
    browser.press(&DOWN.to_string());
    browser.wait("chart.current.parent === wide && document.activeElement.one === chart.current");
    browser.press(&ENTER.to_string());
    browser.wait("seen(chart.current.left, chart.current.right)");
    browser.press(&UP.to_string());
    browser.wait("chart.current === wide");
    browser.press(&ESCAPE.to_string());
    browser.wait(whole);
    browser.press("+");
    browser.wait(&format!("!{whole}"));
    browser.press("0");
    browser.wait(whole);
    // The buttons.
    browser.click(".zoom button:nth-child(2)");
    browser.wait(&format!("!{whole}"));
    browser.click(".zoom button:nth-child(3)");
    browser.wait(whole);
    // The wheel zooms with Ctrl; without, it scrolls the page.
    let wheel = |keys: &str| {
        format!(
            "chart.rows.dispatchEvent(new WheelEvent('wheel', {{ deltaY: -100, {keys} clientX: 700, bubbles: true, cancelable: true }}))"
        )
    };
    assert_eq!(browser.value(&wheel("")), json!(true), "the page cannot be scrolled");
    assert_eq!(browser.value(&wheel("ctrlKey: true,")), json!(false));
    browser.wait("chart.view[0] > 0 && chart.view[1] < chart.whole[1]");
    // Longest first: the longest part begins where its parent does.
    browser.click("#order button:nth-child(2)");
    browser.wait("wide.left === 0 && chart.boxes.get(wide).offsetLeft === 0");
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}

#[test]
fn text_of_the_report_stays_text() {
    let report = synthetic::rails(HOSTILE);
    let page = page(&report);
    assert_eq!(page.matches("</script>").count(), 2, "the report ends a script");
    let Some(browser) = Browser::show(&page, DESKTOP, "light") else { return };
    assert_eq!(browser.value("byId('command').textContent"), json!(report.starts[0].command));
    assert_eq!(browser.value("document.querySelector('#advice p').textContent"), json!(report.advice[0].text));
    let names = browser.value("[...document.querySelectorAll('.costs .name')].map((at) => at.textContent)").to_string();
    assert!(names.contains("<img"), "{names}");
    browser.run("panels[0].chart.select(starts[0].parts.find((at) => at.detail.includes('<img')))");
    assert_eq!(browser.value("typeof hacked"), json!("undefined"));
    assert_eq!(browser.value("document.querySelectorAll('img, #data *').length"), json!(0));
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}

#[test]
fn what_can_be_used_has_a_name_and_the_chart_one_place_in_the_order_of_tabs() {
    let Some(browser) = Browser::show(&page(&synthetic::rails("")), PHONE, "light") else { return };
    let tree = browser.chromium("Accessibility.getFullAXTree", json!({}));
    let nodes = tree["nodes"].as_array().expect("a list");
    let of = |role: &str| {
        nodes.iter().filter(|node| node["ignored"] == false && node["role"]["value"] == role).collect::<Vec<_>>()
    };
    for role in ["button", "searchbox", "tree", "treeitem", "table", "columnheader", "rowheader", "heading"] {
        let all = of(role);
        assert!(!all.is_empty(), "there is no {role}");
        let nameless = all.iter().filter(|node| node["name"]["value"].as_str().unwrap_or("").trim().is_empty()).count();
        assert_eq!(nameless, 0, "{role} without a name");
    }
    let box_name = of("treeitem")[0]["name"]["value"].as_str().expect("a name").to_owned();
    assert!(box_name.starts_with("process, The rest, ") && box_name.contains("ms, 100"), "{box_name}");
    assert_eq!(
        browser.value("document.querySelectorAll('.rows [tabindex=\"0\"]').length"),
        json!(1),
        "one in the chart"
    );
}

#[test]
fn the_page_of_a_rails_boot_is_small() {
    let page = page(&synthetic::rails(""));
    assert!(matching(&synthetic::rails(""), "/gems/") == synthetic::MODULES);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}
