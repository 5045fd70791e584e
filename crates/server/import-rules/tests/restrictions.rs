//! Restrictions that were lost or became narrower: each is exact, wider, or reported as lost.

mod common;

use common::{imported, rules};
use import_rules::{DirectiveFate, ImportedConfiguration, ImportedServer};

fn nginx(text: &str) -> ImportedConfiguration {
    servers(&format!("server {{\n{text}\n}}"))
}

fn servers(text: &str) -> ImportedConfiguration {
    imported(ImportedServer::Nginx, "/etc/nginx/site", text)
}

fn htaccess(text: &str) -> ImportedConfiguration {
    imported(ImportedServer::Apache, "/srv/.htaccess", text)
}

fn uploads(text: &str) -> ImportedConfiguration {
    imported(ImportedServer::Apache, "/srv/uploads/.htaccess", text)
}

fn virtual_host(text: &str) -> ImportedConfiguration {
    let text = format!("<VirtualHost *>\nDocumentRoot /srv\n{text}\n</VirtualHost>");
    imported(ImportedServer::Apache, "/etc/httpd.conf", &text)
}

fn are(imported: &ImportedConfiguration, expected: &[&str], text: &str) {
    assert_eq!(rules(imported), expected, "{text}\n{}", imported.report.text());
    assert!(!imported.report.lacks_restrictions(), "{text}\n{}", imported.report.text());
}

fn is_lost(imported: &ImportedConfiguration, text: &str) {
    assert!(imported.report.lacks_restrictions(), "{text}\n{}", imported.report.text());
}

#[test]
fn an_expression_in_a_location_never_exempts() {
    for (text, expected) in [
        (
            "location / { try_files $uri /index.php; location ~* \\.css$ { expires 30d; } } location /private/ { deny all; }",
            "path = \"/private/**\"; deny = 403",
        ),
        (
            "location /app/ { location ~ \\.js$ { allow all; } } location ^~ /app/private/ { auth_basic x; auth_basic_user_file /u; }",
            "path = \"/app/private/**\"; auth_file = \"/u\"; auth_realm = \"x\"",
        ),
        (
            "location ^~ /a/ { location = /a/b/x { allow all; } } location ^~ /a/b/ { deny all; }",
            "path = \"/a/b/**\"; deny = 403",
        ),
    ] {
        let imported = nginx(text);
        let all = rules(&imported);
        assert!(all.iter().any(|rule| rule == expected), "{text}\n{all:#?}");
        assert!(!all.iter().any(|rule| rule.contains("= false")), "{text}\n{all:#?}");
        assert!(!imported.report.lacks_restrictions(), "{text}\n{}", imported.report.text());
    }
    let text = "location /a/ { location ^~ /a/b/ { allow all; } } location ~ \\.sql$ { deny all; }";
    are(&nginx(text), &["path = \"/**.sql\"; deny = 403"], text);
    // Networks of an inner expression only refuse.
    let text = "location / { location ~ \\.js$ { deny 10.0.0.1; allow 10.0.0.0/8; deny all; } } location /p/ { deny all; }";
    let expected = [
        "path = \"/**.js\"; from = \"10.0.0.1\"; deny = 403",
        "path = \"/**.js\"; from = \"!10.0.0.0/8\"; deny = 403",
        "path = \"/p/**\"; deny = 403",
    ];
    are(&nginx(text), &expected, text);
    let text = "location / { location ~ \\.js$ { auth_basic x; auth_basic_user_file /all; } } location /p/ { auth_basic x; auth_basic_user_file /few; }";
    is_lost(&nginx(text), text);
}

