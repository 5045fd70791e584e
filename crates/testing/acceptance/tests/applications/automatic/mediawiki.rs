//! Debian's MediaWiki on MariaDB, without an extension, a hook or its CDN support: pages for readers who are not
//! signed in are stored by what they read, and no edit leaves one stale.
//!
//! The settings are those of `docs/guide/automatic.md`. A page shows a changed template when the jobs have run;
//! a command runs them, as a timer does it.

use super::{Application, ComparedSite, Figures, guide};
use acceptance::cache_status;
use acceptance::mediawiki::{self, Wiki};
use harness::{MariaDbOptions, Request};
use std::path::Path;
use std::process::Command;

const GUIDE: &str = "MediaWiki in five minutes";

/// MediaWiki as installed without APCu, whatever this machine has: messages and parsed pages are in the table
/// `objectcache`.
const AS_INSTALLED: &str =
    "$wgMainCacheType = CACHE_NONE; $wgUseCdn = true; $wgCdnMaxAge = 86400; $wgJobRunRate = 0;";

/// The paths of pages that this test uses.
const PATHS: &str = "$wgArticlePath = '/wiki/$1'; $wgUsePathInfo = true;";

/// PHP's settings for the site without a cache, whatever this machine has.
const WITHOUT_APCU: &str = "\"apc.enabled\" = \"0\"\n";

fn application(wiki: &Wiki, apcu: &str) -> Application {
    let root = wiki.root();
    Application {
        host: mediawiki::HOST,
        root: root.clone(),
        env: vec![("MW_INSTALL_PATH".to_owned(), root)],
        plain_config: format!("[php.ini]\n{}{WITHOUT_APCU}", wiki.ini()),
        apcu: apcu.to_owned(),
        guide: GUIDE,
        idle_write: Request::form("/api.php", "action=query&meta=siteinfo&format=json"),
        comparable: mediawiki::comparable,
        accepted: &[],
    }
}

/// Pages that MediaWiki marks as the same for all: views, histories, styles and answers of the API.
const URLS: [&str; 17] = [
    "/wiki/Main_Page",
    "/wiki/Ferry",
    "/wiki/Gull",
    "/wiki/Old",
    "/wiki/Missing",
    "/wiki/Talk:Ferry",
    "/wiki/User:Admin",
    "/wiki/Template:Box",
    "/wiki/Category:Ships",
    "/wiki/Category:Boxes",
    "/index.php?title=Ferry&action=history",
    "/index.php?title=Gull",
    "/index.php?title=Ferry&action=raw&smaxage=3600",
    "/load.php?lang=en&modules=site.styles&only=styles&skin=vector",
    "/api.php?action=query&list=allpages&format=json&smaxage=3600",
    "/api.php?action=query&list=categorymembers&cmtitle=Category:Ships&format=json&smaxage=3600",
    "/api.php?action=query&meta=siteinfo&siprop=statistics&format=json&smaxage=3600",
];

/// Pages that MediaWiki marks as private.
const PRIVATE: [&str; 4] = [
    "/wiki/Special:AllPages",
    "/wiki/Special:Statistics",
    "/index.php?title=Ferry&action=info",
    "/index.php?search=ferry&fulltext=1",
];

/// A change: what it is, and the script with its arguments and input.
type Change = (&'static str, &'static str, &'static [&'static str], &'static str);

