//! Small configurations and the lines that they become, above all restrictions: exact, wider, or reported.

mod common;

use common::{imported, rules};
use import_rules::{
    ConfigurationFile, DirectiveFate, FASTCGI_PARAMETERS, ImportChoices, ImportedConfiguration,
    ImportedServer, NothingIncluded, import,
};

fn nginx(text: &str) -> ImportedConfiguration {
    imported(ImportedServer::Nginx, "/etc/nginx/site", &format!("server {{\n{text}\n}}"))
}

fn apache(text: &str) -> ImportedConfiguration {
    imported(ImportedServer::Apache, "/srv/.htaccess", text)
}

/// Checks the rules of an nginx configuration, and that no restriction is lost.
fn are_the_rules(text: &str, expected: &[&str]) {
    let imported = nginx(text);
    assert_eq!(rules(&imported), expected, "{text}\n{}", imported.report.text());
    assert!(!imported.report.lacks_restrictions(), "{text}\n{}", imported.report.text());
}

#[test]
fn access_in_nginx() {
    for (text, expected) in [
        ("location /a/ { deny all; }", &["path = \"/a/**\"; deny = 403"][..]),
        ("location = /a { return 444; }", &["path = \"/a\"; deny = 403"]),
        (
            "deny 10.0.0.1; allow 10.0.0.0/8; deny all;",
            &[
                "from = \"10.0.0.1\"; deny = 403",
                "from = \"10.0.0.0/8\"; deny = false",
                "deny = 403",
            ],
        ),
        (
            "location /a/ { allow 192.0.2.0/24; allow 2001:db8::/32; deny all; }",
            &["path = \"/a/**\"; from = [\"!192.0.2.0/24\", \"!2001:db8::/32\"]; deny = 403"],
        ),
        // An exact location and a preferred prefix are exempt from an expression after them.
        (
            "location ~ \\.txt$ { deny all; } location = /robots.txt { } location ^~ /open/ { } location /x/ { }",
            &[
                "path = \"/robots.txt\"; deny = false",
                "path = \"/open/**\"; deny = false",
                "path = \"/**.txt\"; deny = 403",
            ],
        ),
        // The scripts of a restricted directory are restricted, although nginx has another location for them.
        (
            "location /a/ { deny all; } location ~ \\.php$ { fastcgi_pass x; }",
            &["path = \"/a/**\"; deny = 403"],
        ),
        (
            "satisfy any; allow 10.0.0.0/8; deny all; auth_basic x; auth_basic_user_file /u;",
            &["from = \"!10.0.0.0/8\"; auth_file = \"/u\"; auth_realm = \"x\""],
        ),
        (
            "auth_basic x; auth_basic_user_file /u; location = /a { auth_basic off; }",
            &["path = \"/a\"; auth_file = false", "auth_file = \"/u\"; auth_realm = \"x\""],
        ),
        ("location /d/ { internal; alias /data/; }", &["path = \"/d/**\"; deny = 404"]),
        (
            "if ($request_method !~ ^(GET|HEAD)$) { return 405; }",
            &["method = [\"!GET\", \"!HEAD\"]; deny = 405"],
        ),
        (
            "if ($http_user_agent ~* (bot|spider)) { return 403; }",
            &["header = [\"user-agent: *bot*\", \"user-agent: *spider*\"]; deny = 403"],
        ),
        ("location ~ /\\.(?<!x)git { deny all; }", &["path = \"**/.git**\"; deny = 403"]),
    ] {
        are_the_rules(text, expected);
    }
    let imported = nginx("location /d/ { internal; alias /data/; }");
    assert!(
        imported.text.contains("internal_files = { \"/d/\" = \"/data\" }"),
        "{}",
        imported.text
    );
}

#[test]
fn scripts_within_a_location_of_nginx() {
    for (text, expected) in [
        // The scripts of a location need no rule of their own, unless another location stands between the two.
        (
            "location ^~ /a { auth_basic x; auth_basic_user_file /u; location ~ \\.php$ { fastcgi_pass x:1; } }",
            &["path = \"/a**\"; auth_file = \"/u\"; auth_realm = \"x\""][..],
        ),
        (
            "location /a { deny all; location ~ \\.php$ { fastcgi_pass x:1; } } location ~ \\.php$ { allow all; fastcgi_pass x:1; }",
            &[
                "path = \"/a**\"; path_regex = \"\\\\.php$\"; deny = 403",
                "path = \"/**.php\"; deny = false",
                "path = \"/a**\"; deny = 403",
            ],
        ),
    ] {
        are_the_rules(text, expected);
    }
}

