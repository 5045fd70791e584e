//! A real browser without a window: Chromium, driven by chromedriver over WebDriver (W3C), which is JSON
//! over HTTP/1.1.
//!
//! Its profile is a private directory, it knows no host but this machine, and it ends with its driver.
//! What a page does not get right (an element that is not there, a script that throws) is an error with
//! the driver's words. Nothing here waits: a test asks until what it waits for is so.

use crate::address::Address;
use crate::client::{Client, Request};
use crate::port::Start;
use crate::process::Process;
use crate::{PrivateDir, StartError, StartReason, am_root, find};
use serde_json::{Value, json};
use std::fmt;
use std::process::Command;
use std::time::Duration;

/// How long one command may take.
const WITHIN: Duration = Duration::from_secs(60);
/// The name of an element in WebDriver's JSON (WebDriver, section 12).
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A key that is no character (WebDriver, section 17.4.2).
pub mod key {
    /// Tab.
    pub const TAB: &str = "\u{e004}";
    /// Enter.
    pub const ENTER: &str = "\u{e007}";
    /// Shift.
    pub const SHIFT: &str = "\u{e008}";
    /// Escape.
    pub const ESCAPE: &str = "\u{e00c}";
    /// The space bar.
    pub const SPACE: &str = " ";
    /// Down.
    pub const DOWN: &str = "\u{e015}";
}

/// Why a command was not carried out, in the driver's words.
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
    /// Starts one.
    ///
    /// # Errors
    /// `NotInstalled`, or whatever kept it from becoming ready.
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

    /// Opens an address.
    ///
    /// # Errors
    /// In the driver's words.
    pub fn go(&mut self, url: &str) -> Result<(), BrowserError> {
        self.post("/url", &json!({ "url": url })).map(|_| ())
    }

    /// The value that a script returns.
    ///
    /// # Errors
    /// What it throws.
    pub fn script(&mut self, script: &str) -> Result<Value, BrowserError> {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// The text of the first element of a selector, as it is seen.
    ///
    /// # Errors
    /// There is none.
    pub fn text(&mut self, selector: &str) -> Result<String, BrowserError> {
        let element = self.element(selector)?;
        let text = self.get(&format!("/element/{element}/text"))?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Clicks on an element, as somebody would: it has to be seen, and nothing may lie over it.
    ///
    /// # Errors
    /// There is none, or it cannot be clicked on.
    pub fn click(&mut self, selector: &str) -> Result<(), BrowserError> {
        let element = self.element(selector)?;
        self.post(&format!("/element/{element}/click"), &json!({})).map(|_| ())
    }

    /// Writes into a field.
    ///
    /// # Errors
    /// There is none, or it takes no text.
    pub fn write(&mut self, selector: &str, text: &str) -> Result<(), BrowserError> {
        let element = self.element(selector)?;
        self.post(&format!("/element/{element}/value"), &json!({ "text": text })).map(|_| ())
    }

    /// Presses keys one after the other, wherever the focus is.
    ///
    /// # Errors
    /// In the driver's words.
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
    /// In the driver's words.
    pub fn type_text(&mut self, text: &str) -> Result<(), BrowserError> {
        let keys: Vec<String> = text.chars().map(String::from).collect();
        self.press(&keys.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Makes the page so wide and high, as on a phone (`mobile`) or not.
    ///
    /// # Errors
    /// In the driver's words.
    pub fn resize(&mut self, width: u32, height: u32, mobile: bool) -> Result<(), BrowserError> {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.tools("Emulation.setDeviceMetricsOverride", &size).map(|_| ())
    }

    /// Sets what the system is said to prefer: `prefers-color-scheme`, `dark`.
    ///
    /// # Errors
    /// In the driver's words.
    pub fn prefer(&mut self, feature: &str, value: &str) -> Result<(), BrowserError> {
        let feature = json!({ "features": [{ "name": feature, "value": value }] });
        self.tools("Emulation.setEmulatedMedia", &feature).map(|_| ())
    }

    /// What a command of the developer's tools answers.
    ///
    /// # Errors
    /// In the driver's words.
    pub fn tools(&mut self, name: &str, parameters: &Value) -> Result<Value, BrowserError> {
        self.post("/goog/cdp/execute", &json!({ "cmd": name, "params": parameters }))
    }

    /// What the console has said since it was last asked: level and text.
    ///
    /// # Errors
    /// In the driver's words.
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
        // The driver ends the browser; where it does not answer, its end does.
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
        // Its sandbox is not for root.
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