const EDIT: &str = "edit.php";
const CHANGES: [Change; 17] = [
    ("an edit", EDIT, &["Ferry"], "A new ferry. {{Box}} [[Category:Ships]] [[Missing]] [[Gull]]"),
    ("a template", EDIT, &["Template:Box"], "In another box. [[Category:Boxes]]"),
    ("the jobs of the template", "runJobs.php", &[], ""),
    ("a page that was linked", EDIT, &["Missing"], "Here it is. [[Category:Ships]]"),
    ("a talk page", EDIT, &["Talk:Ferry"], "Nice."),
    ("a category", EDIT, &["Category:Ships"], "All ships."),
    ("a redirect", EDIT, &["Old"], "#REDIRECT [[Ferry]]"),
    ("interface text", EDIT, &["MediaWiki:Sitenotice"], "The wiki moves."),
    ("a style", EDIT, &["MediaWiki:Common.css"], "body { color: red }"),
    ("a protected page", "protect.php", &["Ferry"], ""),
    ("a moved page", "moveBatch.php", &[], "Gull|Seagull\n"),
    ("a deleted page", "deleteBatch.php", &[], "Missing\n"),
    ("a deleted page again", "undelete.php", &["Missing"], ""),
    ("a deleted style", "deleteBatch.php", &[], "MediaWiki:Common.css\n"),
    ("a page that no other shows", EDIT, &["Nowhere"], "Nothing."),
    ("all jobs", "runJobs.php", &[], ""),
    ("a user", "createAndPromote.php", &["Editor", "secret-of-editor-1"], ""),
];

/// Changes at the SQL prompt.
const STATEMENTS: [(&str, &str); 4] = [
    ("SQL: statistics", "UPDATE site_stats SET ss_total_edits = ss_total_edits + 7"),
    ("SQL: a name", "UPDATE actor SET actor_name = 'Chief' WHERE actor_name = 'Admin'"),
    ("SQL: a member of a category", "DELETE FROM categorylinks WHERE cl_sortkey LIKE 'MISSING%'"),
    (
        "SQL: counters and jobs",
        "UPDATE user SET user_editcount = user_editcount + 1; DELETE FROM job",
    ),
];

#[test]
fn mediawiki_with_the_settings_of_the_guide_serves_no_stale_page() {
    follow(&guide(GUIDE, "php"));
}

#[test]
fn mediawiki_as_installed_serves_no_stale_page() {
    follow(AS_INSTALLED);
}

/// The installer chooses APCu where PHP has it. No statement shows what comes from there.
#[test]
fn mediawiki_with_apcu_is_not_stored() {
    let script = "echo getenv('PAGEWELL_APCU') ?: ini_get('extension_dir') . '/apcu.so';";
    let found = Command::new("php").args(["-r", script]).output().expect("php runs");
    let extension = String::from_utf8(found.stdout).expect("a path");
    if !Path::new(&extension).is_file() {
        return acceptance::skip(&format!("{extension} is not there: apt-get install php-apcu"));
    }
    let settings = format!("{AS_INSTALLED} $wgMainCacheType = CACHE_ACCEL;\n{PATHS}");
    let wiki = Wiki::start(MariaDbOptions::followed(&[]), &settings);
    wiki.maintain(EDIT, &["-u", "Admin", "Ferry"], "A ferry.");
    // PHP warns of an extension that its own settings load already, and goes on.
    let apcu = format!("extension = {extension:?}\n\"apc.enabled\" = \"1\"\n");
    let site = ComparedSite::start(&wiki.database, "wiki", application(&wiki, &apcu));
    for url in ["/wiki/Ferry", "/wiki/Ferry", "/wiki/Main_Page", "/wiki/Main_Page"] {
        let status = cache_status(&site.get(url)).to_owned();
        assert!(!status.contains("stored") && !status.contains("hit"), "{url}: {status}");
    }
}

/// The tree shows how many members each category below has. Each write is followed by four readers.
#[test]
fn mediawiki_with_a_tree_of_categories_serves_no_stale_page() {
    const TREE: &str = "/wiki/Category:Ships";
    let tree = "wfLoadExtension( 'CategoryTree' );";
    let settings = format!("{}\n{tree}\n{PATHS}", guide(GUIDE, "php"));
    let wiki = Wiki::start(MariaDbOptions::followed(&[]), &settings);
    let edit = |title: &str, text: &str| wiki.maintain(EDIT, &["-u", "Admin", title], text);
    edit("Category:Boats", "[[Category:Ships]]");
    edit("Category:Ships", "All ships.");
    let site = ComparedSite::start(&wiki.database, "wiki", application(&wiki, ""));
    for (number, title) in ["Tug", "Barge", "Raft"].into_iter().enumerate() {
        site.fill(&[TREE]);
        edit(title, "[[Category:Boats]]");
        wiki.maintain("runJobs.php", &[], "");
        site.applied();
        let members = format!("{} P", number + 1);
        for reader in 1..=4 {
            let page = site.get(TREE);
            let status = cache_status(&page);
            assert!(page.text().contains(&members), "{title}, reader {reader}: {status}");
        }
    }
    assert_all_reads_known(&site);
}

