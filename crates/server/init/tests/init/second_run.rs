//! `init` on a machine that its steps have changed, and what it says where it had to guess: no step destroys what an
//! earlier one saved, and nothing that nginx did for PHP is lost without a word.

use crate::tree::{Tree, names};
use command_line::options::InitArgs;
use std::fs;
use std::path::Path;
use std::process::Command;

const DIR: &str = "/var/www/blog";

/// The text that it prints for a machine, without writing.
fn said(tree: &Tree) -> String {
    init::run(&InitArgs { dry_run: true, ..tree.args(DIR) }, None).expect("a site")
}

/// The site behind nginx, whose `server` block has these directives beside its name and root.
fn behind_nginx(directives: &str, upstream: &str) -> Tree {
    let text = format!(
        "events {{ }} http {{ server {{ server_name blog.example; root {DIR}; {directives} }} {upstream} }}"
    );
    Tree::with_php().wordpress().file("/etc/nginx/nginx.conf", &text).port(80, "nginx", 11)
}

#[test]
fn the_saved_file_of_nginx_is_not_overwritten() {
    const FILE: &str = "/etc/nginx/sites-enabled/site";
    const SAVED: &str = "/root/site.before-pagewell";
    let tree = Tree::with_php().wordpress().with_nginx(DIR, "blog.example");
    let tree = tree.file("/root/.profile", "");
    let said = said(&tree);
    let undo = format!("sudo cp {SAVED} {FILE} && sudo systemctl reload nginx");
    assert!(said.contains(&undo), "{said}");
    let line = said.lines().find(|line| line.contains("sudo test -e")).expect("a command");
    let (file, saved) = (tree.real(FILE), tree.real(SAVED));
    let command = line
        .replace("sudo ", "")
        .replace(FILE, &file.display().to_string())
        .replace(SAVED, &saved.display().to_string());
    let run = || Command::new("sh").args(["-c", &command]).status().expect("sh runs").success();
    let before = fs::read_to_string(&file).expect("nginx's file");
    assert!(run());
    fs::write(&file, "changed").expect("nginx's file");
    assert!(run());
    assert_eq!(fs::read_to_string(&saved).expect("the saved file"), before);
}

#[test]
fn a_server_block_that_passes_to_pagewell_is_not_changed_again() {
    let group = "upstream pagewell { server 127.0.0.1:8080; keepalive 32; }";
    for (pass, server_group, is_pagewell) in [
        ("http://127.0.0.1:8080", "", true),
        ("http://localhost:8080/", "", true),
        ("http://pagewell", group, true),
        ("http://127.0.0.1:3000", "", false),
        ("http://other", group, false),
    ] {
        let said =
            said(&behind_nginx(&format!("location / {{ proxy_pass {pass}; }}"), server_group));
        let passes = "passes the requests of this host to Pagewell at 127.0.0.1:8080 already";
        assert_eq!(said.contains(passes), is_pagewell, "{pass}: {said}");
        for step in ["before-pagewell", "replace `location /`", "sudo nginx -t"] {
            assert_eq!(said.contains(step), !is_pagewell, "{pass}: {said}");
        }
    }
}

#[test]
fn unusual_parameters_of_nginx_for_php_are_named() {
    let location = "location ~ \\.php$ { include fastcgi_params; fastcgi_pass 127.0.0.1:9000;";
    let usual = "fastcgi_param SCRIPT_NAME $fastcgi_script_name;\n\
                 fastcgi_param HTTPS $https if_not_empty;\nfastcgi_param HTTP_PROXY \"\";\n\
                 fastcgi_param REMOTE_USER $remote_user;\nfastcgi_param HTTP_HOST $host;\n";
    let with = |more: &str| {
        let tree = behind_nginx(&format!("{location} {more} }}"), "");
        said(&tree.file("/etc/nginx/fastcgi_params", usual))
    };
    let own = with(
        "fastcgi_param APP_ENV prod; fastcgi_param DB_PASSWORD very-secret; fastcgi_read_timeout 300;",
    );
    for part in [
        "that Pagewell does not send (APP_ENV, DB_PASSWORD): set them in the pool",
        "nginx has `fastcgi_read_timeout 300`",
        "`proxy_read_timeout 300;`",
    ] {
        assert!(own.contains(part), "{part}\n{own}");
    }
    assert!(!own.contains("very-secret"), "{own}");
    for more in ["", "fastcgi_read_timeout 60s;"] {
        let said = with(more);
        assert!(!said.contains("nginx sends parameters"), "{said}");
        assert!(!said.contains("fastcgi_read_timeout"), "{said}");
    }
}

