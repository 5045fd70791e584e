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
