//! The pool of php-fpm that runs the site: by the address that nginx names, in any form of it.

use crate::tree::{Tree, lines};
use command_line::options::InitArgs;
use std::fs;
use std::process::{Command, ExitStatus};

/// The file of the pool that the tests configure.
const POOL: &str = "/etc/php/8.2/fpm/pool.d/www.conf";
/// The file that PHP loads before each script.
const PREPEND: &str = "/var/lib/pagewell-php/prepend.php";

/// A site that nginx serves with this `fastcgi_pass`, after this `upstream`.
fn behind_nginx(tree: Tree, servers: &str, pass: &str) -> Tree {
    let text = format!(
        "http {{ server {{ listen 80; server_name blog.example; root /var/www/blog;\n\
         location ~ \\.php$ {{ fastcgi_pass {pass}; }} }} {servers} }}"
    );
    tree.wordpress().file("/etc/nginx/nginx.conf", &text).port(80, "nginx", 11)
}

#[test]
fn the_pool_that_nginx_names_is_recognised_in_each_form_of_its_address() {
    let servers =
        "upstream php { server unix:/run/php/php8.1-fpm.sock weight=5; server 10.0.0.1:9000; }";
    let of_port = "[shop]\nuser = shop\nlisten = 127.0.0.1:9000\npm.max_children = 3\n";
    for (pass, written, file, children) in [
        (
            "unix:/var/run/php/php8.1-fpm.sock",
            "unix:/run/php/php8.1-fpm.sock",
            "/etc/php/8.1/fpm/pool.d/www.conf",
            5,
        ),
        (
            "unix:/run/php/php-fpm.sock",
            "unix:/run/php/php-fpm.sock",
            "/etc/php/8.1/fpm/pool.d/www.conf",
            5,
        ),
        ("unix:/run/shop.sock", "unix:/run/shop.sock", "/etc/php/8.1/fpm/pool.d/www.conf", 5),
        ("localhost:9000", "127.0.0.1:9000", "/etc/php/8.1/fpm/pool.d/shop.conf", 3),
        ("php", "unix:/run/php/php8.1-fpm.sock", "/etc/php/8.1/fpm/pool.d/www.conf", 5),
    ] {
        let tree = behind_nginx(Tree::with_php(), servers, pass)
            .file("/etc/php/8.1/fpm/pool.d/shop.conf", of_port)
            .link("/run/php/php-fpm.sock", "/etc/alternatives/php-fpm.sock")
            .link("/etc/alternatives/php-fpm.sock", "/run/php/php8.1-fpm.sock")
            .link("/run/shop.sock", "./php/../../run/php/php8.1-fpm.sock");
        let (said, text) = tree.init("/var/www/blog");
        tree.check(&text);
        let lines = lines(&text);
        assert!(lines.contains(&format!("at = \"{written}\"")), "{pass}: {text}");
        assert!(lines.contains(&format!("origin_connections = {children}")), "{pass}: {text}");
        assert!(said.contains(file), "{pass}: {said}");
        assert!(!said.contains("no pool") && !said.contains("install -y php-fpm"), "{said}");
    }
}

/// It may be in a container, or on another machine.
#[test]
fn an_address_without_a_pool_is_kept_and_nothing_is_installed() {
    let tree = behind_nginx(Tree::with_php(), "", "127.0.0.1:9123");
    let (said, text) = tree.init("/var/www/blog");
    tree.check(&text);
    assert!(lines(&text).contains(&"at = \"127.0.0.1:9123\"".to_owned()), "{text}");
    assert!(said.contains("has the address 127.0.0.1:9123, which /etc/nginx/nginx.conf"), "{said}");
    assert!(!said.contains("install -y php-fpm"), "{said}");
}

#[test]
fn a_name_without_a_group_of_servers_is_no_address() {
    let tree = behind_nginx(Tree::with_php(), "upstream php { ip_hash; server php; }", "php");
    let (_, text) = tree.init("/var/www/blog");
    tree.check(&text);
    assert!(lines(&text).contains(&"at = \"unix:/run/php/php8.2-fpm.sock\"".to_owned()), "{text}");
}

/// Runs the printed commands that change the file of the pool, in their order. Returns the file.
fn with_printed_commands(tree: &Tree, said: &str) -> String {
    let file = tree.real(POOL);
    for command in pool_commands(said) {
        assert!(run(tree, command).success(), "{command}");
    }
    fs::read_to_string(file).expect("the file of the pool")
}

