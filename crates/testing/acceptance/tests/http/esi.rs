//! Pages with ESI fragments, with real applications and real connections: Symfony's own templates, concurrent
//! fragment requests, a reload, clients that do not read. The composition of pages is tested in
//! `tests/scenarios/esi`.

use acceptance::{BOUND, Site, client, counter, is_hit, limit_hit, slow_client, until};
use harness::{Client, Pagewell, Request};
use std::io::Write;

const ON: &str = "[cache]\nesi = true\n";

/// A page and a fragment with Symfony's classes, as in its documentation.
const SYMFONY: &str = r#"<?php
require '/usr/share/php/Symfony/Component/HttpKernel/autoload.php';
use Symfony\Component\HttpFoundation\{Request, Response};
use Symfony\Component\HttpKernel\HttpCache\Esi;

$request = Request::createFromGlobals();
$esi = new Esi();
if ($request->getPathInfo() === '/box') {
    $response = new Response('Hello, ' . $request->cookies->get('who', 'nobody') . $request->query->get('b'));
    $response->setPrivate();
} else {
    $has = $esi->hasSurrogateCapability($request);
    $tag = $has ? $esi->renderIncludeTag('/box?a=1&b=2', null, true, 'who is it?') : 'no fragments';
    $response = new Response("<p>$tag</p>");
    $response->setPublic()->setSharedMaxAge(60);
    $esi->addSurrogateControl($response);
}
$response->send();
"#;

fn get(pagewell: &Pagewell, path: &str, cookie: Option<&str>) -> harness::Response {
    let request = Request::new("GET", path);
    let request = match cookie {
        Some(cookie) => request.header("Cookie", cookie),
        None => request,
    };
    client(pagewell).send(&request).expect("an answer")
}

/// Content without the line that Symfony adds before an element.
fn content(response: &harness::Response) -> String {
    response.text().replace('\n', "")
}

