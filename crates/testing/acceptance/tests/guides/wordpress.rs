//! "WordPress": a fresh server, the plugin and its verification, then the same blog behind nginx, and with
//! Pagewell instead of nginx. WordPress is Debian's package in place of the newest version.

use crate::guide::{Guide, assert_like};
use crate::machine::Machine;
use acceptance::until;

const TOML: &str = "/etc/pagewell/pagewell.toml";
const SITE: &str = "/etc/nginx/sites-available/blog";
const GET: &str = "curl -si http://blog.example/ | grep -i ^cache-status";
/// The installer's forms, as a browser sends them: the database of the guide, then the blog.
const INSTALL: &str = r#"curl -sf 'http://blog.example/wp-admin/setup-config.php?step=2' --data-urlencode dbname=blog \
  --data-urlencode uname=blog --data-urlencode 'pwd=a password of yours' --data-urlencode prefix=wp_ \
  --data-urlencode "dbhost=localhost:$MACHINE/run/mysqld/mysqld.sock" >/dev/null
curl -sf 'http://blog.example/wp-admin/install.php?step=2' --data-urlencode 'weblog_title=A blog' \
  -d user_name=admin -d admin_password=secret-of-admin -d admin_password2=secret-of-admin -d pw_weak=on \
  -d admin_email=admin@blog.example -d blog_public=1 | grep -o Success"#;

/// A command that runs code of WordPress as the user of php-fpm.
fn wp(code: &str) -> String {
    format!(
        "cd /var/www/blog && sudo -u www-data php <<'PHP'\n<?php $_SERVER['HTTP_HOST'] = 'blog.example';\n\
         require 'wp-load.php';\nrequire_once ABSPATH . 'wp-admin/includes/plugin.php';\n{code}\nPHP\n"
    )
}

fn blog() -> (Guide, Machine) {
    let guide = Guide::open("wordpress.md");
    let mut machine = Machine::new(
        "defined('WP_HTTP_BLOCK_EXTERNAL') || define('WP_HTTP_BLOCK_EXTERNAL', true); \
         defined('PAGEWELL_ADMIN') || define('PAGEWELL_ADMIN', getenv('PAGEWELL_ADMIN'));",
    );
    machine.start_mariadb();
    (guide, machine)
}

#[test]
fn wordpress() {
    let (mut guide, mut machine) = blog();
    guide.not_run(
        "WordPress",
        "sh",
        "a release build takes minutes; xtask's tests build the package",
    );
    guide.not_run("WordPress", "sh", "scripts/package-test installs it in a Debian of its own");
    fresh_server(&mut guide, &mut machine);
    permissions(&mut guide, &mut machine);
    plugin(&mut guide, &mut machine);
    cron(&mut guide, &mut machine);
    database(&mut guide, &mut machine);
    for section in ["Which visitor gets which page", "Without the plugin"] {
        let before = std::fs::read_to_string(machine.at(TOML)).expect("it is there");
        machine.append(TOML, &guide.next(section, "toml"));
        machine.run(&format!("sudo pagewell check --config {TOML}"));
        std::fs::write(machine.at(TOML), before).expect("written");
    }
    machine.run(&guide.inline("sudo systemctl disable --now pagewell"));
    behind_nginx(&mut guide, &mut machine);
    instead_of_nginx(&mut guide, &mut machine);
}

fn fresh_server(guide: &mut Guide, machine: &mut Machine) {
    let section = "3. Fresh server";
    machine.run(&guide.next(section, "sh"));
    machine.write(TOML, &guide.next(section, "toml"));
    let checked = machine.run(&guide.next(section, "sh"));
    assert!(
        checked.contains("blog.example: php.at unix:") && checked.contains(": answers"),
        "{checked}"
    );
    let installed = machine.run(INSTALL);
    assert!(installed.contains("Success"), "{installed}");
    // Without the plugin.
    let first = machine.run(GET);
    assert!(first.contains(&guide.inline("detail=no-lifetime")), "{first}");
    assert_protected(machine, "http");
}

/// Without another web server, nothing is lost: uploaded PHP does not run, browsers keep versioned files, and responses
/// have the fields for their safety.
fn assert_protected(machine: &mut Machine, scheme: &str) {
    let script = "/var/www/blog/wp-content/uploads/2026/x.php";
    machine.write(script, "<?php echo 'attack ran';");
    let get = |path: &str| format!("curl -si {scheme}://blog.example{path}");
    for path in ["/wp-content/uploads/2026/x.php", "/wp-content/uploads/2026/x.php/y.jpg"] {
        let refused = machine.run(&get(path));
        assert!(refused.contains(" 404") && !refused.contains("attack"), "{refused}");
    }
    let style = get("/wp-includes/css/buttons.css?ver=6").replace("curl -si", "curl -sI");
    let style = machine.run(&style);
    assert!(style.contains(" 200") && style.contains("immutable"), "{style}");
    let page = machine.run(&get("/")).to_lowercase();
    for field in ["x-frame-options: sameorigin", "x-content-type-options: nosniff"] {
        assert!(page.contains(field), "{page}");
    }
    std::fs::remove_file(machine.at(script)).expect("it is there");
}

