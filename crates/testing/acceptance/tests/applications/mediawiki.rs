//! Debian's MediaWiki with the extension of `php/mediawiki`: after each change, every answer of Pagewell must be
//! what MediaWiki renders without any cache of its own.
//!
//! Two Pagewells are in front of one wiki: one stores pages, and one bypasses the cache and runs PHP without
//! MediaWiki's caches of parsed pages and messages. The second is the truth. Changes are requests of a signed-in
//! editor through the first one. Its answer has arrived when the comparison begins, and nothing waits for a time.

mod changes;
mod crawled;
mod editor;

use acceptance::mediawiki::{self, HOST, Wiki};
use acceptance::{BOUND, TrialVisitors, cache_status, client, is_hit, trial_config};
use changes::Change;
use editor::Editor;
use harness::{MariaDbOptions, Memcached, Pagewell, PrivateDir, Request, Response};
use harness::{install_plugin, root};
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

/// The settings of the wiki beside those of the installer.
const SETTINGS: &str = "
$wgArticlePath = '/wiki/$1';
$wgUsePathInfo = true;
$wgEnableUploads = true;
$wgJobRunRate = 0;
$wgGroupPermissions['sysop']['deleterevision'] = true;
$wgMainCacheType = CACHE_MEMCACHED;
if ( is_file( __DIR__ . '/offline' ) ) {
    $wgPagewellAdmin = '127.0.0.1:1';
}
if ( getenv( 'WIKI_WITHOUT_CACHES' ) ) {
    $wgMainCacheType = $wgMessageCacheType = $wgParserCacheType = CACHE_NONE;
    $wgSessionCacheType = CACHE_DB;
}
";

/// The kinds of URL that are stored.
const STORED: [(&str, &str); 40] = [
    ("article", "/wiki/Ferry"),
    ("article, other path", "/index.php?title=Gull"),
    ("redirect", "/wiki/Old"),
    ("missing page", "/wiki/Missing"),
    ("talk page", "/wiki/Talk:Ferry"),
    ("user page", "/wiki/User:Admin"),
    ("template", "/wiki/Template:Box"),
    ("category", "/wiki/Category:Ships"),
    ("file page", "/wiki/File:Gull.png"),
    ("main page", "/wiki/Main_Page"),
    ("interface text", "/wiki/MediaWiki:Sitenotice"),
    ("root", "/"),
    ("history", "/index.php?title=Ferry&action=history"),
    ("old revision", "/index.php?title=Ferry&oldid={old}"),
    ("difference", "/index.php?title=Ferry&diff={new}&oldid={old}"),
    ("source text", "/index.php?title=Ferry&action=raw"),
    ("information", "/index.php?title=Ferry&action=info"),
    ("printable", "/index.php?title=Ferry&printable=yes"),
    ("feed of a page", "/index.php?title=Ferry&action=history&feed=atom"),
    ("other skin", "/wiki/Ferry?useskin=monobook"),
    ("other language", "/wiki/Ferry?uselang=de"),
    ("recent changes", "/wiki/Special:RecentChanges"),
    ("feed of recent changes", "/api.php?action=feedrecentchanges&feedformat=atom"),
    ("all pages", "/wiki/Special:AllPages"),
    ("what links here", "/wiki/Special:WhatLinksHere/Gull"),
    ("new pages", "/wiki/Special:NewPages"),
    ("statistics", "/wiki/Special:Statistics"),
    ("list of files", "/wiki/Special:ListFiles"),
    ("list of users", "/wiki/Special:ListUsers"),
    ("logs", "/wiki/Special:Log"),
    ("contributions", "/wiki/Special:Contributions/Admin"),
    ("categories", "/wiki/Special:Categories"),
    ("API: pages", "/api.php?action=query&list=allpages&format=json"),
    (
        "API: category",
        "/api.php?action=query&list=categorymembers&cmtitle=Category:Ships&format=json",
    ),
    ("API: revisions", "/api.php?action=query&titles=Ferry&prop=revisions&format=json"),
    ("API: parsed text", "/api.php?action=parse&page=Ferry&format=json"),
    ("API: statistics", "/api.php?action=query&meta=siteinfo&siprop=statistics&format=json"),
    ("styles", "/load.php?lang=en&modules=site.styles&only=styles&skin=vector"),
    ("list of modules", "/load.php?lang=en&modules=startup&only=scripts&raw=1&skin=vector"),
    ("search description", "/opensearch_desc.php"),
];

/// The kinds of URL that are not stored.
const NOT_STORED: [(&str, &str); 2] = [
    ("search", "/index.php?search=ferry&fulltext=1"),
    ("editor", "/index.php?title=Ferry&action=edit"),
];

