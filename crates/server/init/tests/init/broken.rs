//! Half-installed machines and hostile files: each message says what is wrong, where, and what to do, and
//! nothing half-written is left.

use crate::tree::{Tree, lines, names};
use command_line::options::{InitArgs, SiteKind};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, lchown};

fn failure(args: &InitArgs) -> String {
    init::run(args, None).expect_err("it fails")
}

#[test]
fn no_php_fpm() {
    let tree = Tree::empty().wordpress();
    let (said, text) = tree.init("/var/www/blog");
    tree.check(&text);
    assert!(said.contains("no pool of php-fpm was found below /etc/php"), "{said}");
    assert!(said.contains("sudo apt-get install -y php-fpm"), "{said}");
}

#[test]
fn a_socket_that_is_missing_or_has_no_permission() {
    let tree = Tree::with_php().wordpress();
    // The socket belongs to the user of the test, and the service is not in its group.
    let socket = tree.real("/run/php/php8.2-fpm.sock");
    fs::set_permissions(&socket, Permissions::from_mode(0o660)).unwrap();
    if rustix::process::geteuid().is_root() {
        // The files of the group root are none of the service's.
        let dry = InitArgs { dry_run: true, ..tree.args("/var/www/blog") };
        let said = init::run(&dry, None).unwrap();
        assert!(
            said.contains("Write `listen.group` in /etc/php/8.2/fpm/pool.d/www.conf"),
            "{said}"
        );
        assert!(!said.contains("usermod"), "{said}");
        chown(&socket, None, Some(33)).unwrap();
    }
    let said = tree.init("/var/www/blog").0;
    assert!(said.contains("sudo usermod --append --groups "), "{said}");
    let alpine = tree.real("/etc/alpine-release");
    fs::write(&alpine, "3.22.0\n").unwrap();
    let dry = InitArgs { dry_run: true, ..tree.args("/var/www/blog") };
    let on_alpine = init::run(&dry, None).unwrap();
    assert!(on_alpine.contains("sudo addgroup pagewell "), "{on_alpine}");
    assert!(!on_alpine.contains("usermod"), "{on_alpine}");
    fs::remove_file(alpine).unwrap();
    assert!(said.contains("(/run/php/php8.2-fpm.sock); otherwise every page is a 502"), "{said}");

    fs::set_permissions(tree.real("/run/php/php8.2-fpm.sock"), Permissions::from_mode(0o600))
        .unwrap();
    let dry = InitArgs { dry_run: true, ..tree.args("/var/www/blog") };
    let said = init::run(&dry, None).unwrap();
    assert!(said.contains("has the mode 600") && said.contains("listen.mode = 0660"), "{said}");

    fs::remove_file(tree.real("/run/php/php8.2-fpm.sock")).unwrap();
    let said = init::run(&dry, None).unwrap();
    assert!(said.contains("there is no socket /run/php/php8.2-fpm.sock"), "{said}");
    assert!(said.contains("sudo systemctl enable --now php8.2-fpm"), "{said}");
}

#[test]
fn an_existing_file_is_never_overwritten() {
    let tree =
        Tree::with_php().wordpress().file("/etc/pagewell/pagewell.toml", "listen = \":80\"\n");
    let said = init::run(&tree.args("/var/www/blog"), None).unwrap();
    assert!(said.contains("Written: /etc/pagewell/pagewell.new.toml"), "{said}");
    let mv = "sudo mv /etc/pagewell/pagewell.new.toml /etc/pagewell/pagewell.toml";
    assert!(said.contains(mv), "{said}");
    let mut args = tree.args("/var/www/blog");
    args.output = Some("/etc/pagewell/pagewell.toml".into());
    let said = failure(&args);
    assert!(said.contains("exists, and is not overwritten") && said.contains("--output"), "{said}");
    assert_eq!(
        fs::read_to_string(tree.real("/etc/pagewell/pagewell.toml")).unwrap(),
        "listen = \":80\"\n"
    );
    assert_eq!(
        names(&tree.real("/etc/pagewell")),
        ["README", "pagewell.new.toml", "pagewell.toml"]
    );
    // A file of a process that was killed is no obstacle.
    let left = format!("/etc/pagewell/.pagewell.toml.{}.0", std::process::id());
    let tree = Tree::with_php().wordpress().file(&left, "half");
    tree.check(&tree.init("/var/www/blog").1);
    assert_eq!(fs::read_to_string(tree.real(&left)).unwrap(), "half");
    // A dangling link is not written through either.
    let tree = Tree::with_php().wordpress().link("/etc/pagewell/out.toml", "nowhere");
    let mut args = tree.args("/var/www/blog");
    args.output = Some("/etc/pagewell/out.toml".into());
    assert!(failure(&args).contains("exists"));
}

