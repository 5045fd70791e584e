//! "Plain PHP": a site of three scripts, first with Pagewell's own php-fpm, then as a service with the php-fpm of
//! the system.

use crate::guide::{Guide, assert_like};
use crate::machine::{Machine, repository};
use std::fs;

const AUTOLOAD: &str = "require '/opt/pagewell/php/client/autoload.php';\n";

/// Runs the block that verifies a page twice, and checks that the second response is a hit.
fn verify(machine: &mut Machine, block: &str) {
    let first = machine.run(block);
    assert!(first.contains("fwd=uri-miss") && first.contains("stored"), "{first}");
    let second = machine.run(block);
    assert!(second.contains("pagewell; hit"), "{second}");
}

#[test]
fn plain_php() {
    let mut guide = Guide::open("php.md");
    let mut machine = Machine::new("");
    guide.not_run(
        "Plain PHP",
        "sh",
        "a release build takes minutes; the tests have built the program",
    );
    guide.not_run("Plain PHP", "sh", "scripts/package-test installs it in a Debian of its own");
    let (path, page) = ("Five-minute path", "/var/www/site/index.php");
    let declares = guide.next(path, "php");
    machine.write(
        page,
        &format!(
            "<?php\n{declares}echo 'news ', file_get_contents('/var/www/site/data/news.txt');\n"
        ),
    );
    let changes = guide.next(path, "php");
    let write = "use function Pagewell\\changed;\nfile_put_contents('/var/www/site/data/news.txt', 'new');\n";
    machine.write("/var/www/site/write.php", &format!("<?php\n{AUTOLOAD}{write}{changes}"));
    machine.write("/var/www/site/data/news.txt", "old");
    machine.run("chmod -R a+rwX /var/www/site/data");
    let foreground = machine.start(&guide.next(path, "sh"));
    let get = guide.next(path, "sh");
    verify(&mut machine, &get);
    let body = "curl -s http://127.0.0.1:8080/news/4/";
    assert_eq!(machine.run(body), "news old");
    machine.run("curl -sf http://127.0.0.1:8080/write.php -d x=1");
    let next = machine.run(&get);
    assert!(next.contains("fwd=uri-miss"), "{next}");
    assert_eq!(machine.run(body), "news new");
    drop(foreground);
    service(&mut guide, &mut machine);
    attributes(&mut guide, &mut machine);
}

fn service(guide: &mut Guide, machine: &mut Machine) {
    let toml = guide.next("Run it as a service", "toml");
    machine.write("/etc/pagewell/pagewell.toml", &toml);
    let output = machine.run(&guide.next("Run it as a service", "sh"));
    assert!(output.contains("php8.2-fpm.sock: answers"), "{output}");
    let get = "curl -si http://example.org/news/4/ | grep -i ^cache-status";
    verify(machine, get);
    // A script without a request reports its change over the control interface.
    let script = "/var/www/site/import.php";
    machine.write(script, &format!("<?php\n{AUTOLOAD}Pagewell\\changed('news', 4);\n"));
    let admin = "admin = \"unix:/run/pagewell/admin.sock\"\n";
    machine.write("/etc/pagewell/pagewell.toml", &format!("{admin}{toml}"));
    machine.run("sudo systemctl restart pagewell");
    verify(machine, get);
    let command = guide.next("A cron job, an import, a queue", "sh");
    let directory = machine.at("/var/www/site");
    assert_eq!(machine.run_in(&directory, &command), "");
    let next = machine.run(get);
    assert!(next.contains("fwd=uri-miss"), "{next}");
}

fn attributes(guide: &mut Guide, machine: &mut Machine) {
    let connects = guide.next("Writes in a transaction", "php");
    let prelude = "[$dsn, $user, $password] = ['sqlite::memory:', null, null];\n";
    let end = "$db->exec('CREATE TABLE news (id INT)'); echo $db::class;\n";
    let code = format!("<?php\n{AUTOLOAD}{prelude}{connects}{end}");
    machine.write("/var/www/site/data/pdo.php", &code);
    assert_eq!(machine.run("php /var/www/site/data/pdo.php"), "Pagewell\\Pdo");
    let section = "Attributes on controllers";
    let classes = guide.next(section, "php").replace('…', "");
    let call = guide.next(section, "php");
    let route = "[$controller, $parametersOfTheRoute] = [Article::class, ['id' => 4]];\n";
    let code = format!("<?php\n{AUTOLOAD}{classes}{route}{call}echo 'an article';\n");
    machine.write("/var/www/site/article.php", &code);
    let page = machine.run("curl -si http://example.org/article.php");
    assert!(page.contains("an article") && page.to_lowercase().contains("news:4"), "{page}");
    // The listing is that of the example site, shortened.
    let listing = guide.next(section, "console");
    let (command, expected) = listing.split_once('\n').expect("a command and its output");
    let command = command.trim_start_matches("$ ").replace("vendor/bin/", "../../php/client/bin/");
    let output = machine.run_in(&repository().join("examples/news"), &command);
    assert_like(&output, expected);
    let pipes = guide.next("PSR-15", "php");
    let app = "$app = new class { public array $all = []; function pipe($one) { $this->all[] = $one; } \
               function add($one) { $this->all[] = $one; } };\n";
    let psr = "require_once 'Psr/Http/Message/autoload.php'; interface_exists('Psr\\Http\\Server\\MiddlewareInterface') \
               || eval('namespace Psr\\Http\\Server; interface RequestHandlerInterface {} interface MiddlewareInterface {}');\n";
    let code = format!("<?php\n{AUTOLOAD}{psr}{app}{pipes}echo count($app->all);\n");
    machine.write("/var/www/site/data/psr.php", &code);
    assert_eq!(machine.run("php /var/www/site/data/psr.php"), "2");
    let _ = fs::remove_file(machine.at("/var/www/site/article.php"));
}
