//! Each application is recognised, and its configuration is valid and complete.

use crate::tree::{Tree, lines};
use command_line::options::{InitArgs, SiteKind};
use std::fs;
use std::process::Command;

/// In a container, its limit of memory counts, if it is less than the machine's memory.
#[test]
fn the_budget_follows_the_limit_of_a_container() {
    for (limit, budget) in [("268435456\n", 32), ("max\n", 512), ("4294967296\n", 512)] {
        let tree = Tree::with_php().wordpress().file("/sys/fs/cgroup/memory.max", limit);
        let (_, text) = tree.init("/var/www/blog");
        let line = format!("memory = \"{budget}M\"");
        assert!(lines(&text).contains(&line), "{limit}: {text}");
        tree.check(&text);
    }
}

/// The limit of a slice of systemd counts for all services in it.
#[test]
fn the_budget_follows_the_limit_of_a_group_above() {
    let tree = Tree::with_php()
        .wordpress()
        .file("/proc/self/cgroup", "0::/system.slice/ssh.service\n")
        .file("/sys/fs/cgroup/system.slice/memory.max", "268435456\n");
    let (_, text) = tree.init("/var/www/blog");
    assert!(lines(&text).contains(&"memory = \"32M\"".to_owned()), "{text}");
}

#[test]
fn wordpress_behind_nginx() {
    let tree = Tree::with_php()
        .wordpress()
        .with_nginx("/var/www/blog", "blog.example www.blog.example *.x.example");
    let (said, text) = tree.init("/var/www/blog");
    let config = tree.check(&text);
    assert_eq!(config.hosts.canonical.as_deref(), Some("blog.example"));
    assert_eq!(config.limits.origin_connections, 5);
    assert_eq!(
        lines(&text),
        [
            "listen = \"127.0.0.1:8080\"",
            "trusted_proxies = [\"127.0.0.1\"]",
            "memory = \"512M\"",
            "audit = \"1 in 1000\"",
            "[site]",
            "root = \"/var/www/blog\"",
            "host = \"blog.example\"",
            "aliases = [\"www.blog.example\"]",
            "[php]",
            "at = \"unix:/run/php/php8.2-fpm.sock\"",
            "[limits]",
            "origin_connections = 5",
            "[[rule]]",
            "path = \"/wp-content/uploads/**\"",
            "php = false",
            "[snapshot]",
            "directory = \"/var/lib/pagewell\"",
            "unwatched = \"drop\"",
        ]
    );
    for part in [
        "WordPress 6.8.1",
        "blog at localhost (MariaDB or MySQL, tables wp_*, user blog)",
        "nginx stays in front: it serves this host already, and its rules (deny) would be lost",
        "`pagewell import nginx /etc/nginx/sites-enabled/",
        "80 nginx, 443 nginx",
        "/etc/ssl/site.pem",
        "The plugin: ",
        "A trial first: ",
        "binlog_format = ROW",
        "proxy_pass http://127.0.0.1:8080;",
        "sudo ln -sn \"$PWD\" /opt/pagewell",
        "sudo /opt/pagewell/php/build-plugin wordpress /var/www/blog/wp-content/plugins",
        "GRANT SELECT ON \\`blog\\`.*",
        "sudo systemctl restart mariadb",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    the_printed_commands_turn_lines_on(tree, &said, &text);
}

/// First those of the trial, then those of the database. The last command ends the trial.
fn the_printed_commands_turn_lines_on(tree: Tree, said: &str, text: &str) {
    let of_file = said.lines().filter(|line| line.contains("/etc/pagewell/pagewell.toml"));
    let seds = of_file.filter_map(|line| line.split_once("sudo sed -i '"));
    let seds: Vec<&str> = seds.filter_map(|(_, script)| script.split('\'').next()).collect();
    let after = |text: &str, script: &str| {
        fs::write(tree.real("/with"), text).expect("a file");
        let run = Command::new("sed").args(["-i", script]).arg(tree.real("/with")).status();
        assert!(run.expect("sed runs").success());
        fs::read_to_string(tree.real("/with")).expect("a file")
    };
    let with_trial = after(text, seds[0]);
    assert!(with_trial.contains("\nmode = \"trial\"\n"), "{with_trial}");
    // The database is not followed yet, and the record of the trial survives restarts.
    let config = tree.check(&with_trial);
    let directory = config.kept_directory().map(|path| path.display().to_string());
    assert_eq!(directory.as_deref(), Some("/var/lib/pagewell"), "{with_trial}");
    let with_protect = format!("{with_trial}\n[misses]\nmode = \"protect\"\n");
    let ended = after(&with_protect, seds[2]);
    assert!(ended.contains("\n#mode = \"trial\"\n"), "{ended}");
    assert!(ended.contains("\nmode = \"protect\"\n"), "another mode stays: {ended}");
    let with_database = after(text, seds[1]);
    let tree = tree.file("/etc/pagewell/database-password", "secret");
    let config = tree.check(&with_database);
    assert!(config.automatic.is_some(), "{with_database}");
}

#[test]
fn nginx_without_this_site_and_without_https_gets_commands() {
    let tree = Tree::with_php().wordpress().port(80, "nginx", 11);
    let args = InitArgs { name: Some("blog.example.org".into()), ..tree.args("/var/www/blog") };
    let (said, text) = tree.init_with(&args);
    tree.check(&text);
    let begin = said.find("echo 'server {").expect("a command");
    let file = "/etc/nginx/conf.d/pagewell-blog.example.org.conf";
    let end = said.find(&format!(" | sudo tee {file}\n")).expect("a file");
    let run = Command::new("sh").args(["-c", &said[begin..end]]).output().expect("sh runs");
    let block = String::from_utf8_lossy(&run.stdout).into_owned();
    for part in ["server_name blog.example.org;", "http://127.0.0.1:8080;", "Host $host;"] {
        assert!(block.contains(part), "{part}\n{block}");
    }
    assert_eq!(block.matches(['{', '}']).count(), 4, "{block}");
    assert!(said.contains("there is no HTTPS") && said.contains("308, [acme])"), "{said}");
    let _tree = tree.port(443, "nginx", 12);
    let said = init::run(&InitArgs { dry_run: true, ..args }, None).expect("a site");
    assert!(!said.contains("there is no HTTPS"), "{said}");
}

#[test]
fn a_site_of_nginx_is_changed_by_steps_of_commands_or_lines_alone() {
    let tree = Tree::with_php().wordpress().with_nginx("/var/www/blog", "blog.example");
    let (said, _) = tree.init("/var/www/blog");
    let block = said.lines().skip_while(|line| !line.contains("replace `location /`")).skip(1);
    let block: Vec<&str> = block.take_while(|line| line.starts_with("       ")).collect();
    assert_eq!(block.last().map(|line| line.trim()), Some("}"), "{said}");
    assert!(block.iter().all(|line| !line.contains("sudo")), "{block:?}");
    assert!(!said.contains("there is no HTTPS"), "{said}");
}

#[test]
fn a_public_name_without_another_server_gets_automatic_https() {
    let tree = |url: &str| {
        let text = format!("<?php define('DB_NAME', 'b'); define('WP_HOME', '{url}');");
        Tree::with_php().wordpress().file("/var/www/blog/wp-config.php", &text)
    };
    let public = tree("https://blog.example.org");
    let (said, text) = public.init("/var/www/blog");
    let config = public.check(&text);
    assert!(config.acme.is_some() && config.https_redirect.is_some(), "{text}");
    assert_eq!(config.listen_tls.len(), 1);
    assert!(!said.contains("there is no HTTPS"), "{said}");
    let private = tree("https://blog.example");
    let (said, text) = private.init("/var/www/blog");
    assert!(said.contains("there is no HTTPS: for a public name"), "{said}");
    assert!(private.check(&text).acme.is_none(), "{text}");
}

#[test]
fn wordpress_with_a_followed_database_has_plugin_and_automatic_dependencies() {
    let tree = Tree::with_php().with_followed_database().wordpress();
    let tree = tree.file(
        "/var/www/blog/wp-config.php",
        "<?php define('DB_NAME', 'my_blog'); define('DB_USER', 'u'); define('DB_HOST', '127.0.0.1:3306');\n\
         $table_prefix = \"x_\"; define('WP_HOME', 'https://Blog.Example/');",
    );
    let (said, text) = tree.init("/var/www/blog");
    let config = tree.check(&text);
    assert_eq!(config.automatic.map(|automatic| automatic.table_prefix), Some("x_".into()));
    assert!(
        text.contains(
            "url = \"mysql://pagewell@localhost/my_blog?socket=/run/mysqld/mysqld.sock\""
        ),
        "{text}"
    );
    // Without another server, Pagewell takes the port itself, and says what is lost.
    assert_eq!(lines(&text)[0], "listen = \":80\"");
    assert!(
        said.contains("Pagewell takes port 80 itself") && said.contains("uploads do not run"),
        "{said}"
    );
    assert!(!said.contains("CREATE USER"), "{said}");
    assert_eq!(config.hosts.canonical.as_deref(), Some("blog.example"));
    let refusal = |path| config.rules.script_refusal("blog.example", path, None);
    assert!(refusal("/wp-content/uploads/2026/x.php").is_some());
    assert!(refusal("/wp-content/plugins/x.php").is_none());
    // Another server would add these: fields, lifetimes of files, and the choice about XML-RPC.
    assert!(config.rules.has_response_fields() && !config.rules.has_access_rules(), "{text}");
    let uncommented = text.replace("\n#[[rule]]\n#path = \"/xml", "\n[[rule]]\npath = \"/xml");
    let with_denial = tree.check(&uncommented.replace("\n#deny = 403", "\ndeny = 403"));
    assert!(with_denial.rules.has_access_rules(), "{uncommented}");
}

#[test]
fn a_persistent_cache_or_a_network_speaks_for_the_plugin_alone() {
    let tree = Tree::with_php().with_followed_database().wordpress();
    let tree = tree
        .file("/var/www/blog/wp-content/object-cache.php", "<?php")
        .file("/var/www/blog/wp-content/plugins/woocommerce/woocommerce.php", "");
    let (said, text) = tree.init("/var/www/blog");
    assert!(tree.check(&text).automatic.is_none());
    assert!(
        said.contains("the object cache (object-cache.php)") && said.contains("WooCommerce"),
        "{said}"
    );

    let tree = Tree::with_php().with_followed_database().wordpress();
    let tree = tree.file(
        "/var/www/blog/wp-config.php",
        "<?php define('DB_NAME', 'b'); define('MULTISITE', true); $table_prefix = 'wp_';",
    );
    let (said, text) = tree.init("/var/www/blog");
    assert!(!text.contains("[automatic]") && said.contains("multisite"), "{said}");
}

#[test]
fn each_application_gets_a_valid_configuration_without_passwords() {
    for kind in SiteKind::ALL {
        for with_nginx in [false, true] {
            let (tree, dir) = Tree::with_php().site(kind);
            let root = match kind {
                SiteKind::Laravel | SiteKind::Symfony => format!("{dir}/public"),
                SiteKind::Drupal => format!("{dir}/web"),
                SiteKind::Magento => format!("{dir}/pub"),
                _ => dir.to_owned(),
            };
            let tree = if with_nginx { tree.with_nginx(&root, "site.example") } else { tree };
            let (said, text) = tree.init(dir);
            tree.check(&text);
            assert!(said.contains(kind.title()), "{kind:?}\n{said}");
            assert!(!format!("{said}{text}").contains("very-secret"), "{kind:?}\n{said}{text}");
            let wanted = if kind == SiteKind::Magento {
                "origin = \"http://127.0.0.1:8000\"".into()
            } else {
                format!("root = \"{root}\"")
            };
            assert!(lines(&text).contains(&wanted), "{kind:?}\n{text}");
            assert_eq!(said.contains("nginx stays in front"), with_nginx, "{kind:?}\n{said}");
            // The document root may be named instead of the project.
            let again = tree.args(&root);
            let again = InitArgs { dry_run: true, ..again };
            assert!(init::run(&again, None).unwrap().contains(kind.title()), "{kind:?}");
        }
    }
}

#[test]
fn only_the_scripts_of_the_application_run() {
    for (kind, runs, runs_not) in [
        (SiteKind::Laravel, "/index.php", "/x.php"),
        (SiteKind::Symfony, "/index.php", "/x.php"),
        (SiteKind::Drupal, "/core/install.php", "/core/lib/Drupal.php"),
        (SiteKind::MediaWiki, "/api.php", "/maintenance/run.php"),
        (SiteKind::WordPress, "/wp-content/plugins/x.php", "/wp-content/uploads/x.php"),
    ] {
        let (tree, dir) = Tree::with_php().site(kind);
        let (_, text) = tree.init(dir);
        let config = tree.check(&text);
        let refusal = |name| {
            let script = site_rules::ScriptPath { name, real: None };
            config.rules.script_refusal("", name, Some(script))
        };
        assert!(refusal(runs).is_none() && refusal(runs_not).is_some(), "{kind:?}\n{text}");
    }
}

#[test]
fn databases_are_read_from_each_application() {
    for (kind, database) in [
        (SiteKind::MediaWiki, "wiki at localhost (MariaDB or MySQL, tables mw_*, user wiki)"),
        (SiteKind::Laravel, "app at 127.0.0.1:3306 (MariaDB or MySQL, user app)"),
        (SiteKind::Symfony, "app at 127.0.0.1:3306 (MariaDB or MySQL, user app)"),
        (SiteKind::Drupal, "drupal at localhost (MariaDB or MySQL, user drupal)"),
        (SiteKind::Magento, "shop at localhost (MariaDB or MySQL, user shop)"),
    ] {
        let (tree, dir) = Tree::with_php().site(kind);
        let said = tree.init(dir).0;
        assert!(said.contains(database), "{kind:?}\n{said}");
    }
}

#[test]
fn apache_goes_behind_and_other_programs_stay() {
    let tree = Tree::with_php().wordpress().port(80, "apache2", 11).file(
        "/etc/apache2/sites-enabled/blog.conf",
        "<VirtualHost *:80>\n  ServerName blog.example\n  ServerAlias www.blog.example\n  DocumentRoot \"/var/www/blog\"\n\
         RewriteRule a b\n</VirtualHost>\n",
    );
    let (said, text) = tree.init("/var/www/blog");
    tree.check(&text);
    assert!(
        said.contains("Pagewell goes in front of Apache") && said.contains("Listen 127.0.0.1:8000"),
        "{said}"
    );
    assert!(
        text.contains("origin = \"http://127.0.0.1:8000\"") && !text.contains("[automatic]"),
        "{text}"
    );
    assert!(text.contains("aliases = [\"www.blog.example\"]"), "{text}");

    let tree = Tree::with_php()
        .wordpress()
        .port(80, "caddy", 11)
        .port(8080, "java", 12)
        .port(8081, "java", 13);
    let (said, text) = tree.init("/var/www/blog");
    tree.check(&text);
    assert!(
        said.contains("caddy stays in front") && said.contains("port 8080 is used by java"),
        "{said}"
    );
    assert!(said.contains("pagewell reload --admin 127.0.0.1:8181"), "{said}");
    let lines = lines(&text);
    assert!(lines.contains(&"listen = \"127.0.0.1:8180\"".into()), "{text}");
    assert!(lines.contains(&"admin = \"127.0.0.1:8181\"".into()), "{text}");
}

/// Without root, Pagewell's own port is one of an unknown program.
#[test]
fn an_unknown_program_at_a_port_is_a_doubt() {
    let dry = |tree: &Tree| {
        let args = InitArgs { dry_run: true, ..tree.args("/var/www/blog") };
        init::run(&args, None).expect("a site")
    };
    let tree = Tree::with_php().wordpress().port(80, "pagewell", 11).port(8081, "pagewell", 12);
    let said = dry(&tree);
    assert!(said.contains("listen = \":80\"") && !said.contains("run it with sudo"), "{said}");
    for process in ["/proc/4011", "/proc/4012"] {
        fs::remove_dir_all(tree.real(process)).expect("it is there");
    }
    let said = dry(&tree);
    assert!(said.contains("may be Pagewell itself (80, 8081): run it with sudo"), "{said}");
}

#[test]
fn questions_have_defaults_and_the_answers_count() {
    let tree = Tree::with_php().wordpress();
    let args = InitArgs { dry_run: true, ..tree.args("/var/www/blog") };
    let mut asked = Vec::new();
    let mut ask = |question: &str, default: &str| {
        asked.push((question.to_owned(), default.to_owned()));
        if question.contains("host") {
            "Blog.example".into()
        } else {
            "unix:/run/php/php8.1-fpm.sock".to_owned()
        }
    };
    let said = init::run(&args, Some(&mut ask)).unwrap();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!(asked[1].1, "unix:/run/php/php8.2-fpm.sock");
    assert!(
        said.contains("host = \"blog.example\"")
            && said.contains("at = \"unix:/run/php/php8.1-fpm.sock\""),
        "{said}"
    );
    assert!(!tree.real("/etc/pagewell/pagewell.toml").exists(), "a dry run writes nothing");

    // Nothing is asked that nginx's configuration answers.
    let tree = tree.with_nginx("/var/www/blog", "blog.example");
    let args = InitArgs { dry_run: true, ..tree.args("/var/www/blog") };
    let mut ask = |question: &str, _: &str| panic!("{question}");
    init::run(&args, Some(&mut ask)).unwrap();
}