/// Each parameter of nginx's package is one that Pagewell sends, wherever it is written.
#[test]
fn parameters_of_nginxs_package_are_built_in() {
    let fate = |name: &str| {
        let all = nginx(&format!("fastcgi_param {name} $x;")).report.directives;
        let one = all.into_iter().find(|one| one.directive.contains(name)).expect("it is judged");
        (one.fate, one.remark.unwrap_or_default())
    };
    for name in FASTCGI_PARAMETERS {
        assert_eq!(fate(name).0, DirectiveFate::BuiltIn, "{name}");
    }
    assert!(fate("REMOTE_USER").1.contains("auth_forward"));
    assert_eq!(fate("APP_ENV").0, DirectiveFate::NotTranslated);
}

#[test]
fn a_group_of_servers_that_is_in_no_given_file_is_not_translated() {
    let at = |text: &str| {
        let text = format!("{text} server {{ location ~ \\.php$ {{ fastcgi_pass shop; }} }}");
        let imported = imported(ImportedServer::Nginx, "/x", &text);
        let at = imported.text.lines().find_map(|line| line.strip_prefix("at = "));
        (at.map(str::to_owned), imported.report.text())
    };
    let (found, report) = at("");
    let why = "upstream shop is in no given file: name that file, too";
    assert!(found.is_none() && report.contains(why), "{found:?}\n{report}");
    let (found, report) = at("upstream shop { server 10.0.0.5; }");
    let why = "10.0.0.5 is no address with a port: write php.at";
    assert!(found.is_none() && report.contains(why), "{found:?}\n{report}");
    for server in ["unix:/run/php.sock", "10.0.0.5:9000", "[::1]:9000", "php:9000"] {
        let (found, report) = at(&format!("upstream shop {{ server {server}; }}"));
        assert_eq!(found, Some(format!("{server:?}")), "{report}");
    }
}

#[test]
fn a_limit_has_the_rate_of_its_zone() {
    let text = "limit_req_zone $binary_remote_addr zone=a:1m rate=10r/m;\nserver { location = /l.php { limit_req zone=a burst=5 nodelay; } }";
    let imported = imported(ImportedServer::Nginx, "/x", text);
    let expected = "path = \"/l.php\"; limit = { rate = \"10/m\", burst = 5, count = \"all\" }";
    assert_eq!(rules(&imported), [expected]);
}

#[test]
fn a_restriction_without_a_counterpart_fails_the_import() {
    for text in [
        "location /a { auth_request /x; }",
        "if ($query_string ~ union) { return 403; }",
        "location /a { limit_req zone=unknown; }",
        "include other.conf;",
        "location ~ (a)\\1 { deny all; }",
        "auth_basic x;",
    ] {
        let imported = nginx(text);
        assert!(imported.report.lacks_restrictions(), "{text}\n{}", imported.report.text());
    }
    for text in [
        "Require expr %{TIME_HOUR} -gt 9",
        "Deny from example.org",
        "AuthType Digest",
        "RewriteCond %{QUERY_STRING} union\nRewriteRule .* - [F]",
        "<If \"true\">\nRequire all denied\n</If>",
        "AuthUserFile /u\nRequire user jane",
        "Include other.conf",
    ] {
        let imported = apache(text);
        assert!(imported.report.lacks_restrictions(), "{text}\n{}", imported.report.text());
    }
}

