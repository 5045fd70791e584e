//! A second site: its file is appended to that of the first, whose `[site]` becomes `[[site]]`. No table of one site
//! counts for the other.

use crate::tree::Tree;
use command_line::options::{InitArgs, SiteKind};
use config::{Config, OriginConfig};
use std::path::Path;

/// The directory and the host of each of two sites.
const BLOG: (&str, &str) = ("/var/www/blog", "blog.example");
const SITE: (&str, &str) = ("/var/www/site", "site.example");

/// Both sites behind nginx, each with a pool of its own.
fn with_two_sites(tree: Tree) -> Tree {
    let block = |(root, host): (&str, &str), pass: &str| {
        format!(
            "server {{ server_name {host}; root {root}; location ~ \\.php$ {{ fastcgi_pass {pass}; }} }}\n"
        )
    };
    let blog = block(BLOG, "unix:/run/php/php8.2-fpm.sock");
    let site = block(SITE, "127.0.0.1:9111");
    let pool = "[site]\nuser = site\nlisten = 127.0.0.1:9111\npm.max_children = 3\n";
    let (tree, _) = tree.wordpress().site(SiteKind::Php);
    tree.file("/etc/nginx/nginx.conf", &format!("events {{ }} http {{ {blog} {site} }}"))
        .file("/etc/php/8.2/fpm/pool.d/site.conf", pool)
        .port(80, "nginx", 11)
}

/// Sets up two sites. Returns what was said about the second, and the file after the printed steps.
fn with_both(tree: &Tree, first: (&str, &str), second: (&str, &str)) -> (String, String) {
    let named = |(dir, host): (&str, &str)| InitArgs { name: Some(host.into()), ..tree.args(dir) };
    let (_, old) = tree.init_with(&named(first));
    let output = Some("/etc/pagewell/second.toml".into());
    let (said, new) = tree.init_with(&InitArgs { output, ..named(second) });
    let step = "sudo cat /etc/pagewell/second.toml | sudo tee -a /etc/pagewell/pagewell.toml";
    assert!(said.contains(step) && said.contains("change that to [[site]]"), "{said}");
    (said, old.replace("\n[site]\n", "\n[[site]]\n") + &new)
}

fn hosts(config: &Config) -> Vec<&str> {
    config.all_sites().filter_map(|site| site.hosts.canonical.as_deref()).collect()
}

fn php_of(site: &Config) -> String {
    match &site.site.origin {
        OriginConfig::FastCgi(at) => at.to_string(),
        other => panic!("{other:?}"),
    }
}

fn runs_uploads(site: &Config) -> bool {
    let script = "/wp-content/uploads/x.php";
    site.rules.script_refusal(BLOG.1, script, None).is_none()
}

#[test]
fn a_second_site_has_its_own_pool_rules_and_no_database_of_the_first() {
    let tree = with_two_sites(Tree::with_php().with_followed_database());
    let (said, text) = with_both(&tree, BLOG, SITE);
    assert!(!said.contains("RuntimeDirectory"), "{said}");
    let config = tree.check(&text);
    assert_eq!(hosts(&config), [BLOG.1, SITE.1], "{text}");
    let second = &config.other_sites[0];
    assert_eq!(php_of(&config), "unix:/run/php/php8.2-fpm.sock");
    assert_eq!(php_of(second), "127.0.0.1:9111");
    assert!(!runs_uploads(&config) && runs_uploads(second), "{text}");
    assert!(config.automatic.is_some() && second.automatic.is_none(), "{text}");
    assert!(second.databases.is_empty(), "{text}");
    assert!(config.trial.is_none() && second.trial.is_some(), "{text}");
    assert_eq!(second.limits.origin_connections, 5, "that of the process: {text}");
}

#[test]
fn the_database_of_a_second_site_is_followed_for_it_alone() {
    let tree = with_two_sites(Tree::with_php().with_followed_database());
    let (said, text) = with_both(&tree, SITE, BLOG);
    let config = tree.check(&text);
    let second = &config.other_sites[0];
    assert_eq!(hosts(&config), [SITE.1, BLOG.1], "{text}");
    assert_eq!(second.automatic.as_ref().map(|on| on.database.as_str()), Some("blog"));
    assert!(config.automatic.is_none() && config.databases.is_empty(), "{text}");
    // In the directory of another site, it would take that site's socket.
    let capture = second.automatic.as_ref().and_then(|on| on.capture_directory.as_deref());
    assert_eq!(capture, Some(Path::new("/run/pagewell/blog.example")));
    let unit = "'[Service]' 'RuntimeDirectory=pagewell/blog.example' | sudo tee \
                /etc/systemd/system/pagewell.service.d/pagewell-blog.example.conf";
    assert!(said.contains(unit), "{said}");
    assert!(runs_uploads(&config) && !runs_uploads(second), "{text}");
    // It is in the file already: no step adds it.
    assert!(!said.contains("[[site.database]]") && !said.contains("first #"), "{said}");
}