/// A second site is appended to the file of the first: no printed command replaces it.
#[test]
fn the_configuration_of_another_site_is_not_replaced() {
    let shop = "[site]\nhost = \"shop.example\"\nroot = \"/var/www/shop\"\n";
    let listed = "[[site]]\nhost = \"shop.example\"\nroot = \"/var/www/shop\"\n\
                  [[site]]\nhost = \"news.example\"\nroot = \"/var/www/news\"\n";
    let without_hosts = "[site]\nroot = \"/var/www/shop\"\n";
    for (text, name) in
        [(shop, "shop.example"), (listed, "shop.example"), (without_hosts, "/var/www/shop")]
    {
        let tree = Tree::with_php()
            .wordpress()
            .file("/var/www/shop/index.php", "<?php")
            .file("/etc/pagewell/pagewell.toml", text);
        let host = (text != without_hosts).then(|| "blog.example".to_owned());
        let said = init::run(&InitArgs { name: host, ..tree.args("/var/www/blog") }, None).unwrap();
        assert!(said.contains(&format!("serves another site, {name}")), "{said}");
        assert!(!said.contains("sudo mv"), "{said}");
        let changes = |line: &str| {
            line.trim_start().starts_with("sudo sed") && line.contains("/etc/pagewell")
        };
        assert!(!said.lines().any(changes), "{said}");
    }
    // The same site, and a directory of the packaged file without a site.
    let own = "[site]\nhost = \"www.blog.example\"\naliases = [\"blog.example\"]\n";
    for text in [own, "[site]\nroot = \"/var/www/html\"\n"] {
        let tree = Tree::with_php()
            .wordpress()
            .file("/var/www/html/index.html", "")
            .file("/etc/pagewell/pagewell.toml", text);
        let args = InitArgs { name: Some("blog.example".into()), ..tree.args("/var/www/blog") };
        assert!(init::run(&args, None).unwrap().contains("&& sudo mv /etc"), "{text}");
    }
}

/// A site that cannot be compared may be another one.
#[test]
fn a_configuration_is_replaced_only_if_it_is_known_to_have_no_other_site() {
    const FILE: &str = "/etc/pagewell/pagewell.toml";
    let said = |tree: Tree| init::run(&tree.args("/var/www/blog"), None).unwrap();
    let of_others = [
        ("[site]\nhost = \"shop.example\"\norigin = \"http://10.0.0.1\"\n", "shop.example"),
        ("[site]\norigin = \"http://10.0.0.1\"\n", "http://10.0.0.1"),
        ("[site]\nhost = \"shop.example\"\nroot = \"/srv/shop\"\n", "shop.example"),
        ("[site]\nroot = \"/srv/static\"\n", "/srv/static"),
    ];
    for (text, name) in of_others {
        let tree = Tree::with_php().wordpress().file("/srv/static/index.html", "");
        let said = said(tree.file(FILE, text));
        assert!(said.contains(&format!("{FILE} serves another site, {name}: do not")), "{said}");
        assert!(!said.contains("sudo mv"), "{said}");
    }
    // One that has an error, and one that cannot be read, not even by root.
    let with_error = said(Tree::with_php().wordpress().file(FILE, "[site\n"));
    let unreadable = said(Tree::with_php().wordpress().file(&format!("{FILE}/x"), ""));
    for (said, why) in [(with_error, "`pagewell check` names"), (unreadable, "it is not a regular")]
    {
        assert!(said.contains(&format!("{FILE} may serve another site ({why}")), "{said}");
        assert!(!said.contains("sudo mv"), "{said}");
    }
    // The same document root, with a host that this machine does not show.
    let own = "[site]\nhost = \"blog.example\"\nroot = \"/var/www/blog/\"\n";
    assert!(said(Tree::with_php().wordpress().file(FILE, own)).contains("sudo mv"));
}