#[test]
fn access_in_apache() {
    for (text, expected) in [
        ("Require all denied", &["deny = 403"][..]),
        (
            "Require ip 10.1 192.0.2.0/255.255.255.0",
            &["from = [\"!10.1.0.0/16\", \"!192.0.2.0/24\"]; deny = 403"],
        ),
        (
            "Order allow,deny\nAllow from all\nDeny from 192.0.2.7",
            &["from = \"192.0.2.7\"; deny = 403"],
        ),
        (
            "<Files \"*.sql\">\nOrder deny,allow\nDeny from all\n</Files>",
            &["path = [\"**/*.sql\", \"**/*.sql/**\"]; deny = 403"],
        ),
        (
            "Require all denied\n<Files robots.txt>\nRequire all granted\n</Files>",
            &["path = \"**/robots.txt\"; deny = false", "deny = 403"],
        ),
        (
            "AuthType Basic\nAuthName x\nAuthUserFile /u\nRequire valid-user",
            &["auth_file = \"/u\"; auth_realm = \"x\""],
        ),
        (
            "<LimitExcept GET POST>\nRequire all denied\n</LimitExcept>",
            &["method = [\"!GET\", \"!POST\"]; deny = 403"],
        ),
        // Without the condition on the file, the rule is wider.
        (
            "RewriteCond %{REQUEST_FILENAME} -f\nRewriteRule ^private/ - [F]",
            &["path = \"/private/**\"; deny = 403"],
        ),
        (
            "RewriteCond %{REQUEST_METHOD} TRACE [OR]\nRewriteCond %{HTTP_USER_AGENT} bad\nRewriteRule ^ - [F]",
            &["method = \"TRACE\"; deny = 403", "header = \"user-agent: *bad*\"; deny = 403"],
        ),
        (
            "RewriteRule ^a/.*\\.php$ - [NC,F]",
            &["path_regex = \"(?i)^/a/.*\\\\.php$\"; deny = 403"],
        ),
        ("Redirect gone /old", &["path = [\"/old/**\", \"/old\"]; deny = 410"]),
        ("php_flag engine off", &["php = false"]),
    ] {
        let imported = apache(text);
        assert_eq!(rules(&imported), expected, "{text}\n{}", imported.report.text());
        assert!(!imported.report.lacks_restrictions(), "{text}\n{}", imported.report.text());
    }
    let below = imported(ImportedServer::Apache, "/srv/data/.htaccess", "Deny from all");
    assert_eq!(rules(&below), ["path = [\"/data\", \"/data/**\"]; deny = 403"]);
}

#[test]
fn redirects_and_rewrites() {
    for (text, expected) in [
        ("location = /a { return 301 /b; }", &["path = \"/a\"; redirect = \"/b\""][..]),
        (
            "rewrite ^/p/(\\d+)$ /?p=$1 redirect;",
            &["path_regex = \"^/p/(\\\\d+)$\"; redirect = \"/?p=$1\"; redirect_status = 302"],
        ),
        (
            "location /i/ { rewrite ^/i/(.*)$ /get.php?f=$1 last; }",
            &["path = \"/i/**\"; path_regex = \"^/i/(.*)$\"; rewrite = \"/get.php?f=$1\""],
        ),
        (
            "location / { try_files $uri @d; } location @d { rewrite ^/m/(.*) /f.php?m=$1 last; rewrite ^/(.*) /doku.php?id=$1&$args last; }",
            &[
                "file = \"missing\"; path_regex = \"^/m/(.*)\"; rewrite = \"/f.php?m=$1\"",
                "file = \"missing\"; path_regex = \"^/(.*)\"; rewrite = \"/doku.php?id=$1\"",
            ],
        ),
        (
            "location /old/ { return 301 https://new.example$request_uri; }",
            &["path = \"/old/**\"; path_regex = \"^(/.*)$\"; redirect = \"https://new.example$1\""],
        ),
    ] {
        assert_eq!(rules(&nginx(text)), expected, "{text}");
    }
    for (text, expected) in [
        (
            "Redirect 301 /a /b",
            &[
                "path = \"/a\"; redirect = \"/b\"",
                "path_regex = \"^/a/(.+)$\"; redirect = \"/b/$1\"",
            ][..],
        ),
        ("RewriteRule ^(.*)/$ /$1 [R=301,L]", &["slash = \"remove\""]),
        (
            "RewriteRule ^p/(\\d+)$ index.php?p=$1 [QSA,L]",
            &["path_regex = \"^/p/(\\\\d+)$\"; rewrite = \"/index.php?p=$1\""],
        ),
        (
            "RewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule . /index.php [L]",
            &[],
        ),
    ] {
        assert_eq!(rules(&apache(text)), expected, "{text}");
    }
}