/// The printed commands that change the file of the pool. Titles are not indented as far.
fn pool_commands(said: &str) -> Vec<&str> {
    let lines = said.lines().filter_map(|line| line.strip_prefix("       "));
    lines.filter(|line| line.contains("sudo sed") && line.contains(POOL)).collect()
}

/// Runs a command as root of this machine would, whose Pagewell is installed.
fn run(tree: &Tree, command: &str) -> ExitStatus {
    let prepend = tree.real(PREPEND);
    fs::create_dir_all(prepend.parent().expect("a directory")).expect("the tree of the test");
    fs::write(&prepend, "<?php").expect("the tree of the test");
    let command = command
        .replace("sudo ", "")
        .replace(POOL, &tree.real(POOL).display().to_string())
        .replace(&format!("test -r {PREPEND}"), &format!("test -r {}", prepend.display()));
    Command::new("sh").args(["-c", &command]).status().expect("sh runs")
}

#[test]
fn a_pool_with_open_basedir_may_open_pagewells_file_before_it_loads_it() {
    let text = "[blog]\nuser = blog\nlisten = /run/php/blog.sock\n\
                php_admin_value[open_basedir] = \"/var/www/blog:/tmp\" ; the site\n\
                [shop]\nlisten = /run/php/shop.sock\nphp_admin_value[open_basedir] = /var/www/shop\n";
    let tree = Tree::with_php().wordpress().file(POOL, text);
    let (said, _) = tree.init("/var/www/blog");
    let allow = said.find("sudo sed -i -E").expect("a command");
    assert!(allow < said.find("/a php_value[auto_prepend_file]").expect("a command"), "{said}");
    let changed = with_printed_commands(&tree, &said);
    let wanted = text
        .replace(
            "[blog]\n",
            "[blog]\nphp_value[auto_prepend_file] = /var/lib/pagewell-php/prepend.php\n",
        )
        .replace("/tmp\"", "/tmp:/var/lib/pagewell-php:/run/pagewell\"");
    assert_eq!(changed, wanted);

    // The next time, nothing of it is missing.
    let dry = InitArgs { dry_run: true, ..tree.args("/var/www/blog") };
    let said = init::run(&dry, None).expect("a site");
    assert!(!said.contains(POOL), "{said}");
    assert!(said.contains("sudo systemctl reload php8.2-fpm"), "{said}");
}

/// php-fpm takes tabs for spaces, and a comment needs neither in front of it.
#[test]
fn tabs_and_ends_of_lines_belong_to_no_value() {
    let values = [
        ("\t= /var/www/blog:/tmp", ""),
        ("=\t\"/var/www/blog:/tmp", "\""),
        (" = /var/www/blog:/tmp", "\t; the site"),
        (" = /var/www/blog:/tmp", "; the site"),
        (" = /var/www/blog:/tmp", "\r"),
    ];
    for (before, behind) in values {
        let with = |added: &str| {
            format!("php_admin_value[open_basedir]{before}{added}{behind}\nlisten.mode = 0660\n")
        };
        let text = format!("[blog]\nlisten = /run/php/blog.sock\n{}", with(""));
        let tree = Tree::with_php().wordpress().file(POOL, &text);
        let changed = with_printed_commands(&tree, &tree.init("/var/www/blog").0);
        let wanted = with(":/var/lib/pagewell-php:/run/pagewell");
        assert!(changed.contains(&wanted), "{before}|{behind}\n{changed}");
        assert_eq!(changed.matches(PREPEND).count(), 1, "{changed}");
        // The next time, nothing of it is missing.
        let dry = InitArgs { dry_run: true, ..tree.args("/var/www/blog") };
        assert!(!init::run(&dry, None).expect("a site").contains(POOL), "{changed}");
    }
}

/// Otherwise PHP answers no request of the pool.
#[test]
fn pagewells_file_is_not_loaded_by_a_pool_whose_open_basedir_did_not_change() {
    let of_pool = "[www]\nlisten = /run/php/php8.2-fpm.sock\n\
                   php_admin_value[open_basedir] = /var/www/blog\n";
    let tree = Tree::with_php().wordpress().file(POOL, of_pool);
    let said = tree.init("/var/www/blog").0;
    let commands = pool_commands(&said);
    assert!(
        commands.len() == 2 && commands[1].contains("/a php_value[auto_prepend_file]"),
        "{said}"
    );
    assert!(!run(&tree, commands[1]).success(), "the first command did not run");
    assert_eq!(fs::read_to_string(tree.real(POOL)).expect("the file of the pool"), of_pool);
}