#[test]
fn templates_of_symfony_are_assembled() {
    let site = Site::new(&[("index.php", SYMFONY)]);
    let pagewell = site.serve(ON);
    let first = get(&pagewell, "/", None);
    assert_eq!(content(&first), "<p>Hello, nobody2</p>");
    let mine = get(&pagewell, "/", Some("who=Anna"));
    assert_eq!(content(&mine), "<p>Hello, Anna2</p>", "the template is everybody's");
    assert!(is_hit(&mine), "{}", acceptance::cache_status(&mine));
    assert_eq!(mine.header("cache-control"), Some("private, no-cache"));
    assert_eq!(mine.header("surrogate-control"), None);
    let explained = pagewell.explain(r#"{"url":"/"}"#).expect("it is known");
    assert_eq!(explained["page"]["template"], true, "{explained}");
}

#[test]
fn a_stored_template_is_not_sent_after_esi_is_disabled() {
    let site = Site::new(&[("index.php", SYMFONY)]);
    let pagewell = site.serve(ON);
    assert_eq!(content(&get(&pagewell, "/", None)), "<p>Hello, nobody2</p>");
    for (config, expected) in [("", "<p>no fragments</p>"), (ON, "<p>Hello, nobody2</p>")] {
        site.config(config, "");
        let reload = Request::new("POST", "/v1/reload").content(b"{}");
        let reload = reload.header("Content-Type", "application/json");
        let answer = Client::new(pagewell.admin().clone()).within(BOUND).send(&reload);
        assert_eq!(answer.expect("an answer").status, 200);
        // Pages stored with the other configuration belong to it.
        pagewell.invalidate(r#"{"urls":["/other"]}"#).expect("an answer");
        let is_on = !config.is_empty();
        let shown = content(&get(&pagewell, "/", None));
        assert!(shown == expected || (is_on && shown == "<p>no fragments</p>"), "{shown}");
    }
}

/// Each fragment waits until all four have been requested.
const TOGETHER: &str = r#"<?php
if (isset($_GET['part'])) {
    note('part' . $_GET['part']);
    for ($n = 0; $n < 4; $n++) {
        wait_for('part' . $n);
    }
    echo $_GET['part'];
} else {
    header('Surrogate-Control: content="ESI/1.0"');
    for ($n = 0; $n < 4; $n++) {
        echo "<esi:include src='?part=$n'/>";
    }
}
"#;

#[test]
fn four_fragments_are_requested_concurrently() {
    let site = Site::new(&[("index.php", TOGETHER)]);
    let pagewell = site.serve(&format!("[php]\nchildren = 5\n{ON}"));
    assert_eq!(get(&pagewell, "/", None).text(), "0123");
}

/// Two slow fragments, and one child process: they are rendered one after the other.
const SLOW: &str = r#"<?php
header('Cache-Control: no-store');
if (isset($_GET['part'])) {
    sleep(2);
    echo $_GET['part'];
} else {
    header('Surrogate-Control: content="ESI/1.0"');
    $or = isset($_GET['all']) ? '' : ' onerror="continue"';
    echo "<esi:include src='/?part=a'$or/><esi:include src='/?part=a'$or/>.";
}
"#;

/// The origin timeout applies to each fragment, and to the page as a whole.
#[test]
fn slow_fragments_time_out() {
    let site = Site::new(&[("index.php", SLOW)]);
    let limits = "[limits]\norigin_timeout = \"3s\"\n";
    let pagewell = site.serve(&format!("[php]\nchildren = 1\n{ON}{limits}"));
    // On a busy machine the first fragment, or the template, may be late as well. Both are never in time.
    let mut failed = 0;
    until("the first fragment is in time", || {
        let text = get(&pagewell, "/", None).text();
        assert_ne!(text, "aa.");
        failed += match &*text {
            "a." => 1,
            "." => 2,
            _ => 0,
        };
        text == "a."
    });
    assert_eq!(counter(&pagewell, "fragments_failed"), failed, "{}", pagewell.log());
    until("the template is in time", || {
        let status = get(&pagewell, "/?all", None).status;
        assert!(matches!(status, 502 | 504), "{status}");
        status == 502
    });
    assert!(counter(&pagewell, "fragments_failed") > failed, "{}", pagewell.log());
}

/// A template longer than the buffers between the origin and a client, which is not stored.
const LONG: &str = r#"<?php
if (isset($_GET['part'])) {
    echo str_repeat('p', 400000);
} else {
    header('Cache-Control: no-store');
    header('Surrogate-Control: content="ESI/1.0"');
    echo str_repeat('t', 400000), '<esi:include src="?part=1"/><esi:include src="?part=2"/>';
}
"#;

#[test]
fn a_page_holds_no_origin_request_while_it_waits_for_another() {
    let site = Site::new(&[("index.php", LONG)]);
    let pagewell = site.serve(&format!("[php]\nchildren = 1\n{ON}"));
    let asking: Vec<_> = (0..4).map(|_| acceptance::get_meanwhile(&pagewell, "/")).collect();
    for one in asking {
        let response = one.join().expect("it has an answer");
        assert_eq!((response.status, response.content.len()), (200, 1_200_000));
    }
}

/// Different pages, each with two fragments of two and a half megabytes.
const LARGE: &str = r#"<?php
header('Cache-Control: max-age=600');
if (isset($_GET['part'])) {
    echo str_repeat($_GET['part'], 5 << 19);
} else {
    header('Surrogate-Control: content="ESI/1.0"');
    echo "<esi:include src='/?part=a'/><esi:include src='/?part=b'/>", $_SERVER['REQUEST_URI'];
}
"#;

#[test]
fn unread_assembled_pages_count_as_send_backlog() {
    let site = Site::new(&[("index.php", LARGE)]);
    let limits = "[limits]\nclient_backlog_bytes = \"12M\"\npage_bytes = \"6M\"\n";
    let pagewell = site.serve(&format!("{ON}{limits}"));
    let mut held = Vec::new();
    for number in 0..20 {
        let mut stream = slow_client(&pagewell);
        write!(stream, "GET /{number} HTTP/1.1\r\nHost: a.test\r\n\r\n").expect("sent");
        held.push(stream);
        until("it is put together", || counter(&pagewell, "fragments") >= 2 * (number + 1));
        // A fragment shared with other clients is purged, so that each client holds its own.
        let dropped = pagewell.invalidate(r#"{"all":true}"#).expect("an answer");
        assert_eq!(dropped.status, 200);
    }
    until("the slowest are cut off", || limit_hit(&pagewell, "client_backlog_bytes") > 0);
    until("what waits is within its bound", || {
        counter(&pagewell, "client_backlog_bytes") <= 12 << 20
    });
    drop(held);
    until("nothing waits", || counter(&pagewell, "client_backlog_bytes") == 0);
}
