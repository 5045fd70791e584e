//! "Laravel" and "Symfony": a whole application of each with Debian's packages of the framework, which stand in
//! for the ones that Composer would install. Composer installs Pagewell's packages as the guides say. The files
//! of the applications are in `applications`; they are written for all versions of the frameworks.

use crate::guide::Guide;
use crate::machine::Machine;
use std::fs;
use std::path::Path;

const APP: &str = "/var/www/app";
const TOML: &str = "/etc/pagewell/pagewell.toml";

/// The application before Pagewell: the framework is there already.
fn application(
    machine: &mut Machine,
    name: &str,
    framework: &[&str],
    version: &str,
    autoload: &str,
) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guides/applications").join(name);
    copy(machine, &from, APP);
    let version = machine.run(&format!("php -r '{version}'"));
    let packages: Vec<_> =
        framework.iter().map(|name| format!("\"{name}\": \"{version}\"")).collect();
    let packages = packages.join(", ");
    let composer = format!(
        "{{\"name\": \"acme/app\", \"require\": {{}}, \"replace\": {{{packages}}},\
         \"repositories\": {{\"packagist.org\": false}}, \"autoload\": {{\"psr-4\": {{\"App\\\\\": \"{autoload}/\"}}}}}}"
    );
    machine.write("/var/www/app/composer.json", &composer);
    machine.run("php /var/www/app/data/create.php");
}

/// Copies the files of a directory.
fn copy(machine: &Machine, from: &Path, to: &str) {
    for entry in fs::read_dir(from).expect("a directory") {
        let from = entry.expect("an entry").path();
        let to = format!("{to}/{}", from.file_name().expect("a name").display());
        if from.is_dir() {
            copy(machine, &from, &to);
        } else {
            machine.write(&to, &fs::read_to_string(&from).expect("text"));
        }
    }
}

/// Runs Composer's commands of the guide in the application, whose directories PHP may write to.
fn require(machine: &mut Machine, block: &str) {
    let directory = machine.at(APP);
    machine.run_in(&directory, block);
    machine.run(
        "mkdir -p /var/www/app/storage/framework/views /var/www/app/bootstrap/cache /var/www/app/var && \
         chmod -R a+rwX /var/www/app/data /var/www/app/storage /var/www/app/bootstrap /var/www/app/var",
    );
}

/// Checks that a page is a hit, that a change purges it and not another page, and that both kinds of service
/// serve it: in the foreground, and as the guide to plain PHP says.
fn verify(guide: &mut Guide, machine: &mut Machine, edit: &str) {
    let foreground = machine.start(&guide.next("Five-minute path", "sh"));
    let verify = guide.next("Verify", "sh");
    let (get, list) = verify.split_once('\n').expect("two commands");
    let first = machine.run(get);
    assert!(first.contains("stored") && !first.contains("set-cookie"), "{first}{}", machine.logs());
    let other = get.replace("news/4", "news/5");
    machine.run(&other);
    let second = machine.run(get);
    assert!(second.contains("pagewell; hit") && !second.contains("set-cookie"), "{second}");
    assert_eq!(machine.run("curl -s http://127.0.0.1:8080/news/4"), "News: old");
    machine.run(edit);
    let next = machine.run(get);
    assert!(next.contains("fwd=uri-miss"), "{next}");
    assert_eq!(machine.run("curl -s http://127.0.0.1:8080/news/4"), "News: new");
    assert!(machine.run(&other).contains("pagewell; hit"));
    let directory = machine.at(APP);
    let listed = machine.run_in(&directory, list);
    assert!(listed.contains("news:{") && listed.contains("NewsController"), "{listed}");
    drop(foreground);
    let (root, at) = (guide.inline("root = "), guide.inline("at = "));
    machine.write(
        TOML,
        &format!("listen = \":80\"\n[site]\n{root}\nhost = \"example.org\"\n[php]\n{at}\n"),
    );
    machine.run("sudo pagewell check --config /etc/pagewell/pagewell.toml && sudo systemctl enable --now pagewell");
    let get = "curl -si http://example.org/news/4 | grep -i ^cache-status";
    machine.run(get);
    assert!(machine.run(get).contains("pagewell; hit"));
}

