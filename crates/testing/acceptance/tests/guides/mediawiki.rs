//! "MediaWiki": Debian's package as a wiki on SQLite. Large directories of the package are symbolic links; the
//! wiki has its own scripts, uploads, settings and database.

use crate::guide::{Guide, assert_like};
use crate::machine::Machine;
use acceptance::{mediawiki, until};
use std::fs;
use std::time::Duration;

const ROOT: &str = "/var/www/wiki";
const TOML: &str = "/etc/pagewell/pagewell.toml";
/// Creates the wiki. The database is outside of the document root.
const INSTALL: &str = "cd /var/www/wiki && php maintenance/install.php --dbtype sqlite --dbpath /var/lib/wikidb \
    --server http://wiki.example --scriptpath '' --confpath /var/www/wiki --pass 'secret-of-admin-1' 'A wiki' Admin >/dev/null && \
    sudo chown -R www-data:www-data /var/lib/wikidb /var/www/wiki/images /var/www/wiki/cache";

/// Lays out a wiki below the document root.
fn lay_out(machine: &Machine) {
    let root = machine.at(ROOT);
    mediawiki::lay_out(&root);
    for name in ["images/deleted", "cache"] {
        fs::create_dir_all(root.join(name)).expect("a directory");
    }
    machine.write("/var/lib/wikidb/.htaccess", "Deny from all\n");
    machine.write("/var/www/wiki/images/deleted/secret.txt", "a deleted upload");
}

/// Follows the five-minute path with these lines of LocalSettings.php. Returns the line of cron.
fn set_up(
    guide: &mut Guide,
    machine: &mut Machine,
    settings: impl Fn(&mut Guide) -> String,
) -> String {
    guide.not_run(
        "MediaWiki",
        "sh",
        "a release build takes minutes; xtask's tests build the package",
    );
    lay_out(machine);
    machine.run(INSTALL);
    let path = "Five-minute path";
    machine.write(TOML, &guide.next(path, "toml"));
    machine.run(&guide.next(path, "sh"));
    machine.append("/var/www/wiki/LocalSettings.php", &settings(guide));
    let jobs = guide.next(path, "text");
    let output = machine.run(&guide.next(path, "sh"));
    assert!(output.contains("pagewell www-data") && output.contains(": answers"), "{output}");
    let job = jobs.lines().find_map(|line| line.strip_prefix("* * * * * www-data "));
    format!("sudo -u www-data {}", job.expect("a line of cron"))
}

/// A machine for a wiki.
fn machine() -> Machine {
    Machine::new("putenv('MW_INSTALL_PATH=/var/www/wiki');")
}

/// The command that edits a page.
fn edit(title: &str, text: &str) -> String {
    format!(
        "echo '{text}' | sudo -u www-data php /var/www/wiki/maintenance/edit.php -u Admin '{title}' >/dev/null"
    )
}

/// A script that prints the interface texts that MediaWiki has cached, in APCu and in its database.
const CACHED: &str = r#"<?php
foreach (new APCUIterator('/messages:en/') as $key => $entry) {
    echo $key, ' ', json_encode($entry['value']), "\n";
}
$db = new PDO('sqlite:/var/lib/wikidb/wikicache.sqlite');
foreach ($db->query("SELECT keyname, value, exptime FROM objectcache WHERE keyname LIKE '%messages:en%'") as $row) {
    $text = @gzinflate($row['value']);
    echo $row['keyname'], ' until ', $row['exptime'], ' ', json_encode(unserialize($text === false ? $row['value'] : $text)), "\n";
}
"#;

/// Changes an interface text, which is on every page. A command does not reach php-fpm's APCu, so MediaWiki must
/// keep these texts elsewhere. With APCu, pages show the change only in the first 11 seconds after php-fpm's start,
/// in which MediaWiki does not trust its cache.
fn change_interface_text(machine: &mut Machine) {
    machine.run(&edit("MediaWiki:Sitenotice", "The wiki moves."));
    let text = machine.run(&page("Main_Page"));
    if !text.contains("The wiki moves.") {
        machine.write("/var/www/wiki/cached.php", CACHED);
        let cached = machine.run("curl -s http://wiki.example/cached.php");
        panic!("the page lacks the notice; cached are\n{cached}");
    }
}