#[test]
fn scripts_run_where_nginx_runs_them() {
    for (inner, expected) in [
        ("location /app/ { location ~ \\.php$ { fastcgi_pass x; } }", "/app/**.php"),
        ("location / { location ~ ^/a\\.php$ { fastcgi_pass x; } }", "/a.php"),
    ] {
        let imported = nginx(&format!("location = /index.php {{ fastcgi_pass x; }} {inner}"));
        let expected = format!("entry_points = [\"/index.php\", \"{expected}\"]");
        let is_there = imported.text.lines().any(|line| line == expected);
        assert!(is_there, "{inner}\n{}", imported.text);
    }
    let text = "location ~ ^/(?!up)[a-z]+/x\\.php$ { fastcgi_pass x; }";
    is_lost(&nginx(text), text);
    let text = "location = /index.php { fastcgi_pass x; } location ~ ^/(?!up)[a-z]+/x\\.php$ { fastcgi_pass x; }";
    let imported = nginx(text);
    assert!(imported.text.contains("entry_points = \"/index.php\"\n"), "{}", imported.text);
    assert!(!imported.text.contains("php = true"), "{}", imported.text);
}

#[test]
fn a_place_in_which_apache_runs_no_scripts_runs_none() {
    let off = ["path = [\"/uploads\", \"/uploads/**\"]; php = false"];
    for text in [
        "Options -ExecCGI\nAddHandler cgi-script .php .phtml .pl",
        "AddType text/plain .php",
        "AddType application/x-httpd-php-source php",
        "ForceType text/plain",
        "SetHandler cgi-script",
        "SetHandler none",
        "RemoveHandler .php",
        "RemoveType php",
        "php_flag engine 0",
        "php_admin_value engine off",
        "<IfModule mod_php.c>\nphp_flag engine off\n</IfModule>",
    ] {
        let imported = uploads(text);
        assert_eq!(rules(&imported), off, "{text}\n{}", imported.report.text());
    }
    for text in [
        "AddHandler application/x-httpd-php .php",
        "AddType application/x-httpd-php .php",
        "AddType image/webp .webp",
        "<FilesMatch \"\\.css$\">\nForceType text/css\n</FilesMatch>",
        "AddType text/plain .phtml",
        "RemoveHandler .pl",
    ] {
        are(&uploads(text), &[], text);
    }
    let text = "<FilesMatch \"\\.php$\">\nSetHandler none\n</FilesMatch>";
    are(&htaccess(text), &["path = [\"/**.php\", \"/**.php/**\"]; php = false"], text);
    let text = "<DirectoryMatch ^/srv/up>\nAddHandler cgi-script .php\n</DirectoryMatch>";
    is_lost(&virtual_host(text), text);
}

#[test]
fn apache_applies_urls_last() {
    let text = "<Directory /srv/shop>\nRequire all granted\n</Directory>\n<Location /shop/admin>\nRequire ip 10.0.0.0/8\n</Location>";
    let expected =
        ["path = [\"/shop/admin\", \"/shop/admin/**\"]; from = \"!10.0.0.0/8\"; deny = 403"];
    are(&virtual_host(text), &expected, text);
    let text = "<Location /a>\nRequire all denied\n</Location>\n<Files x.txt>\nRequire all granted\n</Files>\nRequire all denied";
    let expected = [
        "path = [\"/a\", \"/a/**\"]; deny = 403",
        "path = \"**/x.txt\"; deny = false",
        "deny = 403",
    ];
    are(&virtual_host(text), &expected, text);
    let text = "Require all denied\n<Location /pub>\nRequire all granted\n</Location>";
    are(&virtual_host(text), &["path = [\"/pub\", \"/pub/**\"]; deny = false", "deny = 403"], text);
    let text = "Require all denied\n<Location /u/*/pub>\nRequire all granted\n</Location>";
    are(&virtual_host(text), &["deny = 403"], text);
    let text = "<Location /u/?[ab]/x>\nRequire all denied\n</Location>";
    are(&virtual_host(text), &["path = \"/u/**\"; deny = 403"], text);
    let text = "Require all denied\n<Files a.css>\nRequire all granted\n</Files>";
    let expected = [
        "path = [\"/uploads/**/a.css\", \"/uploads/a.css\"]; deny = false",
        "path = [\"/uploads\", \"/uploads/**\"]; deny = 403",
    ];
    are(&uploads(text), &expected, text);
    for text in [
        "<Directory /srv/*/private>\nRequire all denied\n</Directory>",
        "<Files \"[ab].sql\">\nRequire all denied\n</Files>",
    ] {
        is_lost(&virtual_host(text), text);
    }
}