#[test]
fn laravel() {
    let mut guide = Guide::open("laravel.md");
    let mut machine = Machine::new("");
    let version =
        "require \"Illuminate/autoload.php\"; echo Illuminate\\Foundation\\Application::VERSION;";
    application(&mut machine, "laravel", &["laravel/framework"], version, "app");
    let install = guide.next("Laravel", "sh");
    let (clone, rest) = install.split_once('\n').expect("a checkout first");
    assert!(
        clone.starts_with("sudo git clone ") && clone.ends_with(" /opt/pagewell"),
        "the checkout of this test: {clone}"
    );
    require(&mut machine, rest);
    let path = "Five-minute path";
    let boot = guide.next(path, "php");
    let (uses, statement) = boot.split_once("\n\n").expect("imports, and a statement");
    let class = "class AppServiceProvider extends \\Illuminate\\Support\\ServiceProvider";
    let provider = format!(
        "<?php namespace App\\Providers;\n{uses}\n{class} {{ public function boot() {{\n{statement}}} }}\n"
    );
    machine.write("/var/www/app/app/Providers/AppServiceProvider.php", &provider);
    let routes = guide.next(path, "php");
    machine.write("/var/www/app/routes/public.php", &format!("<?php\n{ROUTE}{routes}"));
    let controller = guide.next(path, "php").replace('…', "return 'News: ' . $news->title;");
    machine.write(
        "/var/www/app/app/Http/Controllers/NewsController.php",
        &format!("<?php namespace App\\Http\\Controllers;\nuse App\\Models\\News;\n{controller}"),
    );
    let model = guide.next(path, "php").replace('…', "public $timestamps = false;");
    let model = format!("<?php namespace App\\Models;\n{model}");
    machine.write("/var/www/app/app/Models/News.php", &model);
    let edit = "cd /var/www/app && sudo -u www-data php data/edit.php";
    verify(&mut guide, &mut machine, edit);
    console(&mut guide, &mut machine);
    member(&mut machine, ["-H 'Authorization: Bearer ada'", "-H 'Authorization: Bearer bob'"]);
    let directory = machine.at(APP);
    machine.run_in(&directory, &guide.next("Configure", "sh"));
    let published = machine.run("cat /var/www/app/config/pagewell.php");
    assert!(published.contains("PAGEWELL_ADMIN"), "{published}");
    for reason in ["a class with all methods of the trait", "a part of a pivot of an application"] {
        guide.not_run("Models", "php", reason);
    }
    guide.not_run("Test an application", "php", "needs an application with tests of its own");
    machine.run_in(&directory, &guide.next("Undo", "sh"));
    let model = model.replace("use Pagewell\\Laravel\\InvalidatesPages;\n", "");
    let model = model.replace("use InvalidatesPages;\n", "");
    machine.write("/var/www/app/app/Models/News.php", &model);
    let bindings = "\\Illuminate\\Routing\\Middleware\\SubstituteBindings::class";
    machine.write(
        "/var/www/app/app/Providers/AppServiceProvider.php",
        &provider.replace("'cached'", bindings),
    );
    machine.run("sudo rm /var/www/app/config/pagewell.php");
    machine.run("sudo rm -f /var/www/app/bootstrap/cache/*.php");
    let page = machine.run("curl -s 'http://example.org/news/5?x'");
    assert!(page.contains("News: other"), "without the package: {page}");
}

/// Runs the commands of the guide against the service, in the application.
fn console(guide: &mut Guide, machine: &mut Machine) {
    let directory = machine.at(APP);
    let commands = guide.next("Commands", "sh");
    let mut lines = commands.lines();
    let mut run =
        |machine: &mut Machine| machine.run_in(&directory, lines.next().expect("a command"));
    let hit = run(machine);
    assert!(hit.contains("It is answered from the cache.") && hit.contains("news:4"), "{hit}");
    assert_eq!(run(machine).trim(), "1 page purged.");
    assert_eq!(run(machine).trim(), "0 pages purged.");
    machine.run("curl -s http://example.org/news/4");
    let all = run(machine);
    assert!(all.ends_with("purged.\n") && !all.starts_with('0'), "{all}");
}

/// Checks that a page is not shared once the framework's authentication has identified its visitor, though its
/// response is `public`: the same page of a visitor whom nobody knows is cached.
fn member(machine: &mut Machine, credentials: [&str; 2]) {
    for (credentials, name) in credentials.into_iter().zip(["ada", "bob"]) {
        for _ in 0..2 {
            let page = machine.run(&format!("curl -si {credentials} http://example.org/me"));
            assert!(page.ends_with(&format!("Hello {name}")) && !page.contains("hit"), "{page}");
            assert!(!page.to_lowercase().contains("\ncache-groups:"), "{page}");
        }
    }
    for cached in ["stored", "hit"] {
        let page = machine.run("curl -si http://example.org/me");
        assert!(page.ends_with("Hello stranger") && page.contains(cached), "{page}");
    }
}