/// Texts of the wiki at the beginning: title and text.
const PAGES: [(&str, &str); 9] = [
    ("Ferry", "A ferry."),
    ("Ferry", "A ferry. {{Box}} [[Category:Ships]] [[Missing]] [[Gull]] [[File:Gull.png]]"),
    ("Template:Box", "In a box."),
    ("Gull", "A gull."),
    ("Lighthouse", "A light."),
    ("Old", "#REDIRECT [[Gull]]"),
    ("Main Page", "Welcome: [[Ferry]], [[Lighthouse]]."),
    ("Category:Ships", "Ships."),
    ("Project:About", "About."),
];

/// Gives the first edits a second each, because MediaWiki does not define the order of edits of one second.
const SECONDS: &str = "
UPDATE revision SET rev_timestamp =
    DATE_FORMAT(UTC_TIMESTAMP() - INTERVAL (1000 - rev_id) SECOND, '%Y%m%d%H%i%S');
UPDATE recentchanges JOIN revision ON rev_id = rc_this_oldid SET rc_timestamp = rev_timestamp;
DELETE FROM objectcache";

/// The figures of a run.
#[derive(Debug, Default)]
struct Figures {
    /// Stored pages whose content changed, over all changes.
    changed: usize,
    /// Stored pages that were purged.
    purged: usize,
    /// Answers that differ from the truth.
    stale: Vec<String>,
    /// For each change, the kinds that were purged although their content stayed the same.
    needless: Vec<String>,
}

/// The content of a response that must be the same.
type Content = (u16, Option<String>, String);

/// A wiki behind a Pagewell that stores pages, and behind one that does not.
struct ComparedWiki {
    wiki: Wiki,
    cached: Pagewell,
    visitors: Option<TrialVisitors>,
    plain: Pagewell,
    _memcached: Memcached,
    _dir: PrivateDir,
}

impl Drop for ComparedWiki {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.visitors.iter().for_each(|visitors| visitors.found_nothing(&self.cached));
            acceptance::audit_found_nothing(&self.cached, &[]);
        }
    }
}

impl ComparedWiki {
    fn start() -> ComparedWiki {
        let memcached = Memcached::start_on_port(64).expect("memcached starts");
        let wiki = Wiki::start(MariaDbOptions::default(), "");
        for (title, text) in PAGES {
            wiki.maintain("edit.php", &["-u", "Admin", title], text);
        }
        wiki.maintain("runJobs.php", &[], "");
        wiki.database.sql_in("wiki", SECONDS).expect("it is done");
        let dir = PrivateDir::temporary("compared").expect("a directory");
        let extensions = Path::new(&wiki.root()).join("extensions");
        install_plugin(&root::repository(), "mediawiki", &extensions).expect("the extension");
        let extension = extensions.join("Pagewell/extension.json");
        let start = |name: &str, more: &str, (env, trial): (&str, &str)| {
            let (root, ini) = (wiki.root(), wiki.ini());
            let text = format!(
                "{trial}audit = \"1 in 10\"\ntrusted_proxies = [\"127.0.0.1\"]\n[site]\nroot = {root:?}\n{more}\n[php]\nchildren = 4\n[php.env]\nMW_INSTALL_PATH = {root:?}\n{env}\n[php.ini]\n{ini}"
            );
            let file = dir.path().join(name);
            std::fs::write(&file, text).expect("written");
            let args = [format!("--config={}", file.display()), "--memory=64M".to_owned()];
            Pagewell::start(acceptance::binary(), &args).expect("pagewell starts")
        };
        // Every tenth hit is audited, so that each test shows more.
        let trial = trial_config();
        let (cached, visitors) = TrialVisitors::start(|| start("cached.toml", "", ("", &trial)));
        let without = ("WIKI_WITHOUT_CACHES = \"yes\"", "");
        let plain = start("plain.toml", "[[rule]]\nbypass = true", without);
        wiki.set(&format!(
            "wfLoadExtension( 'Pagewell', {:?} );\n$wgPagewellAdmin = '{}';\n$wgMemCachedServers = [ '{}' ];\n{SETTINGS}",
            extension.display(),
            cached.admin(),
            memcached.address()
        ));
        ComparedWiki { wiki, cached, visitors, plain, _memcached: memcached, _dir: dir }
    }

    fn get(&self, url: &str) -> Response {
        self.send(&Request::get(url))
    }

    fn send(&self, request: &Request) -> Response {
        let mut client = client(&self.cached).host(HOST).within(BOUND);
        let response = client.send(request).expect("an answer");
        self.visitors.iter().for_each(|them| them.visit(&self.cached, request, HOST));
        response
    }

