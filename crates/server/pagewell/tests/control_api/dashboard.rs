//! The dashboard in a real headless browser (Chromium), on the real binary with a real php-fpm: its display and
//! its actions, by mouse and by keyboard, in light and dark mode, on a phone, with a token. External data must
//! never become markup.

use acceptance::{Raw, Site, binary, client, counter, is_hit, until};
use control::api::{ROUTES, STREAMS};
use harness::{Address, Browser, BrowserError, Client, Pagewell, PrivateDir, Request, key};
use serde_json::Value;

pub(super) const PAGE: &str = "<?php keep(3600); header('Cache-Groups: \"news\", \"news:4\"');
    if (isset($_GET['cookie'])) { setcookie('seen', '1'); }
    if (isset($_GET['status'])) { http_response_code((int) $_GET['status']); }
    if (isset($_GET['markup'])) {
        header('Surrogate-Key: <img/src=x/onerror=alert(1)> <b>bold</b>', false);
    }
    echo 'page ', $_SERVER['REQUEST_URI'];";

fn browser() -> Browser {
    let dir = PrivateDir::temporary("browser").expect("a directory");
    Browser::start(dir).expect("Chromium starts")
}

pub(super) fn site() -> Site {
    Site::new(&[("index.php", PAGE)])
}

pub(super) fn url(pagewell: &Pagewell) -> String {
    let Address::Tcp(address) = pagewell.admin() else { panic!("a TCP address") };
    format!("http://{address}/")
}

/// Opens the dashboard, and waits until it receives events.
pub(super) fn open(pagewell: &Pagewell) -> Browser {
    let mut browser = browser();
    browser.go(&url(pagewell)).expect("it opens");
    shows(&mut browser, "#state", "Live");
    shows(&mut browser, "[data-tile=Requests] .value", "/s");
    browser
}

/// Waits until an element contains a text.
pub(super) fn shows(browser: &mut Browser, selector: &str, text: &str) -> String {
    let mut last = Ok(String::new());
    until(&format!("{selector} says {text:?}; the last was {last:?}"), || {
        last = browser.text(selector);
        last.as_ref().is_ok_and(|said| said.contains(text))
    });
    last.expect("it says it")
}

pub(super) fn script(browser: &mut Browser, script: &str) -> Value {
    browser.script(script).expect("it runs")
}

/// Requests a page twice: the second response is a hit.
pub(super) fn visit(pagewell: &Pagewell, path: &str) {
    let mut client = client(pagewell);
    client.get(path).expect("an answer");
    assert!(is_hit(&client.get(path).expect("an answer")), "{path}");
}

pub(super) fn is_kept(pagewell: &Pagewell, path: &str) -> bool {
    let request = Request::get(path).header("Cache-Control", "only-if-cached");
    is_hit(&client(pagewell).send(&request).expect("an answer"))
}

/// Whether the binary has the call that a part of the page needs.
fn has(path: &str) -> bool {
    ROUTES.iter().any(|(_, there)| *there == path)
}

/// Checks that the console has no errors.
pub(super) fn is_quiet(browser: &mut Browser) {
    let said: Vec<String> = browser.console().expect("a console");
    // The browser logs a call that is not available. The page shows this as well.
    let known = |line: &String| line.contains("/v1/") && line.contains("404");
    let said: Vec<_> = said.iter().filter(|line| !known(line)).collect();
    assert!(said.is_empty(), "{said:#?}");
}

#[test]
fn it_begins_with_the_findings() {
    let site = site();
    let snapshots = site.at("snapshots");
    std::fs::create_dir(&snapshots).expect("a directory");
    let config = format!("[snapshot]\ndirectory = {snapshots:?}\nunwatched = \"serve\"\n");
    let pagewell = site.serve(&config);
    std::fs::remove_dir_all(&snapshots).expect("removed");
    let mut browser = open(&pagewell);
    let text = shows(&mut browser, "#attention", "is missing");
    assert!(text.contains("install -d") && text.contains("(for "), "{text}");
    is_quiet(&mut browser);
}

