//! "Laravel" and "Symfony": a whole application of each with Debian's packages of the framework, which stand in
//! for the ones that Composer would install. Composer installs Pagewell's packages as the guides say.

use crate::guide::Guide;
use crate::machine::Machine;

const APP: &str = "/var/www/app";
const TOML: &str = "/etc/pagewell/pagewell.toml";
/// The rows that both applications show.
const ROW: &str = "<?php $d = new PDO('sqlite:/var/www/app/data/db.sqlite');\n\
    $d->exec('CREATE TABLE news (id INTEGER PRIMARY KEY, title TEXT)');\n\
    $d->exec(\"INSERT INTO news VALUES (4, 'old'), (5, 'other')\");\n";

/// The application before Pagewell: the framework is there already.
fn application(machine: &mut Machine, framework: &[&str], version: &str, autoload: &str) {
    let packages: Vec<_> =
        framework.iter().map(|name| format!("\"{name}\": \"{version}\"")).collect();
    let packages = packages.join(", ");
    let composer = format!(
        "{{\"name\": \"acme/app\", \"require\": {{}}, \"replace\": {{{packages}}},\
         \"repositories\": {{\"packagist.org\": false}}, \"autoload\": {{\"psr-4\": {{\"App\\\\\": \"{autoload}/\"}}}}}}"
    );
    machine.write("/var/www/app/composer.json", &composer);
    machine.write("/var/www/app/data/create.php", ROW);
    machine.run("php /var/www/app/data/create.php");
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
    application(&mut machine, &["laravel/framework"], "8.83.26", "app");
    for (path, code) in LARAVEL {
        machine.write(&format!("{APP}/{path}"), &format!("<?php\n{code}"));
    }
    let install = guide.next("Laravel", "sh");
    let (clone, rest) = install.split_once('\n').expect("a checkout first");
    assert!(
        clone.starts_with("sudo git clone URL /opt/pagewell"),
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

/// The import of the routes in `laravel new`.
const ROUTE: &str = "use Illuminate\\Support\\Facades\\Route;\n";

/// The application's own files: what `laravel new` makes, shortened.
const LARAVEL: [(&str, &str); 8] = [
    (
        "public/index.php",
        "require 'Illuminate/autoload.php';\nrequire __DIR__ . '/../vendor/autoload.php';\n\
         $app = require __DIR__ . '/../bootstrap/app.php';\n\
         $kernel = $app->make(Illuminate\\Contracts\\Http\\Kernel::class);\n\
         $response = $kernel->handle($request = Illuminate\\Http\\Request::capture());\n\
         $response->send();\n$kernel->terminate($request, $response);\n",
    ),
    (
        "bootstrap/app.php",
        "$app = new Illuminate\\Foundation\\Application(dirname(__DIR__));\n\
         $app->singleton(Illuminate\\Contracts\\Http\\Kernel::class, Illuminate\\Foundation\\Http\\Kernel::class);\n\
         $app->singleton(Illuminate\\Contracts\\Console\\Kernel::class, Illuminate\\Foundation\\Console\\Kernel::class);\n\
         $app->singleton(Illuminate\\Contracts\\Debug\\ExceptionHandler::class, Illuminate\\Foundation\\Exceptions\\Handler::class);\n\
         return $app;\n",
    ),
    (
        "config/app.php",
        "return ['name' => 'News', 'env' => 'production', 'debug' => false, 'url' => 'http://localhost',\n\
         'timezone' => 'UTC', 'locale' => 'en', 'fallback_locale' => 'en', 'cipher' => 'AES-256-CBC',\n\
         'key' => str_repeat('k', 32), 'aliases' => [], 'providers' => [\n\
         Illuminate\\Database\\DatabaseServiceProvider::class, Illuminate\\Filesystem\\FilesystemServiceProvider::class,\n\
         Illuminate\\View\\ViewServiceProvider::class,\n\
         Illuminate\\Cache\\CacheServiceProvider::class, Illuminate\\Queue\\QueueServiceProvider::class,\n\
         Illuminate\\Foundation\\Providers\\ConsoleSupportServiceProvider::class, App\\Providers\\AppServiceProvider::class]];\n",
    ),
    (
        "config/database.php",
        "return ['default' => 'sqlite', 'connections' => ['sqlite' => ['driver' => 'sqlite',\n\
         'database' => dirname(__DIR__) . '/data/db.sqlite']]];\n",
    ),
    (
        "config/cache.php",
        "return ['default' => 'array', 'stores' => ['array' => ['driver' => 'array']]];\n",
    ),
    (
        "config/view.php",
        "return ['paths' => [], 'compiled' => dirname(__DIR__) . '/storage/framework/views'];\n",
    ),
    (
        "artisan",
        "require 'Illuminate/autoload.php';\nrequire __DIR__ . '/vendor/autoload.php';\n\
         $app = require __DIR__ . '/bootstrap/app.php';\n\
         $kernel = $app->make(Illuminate\\Contracts\\Console\\Kernel::class);\n\
         exit($kernel->handle(new Symfony\\Component\\Console\\Input\\ArgvInput(), new Symfony\\Component\\Console\\Output\\ConsoleOutput()));\n",
    ),
    // Saves news 4 like a command.
    (
        "data/edit.php",
        "require 'Illuminate/autoload.php';\nrequire __DIR__ . '/../vendor/autoload.php';\n\
         $app = require __DIR__ . '/../bootstrap/app.php';\n\
         $app->make(Illuminate\\Contracts\\Console\\Kernel::class)->bootstrap();\n\
         $news = App\\Models\\News::find(4);\n$news->title = 'new';\n$news->save();\n$app->terminate();\n",
    ),
];

#[test]
fn symfony() {
    let mut guide = Guide::open("symfony.md");
    let mut machine = Machine::new("");
    let components = ["symfony/config", "symfony/dependency-injection", "symfony/http-kernel"];
    application(&mut machine, &components, "5.4.23", "src");
    for (path, code) in SYMFONY {
        machine.write(&format!("{APP}/{path}"), &format!("<?php\n{code}"));
    }
    require(&mut machine, &guide.next("Symfony", "sh"));
    let path = "Five-minute path";
    let framework = "Symfony\\Bundle\\FrameworkBundle\\FrameworkBundle::class => ['all' => true],";
    let bundles = guide.next(path, "php").replace("// …", framework);
    machine.write("/var/www/app/config/bundles.php", &format!("<?php\n{bundles}"));
    // The ellipses of the controller: first that of the page, then that of the write.
    let controller =
        guide.next(path, "php").replacen('…', "return new Response('News: ' . $id->title());", 1);
    let controller = controller.replacen('…', "$id->setTitle('new');", 1);
    let uses = "use App\\News;\nuse Symfony\\Component\\HttpFoundation\\RedirectResponse;\n\
                use Symfony\\Component\\HttpFoundation\\Response;\nuse Symfony\\Component\\Routing\\Annotation\\Route;\n";
    machine.write(
        "/var/www/app/src/Controller/NewsController.php",
        &format!("<?php namespace App\\Controller;\n{uses}{controller}"),
    );
    verify(&mut guide, &mut machine, "curl -sf http://127.0.0.1:8080/news/4/edit -d title=new");
    console(&mut guide, &mut machine);
    guide.not_run("Twig", "twig", "Debian's FrameworkBundle comes without Twig");
    guide.not_run("FOSHttpCache and ESI", "yaml", "Debian has no package of FOSHttpCache");
    guide.not_run("Configure", "yaml", "the application has no loader of YAML");
    machine.write("/var/www/app/config/bundles.php", &format!("<?php\nreturn [{framework}];\n"));
    let directory = machine.at(APP);
    machine.run_in(&directory, &guide.next("Undo", "sh"));
    machine.run("sudo rm -rf /var/www/app/var/cache");
    let page = machine.run("curl -s 'http://example.org/news/5?x'");
    assert!(page.contains("News: other"), "without the bundle: {page}");
}

/// The application's own files: what Symfony's skeleton has, with an entity on PDO instead of Doctrine.
const SYMFONY: [(&str, &str); 5] = [
    (
        "bin/console",
        "require 'Symfony/Bundle/FrameworkBundle/autoload.php';\nrequire 'Symfony/Component/Console/autoload.php';\n\
         require __DIR__ . '/../vendor/autoload.php';\n\
         exit((new Symfony\\Bundle\\FrameworkBundle\\Console\\Application(new App\\Kernel('prod', false)))->run());\n",
    ),
    (
        "public/index.php",
        "require 'Symfony/Bundle/FrameworkBundle/autoload.php';\nrequire 'Symfony/Component/Console/autoload.php';\n\
         require __DIR__ . '/../vendor/autoload.php';\n\
         $kernel = new App\\Kernel('prod', false);\n\
         $request = Symfony\\Component\\HttpFoundation\\Request::createFromGlobals();\n\
         $response = $kernel->handle($request);\n$response->send();\n$kernel->terminate($request, $response);\n",
    ),
    (
        "src/Kernel.php",
        "namespace App;\nuse Symfony\\Bundle\\FrameworkBundle\\Kernel\\MicroKernelTrait;\n\
         use Symfony\\Component\\DependencyInjection\\ContainerBuilder;\n\
         use Symfony\\Component\\DependencyInjection\\Loader\\Configurator\\ContainerConfigurator;\n\
         use Symfony\\Component\\Routing\\Loader\\Configurator\\RoutingConfigurator;\n\
         class Kernel extends \\Symfony\\Component\\HttpKernel\\Kernel {\nuse MicroKernelTrait;\n\
         protected function configureContainer(ContainerConfigurator $container): void {\n\
         $container->extension('framework', ['secret' => 's', 'http_method_override' => false]);\n\
         $container->services()->defaults()->autoconfigure()->autowire()\n\
         ->load('App\\\\Controller\\\\', __DIR__ . '/Controller')->tag('controller.service_arguments')\n\
         ->set(NewsResolver::class)->tag('controller.argument_value_resolver', ['priority' => 150]); }\n\
         protected function configureRoutes(RoutingConfigurator $routes): void {\n\
         $routes->import(__DIR__ . '/Controller', 'annotation'); }\n}\n",
    ),
    (
        "src/News.php",
        "namespace App;\nfinal class News {\nprivate \\PDO $pdo;\npublic function __construct(private int $id) {\n\
         $this->pdo = new \\PDO('sqlite:' . dirname(__DIR__) . '/data/db.sqlite'); }\n\
         public function getId(): int { return $this->id; }\n\
         public function title(): string { return $this->pdo->query(\"SELECT title FROM news WHERE id = $this->id\")->fetchColumn(); }\n\
         public function setTitle(string $title): void {\n\
         $this->pdo->prepare('UPDATE news SET title = ? WHERE id = ?')->execute([$title, $this->id]); }\n}\n",
    ),
    (
        "src/NewsResolver.php",
        "namespace App;\nuse Symfony\\Component\\HttpFoundation\\Request;\n\
         use Symfony\\Component\\HttpKernel\\Controller\\ArgumentValueResolverInterface;\n\
         use Symfony\\Component\\HttpKernel\\ControllerMetadata\\ArgumentMetadata;\n\
         final class NewsResolver implements ArgumentValueResolverInterface {\n\
         public function supports(Request $request, ArgumentMetadata $argument): bool { return $argument->getType() === News::class; }\n\
         public function resolve(Request $request, ArgumentMetadata $argument): iterable {\n\
         yield new News((int) $request->attributes->get($argument->getName())); }\n}\n",
    ),
];