#[test]
fn dependence_on_modules_versions_and_parameters_is_not_silent() {
    for text in [
        "<IfDefine !DEV>\n<Files status>\nRequire all denied\n</Files>\n</IfDefine>",
        "Require all denied\n<IfDefine DEV>\nRequire all granted\n</IfDefine>",
        "<IfModule !mod_x.c>\nRewriteRule ^private - [F]\n</IfModule>",
        "<IfModule !mod_php7.c>\nphp_flag engine off\n</IfModule>",
        "<IfModule mod_x.c>\n<IfModule !mod_y.c>\nDeny from all\n</IfModule>\n</IfModule>",
        "<IfVersion < 2.2>\nDeny from all\n</IfVersion>",
        "<IfModule !mod_a.c>\nRequire all denied\n</IfModule>\n<IfModule mod_a.c>\nOptions -Indexes\n</IfModule>",
    ] {
        is_lost(&htaccess(text), text);
    }
    let text = "Require all denied\n<IfDefine DEV>\nRequire all granted\n</IfDefine>";
    assert_eq!(rules(&htaccess(text)), ["deny = 403"]);
    let text = "<IfModule mod_authz_core.c>\nRequire all denied\n</IfModule>\n<IfModule !mod_authz_core.c>\nDeny from all\n</IfModule>";
    are(&htaccess(text), &["deny = 403"], text);
    let text = "<IfModule mod_authz_core.c>\n<Files x>\nRequire all denied\n</Files>\n</IfModule>\n<IfModule !mod_authz_core.c>\n<Files x>\nDeny from all\n</Files>\n</IfModule>";
    are(&htaccess(text), &["path = [\"**/x\", \"**/x/**\"]; deny = 403"], text);
    is_lost(&htaccess(&text.replacen("<Files x>", "<Files y>", 1)), text);
    let text = "<IfVersion < 2.4>\nDeny from all\n</IfVersion>\n<IfVersion >= 2.4>\nRequire all denied\n</IfVersion>";
    are(&htaccess(text), &["deny = 403"], text);
    are(&htaccess("<IfModule !mod_rewrite.c>\nErrorDocument 404 /x.php\n</IfModule>"), &[], "");
}

const SITE: &str =
    "server { listen 80; server_name a.org; root /x; location / { try_files $uri /index.php; } }\n";

#[test]
fn a_server_beside_the_site_does_not_close_it() {
    for other in [
        "server { listen 80 default_server; server_name _; return 444; }",
        "server { server_name _; location / { return 403; } }",
        "server { listen 443 ssl default_server; server_name _; ssl_reject_handshake on; }",
    ] {
        are(&servers(&format!("{SITE}{other}")), &[], other);
        are(&servers(&format!("{other}\n{SITE}")), &[], other);
    }
    let text = format!("{SITE}server {{ listen 81; server_name a.org; return 403; }}");
    is_lost(&servers(&text), &text);
    // The access rules of another server are for its hosts, and its exemptions are for nobody else.
    let text = format!(
        "{SITE}server {{ server_name b.a.org; root /x; location = /o {{ allow all; }} location / {{ deny all; }} }}"
    );
    are(&servers(&text), &["host = \"b.a.org\"; deny = 403"], &text);
    // Two servers with one name: what one of them exempts, the other may refuse.
    let open = "location ^~ /o/ { }";
    let refusing = "server_name a.org; root /x; location ~ \\.sql$ { deny all; }";
    let same = ["path = \"/o/**\"; deny = false", "path = \"/**.sql\"; deny = 403"];
    let one = format!("server {{ {refusing} {open} }}");
    are(&servers(&format!("{one}\n{one}")), &same, &one);
    let text = format!("{one}\nserver {{ {refusing} }}");
    are(&servers(&text), &["path = \"/**.sql\"; deny = 403", same[0], same[1]], &text);
    let text = format!("server {{ {refusing} }}\n{one}");
    are(&servers(&text), &[same[1], same[1]], &text);
}

