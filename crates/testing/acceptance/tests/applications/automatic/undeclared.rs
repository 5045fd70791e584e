//! Pages whose reads are not known or change while they are made, and what is personal in pages that declare
//! nothing. Nothing waits for a time: a change during a render is held by a request that waits for it.

use super::bad_input::Paper;
use acceptance::{cache_status, client, counter, is_hit, until};
use harness::{Request, Response};

/// Shows a row that another connection changes meanwhile. The page goes on when the change is applied.
const RACE: &str = "<?php require 'db.php';
    $shown = $title('ID = 1');
    if ($shown === 'one') {
        $direct = new PDO('mysql:unix_socket=' . trim(file_get_contents('socket.txt')) . ';dbname=paper', 'writer', 'secret');
        $direct->exec(\"UPDATE wp_posts SET title = 'new' WHERE ID = 1\");
        $idle = ['http' => ['method' => 'POST', 'header' => 'Host: paper.test', 'content' => '']];
        file_get_contents('http://' . trim(file_get_contents('address.txt')) . '/idle.php', false, stream_context_create($idle));
    }
    header('Cache-Control: s-maxage=86400');
    echo $shown;";

/// A statement that is longer than the relay reads.
const UNSEEN: &str = "<?php require 'db.php'; header('Cache-Control: s-maxage=86400');
    echo $title('ID = 1 AND title <> ' . $db->quote(str_repeat('x', 1 << 20)));";

/// Its values come from a cache, as the application says.
const HIDDEN: &str = "<?php require 'db.php'; header('Cache-Control: s-maxage=86400');
    header('X-Pagewell-Refusal: reads-hidden'); echo $title('ID = 1');";

#[test]
fn a_page_whose_rows_change_during_its_render_is_never_stored() {
    let paper = Paper::start("", &[("race.php", RACE), ("hidden.php", HIDDEN)]);
    let address = paper.pagewell.address().to_string();
    paper.site.file("address.txt", &address);
    paper.site.file("socket.txt", paper.socket());
    let first = paper.get("/race.php");
    assert_eq!(first.text(), "one");
    let status = cache_status(&first);
    assert!(status.contains("reads-changed") && !status.contains("stored"), "{status}");
    let second = paper.get("/race.php");
    assert_eq!((second.text().as_str(), is_hit(&second)), ("new", false));
    paper.stored("/race.php");
    paper.refused("/hidden.php", "new", "reads-hidden");
}

#[test]
fn a_page_with_a_lifetime_and_unknown_reads_is_stored_for_a_minute() {
    let paper = Paper::start("", &[("long.php", UNSEEN)]);
    // The tables were made a moment ago, so the first renders may come too early.
    let mut status = String::new();
    until("the page is stored", || {
        status = cache_status(&paper.get("/long.php")).to_owned();
        status.contains("; stored")
    });
    assert!(status.contains("detail=reads-unseen"), "{status}");
    let ttl = status.split("ttl=").nth(1).and_then(|rest| rest.split(';').next()?.parse().ok());
    assert!(ttl.is_some_and(|seconds: u64| seconds <= 60), "{status}");
    assert!(is_hit(&paper.get("/long.php")));
    let never =
        Paper::start("untracked = \"never\"\ntable_prefix = \"wp_\"", &[("long.php", UNSEEN)]);
    never.refused("/long.php", "one", "reads-unseen");
}

/// Shows what a page could depend on beside the database.
const VISITOR: &str = "<?php require 'db.php'; $title('ID = 1');
    foreach (['HTTP_USER_AGENT', 'HTTP_ACCEPT_LANGUAGE', 'REMOTE_ADDR'] as $name) echo $_SERVER[$name] ?? '-', '|';";

fn visit(paper: &Paper, path: &str, agent: &str) -> Response {
    visit_with(paper, path, [("User-Agent", agent), ("Accept-Language", "de")])
}

fn visit_with<const N: usize>(paper: &Paper, path: &str, fields: [(&str, &str); N]) -> Response {
    let request = Request::get(path).header("Host", "paper.test");
    let add = |request: Request, (name, value): (&str, &str)| request.header(name, value);
    client(&paper.pagewell).send(&fields.into_iter().fold(request, add)).expect("an answer")
}

const DESKTOP: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const PHONE: &str = "Mozilla/5.0 (Linux; Android 15; Pixel 9) Chrome/130 Mobile Safari/537.36";

#[test]
fn a_page_that_declares_nothing_shows_nothing_of_its_first_visitor() {
    let personal = format!("{VISITOR} header('Cart-Token: 7');");
    let private = format!("{VISITOR} header('Cache-Control: no-store');");
    let json =
        "<?php require 'db.php'; header('Content-Type: application/json'); echo $title('ID = 1');";
    let paper = Paper::start(
        "",
        &[
            ("visitor.php", VISITOR),
            ("personal.php", &personal),
            ("private.php", &private),
            ("json.php", json),
        ],
    );
    // The tables were made a moment ago, so the first renders may come too early.
    until("the page is stored", || is_hit(&visit(&paper, "/visitor.php", DESKTOP)));
    let shown = visit(&paper, "/visitor.php", DESKTOP);
    assert!(shown.text().ends_with("|-|192.0.2.1|"), "{}", shown.text());
    let other = visit(&paper, "/visitor.php", &DESKTOP.replace("140", "141"));
    assert_eq!((other.text(), is_hit(&other)), (shown.text(), true));
    let phone = visit(&paper, "/visitor.php", PHONE);
    assert!(phone.text().contains("iPhone") && !is_hit(&phone), "{}", phone.text());
    assert!(is_hit(&visit(&paper, "/visitor.php", &PHONE.replace("130", "131"))));
    for (path, reason) in [("/personal.php", "personal-field"), ("/json.php", "content-type")] {
        for _ in 0..2 {
            let status = cache_status(&visit(&paper, path, DESKTOP)).to_owned();
            assert!(status.contains(reason) && !status.contains("stored"), "{path}: {status}");
        }
    }
    // A page that cannot be stored is its visitor's, from the second time on.
    let fixed = visit(&paper, "/private.php", PHONE).text();
    assert!(fixed.contains("iPhone"), "{fixed}");
    let own = visit(&paper, "/private.php", PHONE).text();
    assert_eq!(own, format!("{PHONE}|de|127.0.0.1|"));
}

/// Gives each visitor a secret, and declares nothing.
const BASKET: &str = "<?php require 'db.php'; $secret = bin2hex(random_bytes(16));
    $db->exec(\"UPDATE wp_posts SET title = '$secret' WHERE ID = 2\"); ";

#[test]
fn a_response_that_hands_out_a_secret_is_never_stored() {
    let script = |more: &str| format!("{BASKET}{more}");
    let scripts = [
        ("start.php", script("header(\"Location: /basket.php?token=$secret\");")),
        ("path.php", script("header(\"Location: /basket/$secret\");")),
        ("moved.php", script("header(\"Location: /basket.php?token=$secret\", true, 301);")),
        ("refresh.php", script("header(\"Refresh: 0; url=/thanks?order_key=$secret\"); echo 1;")),
        ("link.php", script("header(\"Link: </next?sig=$secret>; rel=next\"); echo 1;")),
        ("csrf.php", script("header(\"X-CSRFToken: $secret\"); echo 1;")),
        (
            "nonce.php",
            script("header(\"Content-Security-Policy: script-src 'nonce-$secret'\"); echo 1;"),
        ),
    ];
    let scripts: Vec<_> = scripts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let paper = Paper::start("", &[&scripts[..], &[PLAIN]].concat());
    paper.stored("/plain.php");
    for (name, _) in scripts {
        let [one, other] = [0, 1].map(|_| {
            let answer = paper.get(&format!("/{name}"));
            let status = cache_status(&answer).to_owned();
            assert!(!is_hit(&answer) && !status.contains("; stored"), "{name}: {status}");
            let secrets = ["location", "refresh", "link", "x-csrftoken", "content-security-policy"];
            secrets.into_iter().find_map(|name| answer.header(name)).unwrap_or_default().to_owned()
        });
        assert!(one != other && !one.is_empty(), "{name}: {one}");
    }
}

/// A page that is stored, so that the tables are known.
const PLAIN: (&str, &str) = ("plain.php", "<?php require 'db.php'; echo $title('ID = 1');");

#[test]
fn a_response_for_one_client_gets_its_own_values_and_decides_nothing_for_others() {
    let paper = Paper::start("", &[("visitor.php", VISITOR), PLAIN]);
    paper.stored("/plain.php");
    for own in [("Authorization", "Basic eDp5"), ("X-Company", "1"), ("Cookie", "cart_id=1")] {
        let shown = visit_with(&paper, "/visitor.php", [own, ("Accept-Language", "de")]);
        assert!(shown.text().ends_with("|de|127.0.0.1|"), "{own:?}: {}", shown.text());
        assert!(!cache_status(&shown).contains("; stored"), "{own:?}: {}", cache_status(&shown));
    }
    let first = visit(&paper, "/visitor.php", DESKTOP);
    assert!(cache_status(&first).contains("; stored"), "{}", cache_status(&first));
    assert!(first.text().ends_with("|-|192.0.2.1|"), "{}", first.text());
}

#[test]
fn another_form_of_a_page_delays_its_storing_once() {
    let script = format!(
        "{VISITOR} if (str_contains($_SERVER['HTTP_ACCEPT'] ?? '', 'json')) header('Content-Type: application/json');"
    );
    let paper = Paper::start("", &[("forms.php", &script), PLAIN]);
    paper.stored("/plain.php");
    let as_json = || {
        let status = visit_with(&paper, "/forms.php", [("Accept", "application/json")]);
        assert!(cache_status(&status).contains("content-type"), "{}", cache_status(&status));
    };
    as_json();
    // The page has not been stored so far, so that its visitor gets the own values.
    let own = visit(&paper, "/forms.php", DESKTOP);
    assert!(cache_status(&own).contains("as-sent"), "{}", cache_status(&own));
    assert!(own.text().ends_with("|de|127.0.0.1|"), "{}", own.text());
    as_json();
    let stored = visit(&paper, "/forms.php", DESKTOP);
    assert!(cache_status(&stored).contains("; stored"), "{}", cache_status(&stored));
}

#[test]
fn a_page_that_is_not_stored_is_known_by_its_path() {
    let login = format!("{VISITOR} header('Cache-Control: no-store');");
    let unseen =
        UNSEEN.replace("header('Cache-Control: s-maxage=86400');", "echo $_SERVER['REMOTE_ADDR'];");
    let paper = Paper::start("", &[("login.php", &login), ("unseen.php", &unseen), PLAIN]);
    paper.stored("/plain.php");
    assert!(visit(&paper, "/login.php?n=1", DESKTOP).text().ends_with("|192.0.2.1|"));
    assert!(visit(&paper, "/login.php?n=2", PHONE).text().ends_with("|de|127.0.0.1|"));
    // The same if it is known at the end only.
    assert!(visit(&paper, "/unseen.php?n=1", DESKTOP).text().starts_with("192.0.2.1"));
    for n in 2..5 {
        let shown = visit(&paper, &format!("/unseen.php?n={n}"), PHONE);
        assert!(shown.text().starts_with("127.0.0.1"), "{}", shown.text());
        assert!(cache_status(&shown).contains("reads-unseen"), "{}", cache_status(&shown));
    }
}

#[test]
fn pages_of_a_script_that_varies_by_language_are_rendered_once() {
    let page = format!("{VISITOR} header('Vary: Accept-Language');");
    let plain = "<?php if (empty($_GET['plain'])) header('Vary: Accept-Language');
        require 'db.php'; echo $title('ID = 1'), $_SERVER['HTTP_ACCEPT_LANGUAGE'] ?? '-';";
    let paper = Paper::start("", &[("page.php", &page), ("mixed.php", plain), PLAIN]);
    paper.stored("/plain.php");
    let renders = || counter(&paper.pagewell, "renders");
    let get = |path: &str, language: &str| {
        let page = visit_with(&paper, path, [("Accept-Language", language)]);
        (page.text(), cache_status(&page).to_owned())
    };
    get("/page.php?n=1", "de");
    for n in 2..5 {
        let (before, path) = (renders(), format!("/page.php?n={n}"));
        let (text, status) = get(&path, "de");
        assert!(text.contains("|de|") && status.contains("; stored"), "{text} {status}");
        assert_eq!(renders(), before + 1);
        assert!(get(&path, "de").1.contains("hit"));
        let (text, status) = get(&path, "en");
        assert!(text.contains("|en|") && status.contains("; stored"), "{text} {status}");
    }
    // A page of such a script that does not vary is nevertheless never shown in another language.
    get("/mixed.php?n=1", "de");
    assert_eq!(get("/mixed.php?plain=1", "de").0, "onede");
    let (text, status) = get("/mixed.php?plain=1", "en");
    assert!(!text.contains("de") && !status.contains("hit"), "{text} {status}");
}

/// Shows the first row; later, while the other changes, that one.
const OTHER_ROW: &str = "<?php require 'db.php'; header('Cache-Control: s-maxage=86400');
    if (!file_exists('again.txt')) { echo $title('ID = 1'); exit; }
    echo $title('ID = 2');
    $direct = new PDO('mysql:unix_socket=' . trim(file_get_contents('socket.txt')) . ';dbname=paper', 'writer', 'secret');
    $direct->exec(\"UPDATE wp_posts SET title = 'new' WHERE ID = 2\");
    $idle = ['http' => ['method' => 'POST', 'header' => 'Host: paper.test', 'content' => '']];
    file_get_contents('http://' . trim(file_get_contents('address.txt')) . '/idle.php', false, stream_context_create($idle));";

#[test]
fn a_row_that_changes_during_a_refresh_does_not_end_the_page_that_is_served_meanwhile() {
    let paper = Paper::start("[cache]\nsoft_for = \"10m\"", &[("other.php", OTHER_ROW), PLAIN]);
    paper.site.file("address.txt", paper.pagewell.address().to_string());
    paper.site.file("socket.txt", paper.socket());
    paper.stored("/other.php");
    paper.site.file("again.txt", "");
    paper.pagewell.invalidate(r#"{"all":true,"soft":true}"#).expect("it answers");
    let before = counter(&paper.pagewell, "not_stored");
    let stale = paper.get("/other.php");
    assert_eq!((stale.text().as_str(), is_hit(&stale)), ("one", true));
    until("the refresh has ended", || counter(&paper.pagewell, "not_stored") > before);
    let stale = paper.get("/other.php");
    assert_eq!((stale.text().as_str(), is_hit(&stale)), ("one", true), "{}", cache_status(&stale));
}