fn permissions(guide: &mut Guide, machine: &mut Machine) {
    let section = "Users and permissions";
    let output = machine.run(&guide.next(section, "sh"));
    assert!(output.starts_with("pagewell www-data") && output.contains(": answers"), "{output}");
    machine.run(&guide.next(section, "sh"));
    let front = "curl -s -o /dev/null -w '%{http_code}' http://blog.example/";
    assert_eq!(machine.run(front), "200");
    assert_eq!(machine.run(&front.replace("example/", "example/wp-config.php")), "404");
    if harness::am_root() {
        let wrong = guide.next(section, "sh");
        machine.run(&wrong);
        assert_eq!(machine.run(front), "500", "the guide's wrong example");
        machine.run("sudo chown root:www-data /var/www/blog/wp-config.php && sudo chmod 640 /var/www/blog/wp-config.php");
    } else {
        guide.not_run(
            section,
            "sh",
            "an ordinary user owns the file, so the wrong owner cannot be set",
        );
    }
}

fn plugin(guide: &mut Guide, machine: &mut Machine) {
    machine.run(&guide.next("Install the plugin", "sh"));
    machine.run(&wp("exit(is_null(activate_plugin('pagewell/pagewell.php')) ? 0 : 1);"));
    let get = guide.next("Verify", "sh");
    let both = machine.run(&get) + &machine.run(&get);
    assert_like(&both, &guide.next("Verify", "text"));
    // Editing a post purges its page, and not others.
    machine.run(&wp("wp_insert_post(['post_title' => 'Other', 'post_name' => 'o', 'post_status' => 'publish', 'post_type' => 'page']);"));
    let status = |page: &str| {
        format!("curl -si 'http://blog.example/?{page}' | grep -iE '^(cache-status|location)'")
    };
    for page in ["p=1", "page_id=2"] {
        machine.run(&status(page));
        let second = machine.run(&status(page));
        assert!(second.contains("pagewell; hit"), "{page}: {second}");
    }
    machine.run(&wp("wp_update_post(['ID' => 1, 'post_content' => 'Edited text.']);"));
    let edited = machine.run("curl -si 'http://blog.example/?p=1'");
    assert!(edited.contains("fwd=uri-miss") && edited.contains("Edited text."), "{edited}");
    let other = machine.run(&status("page_id=2"));
    assert!(other.contains("pagewell; hit"), "{other}");
}

fn cron(guide: &mut Guide, machine: &mut Machine) {
    let section = "Scheduled posts (WP-Cron)";
    let define = guide.next(section, "php").trim().to_owned();
    let edit = format!(
        "sudo sed -i \"s|^/\\* That.s all|{}\\n&|\" /var/www/blog/wp-config.php",
        define.split("  ").next().unwrap_or_default()
    );
    machine.run(&edit);
    let set = machine.run(&wp("var_dump(DISABLE_WP_CRON);"));
    assert!(set.contains("true"), "{set}");
    machine.append(TOML, &guide.next(section, "toml"));
    machine.run(&format!("sudo pagewell check --config {TOML} && sudo systemctl restart pagewell"));
}

fn database(guide: &mut Guide, machine: &mut Machine) {
    let section = "Changes that WordPress does not make";
    let mut account = Guide::open("database.md");
    let grants = account.next("Set up MariaDB", "ini");
    assert!(
        grants.contains("binlog_format  = ROW"),
        "the options with which the test starts MariaDB"
    );
    let grants = account.next("Set up MariaDB", "sql").replace("news.*", "blog.*");
    machine.mariadb().sql(&grants).expect("an account");
    account.only_in_part();
    let example = guide.next(section, "toml");
    let (url, change) = example.split_once("\n\n").expect("a database, and a rule");
    let commands = guide.next(section, "sh");
    let (suggest, check) = commands.split_once('\n').expect("two commands");
    let rules = machine.run(suggest);
    let rule = change.split_once('\n').expect("a header and a rule").1;
    assert_like(&rules, rule);
    machine.append(TOML, &format!("{url}\n\n{rules}"));
    let checked = machine.run(check);
    assert!(checked.contains("no errors"), "{checked}");
    machine.run("sudo systemctl restart pagewell");
    let title = "curl -si 'http://blog.example/?p=1'";
    machine.run(title);
    until("the page is cached", || machine.run(title).contains("pagewell; hit"));
    let sql = "UPDATE wp_posts SET post_content = 'By SQL.' WHERE ID = 1";
    machine.mariadb().sql_in("blog", sql).expect("written");
    until("the page is purged", || machine.run(title).contains("By SQL."));
}