#[test]
fn a_guess_among_several_pools_is_named() {
    let guess = "nothing says which one runs the site: the file has that of \
                 unix:/run/php/php8.2-fpm.sock (www), not unix:/run/php/php8.1-fpm.sock (www)";
    let tree = Tree::with_php().wordpress();
    assert!(said(&tree).contains(guess), "{}", said(&tree));
    // No guess: the operator was asked, nginx names the pool, or there is only one.
    let args = InitArgs { dry_run: true, ..tree.args(DIR) };
    let mut ask = |_: &str, default: &str| default.to_owned();
    let asked = init::run(&args, Some(&mut ask)).expect("a site");
    let nginx = said(&Tree::with_php().wordpress().with_nginx(DIR, "blog.example"));
    fs::remove_file(tree.real("/etc/php/8.1/fpm/pool.d/www.conf")).expect("it is there");
    for said in [asked, nginx, said(&tree)] {
        assert!(!said.contains("there are several pools"), "{said}");
    }
}

/// Whether it is active is in the database only.
#[test]
fn a_plugin_that_is_there_is_activated() {
    let plugin = "/var/www/blog/wp-content/plugins/pagewell/pagewell.php";
    let said = said(&Tree::with_php().wordpress().file(plugin, "<?php"));
    assert!(said.contains("Activate Pagewell under Plugins, if it is not active"), "{said}");
    assert!(!said.contains("build-plugin"), "{said}");
}

/// The option files of this machine are those of another server.
#[test]
fn a_database_on_another_machine_is_not_judged_by_this_one() {
    let config = "<?php define('DB_NAME', 'blog'); define('DB_HOST', 'db.internal:3307');\n\
                  $table_prefix = 'wp_';";
    let local = said(&Tree::with_php().with_followed_database().wordpress());
    assert!(local.contains("MariaDB, which can be followed"), "{local}");
    for tree in [Tree::with_php(), Tree::with_php().with_followed_database()] {
        let said = said(&tree.wordpress().file("/var/www/blog/wp-config.php", config));
        assert!(said.contains("the database is on another machine: `pagewell check`"), "{said}");
        assert!(!said.contains("change stream  "), "{said}");
    }
}

#[test]
fn the_file_of_a_dry_run_and_the_old_file_are_named_as_they_will_be() {
    let tree = Tree::with_php().wordpress().file("/etc/pagewell/pagewell.toml", "");
    let first = said(&tree);
    assert!(first.contains("\n/etc/pagewell/pagewell.new.toml would have:\n"), "{first}");
    assert!(first.contains("kept beside it, with the time behind its name"), "{first}");
    let second = said(&tree.file("/etc/pagewell/pagewell.new.toml", ""));
    let named = "\n/etc/pagewell/pagewell.new.toml exists, and is not overwritten. Another file, \
                 named by --output, would have:\n";
    assert!(second.contains(named), "{second}");
}

/// By commands that busybox has, too.
#[test]
fn the_old_file_is_kept_beside_the_new_one() {
    const FILE: &str = "/etc/pagewell/pagewell.toml";
    const NEW: &str = "/etc/pagewell/pagewell.new.toml";
    let tree = Tree::with_php().wordpress().file(FILE, "listen = \":80\"\n");
    let (printed, _) = tree.init_with(&InitArgs { output: Some(NEW.into()), ..tree.args(DIR) });
    let line = printed.lines().find(|line| line.contains("sudo mv ")).expect("a command");
    let (file, new) = (tree.real(FILE), tree.real(NEW));
    let command = line
        .replace("sudo ", "")
        .replace(NEW, &new.display().to_string())
        .replace(FILE, &file.display().to_string());
    let run = || Command::new("sh").args(["-c", &command]).status().expect("sh runs").success();
    let text = |path: &Path| fs::read_to_string(path).expect("a file");
    let written = text(&new);
    assert!(run());
    assert_eq!(text(&file), written);
    let names = names(&tree.real("/etc/pagewell"));
    let old = names.iter().find(|name| name.starts_with("pagewell.toml.")).expect("the old file");
    assert_eq!(text(&file.with_file_name(old)), "listen = \":80\"\n");
    // Without an old file, nothing is copied.
    fs::rename(&file, &new).expect("a file");
    assert!(run());
    assert_eq!(text(&file), written);
}