#[test]
fn each_line_of_an_error_is_shown_as_one() {
    let site = site();
    let pagewell = site.serve("");
    site.config("[limits]\nheaders = \"many\"\n", "");
    let request = Request::new("POST", "/v1/reload").content(b"{}");
    let request = request.header("Content-Type", "application/json");
    let refused = Client::new(pagewell.admin().clone()).send(&request).expect("an answer");
    assert_eq!(refused.status, 409);
    let mut browser = open(&pagewell);
    shows(&mut browser, "#attention", "The last reload failed");
    let lines = "return document.querySelector('#attention strong').innerText.split('\\n').length";
    let lines = script(&mut browser, lines);
    assert!(lines.as_u64().is_some_and(|lines| lines > 3), "{lines}");
    is_quiet(&mut browser);
}

#[test]
fn it_shows_figures_and_purges_pages() {
    let site = site();
    let pagewell = site.serve("");
    let mut browser = open(&pagewell);
    shows(&mut browser, "[data-tile=Requests] ul", "0 since the start");
    shows(&mut browser, "#attention", "All is well.");
    visit(&pagewell, "/one");
    visit(&pagewell, "/two");
    shows(&mut browser, "[data-tile=Requests] ul", "4 since the start");
    shows(&mut browser, "[data-tile='Hit ratio'] .value", "50 %");
    shows(&mut browser, "[data-tile=Memory] ul", "2 pages");
    let drawn =
        "return document.querySelector('[data-tile=Requests] .line').getAttribute('d').length > 20";
    until("a line is drawn", || script(&mut browser, drawn) == true);

    browser.write("#question", "/one").expect("a field");
    browser.click("#look button").expect("a button");
    if has("/v1/explain") {
        shows(&mut browser, "#answer .verdict", "hit");
        shows(&mut browser, "#answer", "news:4");
        browser.write("#cookie", "PHPSESSID=1").expect_err("it is folded away");
        browser.click("#look summary").expect("it unfolds");
        browser.write("#cookie", "PHPSESSID=1").expect("a field");
        browser.click("#look button").expect("a button");
        shows(&mut browser, "#answer .verdict", "bypass");
    } else {
        shows(&mut browser, "#answer", "does not support");
    }

    // Nothing is purged before the confirmation.
    let fill = "document.getElementById('kind').value = 'urls'; \
                document.getElementById('kind').dispatchEvent(new Event('change'))";
    script(&mut browser, fill);
    browser.write("#name", "/one").expect("a field");
    browser.click("#drop > button").expect("a button");
    shows(&mut browser, "#confirm-text", "/one");
    browser.click("#confirm button[value=no]").expect("a button");
    assert!(is_kept(&pagewell, "/one"), "nothing was dropped");
    browser.click("#drop > button").expect("a button");
    browser.click("#confirm-yes").expect("a button");
    shows(&mut browser, "#dropped", "Purged 1 page (invalidation");
    assert!(!is_kept(&pagewell, "/one") && is_kept(&pagewell, "/two"));
    if has("/v1/changes") {
        shows(&mut browser, "#changes tbody tr", "/one");
    }
    is_quiet(&mut browser);
}

/// The bytes with which a text of the page begins, such as `16.1 MiB`.
fn shown_bytes(text: &str) -> f64 {
    let mut words = text.split_whitespace();
    let number = words.next().and_then(|word| word.replace(',', "").parse::<f64>().ok());
    let unit = words.next();
    let place = ["B", "KiB", "MiB", "GiB"].iter().position(|name| Some(*name) == unit);
    number.expect("a number") * 1024_f64.powi(place.expect("a unit") as i32)
}