#[test]
fn a_refusal_by_scheme_or_host_is_a_rule_or_lost() {
    let text = "server_name a.org b.org; if ($host != a.org) { return 403; }";
    are(&nginx(text), &["host = \"!a.org\"; deny = 403"], text);
    let text = "server_name a.org; if ($host != a.org) { return 403; }";
    are(&nginx(text), &[], text);
    for text in [
        "server_name a.org; if ($scheme = http) { return 403; }",
        "server_name a.org www.a.org; if ($host ~ ^www\\.) { return 444; }",
    ] {
        is_lost(&nginx(text), text);
    }
}

#[test]
fn require_and_deny_in_one_block_both_apply() {
    let both = ["from = \"!10.0.0.0/8\"; deny = 403", "from = \"10.6.6.6\"; deny = 403"];
    for (text, expected) in [
        ("Require ip 10.0.0.0/8\nOrder allow,deny\nAllow from all\nDeny from 10.6.6.6", &both[..]),
        ("Order allow,deny\nAllow from 10.0.0.0/8\nDeny from 10.6.6.6", &both),
        (
            "Require ip 10.0.0.0/8\nOrder deny,allow\nDeny from all\nAllow from 10.0.0.0/8",
            &both[..1],
        ),
        ("Require all granted\nOrder allow,deny\nDeny from all", &["deny = 403"]),
    ] {
        are(&htaccess(text), expected, text);
    }
}

#[test]
fn https_without_a_certificate_is_missing() {
    is_lost(&htaccess("SSLRequireSSL"), "SSLRequireSSL");
    let text = "SSLCertificateFile /c\nSSLCertificateKeyFile /k\nSSLRequireSSL";
    are(&virtual_host(text), &[], text);
    let text =
        format!("{SITE}server {{ server_name a.org; return 301 https://$host$request_uri; }}");
    let imported = servers(&text);
    assert_eq!(
        imported.report.count(DirectiveFate::NotTranslated),
        1,
        "{}",
        imported.report.text()
    );
}

#[test]
fn restrictions_without_a_counterpart_fail_the_import() {
    for text in [
        "location /a { auth_pam x; }",
        "auth_ldap x;",
        "limit_conn zone 5;",
        "modsecurity on;",
        "access_by_lua_file /x;",
        "auth_digest x;",
        "limit_except GET { deny all; }",
    ] {
        is_lost(&nginx(text), text);
    }
    for text in [
        "<DirectoryMatch x>\nRewriteRule x - [F]\n</DirectoryMatch>",
        "<DirectoryMatch x>\nphp_flag engine off\n</DirectoryMatch>",
        "<DirectoryMatch x>\nRedirect 403 /x\n</DirectoryMatch>",
        "AuthLDAPURL ldap://x",
        "SecRuleEngine on",
        "Redirect 403",
    ] {
        is_lost(&htaccess(text), text);
    }
    for (text, expected) in [
        ("Redirect 403 /", "path = \"/**\"; deny = 403"),
        ("Redirect 451 /x", "path = [\"/x/**\", \"/x\"]; deny = 403"),
        ("<Files x>\nRedirect 410\n</Files>", "path = [\"**/x\", \"**/x/**\"]; deny = 410"),
    ] {
        are(&htaccess(text), &[expected], text);
    }
    for text in ["limit_rate 1m; auth_request off; modsecurity off;", "limit_conn_zone x;"] {
        let imported = nginx(text);
        assert!(!imported.report.lacks_restrictions(), "{text}\n{}", imported.report.text());
    }
    let report = nginx("something_new on;").report.text();
    assert!(report.contains("look whether they restrict: something_new\n"), "{report}");
}

#[test]
fn the_pages_of_the_site_are_valid_referers() {
    let text = "valid_referers none blocked server_names; location /i/ { }";
    let inner = "location /i/ { valid_referers none blocked server_names; if ($invalid_referer) { return 403; } }";
    assert_eq!(rules(&nginx(text)), Vec::<String>::new());
    let expected = "path = \"/i/**\"; header = [\"referer\", \"!referer: http://a.org/*\", \"!referer: http://a.org\", \"!referer: https://a.org/*\", \"!referer: https://a.org\"]; deny = 403";
    are(&nginx(&format!("server_name a.org; {inner}")), &[expected], inner);
    is_lost(&nginx(inner), inner);
}
