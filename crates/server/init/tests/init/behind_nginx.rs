//! What `init` takes from nginx's `server` block for the `location` that it prints, and for Pagewell's own file: the
//! block stays valid, and no visitor loses what nginx allowed.

use crate::tree::Tree;
use command_line::options::InitArgs;

const DIR: &str = "/var/www/blog";

/// The site behind nginx, with these directives in the block `http`, and in its `server` block.
fn behind_nginx(http: &str, server: &str) -> Tree {
    let text = format!(
        "events {{ }} http {{ server {{ server_name blog.example; root {DIR}; {server} }} {http} }}"
    );
    Tree::with_php().wordpress().file("/etc/nginx/nginx.conf", &text)
}

/// The lines of nginx's configuration that are printed for the site.
fn location(said: &str) -> Vec<&str> {
    let lines = said.lines().skip_while(|line| !line.contains("replace `location /`")).skip(1);
    lines.take_while(|line| line.starts_with("       ")).map(str::trim).collect()
}

/// nginx refuses a directive that a block has twice. So all are in the location, with the size that nginx accepted.
#[test]
fn the_location_accepts_as_much_as_before_and_so_does_pagewell() {
    let php = "location ~ \\.php$ { client_max_body_size 300m; fastcgi_pass 127.0.0.1:9000; }";
    let in_both = format!("client_max_body_size 8m; {php}");
    for (http, server, size, megabytes) in [
        ("", "", "64m", 64_u64),
        ("", "client_max_body_size 8m;", "8m", 64),
        ("", "include /etc/nginx/size;", "256m", 256),
        ("", in_both.as_str(), "300m", 300),
        ("client_max_body_size 1G;", "", "1G", 1_024),
        ("client_max_body_size 1G;", "client_max_body_size 8m;", "8m", 64),
        ("", "client_max_body_size 0;", "0", 64),
    ] {
        let tree = behind_nginx(http, server).file("/etc/nginx/size", "client_max_body_size 256m;");
        let (said, text) = tree.init(DIR);
        let lines = location(&said);
        assert_eq!(lines[0], "location / {", "{said}");
        assert!(lines.contains(&format!("client_max_body_size {size};").as_str()), "{said}");
        assert_eq!(said.matches("client_max_body_size ").count(), 1 + usize::from(size == "0"));
        assert_eq!(tree.check(&text).limits.body_bytes, megabytes << 20, "{text}");
        assert_eq!(said.contains("Pagewell refuses more than 64M"), size == "0", "{said}");
    }
}

/// The limits of the process are in the file already.
#[test]
fn the_size_for_a_further_site_is_named() {
    let other = "[site]\nhost = \"shop.example\"\norigin = \"http://10.0.0.1\"\n";
    let tree = behind_nginx("", "client_max_body_size 256m;");
    let tree = tree.file("/etc/pagewell/pagewell.toml", other);
    let output = Some("/etc/pagewell/second.toml".into());
    let (_, text) = tree.init_with(&InitArgs { output, ..tree.args(DIR) });
    assert!(text.contains("contents of 256M for this host: body_bytes in [limits]"), "{text}");
    assert!(!text.contains("\n[site.limits]") && !text.contains("\nbody_bytes"), "{text}");
}

/// A host with another port is another host, for PHP too. Without such a port, `$host` is right also for clients that send
/// no Host.
#[test]
fn the_port_of_visitors_reaches_php() {
    let www = "server_name www.blog.example;";
    for (listens, name, variable, aliases, is_doubtful) in [
        ("", None, "$host", "www.blog.example", false),
        ("listen 80; listen [::]:443 ssl;", None, "$host", "www.blog.example", false),
        ("listen 80; listen 8090;", None, "$http_host", "www.blog.example", false),
        ("listen 8090;", None, "$http_host", "www.blog.example", true),
        ("listen 8090;", Some("blog.example:8090"), "$http_host", "www.blog.example:8090", false),
        // The port of a container.
        ("listen 80;", Some("blog.example:8090"), "$http_host", "blog.example", false),
    ] {
        let tree = behind_nginx("", &format!("{www} {listens}"));
        let name = name.map(str::to_owned);
        let (said, text) = tree.init_with(&InitArgs { name, ..tree.args(DIR) });
        let lines = location(&said);
        let field = format!("proxy_set_header Host {variable};");
        assert!(lines.contains(&field.as_str()), "{listens}: {said}");
        let hosts = tree.check(&text).hosts;
        assert!(hosts.aliases.iter().any(|alias| alias == aliases), "{listens}: {text}");
        let doubt = "nginx answers at port 8090 for this host";
        assert_eq!(said.contains(doubt), is_doubtful, "{listens}: {said}");
    }
}

#[test]
fn nginx_may_listen_at_another_port() {
    // In a second block of the same host.
    let http = "server { listen 8443 ssl; server_name blog.example; }";
    let tree = behind_nginx(http, "listen 8090; listen [::]:8090;");
    let stopped = tree.init(DIR).0;
    assert!(stopped.contains("but nothing listens at port 8090 or 8443: start it"), "{stopped}");
    let tree = behind_nginx(http, "listen 8090; listen [::]:8090;").port(8090, "nginx", 11);
    let (said, text) = tree.init(DIR);
    assert!(!said.contains("nothing listens") && said.contains("8090 nginx"), "{said}");
    assert!(text.contains("# nginx keeps its ports, and passes requests"), "{text}");
}

/// nginx has the host without the port.
#[test]
fn a_block_is_found_by_a_host_with_a_port() {
    let http = format!(
        "server {{ listen 8090; server_name two.example; root {DIR}; client_max_body_size 9m; }}"
    );
    let tree = behind_nginx(&http, "listen 8090;");
    let (said, _) =
        tree.init_with(&InitArgs { name: Some("two.example:8090".into()), ..tree.args(DIR) });
    assert!(location(&said).contains(&"client_max_body_size 9m;"), "{said}");
}