/// The next steps are shown until they are done. The memory of the pages is a part of that of the process, also
/// with a budget whose structures are larger than the process.
#[test]
fn the_first_hour_has_next_steps() {
    let site = site();
    let [root, file] = [site.root(), site.config("", "")].map(|path| path.display().to_string());
    let pagewell = Pagewell::start(binary(), &[&root, "--memory", "8G", "--config", &file]);
    let pagewell = pagewell.expect("pagewell starts");
    let mut browser = open(&pagewell);
    shows(&mut browser, "#next", "No request has arrived yet.");
    visit(&pagewell, "/one");
    pagewell.invalidate(r#"{"tags":["news"]}"#).expect("an answer");
    let (pages, resident) =
        (counter(&pagewell, "memory_bytes"), counter(&pagewell, "process_resident_bytes"));
    assert!(pages < resident, "{pages} {resident}");
    browser.go(&url(&pagewell)).expect("it opens");
    // The texts of the tile agree as well.
    let resident = shows(&mut browser, "[data-tile=Memory] li:last-child", "resident in all");
    let pages = shows(&mut browser, "[data-tile=Memory] .value", "iB");
    assert!(shown_bytes(&pages) < shown_bytes(&resident), "{pages} of {resident}");
    shows(&mut browser, "#attention", "All is well.");
    assert_eq!(script(&mut browser, "return document.getElementById('next').hidden"), true);
    is_quiet(&mut browser);
}

/// The names of WordPress's cookies have 52 letters.
#[test]
fn the_table_of_cookies_needs_no_scrolling() {
    let site = site();
    let pagewell = site.serve("");
    let name = format!("wordpress_logged_in_{}", "0123456789abcdef".repeat(2));
    let request = Request::get("/one").header("Cookie", &format!("{name}=1"));
    assert_eq!(client(&pagewell).send(&request).expect("an answer").status, 200);
    let mut browser = open(&pagewell);
    shows(&mut browser, "[aria-label=Cookies]", &name);
    let over = "const { scrollWidth, clientWidth } = document.querySelector('[aria-label=Cookies]'); \
                return scrollWidth - clientWidth";
    for width in [1280, 700] {
        browser.resize(width, 844, false).expect("another size");
        assert_eq!(script(&mut browser, over), 0, "{width}");
    }
    is_quiet(&mut browser);
}

/// The script that returns what axe-core finds.
pub(super) fn axe() -> String {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target"),
        std::path::PathBuf::from,
    );
    let axe = std::fs::read_to_string(target.join("axe/axe.min.js"))
        .expect("axe-core is installed: scripts/setup test");
    format!(
        "{axe};\nreturn axe.run(document, {{ resultTypes: ['violations'] }}).then((found) => \
         found.violations.map((one) => one.id + ': ' + one.nodes[0].target.join(' ')))"
    )
}

