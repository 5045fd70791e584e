//! Debian's MediaWiki on MariaDB, without an extension, a hook or its CDN support: pages for readers who are not
//! signed in are stored by what they read, and no edit leaves one stale.
//!
//! The settings are those of `docs/guide/automatic.md`. A page shows a changed template when the jobs have run;
//! a command runs them, as a timer does it.

use super::{Application, ComparedSite, Figures, guide};
use acceptance::{cache_status, counter, mediawiki};
use harness::{MariaDb, MariaDbOptions, PrivateDir, Request};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

const GUIDE: &str = "MediaWiki in five minutes";

/// MediaWiki as installed without APCu: messages and parsed pages are in the table `objectcache`.
const AS_INSTALLED: &str = "$wgUseCdn = true; $wgCdnMaxAge = 86400; $wgJobRunRate = 0;";

/// The paths of pages that this test uses.
const PATHS: &str = "$wgArticlePath = '/wiki/$1'; $wgUsePathInfo = true;";

/// A MediaWiki with its database.
struct Wiki {
    database: MariaDb,
    dir: PrivateDir,
}

impl Wiki {
    /// `settings` are additional lines of LocalSettings.php.
    fn start(settings: &str) -> Wiki {
        let dir = PrivateDir::temporary("wiki").expect("a directory");
        let database = PrivateDir::temporary("wikidb").expect("a directory");
        let database =
            MariaDb::start_with(database, MariaDbOptions::followed(&[])).expect("it starts");
        database.create_database("wiki", "wiki", "secret").expect("a database");
        let wiki = Wiki { database, dir };
        wiki.lay_out();
        let root = wiki.root();
        wiki.maintain(
            "install.php",
            &[
                "--dbtype=mysql",
                "--dbserver=localhost",
                "--dbname=wiki",
                "--dbuser=wiki",
                "--dbpass=secret",
                "--server=http://wiki.test",
                "--scriptpath=",
                &format!("--confpath={root}"),
                "--pass=secret-of-admin-1",
                "A wiki",
                "Admin",
            ],
            "",
        );
        let file = format!("{root}/LocalSettings.php");
        let cache = format!("$wgCacheDirectory = '{root}/cache'; {PATHS}\n");
        let settings = fs::read_to_string(&file).expect("it is there") + settings + "\n" + &cache;
        fs::write(&file, settings).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("set");
        wiki
    }

    fn root(&self) -> String {
        self.dir.path().join("root").display().to_string()
    }

    fn lay_out(&self) {
        let root = self.root();
        let root = Path::new(&root);
        mediawiki::lay_out(root);
        for (name, mode) in [("", 0o755), ("images", 0o777), ("cache", 0o777)] {
            let path = root.join(name);
            fs::create_dir_all(&path).expect("a directory");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
        }
    }

    /// Runs a maintenance script with a text as its input.
    fn maintain(&self, script: &str, args: &[&str], input: &str) {
        let root = self.root();
        let socket = self.database.socket().display();
        let mut command = Command::new("php");
        command.arg("-d").arg(format!("mysqli.default_socket={socket}"));
        command.arg(format!("{root}/maintenance/{script}")).args(args);
        command.env("MW_INSTALL_PATH", &root).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("php runs");
        let mut stdin = child.stdin.take().expect("it is piped");
        stdin.write_all(input.as_bytes()).expect("it reads");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{script} {args:?}: {text}");
    }

    fn sql(&self, text: &str) {
        self.database.sql_in("wiki", text).expect("it is done");
    }

    fn application(&self) -> Application {
        let root = self.root();
        let socket = self.database.socket().display().to_string();
        Application {
            host: "wiki.test",
            root: root.clone(),
            env: vec![("MW_INSTALL_PATH".to_owned(), root)],
            plain_config: format!("[php.ini]\n\"mysqli.default_socket\" = {socket:?}\n"),
            guide: GUIDE,
            idle_write: Request::form("/api.php", "action=query&meta=siteinfo&format=json"),
            comparable,
        }
    }
}

/// Times and numbers of the render are in comments and in a script. The number of jobs in the statistics is of
/// a table that the profile ignores.
fn comparable(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("<!--") {
        text.push_str(before);
        rest = after.split_once("-->").map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let is_report = |line: &&str| line.contains("wgPageParseReport");
    let lines = text.lines().filter(|line| !is_report(line));
    let mut text = lines.collect::<Vec<_>>().join("\n");
    for name in ["\"wgRequestId\":", "\"jobs\":"] {
        if let Some((before, after)) = text.split_once(name) {
            let rest = after.split_once([',', '}']).map_or("", |(_, rest)| rest);
            text = format!("{before}{rest}");
        }
    }
    text
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

fn follow(settings: &str) {
    let wiki = Wiki::start(settings);
    for (title, text) in [
        ("Ferry", "A ferry. {{Box}} [[Category:Ships]] [[Missing]]"),
        ("Template:Box", "In a box."),
        ("Gull", "A gull."),
        ("Old", "#REDIRECT [[Gull]]"),
    ] {
        wiki.maintain(EDIT, &["-u", "Admin", title], text);
    }
    let site = ComparedSite::start(&wiki.database, "wiki", wiki.application());
    let mut figures = Figures::default();
    // The first views of a page also write: MediaWiki's caches and its statistics.
    site.fill(&URLS);
    assert_eq!(counter(&site.cached, "reads_refused"), 0, "{}", site.cached.log());
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
        site.step(&URLS, name, &mut || wiki.sql(text), &mut figures);
    }
    assert_eq!(counter(&site.cached, "reads_refused"), 0, "{}", site.cached.log());
    for url in [PRIVATE, PRIVATE].concat() {
        let status = cache_status(&site.get(url)).to_owned();
        assert!(status.contains("detail=private"), "{url}: {status}");
    }
    assert!(figures.stale.is_empty(), "{:?}", figures.stale);
    assert!(figures.changed > 40, "{figures:?}");
    assert!(figures.purged <= 3 * figures.changed, "{figures:?}");
}
