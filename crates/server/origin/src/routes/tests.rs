//! Tests how paths are mapped: files, directories, scripts, the front controller, files that are never
//! served, and targets of symbolic links. Each test has a document root of its own on the disk.
//!
//! `crates/testing/acceptance/tests/http/php.rs` tests the responses.

use super::*;
use std::fs;

struct Root(FilesConfig, PathBuf);

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.1);
    }
}

fn root(name: &str) -> Root {
    let dir = std::env::temp_dir().join(format!("pagewell-{name}-{}", std::process::id()));
    let site = dir.join("site");
    for below in ["sub", "empty", ".well-known/acme", ".git"] {
        fs::create_dir_all(site.join(below)).unwrap();
    }
    for file in [
        "index.php",
        "style.css",
        "sub/index.html",
        "tool.php",
        "dump.sql",
        ".env",
        ".git/config",
        ".well-known/acme/x",
        "composer.json",
        "page.php~",
        "view.phtml",
        "old.php5",
        "old.PHP",
        "hello.pl",
        "sp ace.txt",
    ] {
        fs::write(site.join(file), "x").unwrap();
    }
    fs::write(dir.join("secret.txt"), "x").unwrap();
    std::os::unix::fs::symlink(dir.join("secret.txt"), site.join("link.txt")).unwrap();
    std::os::unix::fs::symlink("index.php", site.join("source.txt")).unwrap();
    let config = FilesConfig {
        root: site.canonicalize().unwrap(),
        front_controller: "index.php".into(),
        hidden: config::HIDDEN.iter().map(|s| s.to_string()).collect(),
        scripts: vec!["php".into()],
        indexes: FilesConfig::indexes_of(&["php".into()]),
        hides_libraries: true,
        symlinks: Symlinks::InRoot,
        internal: Vec::new(),
    };
    Root(config, dir)
}