/// axe-core finds nothing to improve for screen readers and by contrast, with every part of the page open.
#[test]
fn it_is_right_for_screen_readers() {
    let site = site();
    let pagewell = site.serve("");
    visit(&pagewell, "/one");
    pagewell.invalidate(r#"{"tags":["other"]}"#).expect("an answer");
    let mut browser = open(&pagewell);
    browser.write("#question", "/one").expect("a field");
    browser.click("#look button").expect("a button");
    shows(&mut browser, "#answer", "hit");
    browser.click("#watch-start").expect("a button");
    until("a request is listed", || {
        assert!(is_kept(&pagewell, "/one"));
        browser.text("#watched").is_ok_and(|text| text.contains("/one"))
    });
    script(&mut browser, "document.querySelectorAll('details').forEach((one) => one.open = true)");
    shows(&mut browser, "#plot table", "purged pages");
    let run = axe();
    for (scheme, width, mobile) in [("light", 1280, false), ("dark", 390, true)] {
        browser.prefer("prefers-color-scheme", scheme).expect("another scheme");
        browser.resize(width, 844, mobile).expect("another size");
        let found = script(&mut browser, &run);
        assert_eq!(found, serde_json::json!([]), "{scheme} at {width}");
    }
    // It would find something.
    script(&mut browser, "document.querySelector('main').append(document.createElement('img'))");
    let found = script(&mut browser, &run).to_string();
    assert!(found.contains("image-alt"), "{found}");
}

/// A site with one host has no column of sites, and its pages are named by their paths. A remedy is shown
/// once, code without backticks. Nothing is offered to be purged if there is nothing.
#[test]
fn answers_are_short_where_there_is_one_site() {
    let site = Site::new(&[
        ("index.php", PAGE),
        ("own.php", "<?php header('Cache-Control: private'); echo 'own';"),
    ]);
    let pagewell = site.serve("");
    visit(&pagewell, "/one");
    let mut browser = open(&pagewell);
    let look = |browser: &mut Browser, question: &str| {
        script(browser, "document.getElementById('question').value = ''");
        browser.write("#question", question).expect("a field");
        browser.click("#look button").expect("a button");
    };
    look(&mut browser, "news:4");
    let text = shows(&mut browser, "#answer", "1 page depends on this tag");
    assert!(text.contains("Purge them") && !text.contains("site"), "{text}");
    let label = "return document.querySelector('#answer td .link').textContent";
    assert_eq!(script(&mut browser, label), "/one");
    look(&mut browser, "news/4/");
    let text = shows(&mut browser, "#answer", "Was this page meant? /news/4/");
    assert!(!text.contains("Purge them"), "{text}");
    client(&pagewell).get("/own.php").expect("an answer");
    look(&mut browser, "/own.php");
    let text = shows(&mut browser, "#answer", "last render");
    let remedy = browser.text("#answer .remedy").expect("a remedy");
    assert!(!text.contains('`') && text.matches(&remedy).count() == 1, "{text}");

    browser.write("#name", "nothing").expect("a field");
    browser.click("#drop > button").expect("a button");
    browser.click("#confirm-yes").expect("a button");
    shows(&mut browser, "#dropped", "No stored page has this tag.");
    is_quiet(&mut browser);
}

/// A dashboard that is opened later shows the recorded figures, before any live event.
#[test]
fn the_last_hour_is_there_at_the_first_view() {
    let site = site();
    let pagewell = site.serve("[[rule]]\npath = \"/secret\"\ndeny = 403\n");
    visit(&pagewell, "/one");
    assert_eq!(client(&pagewell).get("/secret").expect("an answer").status, 403);
    let mut raw = Raw::to(pagewell.address());
    raw.send(format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(20_000)));
    assert_eq!(raw.answer().status, 414);
    let recorded = || {
        let request = Request::get("/v1/history");
        let response = Client::new(pagewell.admin().clone()).send(&request).expect("an answer");
        let history: Value = serde_json::from_str(&response.text()).expect("JSON");
        history["at_ms"].as_array().map_or(0, Vec::len)
    };
    until("samples are recorded", || recorded() >= 3);
    // All places for live events are taken, so the figures can only be the recorded ones.
    let listening: Vec<_> = (0..STREAMS)
        .map(|_| {
            let mut stream = Raw::to(pagewell.admin());
            stream.send("GET /v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n");
            stream.until("event: figures");
            stream
        })
        .collect();
    let mut browser = browser();
    browser.go(&url(&pagewell)).expect("it opens");
    shows(&mut browser, "#state", "listen already");
    shows(&mut browser, "[data-tile=Requests] ul", "3 since the start");
    shows(&mut browser, "[data-tile=Requests] .value", "/s");
    shows(&mut browser, "[data-tile='Hit ratio'] .value", "%");
    shows(&mut browser, "[data-tile=Origin] .value", "ms");
    shows(&mut browser, "[data-tile=Memory] ul", "1 page");
    let drawn = "return document.querySelector('[data-tile=Memory] .line').getAttribute('d')";
    let line = script(&mut browser, drawn).as_str().unwrap_or_default().to_owned();
    assert!(line.contains('L'), "a line from the start until now: {line:?}");
    // It continues with live events.
    drop(listening);
    shows(&mut browser, "#state", "Live");
    shows(&mut browser, "#requested tbody tr", "/one");
    let refused = shows(&mut browser, "#refused tbody", "Malformed");
    assert!(refused.contains("that a rule refuses"), "{refused}");
    shows(&mut browser, "#plot .legend", "Errors of Pagewell's own");
    assert!(browser.text("#sources-section").is_ok_and(|text| text.is_empty()), "no database");
}