#[test]
fn a_value_that_is_no_plain_list_is_changed_by_hand() {
    for value in ["none", "'/var/www/blog'", ".:/tmp", "/var/www/blog:"] {
        let text = format!(
            "[www]\nlisten = /run/php/php8.2-fpm.sock\nphp_admin_value[open_basedir] = {value}\n"
        );
        let said = Tree::with_php().wordpress().file(POOL, &text).init("/var/www/blog").0;
        assert_eq!(pool_commands(&said), Vec::<&str>::new(), "{value}");
        let title = format!("and /run/pagewell to `open_basedir` in {POOL}: otherwise PHP");
        assert!(said.contains(&title), "{value}: {said}");
        assert!(!said.contains("systemctl reload php"), "{value}: {said}");
    }
    let text = "[www]\nlisten = /run/php/php8.2-fpm.sock\nlisten.acl_users = 'apache,nginx'\n";
    let said = Tree::with_php().wordpress().file(POOL, text).init("/var/www/blog").0;
    assert!(said.contains(&format!("Add pagewell to `listen.acl_users` in {POOL}")), "{said}");
    assert!(!said.contains("/s#"), "{said}");
}

/// Where no command can change it, the operator does so first.
#[test]
fn an_open_basedir_outside_of_the_pools_file_is_changed_by_hand() {
    let by_hand = |tree: &Tree, file: &str| {
        let said = tree.init("/var/www/blog").0;
        assert_eq!(pool_commands(&said), Vec::<&str>::new(), "{file}: {said}");
        assert!(said.contains(&format!("to `open_basedir` in {file}: otherwise")), "{said}");
        assert!(said.contains(&format!("to the pool www in {POOL}, and reload")), "{said}");
    };
    let closed = "; settings\nopen_basedir = \"/var/www:/tmp\" ; all sites\n";
    for file in ["/etc/php/8.2/fpm/php.ini", "/etc/php/8.2/fpm/conf.d/99-panel.ini"] {
        by_hand(&Tree::with_php().wordpress().file(file, closed), file);
    }
    let user_ini = "/var/www/blog/.user.ini";
    by_hand(&Tree::with_php().wordpress().file(user_ini, closed), user_ini);
    let pass = "unix:/run/php/php8.2-fpm.sock; \
                fastcgi_param PHP_ADMIN_VALUE \"open_basedir=/var/www/blog:/tmp\"";
    by_hand(&behind_nginx(Tree::with_php(), "", pass), "/etc/nginx/nginx.conf");

    // The pool's own setting counts, or the directories are in that of PHP.
    let own = "[www]\nlisten = /run/php/php8.2-fpm.sock\nphp_value[open_basedir] = /var/www\n";
    let php_ini = "/etc/php/8.2/fpm/php.ini";
    let tree = Tree::with_php().wordpress().file(php_ini, closed).file(POOL, own);
    assert_eq!(pool_commands(&tree.init("/var/www/blog").0).len(), 2);
    let open = "open_basedir = /var/www:/var/lib/pagewell-php:/run\n";
    let tree = Tree::with_php().wordpress().file(php_ini, open);
    assert_eq!(pool_commands(&tree.init("/var/www/blog").0).len(), 1);
}

/// For an `open_basedir` that nothing shows.
#[test]
fn the_step_of_a_pool_has_a_way_back() {
    let tree = Tree::with_php().wordpress();
    let before = fs::read_to_string(tree.real(POOL)).expect("the file of the pool");
    let said = tree.init("/var/www/blog").0;
    assert_ne!(with_printed_commands(&tree, &said), before);
    let (_, undo) = said.split_once("To undo this step: `").expect("a command");
    let (undo, reload) = undo.split_once(" && ").expect("two commands");
    assert!(reload.starts_with("sudo systemctl reload php8.2-fpm`"), "{reload}");
    assert!(run(&tree, undo).success());
    assert_eq!(fs::read_to_string(tree.real(POOL)).expect("the file of the pool"), before);
}