    /// What MediaWiki renders without caches, by kind.
    fn truths(&self, urls: &[Url]) -> BTreeMap<&'static str, Content> {
        in_parts(urls, |part| {
            let mut client = client(&self.plain).host(HOST).within(BOUND);
            let mut truth = |url: &Url| content(&client.get(&url.path).expect("an answer"));
            part.iter().map(|url| (url.kind, truth(url))).collect()
        })
    }
}

/// Makes requests for all URLs, in several threads.
fn in_parts<T: Send>(
    urls: &[Url],
    part: impl Fn(&[Url]) -> Vec<(&'static str, T)> + Sync,
) -> BTreeMap<&'static str, T> {
    let part = &part;
    thread::scope(|scope| {
        let parts = urls.chunks(urls.len().div_ceil(4));
        let parts: Vec<_> = parts.map(|urls| scope.spawn(move || part(urls))).collect();
        parts.into_iter().flat_map(|part| part.join().expect("it ends")).collect()
    })
}

/// A URL of a kind.
struct Url {
    kind: &'static str,
    path: String,
}

/// The content without empty lines and without times that are those of the request.
fn content(response: &Response) -> Content {
    let mut text = mediawiki::comparable(&response.text()).replace("\\n", "\n");
    // "Show new changes starting from …", the time of a feed, the time that the answer took, a comment in a feed.
    for (start, end) in [
        ("class=\"rclistfrom\"", "</span>"),
        ("<updated>", "</updated>"),
        ("\"wgBackendResponseTime\":", "}"),
        ("&lt;!-- diff cache key", "--&gt;"),
        ("&lt;tr&gt;&lt;td colspan=&quot;2&quot; class=&quot;diff-notice&quot;", "&lt;/tr&gt;"),
    ] {
        while let Some((before, after)) = text.split_once(start) {
            let rest = after.split_once(end).map_or("", |(_, rest)| rest);
            text = format!("{before}{rest}");
        }
    }
    // MediaWiki lays out an empty difference in two ways: its cache adds a comment.
    let text = text.replace("colspan=&quot;1&quot;", "colspan=&quot;2&quot;");
    let is_content = |line: &&str| !line.is_empty() && !line.contains("&lt;col class");
    let lines = text.lines().filter(is_content);
    let text = lines.collect::<Vec<_>>().join("\n").replace("\n&lt;/table", "&lt;/table");
    (response.status, response.header("location").map(str::to_owned), text)
}

/// The line at which two texts begin to differ.
fn difference(one: &Content, other: &Content) -> String {
    let lines = one.2.lines().zip(other.2.lines()).find(|(one, other)| one != other);
    let (one_line, other_line) = lines.unwrap_or_default();
    let at = one_line.bytes().zip(other_line.bytes()).take_while(|(a, b)| a == b).count();
    let part = |line: &str| {
        let start = line.len().min(at.saturating_sub(60));
        String::from_utf8_lossy(&line.as_bytes()[start..line.len().min(at + 120)]).into_owned()
    };
    format!("{} {:?} != {} {:?}", one.0, part(one_line), other.0, part(other_line))
}

#[test]
fn a_wiki_with_the_extension_serves_no_stale_page() {
    let site = ComparedWiki::start();
    let editor = Editor::sign_in(&site.cached);
    let urls = urls(&editor);
    for (kind, url) in NOT_STORED {
        let answers = [(), ()].map(|()| site.get(url));
        let status = cache_status(&answers[1]);
        assert!(status.contains("detail=no-store"), "{kind}: {status}");
    }
    let mut figures = Figures::default();
    let mut truth = site.truths(&urls);
    for (name, change) in changes::all() {
        fill(&site, &urls, name);
        make(&site, &editor, change);
        truth = compare(&site, &urls, name, truth, &mut figures);
    }
    eprintln!("{figures:#?}");
    assert!(figures.stale.is_empty(), "{:#?}", figures.stale);
    assert!(figures.changed > 200, "{figures:#?}");
    assert!(figures.purged * 10 <= figures.changed * 13, "{figures:#?}");
}

/// The stored kinds of URL, with the revisions of this wiki.
fn urls(editor: &Editor) -> Vec<Url> {
    let [new, old] = editor.revisions("Ferry");
    let path = |pattern: &str| pattern.replace("{new}", &new).replace("{old}", &old);
    STORED.iter().map(|(kind, pattern)| Url { kind, path: path(pattern) }).collect()
}

/// Requests each page three times: the last answer is from the cache. A feed is stored when MediaWiki has its differences
/// in its own cache.
fn fill(site: &ComparedWiki, urls: &[Url], change: &str) {
    in_parts(urls, |part| {
        for url in part {
            let answers = [(), (), ()].map(|()| site.get(&url.path));
            let [.., again] = &answers;
            let status = cache_status(again);
            let refusal = again.header("x-pagewell-refusal").unwrap_or("none");
            let log = site.cached.log();
            assert!(is_hit(again), "before {change}: {} {status} {refusal}\n{log}", url.kind);
        }
        Vec::<(_, ())>::new()
    });
}

