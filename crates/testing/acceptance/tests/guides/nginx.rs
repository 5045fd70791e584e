//! "nginx and Pagewell" and "Behind nginx": a site of one script that nginx serves first. Then Pagewell comes
//! behind nginx, in front of it, and behind a whole `server` block with TLS.

use crate::guide::Guide;
use crate::machine::Machine;

/// A page that shows what PHP knows about its visitor.
const PAGE: &str = "<?php header('Cache-Control: max-age=600');\n\
    echo $_SERVER['REMOTE_ADDR'], ' ', $_SERVER['HTTPS'] ?? 'off', ' ', $_SERVER['HTTP_HOST'];\n";
/// The `location` that the reader has: PHP by nginx itself.
const PHP_LOCATION: &str = "root /var/www/site;\nlocation / {\ninclude fastcgi_params;\n\
    fastcgi_param SCRIPT_FILENAME /var/www/site/index.php;\nfastcgi_pass unix:/run/php/php8.2-fpm.sock;\n}\n";
const SITE: &str = "/etc/nginx/sites-enabled/site";
const TOML: &str = "/etc/pagewell/pagewell.toml";

/// A machine on which nginx serves the site over TLS, for `https://example.org/`.
fn with_nginx() -> Machine {
    let mut machine = Machine::new("");
    machine.write("/var/www/site/index.php", PAGE);
    machine.certificate("example.org", "/etc/ssl/example.org.pem", "/etc/ssl/example.org.key");
    machine.write(SITE, &server(PHP_LOCATION));
    machine.run("sudo systemctl enable --now nginx");
    let page = machine.run("curl -si https://example.org/");
    assert!(
        page.contains("max-age=600") && !page.to_lowercase().contains("cache-status"),
        "{page}"
    );
    machine
}

/// The reader's `server` block, with these directives beside those that many sites have.
fn server(directives: &str) -> String {
    format!(
        "server {{\nlisten 443 ssl;\nserver_name example.org;\nssl_certificate /etc/ssl/example.org.pem;\n\
         ssl_certificate_key /etc/ssl/example.org.key;\nclient_max_body_size 8m;\n{directives}\n}}\n"
    )
}

#[test]
fn behind_nginx_and_in_front_of_it() {
    let mut machine = with_nginx();
    let mut guide = Guide::open("nginx.md");
    let reason = "the test of a whole server block runs it";
    guide.not_run("A whole server block", "nginx", reason);
    let imports = "the test of imported documents runs the command";
    guide.not_run("What nginx still does", "sh", imports);
    guide.not_run("Client address and HTTPS", "toml", reason);
    guide.not_run("Micro-caching", "toml", "the test of all examples reads it");
    for language in ["apache", "toml"] {
        guide.not_run("In front of Apache", language, "no Apache is installed for the tests");
    }
    let path = "Five-minute path: behind nginx";
    machine.write(TOML, &guide.next(path, "toml"));
    machine.write(SITE, &server(&guide.next(path, "nginx")));
    let output = machine.run(&guide.next(path, "sh"));
    assert!(output.contains("php8.2-fpm.sock: answers"), "{output}");
    let get = guide.next("Verify", "sh");
    let first = machine.run(&get);
    assert!(first.contains("stored"), "{first}");
    let second = machine.run(&get).to_lowercase();
    assert!(
        second.contains(&guide.inline("Cache-Status: pagewell; hit").to_lowercase()),
        "{second}"
    );
    // The visitor's address and scheme come from nginx, and nginx adds nothing of its own.
    assert_eq!(machine.run("curl -s https://example.org/"), "127.0.0.1 on example.org");
    machine.write(SITE, &server(PHP_LOCATION));
    machine.run(&guide.inline("sudo nginx -t && sudo systemctl reload nginx"));
    machine.run(&guide.inline("sudo systemctl disable --now pagewell"));
    let page = machine.run("curl -si https://example.org/");
    assert!(
        page.contains("max-age=600") && !page.to_lowercase().contains("cache-status"),
        "{page}"
    );
    // In front: nginx moves to another port.
    let section = "In front of nginx";
    let toml = guide.next(section, "toml");
    let [real_ip, https, map] = [(); 3].map(|()| guide.next(section, "nginx"));
    let location = PHP_LOCATION
        .replace("include fastcgi_params;\n", &format!("include fastcgi_params;\n{https}"));
    let listen = guide.inline("listen 127.0.0.1:8000;");
    machine.write(
        SITE,
        &format!("{map}server {{\n{listen}\nserver_name example.org;\n{real_ip}{location}}}\n"),
    );
    machine.run("sudo nginx -t && sudo systemctl reload nginx");
    machine.write(TOML, &toml);
    let checked =
        machine.run(&format!("pagewell check --config {TOML} && sudo systemctl start pagewell"));
    assert!(
        checked.contains("site.origin http://127.0.0.1:") && checked.contains(": answers"),
        "{checked}"
    );
    let get = "curl -si http://example.org/ | grep -i ^cache-status";
    assert!(machine.run(get).contains("stored"));
    assert!(machine.run(get).contains("pagewell; hit"));
    assert_eq!(machine.run("curl -s http://example.org/"), "127.0.0.1 off example.org");
}

#[test]
fn behind_a_whole_server_block_of_nginx() {
    let mut machine = with_nginx();
    let mut guide = Guide::open("nginx.md");
    let block = guide.next("A whole server block", "nginx");
    machine.write(SITE, &block);
    let trusted = guide.next("Client address and HTTPS", "toml");
    let site = "[site]\nroot = \"/var/www/site\"\nhost = \"example.org\"\n[php]\nat = \"unix:/run/php/php8.2-fpm.sock\"\n";
    machine.write(TOML, &format!("listen = \"127.0.0.1:8080\"\n{trusted}{site}"));
    machine.run("sudo systemctl start pagewell && sudo nginx -t && sudo systemctl reload nginx");
    let get = guide.next("Verify", "sh");
    assert!(machine.run(&get).contains("stored"));
    assert!(machine.run(&get).contains("pagewell; hit"));
    assert_eq!(machine.run("curl -s https://example.org/"), "127.0.0.1 on example.org");
    // Over a Unix socket, as one line of the guide says.
    let socket = guide.inline("server unix:/run/pagewell/http.sock;");
    machine.write(SITE, &block.replace("server 127.0.0.1:8080;", &socket));
    machine.write(TOML, &format!("listen = \"unix:/run/pagewell/http.sock\"\n{trusted}{site}"));
    machine.run("sudo systemctl restart pagewell && sudo nginx -t && sudo systemctl reload nginx");
    assert!(machine.run(&get).contains("stored"));
    assert!(machine.run(&get).contains("pagewell; hit"));
    assert_eq!(machine.run("curl -s https://example.org/"), "127.0.0.1 on example.org");
    // The test above runs the other blocks.
    guide.only_in_part();
}