/// Makes the blog one of `https://`, with a certificate.
fn with_https(machine: &mut Machine) {
    let address = "update_option('siteurl', 'https://blog.example');";
    machine.run(&wp(&format!("{address} {}", address.replace("siteurl", "home"))));
    machine.certificate("blog.example", "/etc/ssl/blog.example.pem", "/etc/ssl/blog.example.key");
}

/// The user pagewell is in its own group alone, as after the installation.
fn leave_groups(machine: &Machine) {
    std::fs::write(machine.at("/state/groups"), "").expect("written");
}

fn behind_nginx(guide: &mut Guide, machine: &mut Machine) {
    with_https(machine);
    leave_groups(machine);
    let section = "1. nginx stays in front";
    let site = |directives: &str| {
        format!(
            "server {{\nlisten 443 ssl;\nserver_name blog.example;\nssl_certificate /etc/ssl/blog.example.pem;\n\
             ssl_certificate_key /etc/ssl/blog.example.key;\nroot /var/www/blog;\nclient_max_body_size 8m;\n\
             {directives}\n}}\n"
        )
    };
    let before = "location / {\ntry_files $uri /index.php?$args;\n}\nlocation ~ \\.php$ {\ninclude fastcgi_params;\n\
                  fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;\nfastcgi_param HTTPS on;\n\
                  fastcgi_pass unix:/run/php/php8.2-fpm.sock;\n}";
    machine.write(SITE, &site(before));
    machine.run("sudo ln -s ../sites-available/blog /etc/nginx/sites-enabled/blog && sudo systemctl start nginx");
    let page = machine.run("curl -si https://blog.example/ | head -1");
    assert!(page.contains("200"), "{page}");
    machine.write(TOML, &guide.next(section, "toml"));
    let output = machine.run(&guide.next(section, "sh"));
    assert!(output.contains("200") && output.contains(": answers"), "{output}");
    machine.run(&guide.inline("sudo cp /etc/nginx/sites-available/blog"));
    machine.write(SITE, &site(&guide.next(section, "nginx")));
    machine.run(&guide.next(section, "sh"));
    let get = GET.replace("http:", "https:");
    machine.run(&get);
    let second = machine.run(&get).to_lowercase();
    assert!(second.contains("pagewell; hit"), "{second}");
    machine.run("sudo cp /root/blog.nginx.before-pagewell /etc/nginx/sites-available/blog && sudo systemctl reload nginx");
    machine.run(&guide.inline("sudo systemctl disable --now pagewell"));
    let page = machine.run("curl -si https://blog.example/");
    assert!(page.contains(" 200") && !page.to_lowercase().contains("cache-status"), "{page}");
}

fn instead_of_nginx(guide: &mut Guide, machine: &mut Machine) {
    let section = "2. Pagewell instead of nginx";
    leave_groups(machine);
    let toml = guide.next(section, "toml");
    machine.write(TOML, &toml);
    machine.run(&guide.next(section, "sh"));
    // Beside nginx, which still has the ports.
    let verified = machine.run(&guide.next(section, "sh"));
    assert_verified(&verified);
    let page = machine.run("curl -si https://blog.example/");
    assert!(page.contains(" 200") && !page.to_lowercase().contains("cache-status"), "{page}");
    let ports = guide.next(section, "toml");
    let rest = toml.split_once("https_redirect").expect("the ports come first").1;
    machine.write(TOML, &format!("{ports}https_redirect{rest}"));
    let verified = machine.run(&guide.next(section, "sh"));
    assert_verified(&verified);
    let get = GET.replace("http:", "https:");
    machine.run(&get);
    let second = machine.run(&get);
    assert!(second.contains("pagewell; hit"), "{second}");
    assert_protected(machine, "https");
    let refused = machine.run("curl -si -d x=1 https://blog.example/xmlrpc.php");
    assert!(refused.contains(" 403") && !refused.contains("methodResponse"), "{refused}");
    let redirect = machine.run("curl -si http://blog.example/ | grep -iE '^(HTTP|location)'");
    assert!(redirect.contains(" 301") && redirect.contains("https://blog.example"), "{redirect}");
    machine.run(
        &guide.inline("sudo systemctl disable --now pagewell && sudo systemctl enable --now nginx"),
    );
    let page = machine.run("curl -si https://blog.example/");
    assert!(page.contains(" 200") && !page.to_lowercase().contains("cache-status"), "{page}");
}

/// All checks of `init --verify` are right.
fn assert_verified(verified: &str) {
    for part in [
        "ok      hits",
        "ok      purges",
        "ok      PHP below /wp-content/uploads/",
        "ok      certificate: ",
        "ok      certificate files",
    ] {
        assert!(verified.contains(part), "{part}\n{verified}");
    }
    assert!(!verified.contains("FAILED") && !verified.contains("weak"), "{verified}");
}
