//! A real headless browser: Chromium, controlled by chromedriver over WebDriver (W3C), which is JSON over
//! HTTP/1.1.
//!
//! Its profile is a private directory, it resolves no host except this machine, and it ends with its driver. A
//! fault of the page (a missing element, a script that throws) is an error with the driver's message. Nothing
//! here waits: tests repeat a query until its result is as expected.

use crate::address::Address;
use crate::client::{Client, Request};
use crate::port::Start;
use crate::process::Process;
use crate::{PrivateDir, StartError, StartReason, am_root, find};
use serde_json::{Value, json};
use std::fmt;
use std::process::Command;
use std::time::Duration;

/// The timeout for one command.
const WITHIN: Duration = Duration::from_secs(60);
/// The key of an element in WebDriver's JSON (WebDriver, section 12).
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys that are not characters (WebDriver, section 17.4.2).
pub mod key {
    /// The code of the tab key.
    pub const TAB: &str = "\u{e004}";
    /// The code of the enter key.
    pub const ENTER: &str = "\u{e007}";
    /// The code of the shift key.
    pub const SHIFT: &str = "\u{e008}";
    /// The code of the escape key.
    pub const ESCAPE: &str = "\u{e00c}";
    /// The character of the space bar.
    pub const SPACE: &str = " ";
    /// The down arrow key.
    pub const DOWN: &str = "\u{e015}";
}

/// The driver's message about a command that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserError(pub String);

impl fmt::Display for BrowserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BrowserError {}

/// A running browser with one page.
#[derive(Debug)]
pub struct Browser {
    client: Client,
    session: String,
    _driver: Process,
    _dir: PrivateDir,
}

impl Browser {
    /// Starts a browser.
    ///
    /// # Errors
    /// `NotInstalled`, or the reason why it did not become ready.
    pub fn start(dir: PrivateDir) -> Result<Browser, StartError> {
        let driver = find::program(&["chromedriver"])?;
        let chromium = find::program(&["chromium", "chromium-browser", "google-chrome"])?;
        let mut start = Start::new("chromedriver", dir.path());
        start.pid_file = None;
        let (process, address) = start.on_free_port(|address| {
            let mut command = Command::new(&driver);
            command.arg(format!("--port={}", address.port())).env("HOME", dir.path());
            Ok(command)
        })?;
        let mut client = Client::new(Address::Tcp(address)).within(WITHIN);
        let wanted = capabilities(&chromium.display().to_string(), &dir);
        let made = command(&mut client, "POST", "/session", Some(&wanted));
        let made = made.map_err(|error| process.fault(StartReason::Refused, &error.0))?;
        let session = format!("/session/{}", made["sessionId"].as_str().unwrap_or_default());
        Ok(Browser { client, session, _driver: process, _dir: dir })
    }

    /// Opens a URL.
    ///
    /// # Errors
    /// The driver's message.
    pub fn go(&mut self, url: &str) -> Result<(), BrowserError> {
        self.post("/url", &json!({ "url": url })).map(|_| ())
    }