#[test]
fn databases_are_named_with_their_state() {
    let site = site();
    let port = harness::free_port().expect("a port");
    let pagewell = site.serve(&format!(
        "[[database]]\nname = \"shop\"\nurl = \"mysql://a:b@127.0.0.1:{port}/x\"\n\
         [[change]]\ntable = \"news\"\ntags = [\"news\"]\n"
    ));
    let mut browser = browser();
    browser.go(&url(&pagewell)).expect("it opens");
    let row = shows(&mut browser, "#sources tbody tr", "not followed");
    assert!(row.contains(&format!("127.0.0.1:{port}")) && row.contains("shop"), "{row}");
    for (width, mobile) in [(390, true), (1280, false)] {
        browser.resize(width, 800, mobile).expect("another size");
        let over =
            "const page = document.documentElement; return page.scrollWidth - page.clientWidth";
        assert_eq!(script(&mut browser, over), 0, "scrolled sideways at {width}");
    }
    let unnamed = unnamed(&mut browser).expect("a tree");
    assert!(unnamed.is_empty(), "{unnamed:?}");
    is_quiet(&mut browser);
}

/// The id of the focused element, or the name of its kind.
fn focused(browser: &mut Browser) -> String {
    let id = script(browser, "return document.activeElement.id || document.activeElement.tagName");
    id.as_str().unwrap_or_default().to_owned()
}

/// Presses Tab until an element has the focus, by its id or kind. Every focused element is visible on the way.
pub(super) fn go_to(browser: &mut Browser, id: &str) {
    for _ in 0..40 {
        browser.press(&[key::TAB]).expect("a key");
        let seen = "const style = getComputedStyle(document.activeElement); \
                    return document.activeElement === document.body \
                        || parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== 'none'";
        let is_seen = script(browser, seen) == true;
        let at = focused(browser);
        assert!(is_seen, "the focus at {at} is not seen");
        if at == id {
            return;
        }
    }
    panic!("{id} is not reached by Tab");
}

#[test]
fn the_keyboard_is_enough() {
    let site = site();
    let pagewell = site.serve("");
    let mut browser = open(&pagewell);
    visit(&pagewell, "/one");
    browser.press(&[key::TAB]).expect("a key");
    assert_eq!(script(&mut browser, "return document.activeElement.className"), "skip");
    browser.press(&[key::ENTER]).expect("a key");
    go_to(&mut browser, "question");
    browser.type_text("/one").expect("keys");
    browser.press(&[key::ENTER]).expect("a key");
    let expected = if has("/v1/explain") { "hit" } else { "does not support" };
    shows(&mut browser, "#answer", expected);
    go_to(&mut browser, "kind");
    browser.type_text("everything").expect("keys");
    go_to(&mut browser, "soft");
    browser.press(&[key::TAB, key::ENTER]).expect("keys");
    shows(&mut browser, "#confirm-text", "every page");
    assert_eq!(
        script(&mut browser, "return document.activeElement.value"),
        "no",
        "nothing by mistake"
    );
    browser.press(&[key::TAB, key::ENTER]).expect("keys");
    shows(&mut browser, "#dropped", "Purged 1 page");
    assert!(!is_kept(&pagewell, "/one"));
    is_quiet(&mut browser);
}

/// The heading before the first value of a table.
const HEADING: &str = "const first = document.querySelector('#changes td'); \
                       return first && getComputedStyle(first, '::before').content";