fn script(route: Route) -> (String, String) {
    match route {
        Route::Script(script) => (script.name, script.path_info),
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_directories_scripts_and_the_front_controller() {
    let root = root("routes");
    let to = |path| route(&root.0, path);
    assert_eq!(to("/style.css"), Route::Static(root.0.root.join("style.css")));
    assert_eq!(to("/sp%20ace.txt"), Route::Static(root.0.root.join("sp ace.txt")));
    assert_eq!(to("/x/../style.css"), Route::Static(root.0.root.join("style.css")));
    assert_eq!(to("/sub"), Route::AddSlash("/sub/".into()));
    assert_eq!(to("//sub"), Route::AddSlash("/sub/".into()));
    assert_eq!(to("/sub/"), Route::Static(root.0.root.join("sub/index.html")));
    assert_eq!(script(to("/")), ("/index.php".into(), "".into()));
    assert_eq!(script(to("/news/4/")), ("/index.php".into(), "".into()));
    assert_eq!(script(to("/empty/")), ("/index.php".into(), "".into()));
    assert_eq!(script(to("/tool.php/a/b")), ("/tool.php".into(), "/a/b".into()));
    assert_eq!(to("/.well-known/acme/x"), Route::Static(root.0.root.join(".well-known/acme/x")));
}

#[test]
fn the_configuration_names_the_scripts() {
    let mut root = root("scripts");
    root.0.scripts = vec!["pl".into()];
    root.0.indexes = FilesConfig::indexes_of(&root.0.scripts);
    root.0.front_controller = "hello.pl".into();
    fs::write(root.0.root.join("sub/run.pl"), "x").unwrap();
    fs::remove_file(root.0.root.join("index.php")).unwrap();
    let to = |path| route(&root.0, path);
    assert_eq!(script(to("/hello.pl")), ("/hello.pl".into(), "".into()));
    assert_eq!(script(to("/")), ("/hello.pl".into(), "".into()));
    assert_eq!(script(to("/news/4/")), ("/hello.pl".into(), "".into()));
    assert_eq!(script(to("/sub/run.pl/a.pl/b")), ("/sub/run.pl".into(), "/a.pl/b".into()));
    // It is neither executed nor sent.
    fs::write(root.0.root.join("old.Pl"), "x").unwrap();
    assert_eq!(to("/old.Pl"), Route::Hidden(Withheld::Source));
    assert_eq!(script(to("/old.Pl/x")), ("/hello.pl".into(), "".into()));
    assert_eq!(to("/tool.php"), Route::Hidden(Withheld::Source));
    assert_eq!(script(to("/tool.php/a")), ("/hello.pl".into(), "".into()));
}

#[test]
fn the_case_of_a_scripts_name_counts() {
    let mut root = root("case");
    assert_eq!(route(&root.0, "/old.PHP"), Route::Hidden(Withheld::Source));
    assert_eq!(script(route(&root.0, "/old.PHP/x")), ("/index.php".into(), "".into()));
    root.0.scripts.push("PHP".into());
    assert_eq!(script(route(&root.0, "/old.PHP")), ("/old.PHP".into(), "".into()));
}

#[test]
fn hidden_files_are_never_served() {
    let root = root("hidden");
    std::os::unix::fs::symlink("/nowhere", root.0.root.join("gone.sql")).unwrap();
    fs::write(root.0.root.join("a\\b"), "x").unwrap();
    for path in [
        "/.env",
        "/%2eenv",
        "/.git",
        "/.git/",
        "/.git/config",
        "/.git%2fconfig",
        "/.git/nothing-here",
        "/.git/run.php/x",
        "/x/../.git/config",
        "/dump.sql",
        "/dump.sql/",
        "/dump.sql/x",
        "/dump.sql/.x",
        "/gone.sql",
        "/composer.json",
        "/page.php~",
        "/view.phtml",
        "/old.php5",
        "/old.PHP",
        "/hello.pl",
        "/link.txt",
        "/source.txt",
        "/a%5cb",
        "/a\\b",
        // The file that PHP would find in the root for the part after the script's name.
        "/index.php/.env",
        "/index.php/.git/x",
    ] {
        assert!(matches!(route(&root.0, path), Route::Hidden(_)), "{path}");
    }
    for path in ["/../secret.txt", "/%2e%2e/secret.txt", "/a%00.txt", "/.x%00", "/%zz", "/%4", "x"]
    {
        assert_eq!(route(&root.0, path), Route::Malformed, "{path}");
    }
    let shouted = route(&root.0, "/DUMP.SQL");
    // Depends on whether the file system is case-sensitive.
    if root.0.root.join("DUMP.SQL").exists() {
        assert_eq!(shouted, Route::Hidden(Withheld::Name))
    } else {
        assert_eq!(script(shouted), ("/index.php".into(), "".into()))
    }
}

/// A link can give a hidden file another name, or lead into a hidden directory.
#[test]
fn links_are_judged_by_where_they_lead() {
    let mut root = root("links");
    let (site, beside) = (root.0.root.clone(), root.0.root.with_file_name("shared"));
    fs::create_dir_all(beside.join(".git")).unwrap();
    for file in ["photo.txt", "dump.sql", ".git/config", ".env"] {
        fs::write(beside.join(file), "x").unwrap();
    }
    let link = |target: PathBuf, name: &str| {
        std::os::unix::fs::symlink(target, site.join(name)).unwrap();
    };
    link(site.join(".env"), "env.jpg");
    link(site.join(".git"), "gitdir");
    link(beside.clone(), "shared");
    link(beside.join(".git"), "git-of-shared");
    link(beside.join(".env"), "env-of-shared.jpg");
    let to = |root: &FilesConfig, path| match route(root, path) {
        Route::Hidden(withheld) => withheld.reason().as_str(),
        Route::Static(_) => "file",
        other => panic!("{path}: {other:?}"),
    };
    let hidden = ["/env.jpg", "/gitdir/config"];
    let beside_hidden = ["/git-of-shared/config", "/env-of-shared.jpg", "/shared/dump.sql"];
    for path in hidden {
        assert_eq!(to(&root.0, path), "link-to-hidden", "{path}");
    }
    assert_eq!(to(&root.0, "/shared/photo.txt"), "link-outside-root");
    let found = leading_outside(&root.0).expect("links lead outside");
    // `link.txt` of the fixture is one of them, and leads into the parent directory.
    assert_eq!(found.count, 4);
    assert_eq!(found.directories, [beside.parent().expect("a directory above").to_owned()]);
    for symlinks in [Symlinks::Into(vec![beside.clone()]), Symlinks::Anywhere] {
        root.0.symlinks = symlinks;
        assert_eq!(to(&root.0, "/shared/photo.txt"), "file");
        for path in hidden.into_iter().chain(beside_hidden) {
            assert_ne!(to(&root.0, path), "file", "{path}");
        }
    }
    root.0.symlinks = Symlinks::Into(vec![beside.join("photo.txt")]);
    assert_eq!(to(&root.0, "/shared/photo.txt"), "file");
    assert_eq!(to(&root.0, "/link.txt"), "link-outside-root");
}

#[test]
fn libraries_are_hidden_in_the_root() {
    let mut root = root("libraries");
    for dir in ["vendor/composer", "node_modules/x", "sub/vendor", "sub/node_modules"] {
        fs::create_dir_all(root.0.root.join(dir)).unwrap();
        fs::write(root.0.root.join(dir).join("a.js"), "x").unwrap();
    }
    fs::write(root.0.root.join("vendor/composer/installed.json"), "x").unwrap();
    let is_hidden = |root: &FilesConfig, path| route(root, path) == Route::Hidden(Withheld::Name);
    // Laravel publishes assets there.
    assert!(!is_hidden(&root.0, "/vendor/composer/a.js"));
    assert!(is_hidden(&root.0, "/vendor/composer/installed.json"));
    fs::write(root.0.root.join("vendor/autoload.php"), "x").unwrap();
    for path in ["/vendor/composer/a.js", "/vendor/autoload.php", "/node_modules/x/a.js"] {
        assert!(is_hidden(&root.0, path), "{path}");
    }
    for path in ["/sub/vendor/a.js", "/sub/node_modules/a.js"] {
        assert!(!is_hidden(&root.0, path), "{path}");
    }
    root.0.hides_libraries = false;
    root.0.hidden = vec!["*.sql".into()];
    assert!(!is_hidden(&root.0, "/vendor/composer/a.js"));
    assert!(!is_hidden(&root.0, "/node_modules/x/a.js"));
}

#[test]
fn names_of_the_application_that_would_be_hidden() {
    let root = root("articles");
    fs::create_dir(root.0.root.join("old.d")).unwrap();
    let to = |path| route(&root.0, path);
    let long = format!("/.{}", "x".repeat(300));
    for path in [
        "/wiki/.NET_Framework",
        "/wiki/Wave~",
        "/wiki/dump.sql",
        "/sub/dump.sql",
        "/wiki/Back%5Cslash",
        "/..%5cx",
        "/sub/.well-known/x",
        "/style.css/.x",
        "/old.d/.x/y.sql",
        "/.tool.php/x",
        &long,
    ] {
        assert_eq!(script(to(path)), ("/index.php".into(), "".into()), "{path}");
    }
    let info = |path, info: &str| {
        assert_eq!(script(to(path)), ("/tool.php".into(), info.to_owned()), "{path}");
    };
    info("/tool.php/.NET_Framework", "/.NET_Framework");
    info("/tool.php/a%5Cb/c~", "/a\\b/c~");
    info("/tool.php/x/other.php/.y", "/x/other.php/.y");
    // A link that leads outside is not a script, also before such a name.
    std::os::unix::fs::symlink("/proc/version", root.0.root.join("out.php")).unwrap();
    assert_eq!(script(to("/out.php/.x")), ("/index.php".into(), "".into()));
    // Without a front controller.
    fs::remove_file(root.0.root.join("index.php")).unwrap();
    for path in ["/wiki/.NET_Framework", "/wiki/dump.sql", "/a%5Cb"] {
        assert_eq!(to(path), Route::NotFound, "{path}");
    }
}

#[test]
fn patterns() {
    for (pattern, name) in
        [("*.bak", "a.bak"), ("composer.*", "composer.lock"), ("*~", "x~"), ("a*b*c", "aXbYc")]
    {
        assert!(matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
    }
    for (pattern, name) in
        [("*.bak", "a.bakx"), ("x", "xx"), ("a*b*c", "acb"), ("aa*aa", "aaa"), ("a*bc*c", "abc")]
    {
        assert!(!matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
    }
}