#[test]
fn a_map_of_paths_becomes_redirects() {
    let map = |variable: &str, lines: &str, answer: &str| {
        format!(
            "map ${variable} $new {{ default \"\"; {lines} }}\nserver {{ if ($new) {{ {answer} }} }}"
        )
    };
    let few = "/a /b; /c https://other.example/c; ~^/old/(\\d+)$ /new/$1; ~*^/x/(?<rest>.*)$ /y/$rest; /stay \"\";";
    let text = map("uri", few, "return 301 $new;");
    let of_map = imported(ImportedServer::Nginx, "/x", &text);
    let expected = [
        "path = \"/a\"; redirect = \"/b\"",
        "path = \"/c\"; redirect = \"https://other.example/c\"",
        "path = \"/stay\"; redirect = false",
        "path_regex = \"^/old/(\\\\d+)$\"; redirect = \"/new/$1\"",
        "path_regex = \"(?i)^/x/(?<rest>.*)$\"; redirect = \"/y/$1\"",
    ];
    assert_eq!(rules(&of_map), expected, "{}", of_map.report.text());
    assert_eq!(of_map.report.count(DirectiveFate::NotTranslated), 0, "{}", of_map.report.text());
    let text = map("uri", "/a /b;", "rewrite ^ https://$host$new redirect;");
    let of_map = imported(ImportedServer::Nginx, "/x", &text);
    assert_eq!(rules(&of_map), ["path = \"/a\"; redirect = \"/b\"; redirect_status = 302"]);
    for (variable, lines, answer) in [
        ("request_uri", "/a?x=1 /b;", "return 301 $new;"),
        ("uri", "/a b;", "return 301 $new;"),
        ("uri", "/a /b$request_uri;", "return 301 $new;"),
        ("uri", "~^/a(?=b) /b;", "return 301 $new;"),
        ("uri", "a.example /b;", "return 301 $new;"),
        ("host", "/a /b;", "return 301 $new;"),
        ("uri", "/a /b;", "return 403;"),
    ] {
        let text = map(variable, lines, answer);
        let of_map = imported(ImportedServer::Nginx, "/x", &text);
        assert_eq!(rules(&of_map), Vec::<String>::new(), "{text}");
        assert!(of_map.report.count(DirectiveFate::NotTranslated) > 0, "{text}");
        let report = of_map.report.text();
        let unknown = report.lines().find(|line| line.starts_with("Not known to the importer"));
        let unknown = unknown.unwrap_or_default();
        let is_named = ["default", "/a", "map"].iter().any(|name| unknown.contains(name));
        assert!(!is_named, "{text}: {unknown}");
    }
}

#[test]
fn many_paths_of_a_map_become_a_redirect_file() {
    let many: String = (0..600).map(|n| format!("/old/{n} /new/{n};\n")).collect();
    let text = format!(
        "map $request_uri $new {{ {many} /p?id=1 /q; ~^/r$ /s; }}\nserver {{ if ($new != '') {{ return 308 $new; }} }}"
    );
    let file = ConfigurationFile { path: "/x".into(), text };
    let read = |redirect_file: Option<&std::path::Path>| {
        let choices = ImportChoices { redirect_file, ..ImportChoices::default() };
        import(ImportedServer::Nginx, std::slice::from_ref(&file), &choices, &mut NothingIncluded)
    };
    let error = read(None).expect_err("too many rules").to_string();
    assert!(error.contains("500 at most"), "{error}");
    let imported = read(Some("/etc/site.redirects.tsv".as_ref())).expect("a configuration");
    assert!(imported.text.contains("redirect_files = \"/etc/site.redirects.tsv\""));
    let lines = imported.redirects.clone().unwrap_or_default();
    assert_eq!(lines.lines().count(), 601);
    assert_eq!(lines.lines().next(), Some("/old/0\t/new/0\t308"));
    assert_eq!(lines.lines().last(), Some("/p?id=1\t/q\t308"));
    let only = "path_regex = \"^/r$\"; redirect = \"/s\"; redirect_status = 308";
    assert!(rules(&imported).iter().any(|rule| rule == only || rule.starts_with("path = \"/r\"")));
    assert_eq!(imported.report.count(DirectiveFate::NotTranslated), 0);
}