/// No page had statements that are not known. A row that changed during a render is none of them: on a busy machine,
/// MediaWiki still writes for the last view when the next begins.
fn assert_all_reads_known(site: &ComparedSite) {
    assert_eq!(site.cached.times_logged("reads-refused"), 0, "{}", site.cached.log());
}

/// A bar tells the visitor of an address that somebody has written to them. No page with it is stored, also if that is
/// the address which scripts get for everybody.
#[test]
fn a_message_for_an_address_is_on_no_page_of_others() {
    const SET: &str = "$services = MediaWiki\\MediaWikiServices::getInstance(); $services->getTalkPageNotificationManager()->setUserHasNewMessages( $services->getUserFactory()->newAnonymous( 'ADDRESS' ) );\n";
    let settings = format!("{}\n{PATHS}", guide(GUIDE, "php"));
    let wiki = Wiki::start(MariaDbOptions::followed(&[]), &settings);
    wiki.maintain(EDIT, &["-u", "Admin", "Ferry"], "A ferry.");
    let site = ComparedSite::start(&wiki.database, "wiki", application(&wiki, ""));
    site.fill(&["/wiki/Ferry"]);
    for address in ["127.0.0.1", "192.0.2.1"] {
        let talk = format!("User talk:{address}");
        wiki.maintain(EDIT, &["-u", "Admin", &talk], "Read the rules.");
        wiki.maintain("eval.php", &[], &SET.replace("ADDRESS", address));
        site.applied();
        for reader in 1..=4 {
            let page = site.get("/wiki/Ferry");
            let status = cache_status(&page);
            let is_shared = status.contains("stored") || status.contains("hit");
            let has_bar = page.text().contains("usermessage");
            assert!(!(is_shared && has_bar), "{address}, reader {reader}: {status}");
        }
    }
}

fn follow(settings: &str) {
    let wiki = Wiki::start(MariaDbOptions::followed(&[]), &format!("{settings}\n{PATHS}"));
    for (title, text) in [
        ("Ferry", "A ferry. {{Box}} [[Category:Ships]] [[Missing]]"),
        ("Template:Box", "In a box."),
        ("Gull", "A gull."),
        ("Old", "#REDIRECT [[Gull]]"),
    ] {
        wiki.maintain(EDIT, &["-u", "Admin", title], text);
    }
    let site = ComparedSite::start(&wiki.database, "wiki", application(&wiki, ""));
    let mut figures = Figures::default();
    // The first views of a page also write: MediaWiki's caches and its statistics.
    site.fill(&URLS);
    assert_all_reads_known(&site);
    site.step(&URLS, "nothing", &mut || (), &mut figures);
    for (name, script, args, input) in CHANGES {
        let user: &[&str] = match script {
            "runJobs.php" | "createAndPromote.php" => &[],
            _ => &["-u", "Admin"],
        };
        let mut change = || wiki.maintain(script, &[user, args].concat(), input);
        site.step(&URLS, name, &mut change, &mut figures);
    }
    for (name, text) in STATEMENTS {
        let mut change = || drop(wiki.database.sql_in("wiki", text).expect("it is done"));
        site.step(&URLS, name, &mut change, &mut figures);
    }
    assert_all_reads_known(&site);
    for url in [PRIVATE, PRIVATE].concat() {
        let status = cache_status(&site.get(url)).to_owned();
        assert!(status.contains("detail=private"), "{url}: {status}");
    }
    assert!(figures.stale.is_empty(), "{:?}", figures.stale);
    assert!(figures.changed > 40, "{figures:?}");
    assert!(figures.purged <= 3 * figures.changed, "{figures:?}");
}