#[test]
fn it_fits_a_phone_and_is_named_for_readers() {
    let site = site();
    let pagewell = site.serve("");
    let long = format!("/{}?cookie=1&q={}", "long-way/".repeat(30), "x".repeat(300));
    client(&pagewell).get(&long).expect("an answer");
    visit(&pagewell, "/one");
    let mut browser = open(&pagewell);
    let origins = shows(&mut browser, "#origins", "No request has waited for the origin");
    for named in ["/long-way/*/*/*/*…?a&b", "127.0.0.0/24"] {
        assert!(origins.contains(named), "{named}: {origins}");
    }
    browser.write("#question", &long).expect("a field");
    browser.click("#look button").expect("a button");
    let answered = "return document.getElementById('answer').children.length > 0";
    until("it is answered", || script(&mut browser, answered) == true);
    pagewell.invalidate(r#"{"urls":["/one"]}"#).expect("an answer");
    shows(&mut browser, "#changes tbody tr", "/one");
    script(&mut browser, "document.querySelectorAll('details').forEach((one) => one.open = true)");
    let mut grounds = Vec::new();
    for (width, height, mobile) in [(360, 780, true), (1280, 800, false), (768, 1024, true)] {
        browser.resize(width, height, mobile).expect("another size");
        for scheme in ["light", "dark"] {
            browser.prefer("prefers-color-scheme", scheme).expect("another scheme");
            // Except for the width of a scroll bar.
            let over =
                "const page = document.documentElement; return page.scrollWidth - page.clientWidth";
            assert_eq!(script(&mut browser, over), 0, "scrolled sideways at {width}, {scheme}");
            // If there is no room for columns, each value has its heading in front.
            let named = script(&mut browser, HEADING).as_str().unwrap_or_default().to_owned();
            assert_eq!(named.contains("when"), width < 500, "{named:?} at {width}");
            let ground = "return getComputedStyle(document.body).backgroundColor";
            grounds.push(script(&mut browser, ground).to_string());
        }
    }
    assert!(grounds[0] != grounds[1] && grounds[0] == grounds[2], "{grounds:?}");
    let unnamed = unnamed(&mut browser).expect("a tree");
    assert!(unnamed.is_empty(), "{unnamed:?}");
    let parts =
        "return ['header', 'main', 'h1'].map((part) => document.querySelectorAll(part).length)";
    assert_eq!(script(&mut browser, parts), serde_json::json!([1, 1, 1]));
    is_quiet(&mut browser);
}

/// The elements that need an accessible name and have none.
fn unnamed(browser: &mut Browser) -> Result<Vec<String>, BrowserError> {
    let tree = browser.tools("Accessibility.getFullAXTree", &serde_json::json!({}))?;
    let asked = [
        "button",
        "textbox",
        "searchbox",
        "combobox",
        "checkbox",
        "region",
        "table",
        "image",
        "img",
        "dialog",
        "meter",
        "link",
        "heading",
        "form",
    ];
    let nodes = tree["nodes"].as_array().cloned().unwrap_or_default();
    assert!(nodes.len() > 50, "{tree}");
    let unnamed = nodes.iter().filter(|node| {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        let name = node["name"]["value"].as_str().unwrap_or_default();
        node["ignored"] != true && asked.contains(&role) && name.trim().is_empty()
    });
    Ok(unnamed.map(|node| format!("{} {}", node["role"]["value"], node["nodeId"])).collect())
}

#[test]
fn it_asks_for_the_token_and_keeps_it_in_the_tab() {
    let site = site();
    let token = site.at("token");
    std::fs::write(&token, "0123456789abcdef").expect("can be written");
    let pagewell = site.serve(&format!("admin_token_file = {token:?}\n"));
    let mut browser = browser();
    browser.go(&url(&pagewell)).expect("it opens without a token");
    let is_open = "return document.getElementById('ask').open";
    until("it asks", || script(&mut browser, is_open) == true);
    browser.type_text("fedcba9876543210").expect("keys");
    browser.press(&[key::ENTER]).expect("a key");
    shows(&mut browser, "#ask-wrong", "refused");
    browser.type_text("0123456789abcdef").expect("keys");
    browser.press(&[key::ENTER]).expect("a key");
    shows(&mut browser, "#state", "Live");
    shows(&mut browser, "[data-tile=Memory] .value", "iB");
    let kept = script(
        &mut browser,
        "return [Object.values(sessionStorage), Object.values(localStorage), document.cookie, location.href]",
    );
    let expected = serde_json::json!([["0123456789abcdef"], [], "", url(&pagewell)]);
    assert_eq!(kept, expected);
    // The token is not requested again in this tab.
    browser.go(&url(&pagewell)).expect("it opens");
    shows(&mut browser, "#state", "Live");
}

#[test]
fn foreign_text_is_shown_as_text() {
    let site = site();
    let pagewell = site.serve("");
    client(&pagewell).get("/?markup=%3Cimg%20src=x%20onerror=alert(1)%3E").expect("an answer");
    let tag = "<img/src=x/onerror=alert(1)>";
    pagewell.invalidate(&format!(r#"{{"tags":["{tag}"]}}"#)).expect("an answer");
    let mut browser = open(&pagewell);
    browser.write("#question", tag).expect("a field");
    browser.click("#look button").expect("a button");
    let answered = "return document.getElementById('answer').children.length > 0";
    until("it is answered", || script(&mut browser, answered) == true);
    if has("/v1/changes") {
        shows(&mut browser, "#changes", tag);
    }
    let built = "return document.querySelectorAll('img, b, script:not([type=module])').length";
    assert_eq!(script(&mut browser, built), 0);
    // The browser would also prevent it.
    let refused = browser.script("document.body.innerHTML = '<b>markup</b>'").expect_err("refused");
    assert!(refused.0.contains("TrustedHTML"), "{refused}");
}

#[test]
fn one_of_several_sites_is_chosen() {
    let site = Site::new(&[("one/index.php", PAGE), ("two/index.php", PAGE)]);
    let sites = ["one", "two"].map(|name| {
        let root = site.root().join(name).display().to_string();
        format!(
            "[[site]]\nhost = \"{name}.test\"\nroot = {root:?}\n[site.php.ini]\n\
                 auto_prepend_file = {:?}\n",
            site.at("prelude.php").display().to_string()
        )
    });
    let file = site.at("several.toml");
    std::fs::write(&file, sites.concat()).expect("can be written");
    let args = ["--memory", "64M", "--config", &file.display().to_string()];
    let pagewell = Pagewell::start(binary(), &args).expect("pagewell starts");
    let mut client = client(&pagewell);
    for _ in 0..2 {
        let response =
            client.send(&Request::get("/").header("Host", "two.test")).expect("an answer");
        assert_eq!(response.status, 200);
    }
    let mut browser = open(&pagewell);
    shows(&mut browser, "[data-tile=Requests] ul", "2 since the start");
    browser.click("#site").expect("a choice");
    browser.type_text("one.test").expect("keys");
    browser.press(&[key::ENTER]).expect("a key");
    shows(&mut browser, "[data-tile=Requests] ul", "0 since the start");
    browser.write("#name", "news").expect("a field");
    browser.click("#drop > button").expect("a button");
    shows(&mut browser, "#confirm-text", "of one.test");
    browser.click("#confirm-yes").expect("a button");
    shows(&mut browser, "#dropped", "Purged 0 pages");
    script(
        &mut browser,
        "const site = document.getElementById('site'); site.value = 'two.test'; \
         site.dispatchEvent(new Event('change'))",
    );
    shows(&mut browser, "[data-tile=Requests] ul", "2 since the start");
    browser.click("#drop > button").expect("a button");
    browser.click("#confirm-yes").expect("a button");
    shows(&mut browser, "#dropped", "Purged 1 page ");
    is_quiet(&mut browser);
}