#[test]
fn https_and_the_canonical_host_are_options() {
    let servers = "server { listen 80; server_name example.org www.example.org; return 301 https://$host$request_uri; }\n\
        server { listen 443 ssl; server_name www.example.org; ssl_certificate /c; ssl_certificate_key /k; return 301 https://example.org$request_uri; }\n\
        server { listen 443 ssl; server_name example.org; ssl_certificate /c; ssl_certificate_key /k; root /x; location / { try_files $uri /index.php; } }\n\
        server { listen 80; server_name other.example; root /y; }";
    let imported = imported(ImportedServer::Nginx, "/x", servers);
    for line in [
        "https_redirect = 301",
        "canonical_redirect = 301",
        "host = \"example.org\"",
        "aliases = \"www.example.org\"",
        "key = \"/k\"",
    ] {
        assert!(imported.text.lines().any(|is| is == line), "{line}\n{}", imported.text);
    }
    assert!(!imported.text.contains("other.example"));
    assert_eq!(
        imported.report.count(DirectiveFate::NotTranslated),
        0,
        "{}",
        imported.report.text()
    );
    let text = "RewriteEngine on\nRewriteCond %{HTTPS} off\nRewriteRule ^ https://%{HTTP_HOST}%{REQUEST_URI} [R=301,L]\n\
        RewriteCond %{HTTP_HOST} ^www\\.example\\.org$ [NC]\nRewriteRule ^(.*)$ https://example.org/$1 [R=301,L]\n";
    let imported = apache(text);
    assert!(imported.text.contains("https_redirect = 301"), "{}", imported.text);
    assert!(imported.text.contains("canonical_redirect = 301"), "{}", imported.text);
}

#[test]
fn plain_http_is_redirected_in_every_usual_form() {
    let site = "listen 443 ssl; server_name a.org www.a.org; ssl_certificate /c; ssl_certificate_key /k; root /x; \
        location / { try_files $uri /index.php; }";
    let certbot = "server { listen 80; server_name a.org www.a.org; \
        if ($host = www.a.org) { return 301 https://$host$request_uri; } \
        if ($host = a.org) { return 301 https://$host$request_uri; } return 404; }";
    for (plain, more) in [
        ("server { server_name a.org www.a.org; return 301 https://a.org$request_uri; }", ""),
        ("server { server_name a.org; location / { return 301 https://a.org$request_uri; } }", ""),
        ("", "listen 80; if ($scheme = http) { return 301 https://a.org$request_uri; }"),
        (certbot, ""),
    ] {
        let text = format!("{plain}\nserver {{ {site} {more} }}");
        let imported = imported(ImportedServer::Nginx, "/x", &text);
        let has = |line: &str| imported.text.lines().any(|is| is == line);
        assert!(has("https_redirect = 301"), "{text}\n{}", imported.text);
        assert_eq!(has("other_hosts = \"refuse\""), plain == certbot, "{}", imported.text);
        let missing = imported.report.count(DirectiveFate::NotTranslated);
        assert_eq!(missing, 0, "{}", imported.report.text());
    }
    // Only another host is redirected: plain HTTP stays.
    let www = "server { server_name www.a.org; return 301 https://a.org$request_uri; }";
    let text = format!("{www}\nserver {{ {} }}", site.replace("a.org www.a.org", "a.org"));
    let imported = imported(ImportedServer::Nginx, "/x", &text);
    assert!(!imported.text.contains("https_redirect"), "{}", imported.text);
}

#[test]
fn errors_name_the_place() {
    let read = |server, text: &str| {
        let file = ConfigurationFile { path: "/x".into(), text: text.to_owned() };
        let choices = ImportChoices::default();
        import(server, &[file], &choices, &mut NothingIncluded)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    for (text, expected) in [
        ("server {\n a;\n", "/x:3: the file ends inside of a block"),
        ("a;\n}\n", "/x:2: a } without its {"),
        ("a \"b", "/x:1: a quoted word without its end"),
        ("a b", "/x:1: no ; after"),
        (&"a{".repeat(100), "/x:1: blocks are nested too deeply"),
    ] {
        let error = read(ImportedServer::Nginx, text).expect_err(text);
        assert!(error.starts_with(expected), "{error}");
    }
    for (text, expected) in [
        ("a\n<Files x>\n", "/x:2: the section <files> is not closed"),
        ("</Files>", "/x:1: </files"),
        ("<Files x>\n</Limit>", "/x:2: "),
        ("a \"b", "/x:1: no \" at the end of a quoted word"),
    ] {
        let error = read(ImportedServer::Apache, text).expect_err(text);
        assert!(error.starts_with(expected), "{error}");
    }
    let large = "a;\n".repeat(2 << 20);
    assert!(read(ImportedServer::Nginx, &large).expect_err("large").contains("too large"));
}