/// PHP loads one file before each script: a second setting would end the first, such as that of a firewall.
#[test]
fn automatic_dependencies_are_left_out_if_another_file_is_loaded_before_each_script() {
    let of_pool = "[www]\nlisten = /run/php/php8.2-fpm.sock\n\
                   php_admin_value[auto_prepend_file] = \"/srv/waf.php\"\n";
    let of_site = "; a firewall\nauto_prepend_file = '/var/www/blog/wordfence-waf.php'\n";
    for (file, text) in [(POOL, of_pool), ("/var/www/blog/.user.ini", of_site)] {
        let tree = Tree::with_php().with_followed_database().wordpress().file(file, text);
        let (said, written) = tree.init("/var/www/blog");
        assert!(tree.check(&written).automatic.is_none(), "{written}");
        assert!(said.contains(&format!("{file} sets auto_prepend_file")), "{said}");
        assert!(!said.contains("prepend.php") && !said.contains("CREATE USER"), "{said}");
    }
    // If the operator moved it to the pool, as another sentence says, Pagewell's line would end it.
    let pass = "unix:/run/php/php8.2-fpm.sock; \
                fastcgi_param PHP_VALUE \"auto_prepend_file=/srv/waf.php\"";
    let tree = behind_nginx(Tree::with_php().with_followed_database(), "", pass);
    let (said, written) = tree.init("/var/www/blog");
    assert!(tree.check(&written).automatic.is_none(), "{written}");
    assert!(said.contains("/etc/nginx/nginx.conf sets auto_prepend_file"), "{said}");
    for value in ["none", "", "/var/lib/pagewell-php/prepend.php"] {
        let text = format!("auto_prepend_file = {value}\n");
        let tree = Tree::with_php().with_followed_database().wordpress();
        let tree = tree.file("/var/www/blog/.user.ini", &text);
        assert!(tree.check(&tree.init("/var/www/blog").1).automatic.is_some(), "{value}");
    }
    // Pagewell's file loads that of php.ini.
    let file = "/etc/php/8.2/fpm/conf.d/90-waf.ini";
    let tree = Tree::with_php().with_followed_database().wordpress();
    let tree = tree.file(file, "auto_prepend_file = /srv/waf.php\n");
    let (said, written) = tree.init("/var/www/blog");
    assert!(tree.check(&written).automatic.is_some(), "{written}");
    assert!(said.contains("and any `auto_prepend_file` of php.ini"), "{said}");
}

/// With an access list, php-fpm ignores the group of the socket: RHEL's pool has one, and its socket belongs to root.
#[test]
fn the_service_is_added_to_the_access_list_of_a_pool() {
    let with =
        |list: &str| format!("[www]\nlisten = /run/php/php8.2-fpm.sock\n{list}pm = static\n");
    let changes = [
        ("listen.acl_users = apache,nginx\n", "listen.acl_users = apache,nginx,pagewell\n"),
        (
            "listen.acl_users = \"apache, nginx\" ; two\n",
            "listen.acl_users = \"apache, nginx,pagewell\" ; two\n",
        ),
        ("listen.acl_users\t=\tapache\t; one\n", "listen.acl_users\t=\tapache,pagewell\t; one\n"),
    ];
    for (before, after) in changes {
        let tree = Tree::with_php().wordpress().file(POOL, &with(before));
        let said = tree.init("/var/www/blog").0;
        assert!(said.contains("sudo systemctl restart php8.2-fpm"), "{said}");
        assert!(!said.contains("usermod"), "{said}");
        let changed = with_printed_commands(&tree, &said);
        assert!(changed.contains(after), "{changed}");
        // Then it is there, and no step is printed.
        let dry = InitArgs { dry_run: true, ..tree.args("/var/www/blog") };
        let said = init::run(&dry, None).expect("a site");
        assert!(!said.contains("the access list"), "{said}");
    }
    let tree = Tree::with_php().wordpress().file(POOL, &with("listen.acl_groups = www-data\n"));
    let said = tree.init("/var/www/blog").0;
    let changed = with_printed_commands(&tree, &said);
    assert!(changed.contains("\nlisten.acl_users = pagewell\n"), "{changed}");
    // The service is in a group of the list.
    let of_group = "root:x:0:\nwww-data:x:33:pagewell\npagewell:x:998:\n";
    let tree = Tree::with_php().wordpress().file("/etc/group", of_group);
    let tree = tree.file(POOL, &with("listen.acl_groups = www-data\n"));
    assert!(!tree.init("/var/www/blog").0.contains("the access list"));
}