/// Nginx has no block for the second host, as it had none for the first.
#[test]
fn the_server_block_of_another_host_is_not_replaced() {
    let file = |host: &str| {
        let tree = Tree::with_php().wordpress().port(80, "nginx", 11);
        let args = InitArgs { name: Some(host.into()), ..tree.args("/var/www/blog") };
        let said = init::run(&args, None).unwrap();
        let (_, file) = said.split_once("sudo tee /etc/nginx/conf.d/").expect("a command");
        file.lines().next().expect("a file").to_owned()
    };
    assert_eq!(file("blog.example"), "pagewell-blog.example.conf");
    assert_eq!(file("shop.example:8443"), "pagewell-shop.example.conf");
}

#[test]
fn a_directory_that_cannot_be_written() {
    let tree = Tree::with_php().wordpress();
    let mut args = tree.args("/var/www/blog");
    args.output = Some("/etc/none/pagewell.toml".into());
    let said = failure(&args);
    assert!(
        said.contains("/etc/none/pagewell.toml was not written")
            && said.contains("sudo mkdir -p /etc/none"),
        "{said}"
    );
    if rustix::process::geteuid().is_root() {
        return; // Root may write everywhere.
    }
    fs::set_permissions(tree.real("/etc/pagewell"), Permissions::from_mode(0o555)).unwrap();
    let said = failure(&tree.args("/var/www/blog"));
    assert!(said.contains("sudo"), "{said}");
    assert_eq!(names(&tree.real("/etc/pagewell")), ["README"]);
}

/// A file system that nobody can write, also not root.
#[test]
fn a_read_only_file_system_is_named() {
    let tree = Tree::with_php().wordpress();
    let dir = tree.real("/readonly");
    fs::create_dir_all(&dir).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "ro,size=4k", "tmpfs"])
        .arg(&dir)
        .output();
    if !mounted.is_ok_and(|mounted| mounted.status.success()) {
        return; // This user may mount nothing.
    }
    let args =
        InitArgs { output: Some("/readonly/pagewell.toml".into()), ..tree.args("/var/www/blog") };
    let said = failure(&args);
    let left = names(&dir);
    assert!(std::process::Command::new("umount").arg(&dir).status().unwrap().success());
    assert!(said.contains("/readonly/pagewell.toml was not written"), "{said}");
    assert!(said.contains("--output"), "{said}");
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_full_disk_leaves_nothing() {
    let tree = Tree::with_php().wordpress();
    // A file system of 4 KB, if this user may mount one.
    let dir = tree.real("/small");
    fs::create_dir_all(&dir).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4k,nr_inodes=10", "tmpfs"])
        .arg(&dir)
        .output();
    if !mounted.is_ok_and(|mounted| mounted.status.success()) {
        return;
    }
    fs::write(dir.join("fill"), vec![1_u8; 4_096]).unwrap();
    let args =
        InitArgs { output: Some("/small/pagewell.toml".into()), ..tree.args("/var/www/blog") };
    let said = failure(&args);
    let left = names(&dir);
    let unmounted = std::process::Command::new("umount").arg(&dir).status().unwrap();
    assert!(unmounted.success());
    assert!(said.contains("the disk is full") && said.contains("df -h /small"), "{said}");
    assert_eq!(left, ["fill"]);
}

#[test]
fn a_broken_configuration_of_the_application() {
    let tree = Tree::with_php()
        .wordpress()
        .file("/var/www/blog/wp-config.php", "<?php\ndefine('DB_NAME', 'blog);\n");
    let (said, text) = tree.init("/var/www/blog");
    tree.check(&text);
    assert!(said.contains("/var/www/blog/wp-config.php, line 2"), "{said}");
    assert!(said.contains("php -l /var/www/blog/wp-config.php"), "{said}");

    let tree = Tree::with_php().wordpress().file(
        "/var/www/blog/wp-config.php",
        "<?php define('DB_NAME', getenv('DB')); define('DB_HOST', 'localhost'); $table_prefix = 'wp_';",
    );
    let said = tree.init("/var/www/blog").0;
    assert!(said.contains("the database's name is not a plain value"), "{said}");

    let tree = Tree::with_php().wordpress();
    fs::remove_file(tree.real("/var/www/blog/wp-config.php")).unwrap();
    assert!(tree.init("/var/www/blog").0.contains("WordPress is not installed yet"));
    // It exists, and cannot be read: the report does not say that it is missing.
    fs::create_dir(tree.real("/var/www/blog/wp-config.php")).unwrap();
    let said = tree.init("/var/www/blog").0;
    assert!(said.contains("/var/www/blog/wp-config.php is not a regular file"), "{said}");
    assert!(!said.contains("is not installed yet"), "{said}");
}

