//! Applications of Laravel, Symfony and Doctrine that declare nothing, and connect to the database over TCP: the
//! library reports their statements, and no change leaves a page stale.
//!
//! They are small. Laravel's has its kernel, routes and Eloquent, Symfony's its kernel and Doctrine DBAL, the third is
//! a script with Doctrine DBAL. Debian's packages stand in for those that Composer would install.

use super::{Application, ComparedSite, Figures};
use acceptance::{cache_status, is_hit};
use harness::{MariaDb, MariaDbOptions, Port, PrivateDir, Request};
use std::path::Path;
use std::process::Command;

const URLS: [&str; 8] = [
    "/news",
    "/news/1",
    "/news/2",
    "/topics/Harbour",
    "/topics/It's",
    "/search?q=zebra",
    "/search?q=M%C3%BCller",
    "/news/9",
];

const TABLES: &str =
    "CREATE TABLE news (id INT PRIMARY KEY, topic VARCHAR(40), title VARCHAR(80), body TEXT);
    CREATE TABLE comments (id INT PRIMARY KEY AUTO_INCREMENT, news_id INT, author VARCHAR(40));
    INSERT INTO news VALUES (1, 'Harbour', 'One', 'A zebra.'), (2, 'It''s', 'Two', 'Nothing.'),
        (3, 'Harbour', 'Three', 'By Müller.');
    INSERT INTO comments (news_id, author) VALUES (1, 'Ada'), (2, 'Eve');";

/// Changes at the SQL prompt.
const CHANGES: [(&str, &str); 9] = [
    ("a title", "UPDATE news SET title = 'Another' WHERE id = 1"),
    ("a body that no list shows", "UPDATE news SET body = 'A zebra runs.' WHERE id = 1"),
    ("a body that a search finds", "UPDATE news SET body = 'Zebra, too.' WHERE id = 2"),
    ("a comment", "INSERT INTO comments (news_id, author) VALUES (2, 'Bob')"),
    ("a comment moves", "UPDATE comments SET news_id = 1 WHERE author = 'Eve'"),
    ("a topic", "UPDATE news SET topic = 'It''s' WHERE id = 3"),
    ("new", "INSERT INTO news VALUES (9, 'Harbour', 'Nine', 'By Müller.')"),
    ("undone", "START TRANSACTION; UPDATE news SET title = 'No'; ROLLBACK"),
    ("deleted", "DELETE FROM news WHERE id = 2; DELETE FROM comments"),
];