#[test]
fn a_page_of_one_visitor_is_not_stored() {
    let site = ComparedWiki::start();
    let editor = Editor::sign_in(&site.cached);
    let of = |ip: &str, url: &str| site.send(&Request::get(url).header("X-Forwarded-For", ip));
    let refusal = |answer: &Response| answer.header("x-pagewell-refusal").map(str::to_owned);
    // The bar for messages on a visitor's talk page.
    editor.post(&[("action", "edit"), ("title", "User talk:192.0.2.7"), ("text", "Hello.")]);
    for _ in 0..2 {
        let own = of("192.0.2.7", "/wiki/Ferry");
        assert_eq!(refusal(&own).as_deref(), Some("visitors-messages"), "{}", own.text());
        assert!(own.text().contains("new message") && !is_hit(&own));
    }
    // Under trial, a further visitor may have been the first.
    for is_stored in [false, true] {
        let other = of("192.0.2.8", "/wiki/Ferry");
        assert!(!other.text().contains("new message"));
        assert!(is_hit(&other) || !is_stored, "{}", cache_status(&other));
    }
    // A blocked visitor, and an editor.
    editor.post(&[("action", "block"), ("user", "192.0.2.9"), ("expiry", "infinite")]);
    let blocked = of("192.0.2.9", "/wiki/Gull");
    assert_eq!(refusal(&blocked).as_deref(), Some("blocked"));
    let own = site.send(&editor.request("/wiki/Gull"));
    assert!(own.text().contains("\"wgUserName\":\"Admin\"") && !is_hit(&own));
    assert!(!of("192.0.2.8", "/wiki/Gull").text().contains("\"wgUserName\":\"Admin\""));
    assert!(is_hit(&of("192.0.2.8", "/wiki/Gull")));
    let own = site.send(&editor.request("/wiki/Gull"));
    assert!(own.text().contains("\"wgUserName\":\"Admin\""), "{}", cache_status(&own));
}

#[test]
fn a_change_that_could_not_be_sent_is_sent_by_a_job() {
    let site = ComparedWiki::start();
    let text = || site.get("/wiki/Gull").text();
    assert!(text().contains("A gull.") && is_hit(&site.get("/wiki/Gull")));
    // A command has no response, and does not reach the control interface.
    let offline = Path::new(&site.wiki.root()).join("offline");
    std::fs::write(&offline, "").expect("written");
    site.wiki.maintain("edit.php", &["-u", "Admin", "Gull"], "An old gull.");
    assert!(text().contains("A gull."));
    std::fs::remove_file(&offline).expect("removed");
    // Another test may have begun the pause between two calls.
    site.wiki.maintain("runJobs.php", &["--type=pagewellInvalidate", "--nothrottle"], "");
    assert!(text().contains("An old gull."));
}

fn make(site: &ComparedWiki, editor: &Editor, change: Change) {
    match change {
        Change::Editor(fields) => drop(editor.post(fields)),
        Change::Upload(content) => editor.upload("Gull.png", content),
        Change::Visitor(fields) => editor::post_as_visitor(&site.cached, fields),
        Change::Rollback(title) => editor.roll_back(title),
        Change::Rights(user, group) => editor.add_to_group(user, group),
        Change::HideRevision(title) => editor.hide_revision(title),
        Change::Command(script, args, input) => site.wiki.maintain(script, args, input),
        Change::Nothing => (),
    }
}

/// Compares all answers with the truth after a change, which is returned.
fn compare(
    site: &ComparedWiki,
    urls: &[Url],
    change: &str,
    before: BTreeMap<&'static str, Content>,
    figures: &mut Figures,
) -> BTreeMap<&'static str, Content> {
    let answers =
        in_parts(urls, |part| part.iter().map(|url| (url.kind, site.get(&url.path))).collect());
    let truth = site.truths(urls);
    for (kind, answer) in answers {
        let is_changed = before[kind] != truth[kind];
        figures.changed += usize::from(is_changed);
        figures.purged += usize::from(!is_hit(&answer));
        if !is_hit(&answer) && !is_changed {
            figures.needless.push(format!("{change}: {kind}"));
        }
        let found = content(&answer);
        if found != truth[kind] {
            let why = difference(&found, &truth[kind]);
            let status = cache_status(&answer);
            figures.stale.push(format!("{change}: {kind} {status}: {why}"));
        }
    }
    truth
}
