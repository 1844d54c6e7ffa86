//! Chromium without a window, driven through chromedriver: W3C WebDriver, and Chromium's own protocol for the rest.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

/// The time limit for a hanging browser.
const LIMIT: Duration = Duration::from_secs(120);

/// A page in a window of some size. It has no network, and its complaints are recorded.
pub struct Browser {
    driver: Child,
    _stdout: BufReader<ChildStdout>, // a pipe without a reader would end it
    session: String,
    _file: tempfile::NamedTempFile,
}

impl Browser {
    /// Shows a page. None, with a message, if there is no browser.
    pub fn show(page: &str, width: u32, scheme: &str) -> Option<Browser> {
        let started = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut driver) = started else {
            println!("not tried: chromedriver is missing here (on Debian: apt-get install chromium chromium-driver)");
            return None;
        };
        let mut file = tempfile::Builder::new().suffix(".html").tempfile().expect("a temporary file");
        file.write_all(page.as_bytes()).expect("the page is written");
        let mut stdout = BufReader::new(driver.stdout.take().expect("it is piped"));
        let server = format!("http://127.0.0.1:{}/session", port(&mut stdout));
        let flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--hide-scrollbars",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-quic",
            "--host-resolver-rules=MAP * ~NOTFOUND",
        ];
        let wanted = json!({"goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": {"args": flags}});
        let session = ask(&server, "POST", &json!({"capabilities": {"alwaysMatch": wanted}}));
        let session = format!("{server}/{}", session["sessionId"].as_str().expect("a session has a name"));
        let browser = Browser { driver, _stdout: stdout, session, _file: file };
        browser.chromium("Emulation.setEmulatedMedia", json!({"features": [
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"},
        ]}));
        browser.resize(width);
        let url = format!("file://{}", browser._file.path().display());
        browser.command("url", json!({"url": url}));
        browser.wait("document.querySelector('.box') !== null");
        Some(browser)
    }

    /// Changes the width of the window; narrow ones are those of phones.
    pub fn resize(&self, width: u32) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.chromium("Emulation.setDeviceMetricsOverride", size);
    }

    /// The value of an expression in the page.
    pub fn value(&self, expression: &str) -> Value {
        self.command("execute/sync", json!({"script": format!("return {expression}"), "args": []}))
    }

    /// Execute statements in the page.
    pub fn run(&self, statements: &str) {
        self.command("execute/sync", json!({"script": statements, "args": []}));
    }

    /// Wait until an expression is true.
    pub fn wait(&self, expression: &str) {
        let began = Instant::now();
        while self.value(expression) != json!(true) {
            assert!(began.elapsed() < LIMIT, "this did not become true: {expression}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Presses keys, one after the other, as a user does: they go to the focused element.
    pub fn press(&self, keys: &str) {
        let actions = keys.chars().flat_map(|key| ["keyDown", "keyUp"].map(|what| json!({"type": what, "value": key})));
        let actions: Vec<Value> = actions.collect();
        self.command("actions", json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}));
    }

    /// Clicks on the first element that a selector finds.
    pub fn click(&self, selector: &str) {
        let found = self.command("element", json!({"using": "css selector", "value": selector}));
        let element = found.as_object().and_then(|found| found.values().next()).and_then(Value::as_str);
        self.command(&format!("element/{}/click", element.expect("an element")), json!({}));
    }

    /// Calls a command of Chromium's own protocol.
    pub fn chromium(&self, name: &str, parameters: Value) -> Value {
        self.command("goog/cdp/execute", json!({"cmd": name, "params": parameters}))
    }

    /// The complaints of the page and the browser.
    pub fn complaints(&self) -> Vec<Value> {
        self.command("se/log", json!({"type": "browser"})).as_array().expect("a list").clone()
    }

    fn command(&self, name: &str, body: Value) -> Value {
        ask(&format!("{}/{name}", self.session), "POST", &body)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = minreq::delete(&self.session).send(); // ends the browser
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The port on which chromedriver says that it listens.
fn port(stdout: &mut impl BufRead) -> u16 {
    let mut line = String::new();
    while stdout.read_line(&mut line).expect("chromedriver can be read") > 0 {
        if let Some((_, number)) = line.split_once("started successfully on port ") {
            return number.trim().trim_end_matches('.').parse().expect("a number");
        }
        line.clear();
    }
    panic!("chromedriver has ended and named no port");
}

fn ask(url: &str, method: &str, body: &Value) -> Value {
    let request = minreq::Request::new(minreq::Method::Custom(method.to_owned()), url).with_timeout(LIMIT.as_secs());
    let answer = request.with_body(body.to_string()).send().expect("chromedriver answers");
    let text = answer.as_str().expect("JSON is text");
    assert_eq!(answer.status_code, 200, "{url} {body}: {text}");
    serde_json::from_str::<Value>(text).expect("JSON")["value"].take()
}
