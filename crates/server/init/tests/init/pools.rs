//! The pool of php-fpm that runs the site: by the address that nginx names, in any form of it.

use crate::tree::{Tree, lines};

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
        ("localhost:9000", "127.0.0.1:9000", "/etc/php/8.1/fpm/pool.d/shop.conf", 3),
        ("php", "unix:/run/php/php8.1-fpm.sock", "/etc/php/8.1/fpm/pool.d/www.conf", 5),
    ] {
        let tree = behind_nginx(Tree::with_php(), servers, pass)
            .file("/etc/php/8.1/fpm/pool.d/shop.conf", of_port)
            .link("/run/php/php-fpm.sock", "/etc/alternatives/php-fpm.sock")
            .link("/etc/alternatives/php-fpm.sock", "/run/php/php8.1-fpm.sock");
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
fn a_name_that_is_no_upstream_is_no_address() {
    let tree = behind_nginx(Tree::with_php(), "upstream php { ip_hash; server php; }", "php");
    let (_, text) = tree.init("/var/www/blog");
    tree.check(&text);
    assert!(lines(&text).contains(&"at = \"unix:/run/php/php8.2-fpm.sock\"".to_owned()), "{text}");
}