/// Laravel's files, as `laravel new` makes them, shortened.
const LARAVEL: [(&str, &str); 7] = [
    (
        "public/index.php",
        "require 'Illuminate/autoload.php';
        require __DIR__ . '/../php/client/autoload.php';
        $app = require __DIR__ . '/../bootstrap/app.php';
        $kernel = $app->make(Illuminate\\Contracts\\Http\\Kernel::class);
        $response = $kernel->handle($request = Illuminate\\Http\\Request::capture());
        $response->send();
        $kernel->terminate($request, $response);",
    ),
    (
        "bootstrap/app.php",
        "require __DIR__ . '/../app.php';
        $app = new Illuminate\\Foundation\\Application(dirname(__DIR__));
        method_exists($app, 'dontMergeFrameworkConfiguration') && $app->dontMergeFrameworkConfiguration();
        $app->singleton(Illuminate\\Contracts\\Http\\Kernel::class, Illuminate\\Foundation\\Http\\Kernel::class);
        $app->singleton(Illuminate\\Contracts\\Debug\\ExceptionHandler::class, Illuminate\\Foundation\\Exceptions\\Handler::class);
        return $app;",
    ),
    (
        "config/app.php",
        "return ['name' => 'News', 'env' => 'production', 'debug' => false, 'url' => 'http://localhost',
        'timezone' => 'UTC', 'locale' => 'en', 'fallback_locale' => 'en', 'cipher' => 'AES-256-CBC',
        'key' => str_repeat('k', 32), 'aliases' => [], 'providers' => [
        Illuminate\\Database\\DatabaseServiceProvider::class, Illuminate\\Filesystem\\FilesystemServiceProvider::class,
        Illuminate\\View\\ViewServiceProvider::class, Illuminate\\Cache\\CacheServiceProvider::class, Illuminate\\Translation\\TranslationServiceProvider::class,
        Pagewell\\Laravel\\PagewellProvider::class, Routes::class]];",
    ),
    (
        "config/database.php",
        "return ['default' => 'mysql', 'connections' => ['mysql' => ['driver' => 'mysql', 'host' => '127.0.0.1',
        'port' => getenv('DB_PORT'), 'database' => 'paper', 'username' => 'paper', 'password' => 'secret',
        'charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci', 'prefix' => '', 'strict' => true]]];",
    ),
    (
        "config/cache.php",
        "return ['default' => 'array', 'stores' => ['array' => ['driver' => 'array']]];",
    ),
    (
        "config/view.php",
        "return ['paths' => [], 'compiled' => dirname(__DIR__) . '/storage/framework/views'];",
    ),
    (
        "app.php",
        "use Illuminate\\Database\\Eloquent\\Model;
        use Illuminate\\Support\\Facades\\{DB, Route};
        final class Comment extends Model { public $timestamps = false; }
        final class News extends Model {
            public $timestamps = false;
            public function comments() { return $this->hasMany(Comment::class); }
        }
        final class Routes extends Illuminate\\Support\\ServiceProvider {
            public function boot() {
                $titles = fn ($news) => $news->pluck('title', 'id')->map(fn ($title, $id) => \"$id $title\")->implode(', ');
                Route::middleware('cached')->group(function () use ($titles) {
                    Route::get('/news', fn () => News::withCount('comments')->orderBy('id')->get()
                        ->map(fn ($news) => \"$news->id $news->title ($news->comments_count)\")->implode(', '));
                    Route::get('/news/{news}', fn (News $news) => \"$news->title: $news->body \" . $news->comments->pluck('author'));
                    Route::get('/topics/{topic}', fn ($topic) => $titles(DB::table('news')->where('topic', $topic)->get()));
                    Route::get('/search', fn (Illuminate\\Http\\Request $asked) => $titles(
                        News::where('body', 'like', \"%{$asked->query('q')}%\")->orWhere('title', 'like', \"%{$asked->query('q')}%\")->get()));
                    Route::get('/other', fn () => DB::select('select 1') === [] ? '' : (new PDO('mysql:host=127.0.0.1;port=' . getenv('DB_PORT') . ';dbname=paper',
                        'paper', 'secret'))->query('SELECT title FROM news ORDER BY id')->fetchColumn());
                    Route::get('/private', fn () => response(News::count())->header('Cache-Control', 'private'));
                });
                Route::post('/idle', fn () => '');
                Route::post('/title', fn (Illuminate\\Http\\Request $asked) => DB::transaction(
                    fn () => (string) News::whereKey($asked->query('id'))->update(['title' => $asked->query('title')])));
            }
        }",
    ),
];

/// The same pages with Doctrine DBAL: the connection, and a page with its header fields.
const PAGES: (&str, &str) = (
    "pages.php",
    "use Pagewell\\Bridge\\Doctrine\\{CaptureMiddleware, TransactionMiddleware};
    function db(): Doctrine\\DBAL\\Connection {
        $configuration = new Doctrine\\DBAL\\Configuration();
        $configuration->setMiddlewares([new TransactionMiddleware(), new CaptureMiddleware()]);
        return Doctrine\\DBAL\\DriverManager::getConnection(['driver' => 'pdo_mysql', 'host' => '127.0.0.1', 'port' => (int) getenv('DB_PORT'),
            'user' => 'paper', 'password' => 'secret', 'dbname' => 'paper', 'charset' => 'utf8mb4'], $configuration);
    }
    function page(): array {
        $db = db();
        [, $page, $name] = explode('/', rawurldecode(parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)) . '//');
        $list = fn (array $rows) => implode(', ', array_map('implode', $rows));
        if ($_SERVER['REQUEST_METHOD'] === 'POST') {
            $page === 'title' && $db->transactional(fn () => $db->update('news', ['title' => $_GET['title']], ['id' => $_GET['id']]));
            return ['', []];
        }
        return [match (true) {
            $page === 'news' && $name === '' => $list($db->fetchAllNumeric('SELECT n.id, n.title, (SELECT COUNT(*) FROM comments c WHERE c.news_id = n.id) FROM news n ORDER BY n.id')),
            $page === 'news' => $list($db->fetchAllNumeric('SELECT title, body FROM news WHERE id = ?', [(int) $name], [Doctrine\\DBAL\\ParameterType::INTEGER]))
                . $list($db->executeQuery('SELECT author FROM comments WHERE news_id = :id ORDER BY id', ['id' => $name])->fetchAllNumeric()),
            $page === 'topics' => $list($db->createQueryBuilder()->select('id', 'title')->from('news')->where('topic = :topic')->setParameter('topic', $name)->executeQuery()->fetchAllNumeric()),
            $page === 'search' => $list($db->fetchAllNumeric('SELECT id, title FROM news WHERE body LIKE :q OR title LIKE :q', ['q' => \"%$_GET[q]%\"])),
            $page === 'other' => $db->fetchOne('SELECT 1') . $db->getNativeConnection()->query('SELECT title FROM news ORDER BY id')->fetchColumn(),
            $page === 'private' => $db->fetchOne('SELECT COUNT(*) FROM news'),
        }, $page === 'private' ? ['Cache-Control' => 'private'] : []];
    }",
);

/// A script without a framework.
const DOCTRINE: [(&str, &str); 2] = [
    PAGES,
    (
        "public/index.php",
        "require 'Doctrine/DBAL/autoload.php';
        require __DIR__ . '/../php/client/autoload.php';
        require __DIR__ . '/../pages.php';
        [$content, $fields] = page();
        foreach ($fields as $name => $value) { header(\"$name: $value\"); }
        echo $content;",
    ),
];

/// Symfony's kernel with the bundle. Debian has no package of DoctrineBundle.
const SYMFONY: [(&str, &str); 3] = [
    PAGES,
    (
        "kernel.php",
        "use Symfony\\Component\\DependencyInjection\\Loader\\Configurator\\ContainerConfigurator;
        use Symfony\\Component\\HttpFoundation\\Response;
        use Symfony\\Component\\Routing\\Loader\\Configurator\\RoutingConfigurator;
        final class Kernel extends Symfony\\Component\\HttpKernel\\Kernel {
            use Symfony\\Bundle\\FrameworkBundle\\Kernel\\MicroKernelTrait;
            public function registerBundles(): iterable {
                return [new Symfony\\Bundle\\FrameworkBundle\\FrameworkBundle(), new Pagewell\\Symfony\\PagewellBundle()];
            }
            public function getProjectDir(): string { return __DIR__; }
            public function show(): Response {
                [$content, $fields] = page();
                return new Response($content, 200, $fields);
            }
            protected function configureContainer(ContainerConfigurator $container): void {
                $container->extension('framework', ['secret' => 's', 'http_method_override' => false]);
            }
            protected function configureRoutes(RoutingConfigurator $routes): void {
                $routes->add('all', '/{path}')->controller('kernel::show')->requirements(['path' => '.+']);
            }
        }",
    ),
    (
        "public/index.php",
        "class_exists('Composer\\InstalledVersions') || require_once 'Composer/InstalledVersions.php';
        require 'Symfony/Bundle/FrameworkBundle/autoload.php';
        require 'Doctrine/DBAL/autoload.php';
        require __DIR__ . '/../php/client/autoload.php';
        require __DIR__ . '/../pages.php';
        require __DIR__ . '/../kernel.php';
        $kernel = new Kernel('prod', false);
        $response = $kernel->handle($request = Symfony\\Component\\HttpFoundation\\Request::createFromGlobals());
        $response->send();
        $kernel->terminate($request, $response);",
    ),
];

/// Writes an application, with copies of the library that php-fpm's user can read.
fn application(files: &[(&str, &str)]) -> PrivateDir {
    let dir = PrivateDir::temporary("library").expect("a directory");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    std::fs::create_dir(dir.path().join("php")).expect("a directory");
    for part in ["client", "core", "bridge", "laravel", "symfony"] {
        let mut command = Command::new("cp");
        command.arg("-r").arg(repository.join("php").join(part)).arg(dir.path().join("php"));
        assert!(command.status().expect("cp runs").success());
    }
    for (path, code) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, format!("<?php\n{code}\n")).expect("written");
    }
    for writable in ["bootstrap/cache", "storage/framework/views", "storage/logs", "var"] {
        std::fs::create_dir_all(dir.path().join(writable)).expect("a directory");
    }
    let mut command = Command::new("chmod");
    command.args(["-R", "a+rwX"]).arg(dir.path());
    assert!(command.status().expect("chmod runs").success());
    dir
}

fn serves_no_stale_page(files: &[(&str, &str)], urls: &[&'static str]) {
    let dir = application(files);
    let port = Port::take().expect("a port");
    let mut options = MariaDbOptions::followed(&[]);
    options.port = Some(port.address().port());
    let database = MariaDb::start_with(PrivateDir::temporary("db").expect("a directory"), options)
        .expect("MariaDB starts");
    let account = "CREATE DATABASE paper CHARACTER SET utf8mb4;
        CREATE USER paper@127.0.0.1 IDENTIFIED BY 'secret';
        GRANT ALL ON paper.* TO paper@127.0.0.1;";
    database.sql(account).expect("an account");
    database.sql_in("paper", TABLES).expect("tables");
    let site = ComparedSite::start(
        &database,
        "paper",
        Application {
            host: "paper.test",
            root: dir.path().join("public").display().to_string(),
            env: vec![("DB_PORT".to_owned(), port.address().port().to_string())],
            plain_config: String::new(),
            apcu: String::new(),
            guide: "An application with the PHP library",
            idle_write: Request::form("/idle", ""),
            comparable: str::to_owned,
            accepted: &[],
        },
    );
    let mut figures = Figures::default();
    site.step(urls, "nothing", &mut || (), &mut figures);
    let edit = Request::form("/title?id=1&title=By+hand", "");
    let edited = &mut || assert_eq!(site.send(&edit).status, 200);
    site.step(urls, "a title by the application", edited, &mut figures);
    for (name, text) in CHANGES {
        let change = &mut || _ = database.sql_in("paper", text).expect("it is done");
        site.step(urls, name, change, &mut figures);
    }
    assert!(figures.stale.is_empty(), "{:?}", figures.stale);
    assert!(figures.changed >= 25, "{figures:?}");
    assert!(figures.purged <= 2 * figures.changed, "{figures:?}");
    // A statement that bypasses the library, and a page that is not for everybody.
    for (path, reason) in [("/other", "detail=reads-unseen"), ("/private", "detail=private")] {
        for _ in 0..3 {
            let page = site.get(path);
            assert_eq!(page.status, 200);
            assert!(!is_hit(&page) && cache_status(&page).contains(reason), "{page:?}");
        }
    }
}

#[test]
fn laravel_without_declarations_serves_no_stale_page() {
    // Laravel's page of an article that does not exist says that it is private.
    serves_no_stale_page(&LARAVEL, &URLS[..URLS.len() - 1]);
}

#[test]
fn doctrine_without_declarations_serves_no_stale_page() {
    serves_no_stale_page(&DOCTRINE, &URLS);
}

#[test]
fn symfony_without_declarations_serves_no_stale_page() {
    serves_no_stale_page(&SYMFONY, &URLS);
}