    /// Executes a script and returns its value.
    ///
    /// # Errors
    /// The exception that the script throws.
    pub fn script(&mut self, script: &str) -> Result<Value, BrowserError> {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// The visible text of the first element that matches a selector.
    ///
    /// # Errors
    /// No element matches.
    pub fn text(&mut self, selector: &str) -> Result<String, BrowserError> {
        let element = self.element(selector)?;
        let text = self.get(&format!("/element/{element}/text"))?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Clicks on an element like a user: it must be visible, and nothing may cover it.
    ///
    /// # Errors
    /// No element matches, or it cannot be clicked.
    pub fn click(&mut self, selector: &str) -> Result<(), BrowserError> {
        let element = self.element(selector)?;
        self.post(&format!("/element/{element}/click"), &json!({})).map(|_| ())
    }

    /// Types text into a field.
    ///
    /// # Errors
    /// No element matches, or it does not accept text.
    pub fn write(&mut self, selector: &str, text: &str) -> Result<(), BrowserError> {
        let element = self.element(selector)?;
        self.post(&format!("/element/{element}/value"), &json!({ "text": text })).map(|_| ())
    }

    /// Presses keys one after the other in the focused element.
    ///
    /// # Errors
    /// The driver's message.
    pub fn press(&mut self, keys: &[&str]) -> Result<(), BrowserError> {
        let presses = keys
            .iter()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key })));
        let actions: Vec<_> = presses.collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.post("/actions", &json!({ "actions": [keyboard] })).map(|_| ())
    }

    /// Types a text, key by key.
    ///
    /// # Errors
    /// The driver's message.
    pub fn type_text(&mut self, text: &str) -> Result<(), BrowserError> {
        let keys: Vec<String> = text.chars().map(String::from).collect();
        self.press(&keys.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Sets the size of the page in CSS pixels, with the behaviour of a phone (`mobile`) or of a desktop.
    ///
    /// # Errors
    /// The driver's message.
    pub fn resize(&mut self, width: u32, height: u32, mobile: bool) -> Result<(), BrowserError> {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.tools("Emulation.setDeviceMetricsOverride", &size).map(|_| ())
    }

    /// Sets a media feature that represents a user preference, such as `prefers-color-scheme` to `dark`.
    ///
    /// # Errors
    /// The driver's message.
    pub fn prefer(&mut self, feature: &str, value: &str) -> Result<(), BrowserError> {
        let feature = json!({ "features": [{ "name": feature, "value": value }] });
        self.tools("Emulation.setEmulatedMedia", &feature).map(|_| ())
    }

    /// Executes a DevTools command and returns its result.
    ///
    /// # Errors
    /// The driver's message.
    pub fn tools(&mut self, name: &str, parameters: &Value) -> Result<Value, BrowserError> {
        self.post("/goog/cdp/execute", &json!({ "cmd": name, "params": parameters }))
    }

    /// The console messages since the last call: level and text.
    ///
    /// # Errors
    /// The driver's message.
    pub fn console(&mut self) -> Result<Vec<String>, BrowserError> {
        let log = self.post("/se/log", &json!({ "type": "browser" }))?;
        let line = |entry: &Value| {
            let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            format!("{} {}", text("level"), text("message"))
        };
        Ok(log.as_array().into_iter().flatten().map(line).collect())
    }

    fn element(&mut self, selector: &str) -> Result<String, BrowserError> {
        let by = json!({ "using": "css selector", "value": selector });
        let found = self.post("/element", &by)?;
        Ok(found[ELEMENT].as_str().unwrap_or_default().to_owned())
    }

    fn get(&mut self, path: &str) -> Result<Value, BrowserError> {
        command(&mut self.client, "GET", &format!("{}{path}", self.session), None)
    }

    fn post(&mut self, path: &str, what: &Value) -> Result<Value, BrowserError> {
        command(&mut self.client, "POST", &format!("{}{path}", self.session), Some(what))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends the browser. If the driver does not answer, its own end ends the browser.
        let _ = command(&mut self.client, "DELETE", &self.session, None);
    }
}

fn capabilities(chromium: &str, dir: &PrivateDir) -> Value {
    let profile = format!("--user-data-dir={}", dir.path().join("profile").display());
    let mut args = vec![
        "--headless=new",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--no-default-browser-check",
        "--lang=en-US",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        profile.as_str(),
    ];
    if am_root() {
        // The sandbox does not work for root.
        args.push("--no-sandbox");
    }
    json!({ "capabilities": { "alwaysMatch": {
        "browserName": "chrome",
        "goog:chromeOptions": { "args": args, "binary": chromium },
        "goog:loggingPrefs": { "browser": "ALL" },
    } } })
}

fn command(
    client: &mut Client,
    method: &str,
    path: &str,
    what: Option<&Value>,
) -> Result<Value, BrowserError> {
    let mut request = Request::new(method, path);
    if let Some(what) = what {
        let text = what.to_string();
        request = request.header("Content-Type", "application/json").content(text.as_bytes());
    }
    let answer = client.send(&request).map_err(|error| BrowserError(format!("{path}: {error}")))?;
    let mut told: Value = serde_json::from_slice(&answer.content)
        .map_err(|error| BrowserError(format!("{path}: {error}: {}", answer.text())))?;
    let value = told["value"].take();
    match answer.status {
        200 => Ok(value),
        _ => Err(BrowserError(format!(
            "{path}: {}: {}",
            value["error"].as_str().unwrap_or_default(),
            value["message"].as_str().unwrap_or_default().lines().next().unwrap_or_default()
        ))),
    }
}