/// The command that requests a page.
fn page(title: &str) -> String {
    format!("curl -s http://wiki.example/wiki/{title}")
}

#[test]
fn mediawiki() {
    let mut guide = Guide::open("mediawiki.md");
    let mut machine = machine();
    let job = set_up(&mut guide, &mut machine, |guide| guide.next("Five-minute path", "php"));
    guide.not_run("Without the extension", "php", "another test has a wiki without the extension");
    // The two commands of the verification, and a page that was deleted before.
    let verify = guide.next("Verify", "sh");
    let (get, deleted) = verify.split_once('\n').expect("two commands");
    let both = machine.run(get) + &machine.run(get);
    assert_like(&both, &guide.next("Verify", "text"));
    // No listing, and no file that was deleted in the wiki.
    for url in ["deleted/", "deleted/secret.txt"] {
        let answer = machine.run(&deleted.replace("deleted/", url));
        assert!(answer.starts_with("HTTP/1.1 ") && !answer.contains(" 200"), "{answer}");
    }
    let category = page("Category:Ships");
    let status = "curl -si http://wiki.example/wiki/Category:Ships | grep -i ^cache-status";
    // A page and its template: both are current at once.
    machine.run(&edit("Main_Page", "A new text. {{Box}}"));
    assert!(machine.run(&page("Main_Page")).contains("A new text."));
    assert!(machine.run(get).contains("pagewell; hit"));
    machine.run(&edit("Template:Box", "In a box. [[Category:Ships]]"));
    assert!(machine.run(&page("Main_Page")).contains("In a box."));
    // A category that the template adds: when the jobs have run, as the line for cron runs them.
    machine.run(&category);
    assert!(machine.run(status).contains("pagewell; hit"));
    until("the category has the page", || {
        machine.run(&job);
        machine.run(&category).contains("title=\"Main Page\">Main Page</a></li>")
    });
    // Interface text is on every page.
    machine.run(get);
    assert!(machine.run(get).contains("pagewell; hit"));
    change_interface_text(&mut machine);
}

#[test]
fn mediawiki_without_the_extension() {
    let mut guide = Guide::open("mediawiki.md");
    let mut machine = machine();
    let job = set_up(&mut guide, &mut machine, |guide| {
        let settings = guide.next("Five-minute path", "php");
        let others = settings.lines().filter(|line| !line.contains("Pagewell"));
        let others: Vec<&str> = others.collect();
        assert_eq!(others.len() + 2, settings.lines().count(), "two lines with Pagewell");
        others.join("\n") + "\n" + &guide.next("Without the extension", "php")
    });
    let get = "curl -si http://wiki.example/wiki/Main_Page | grep -i ^cache-status";
    machine.run(get);
    assert!(machine.run(get).contains("pagewell; hit"));
    machine.run(&edit("Main_Page", "A new text. {{Box}}"));
    let status = machine.run(get);
    assert!(status.contains("fwd=uri-miss"), "{status}");
    assert!(machine.run(&page("Main_Page")).contains("A new text."));
    assert!(machine.run(get).contains("pagewell; hit"));
    // MediaWiki compares the times of its parser cache in seconds: a template that changes in the second in
    // which a page was rendered does not change the page.
    std::thread::sleep(Duration::from_millis(1100));
    // A template: the pages that use it are purged by the job queue.
    machine.run(&edit("Template:Box", "In a box."));
    until("the page has the template's text", || {
        machine.run(&job);
        machine.run(&page("Main_Page")).contains("In a box.")
    });
    // Interface text is on every page.
    machine.run(get);
    assert!(machine.run(get).contains("pagewell; hit"));
    change_interface_text(&mut machine);
    // A category is not cached.
    let category = "curl -si http://wiki.example/wiki/Category:Ships | grep -i ^cache-status";
    assert!(machine.run(category).contains(&guide.inline("detail=private")));
    guide.only_in_part();
}