/// The import of the routes in `laravel new`.
const ROUTE: &str = "use Illuminate\\Support\\Facades\\Route;\n";

#[test]
fn symfony() {
    let mut guide = Guide::open("symfony.md");
    let mut machine = Machine::new("");
    let components = ["symfony/config", "symfony/dependency-injection", "symfony/http-kernel"];
    let version = "require \"Symfony/Component/HttpKernel/autoload.php\"; echo Symfony\\Component\\HttpKernel\\Kernel::VERSION;";
    application(&mut machine, "symfony", &components, version, "src");
    require(&mut machine, &guide.next("Symfony", "sh"));
    let path = "Five-minute path";
    let framework = ["FrameworkBundle", "SecurityBundle", "TwigBundle"];
    let framework =
        framework.map(|name| format!("Symfony\\Bundle\\{name}\\{name}::class => ['all' => true],"));
    let framework = framework.join("\n");
    let bundles = guide.next(path, "php").replace("// …", &framework);
    machine.write("/var/www/app/config/bundles.php", &format!("<?php\n{bundles}"));
    // The ellipses of the controller: first that of the page, then that of the write.
    let controller =
        guide.next(path, "php").replacen('…', "return new Response('News: ' . $news->title());", 1);
    let controller = controller.replacen('…', "$news->setTitle('new');", 1);
    let uses = "use App\\News;\nuse Symfony\\Component\\HttpFoundation\\RedirectResponse;\n\
                use Symfony\\Component\\HttpFoundation\\Response;\nuse Symfony\\Component\\Routing\\Annotation\\Route;\n";
    machine.write(
        "/var/www/app/src/Controller/NewsController.php",
        &format!("<?php namespace App\\Controller;\n{uses}{controller}"),
    );
    verify(&mut guide, &mut machine, "curl -sf http://127.0.0.1:8080/news/4/edit -d title=new");
    console(&mut guide, &mut machine);
    member(&mut machine, ["-u ada:a", "-u bob:b"]);
    templates(&mut machine, &guide.next("Twig", "twig"));
    guide.not_run("FOSHttpCache and ESI", "yaml", "Debian has no package of FOSHttpCache");
    let settings = guide.next("Configure", "yaml");
    machine.write("/var/www/app/config/packages/pagewell.yaml", &settings);
    machine.run("sudo rm -rf /var/www/app/var/cache");
    let listed = machine.run_in(&machine.at(APP), "php bin/console debug:config pagewell");
    assert!(listed.contains("- currency") && listed.contains("var/pagewell-outbox"), "{listed}");
    machine.run("sudo rm -r /var/www/app/config/packages/pagewell.yaml /var/www/app/var/cache");
    machine.write("/var/www/app/config/bundles.php", &format!("<?php\nreturn [{framework}];\n"));
    let directory = machine.at(APP);
    machine.run_in(&directory, &guide.next("Undo", "sh"));
    machine.run("sudo rm -rf /var/www/app/var/cache");
    let page = machine.run("curl -s 'http://example.org/news/5?x'");
    assert!(page.contains("News: other"), "without the bundle: {page}");
}

/// Renders the guide's functions: a page with all but the last is cached until its data changes, and one with the
/// last is not cached.
fn templates(machine: &mut Machine, block: &str) {
    let (cached, not_cached) = block.trim_end().rsplit_once('\n').expect("several lines");
    assert!(not_cached.contains("pagewell_not_cached"), "{not_cached}");
    machine.write("/var/www/app/templates/cached.html.twig", cached);
    machine.write("/var/www/app/templates/not-cached.html.twig", block);
    let get = |name| format!("curl -si http://example.org/template/{name}");
    for found in ["stored", "pagewell; hit"] {
        let page = machine.run(&get("cached"));
        assert!(page.ends_with("template") && page.contains(found), "{page}{}", machine.logs());
        let other = machine.run(&get("not-cached"));
        assert!(other.ends_with("template") && !other.contains(found), "{other}");
    }
    let directory = machine.at(APP);
    machine.run_in(&directory, "php bin/console pagewell:invalidate --tag=menu");
    assert!(machine.run(&get("cached")).contains("fwd=uri-miss"));
}