#[test]
fn links_that_lead_nowhere_or_to_the_files_of_others() {
    let tree = Tree::with_php().link("/var/www/loop", "loop");
    let said = failure(&tree.args("/var/www/loop"));
    assert!(said.contains("/var/www/loop") && said.contains("loop of symbolic links"), "{said}");

    let tree = Tree::with_php().wordpress();
    fs::remove_file(tree.real("/var/www/blog/wp-config.php")).unwrap();
    let tree = tree.link("/var/www/blog/wp-config.php", "wp-config.php");
    let said = tree.init("/var/www/blog").0;
    assert!(said.contains("wp-config.php is a loop of symbolic links"), "{said}");

    let tree = Tree::with_php();
    for (dir, part) in [
        ("/var/www/none", "cannot be opened"),
        ("/etc/passwd", "is a file"),
        ("/etc", "no PHP site was recognised"),
    ] {
        let said = failure(&tree.args(dir));
        assert!(
            said.contains(dir) && said.contains(part) && said.contains("name the directory"),
            "{said}"
        );
    }
    let args = InitArgs { application: Some(SiteKind::WordPress), ..tree.args("/etc") };
    assert!(failure(&args).contains("wp-includes/version.php is missing"));
}

/// Root reads for the site's user only what is that user's.
#[test]
fn a_link_in_the_path_is_followed_only_to_a_directory_of_its_owner() {
    if !rustix::process::geteuid().is_root() {
        return; // Another user cannot own a link of the test.
    }
    let (tree, dir) = Tree::with_php().site(SiteKind::Drupal);
    let settings = "<?php $databases['default']['default'] = ['database' => 'payroll'];";
    fs::remove_dir_all(tree.real("/var/www/drupal/web/sites/default")).unwrap();
    let tree = tree
        .file("/var/www/other/settings.php", settings)
        .link("/var/www/drupal/web/sites/default", "../../../other");
    lchown(tree.real("/var/www/drupal/web/sites/default"), Some(33), Some(33)).unwrap();
    let dry = InitArgs { dry_run: true, ..tree.args(dir) };
    let said = init::run(&dry, None).unwrap();
    assert!(said.contains("is behind /var/www/drupal/web/sites/default, a link"), "{said}");
    assert!(!said.contains("payroll"), "{said}");

    chown(tree.real("/var/www/other"), Some(33), Some(33)).unwrap();
    let said = init::run(&dry, None).unwrap();
    assert!(said.contains("payroll") && !said.contains("was not read"), "{said}");
}

#[test]
fn values_of_the_site_add_no_line_and_no_command() {
    let config = "<?php define('DB_NAME', \"b\n[php]\nat = 'x'; $(reboot)\"); define('DB_HOST', 'localhost');\n\
         $table_prefix = \"wp_\\\"\n\"; define('WP_HOME', \"https://x.example\nlisten = 1/\");";
    let tree = Tree::with_php()
        .with_followed_database()
        .wordpress()
        .file("/var/www/blog/wp-config.php", config);
    let tree = tree
        .file("/var/www/blog/wp-includes/version.php", "<?php $wp_version = \"6\n[x]\u{1b}[2J\";");
    let (said, text) = tree.init("/var/www/blog");
    tree.check(&text);
    assert!(!lines(&text).iter().any(|line| line.contains("reboot")), "{text}");
    assert_eq!(lines(&text).iter().filter(|line| line.as_str() == "[php]").count(), 1);
    assert!(!said.contains('\u{1b}') && !said.contains("GRANT"), "{said}");
    assert!(said.contains("is unknown, so it is not followed"), "{said}");

    let args = tree.args("/var/www/bl\nog");
    assert!(failure(&args).contains("without control characters"));
    let tree = Tree::with_php().file("/srv/it's $(me)/index.php", "");
    let (said, text) = tree.init("/srv/it's $(me)");
    assert_eq!(tree.check(&text).site.files.unwrap().root, tree.real("/srv/it's $(me)"));
    assert!(
        !said.lines().any(|line| line.trim().starts_with("sudo") && line.contains("$(me)")),
        "{said}"
    );
}