#[test]
fn the_printed_step_turns_on_the_database_of_a_second_site() {
    let tree = with_two_sites(Tree::with_php());
    let (said, text) = with_both(&tree, SITE, BLOG);
    let off = "database = []\nautomatic = { enabled = false }\n";
    assert!(tree.check(&text).other_sites[0].automatic.is_none(), "{text}");
    for part in [
        "remove `database = []` and `automatic = { enabled = false }`",
        "first #",
        "The record of a trial then begins again.",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let (before, after) = text.split_once("\n#[[site.database]]\n").expect("a comment");
    assert_eq!(before.matches(off).count(), 1, "{text}");
    let after = format!("\n{after}").replace("\n#", "\n");
    let text = format!("{}\n[[site.database]]{after}", before.replace(off, ""));
    let tree = tree.file("/etc/pagewell/database-password", "secret\n");
    let config = tree.check(&text);
    assert!(config.automatic.is_none() && config.other_sites[0].automatic.is_some(), "{text}");
}

#[test]
fn each_application_can_be_the_second_site() {
    for kind in SiteKind::ALL.into_iter().filter(|kind| *kind != SiteKind::WordPress) {
        let tree = Tree::with_php().with_followed_database().wordpress().port(80, "nginx", 11);
        let (tree, dir) = tree.site(kind);
        let (_, text) = with_both(&tree, BLOG, (dir, "two.example"));
        let config = tree.check(&text);
        assert_eq!(hosts(&config), [BLOG.1, "two.example"], "{kind:?}\n{text}");
        let second = &config.other_sites[0];
        assert!(config.automatic.is_some() && second.automatic.is_none(), "{kind:?}\n{text}");
        let is_http = matches!(second.site.origin, OriginConfig::Http(_));
        assert_eq!(is_http, kind == SiteKind::Magento, "{kind:?}\n{text}");
    }
}

/// Not those that would be free now.
#[test]
fn a_second_site_has_the_addresses_of_the_first() {
    for (lines, pass, admin) in [
        (
            "listen = \"127.0.0.1:8180\"\nadmin = \"127.0.0.1:8281\"\n",
            8180,
            " --admin 127.0.0.1:8281",
        ),
        ("listen = [\"unix:/run/pagewell/http\", \":8280\"]\n", 8280, ""),
        ("admin = \"127.0.0.1:8081\"\n", 8080, ""),
    ] {
        // Without root, Pagewell's own ports are those of unknown programs.
        let tree = with_two_sites(Tree::with_php()).port(8080, "java", 12).port(8081, "java", 13);
        let first = format!("{lines}[site]\nhost = {:?}\nroot = {:?}\n", SITE.1, SITE.0);
        let tree = tree.file("/etc/pagewell/pagewell.toml", &first);
        let args = InitArgs { name: Some(BLOG.1.into()), ..tree.args(BLOG.0) };
        let said = init::run(&args, None).expect("a site");
        for part in [
            format!("proxy_pass http://127.0.0.1:{pass};"),
            format!("curl -si http://127.0.0.1:{pass}/ -H"),
            format!("       pagewell reload{admin}\n"),
        ] {
            assert!(said.contains(&part), "{part}\n{said}");
        }
        assert!(!said.contains("is used by java"), "{said}");
    }
}

/// A host that is there twice is an error.
#[test]
fn a_site_that_is_one_of_several_is_not_appended_again() {
    let first = |host: &str| format!("[[site]]\nhost = {host:?}\nroot = {:?}\n", BLOG.0);
    let second = format!("[[site]]\nhost = {:?}\nroot = {:?}\n", SITE.1, SITE.0);
    for (text, name, other) in [
        (first("Blog.example") + &second, Some(BLOG.1), SITE.1),
        (second + &first("www.example") + "aliases = [\"blog.example\"]\n", None, SITE.1),
        // Both are the site, as far as its host is unknown.
        (first("a.example") + &first("b.example"), None, "b.example"),
    ] {
        let tree = if other == SITE.1 {
            with_two_sites(Tree::with_php())
        } else {
            Tree::with_php().wordpress()
        };
        let tree = tree.file("/etc/pagewell/pagewell.toml", &text);
        let args = InitArgs { name: name.map(str::to_owned), ..tree.args(BLOG.0) };
        let said = init::run(&args, None).expect("a site");
        let already = format!("pagewell.toml has this site already, and another one, {other}: do");
        assert!(said.contains(&already), "{said}");
        assert!(!said.contains("tee -a /etc/pagewell") && !said.contains("sudo mv "), "{said}");
    }
}
