//! The text of the configuration that is written: one template for each application, which the guides show.
//!
//! Every value is a TOML string with its control characters escaped, and comments have one line, so that no
//! value of a site's files can add a line.

use crate::facts::PASSWORD_FILE;
use crate::plan::{
    DatabaseFollowing, FollowedDatabase, FrontServer, HTTP_ORIGIN, SetupPlan, plain_text,
};
use command_line::options::SiteKind;
use option_table::toml_string;
use std::fmt::Write as _;

/// The directory in which PHP finds the socket of the capture.
pub const CAPTURE_DIRECTORY: &str = "/run/pagewell";

/// Rules for Magento, which sends `X-Magento-Vary` and tags to its cache.
const MAGENTO: &str = r#"
# Personal pages always come from PHP.
[[rule]]
path = ["/checkout/**", "/customer/**"]
bypass = true

# These pages come without the visitor's session: name only pages that show nothing of it.
[[rule]]
path = ["/", "/*.html", "/catalog/**"]
shared_with_sessions = true

# For GraphQL by GET.
[keys]
fields = ["Store", "Content-Currency"]
"#;

/// What WordPress needs of a server for visitors: fields for browsers, and long lifetimes of versioned files.
const WORDPRESS: &str = r#"
# Browsers keep these files for a year: WordPress adds a version to their URLs.
[[rule]]
path = ["/wp-includes/**", "/**.css", "/**.js", "/**.woff2"]
file_cache = "public, max-age=31536000, immutable"

[[rule]]
set_headers = { X-Content-Type-Options = "nosniff", X-Frame-Options = "SAMEORIGIN" }

# Remove the first # of these lines if no program of yours needs XML-RPC.
#[[rule]]
#path = "/xmlrpc.php"
#deny = 403
"#;

/// Drupal's code and configuration, which its `.htaccess` denies.
const DRUPAL: &str = r#"
# Source code and settings of modules and themes are not sent.
[[rule]]
path_regex = '(?i)\.(engine|inc|install|make|module|profile|po|theme|twig|yml)$'
deny = 403
"#;

/// The trial, which the printed commands turn on, and the audit.
const PROOF: &str = r#"
# Begin with a trial: visitors get the site's own answers, and `pagewell trial` says what would have been wrong.
#mode = "trial"
# One cache hit in a thousand is compared with a new page; `pagewell status` has the result.
audit = "1 in 1000"
"#;

/// The scripts of an application, where they are few and all known.
fn entry_points(kind: SiteKind) -> &'static [&'static str] {
    match kind {
        SiteKind::Laravel | SiteKind::Symfony => &["/index.php"],
        SiteKind::Drupal => &[
            "/index.php",
            "/update.php",
            "/core/install.php",
            "/core/rebuild.php",
            "/core/authorize.php",
            "/core/modules/statistics/statistics.php",
        ],
        SiteKind::MediaWiki => &[
            "/index.php",
            "/api.php",
            "/load.php",
            "/rest.php",
            "/thumb.php",
            "/img_auth.php",
            "/opensearch_desc.php",
            "/mw-config/index.php",
        ],
        // Plugins and plain sites have scripts of their own; Magento's are the HTTP origin's.
        SiteKind::WordPress | SiteKind::Magento | SiteKind::Php => &[],
    }
}

/// The text of the configuration file of a machine with this site alone.
#[must_use]
pub fn file_text(plan: &SetupPlan) -> String {
    let mut text = format!(
        "# Pagewell for {} in {}, written by `pagewell init`. All options: man pagewell.toml\n\
         #   sudo pagewell check --config /etc/pagewell/pagewell.toml     checks this file\n\
         #   sudo systemctl reload pagewell                               applies a change\n\n",
        plan.site.kind.title(),
        plain_text(&plan.site.root.display().to_string())
    );
    addresses(&mut text, plan);
    if let Some(memory) = plan.memory {
        let _ = write!(
            text,
            "# The page budget: contents, header fields and index together.\nmemory = \"{memory}M\"\n"
        );
    }
    text.push_str(PROOF);
    certificates(&mut text, plan);
    text.push_str("\n[site]\n");
    site_keys(&mut text, plan);
    text.push_str(&php(plan));
    text.push_str(&limits(plan));
    text.push_str(&rules(plan));
    text.push_str(&database(plan, CAPTURE_DIRECTORY));
    text.push_str(match &plan.following {
        DatabaseFollowing::Ready(_) => {
            "\n# Pages survive restarts and upgrades.\n#[snapshot]\n#directory = \"/var/lib/pagewell\"\n"
        }
        DatabaseFollowing::Prepared(_) | DatabaseFollowing::Not(_) => {
            "\n# The record of a trial survives restarts. Pages do so with a followed database, or with \"serve\": nothing \
             changes while\n# Pagewell is down.\n[snapshot]\ndirectory = \"/var/lib/pagewell\"\nunwatched = \"drop\"\n"
        }
    });
    text
}

/// The text that is appended to the configuration of other sites: one `[[site]]` under trial, with tables of its own.
/// Those of the process are in the file already.
#[must_use]
pub fn site_text(plan: &SetupPlan) -> String {
    let mut text = format!(
        "\n# Pagewell for {} in {}, written by `pagewell init`. Each site in the file is a [[site]].\n\
         # These count for all sites: the keys at the top of the file, [limits], [snapshot], [acme] and [[tls]].\n\
         [[site]]\nmode = \"trial\"\n",
        plan.site.kind.title(),
        plain_text(&plan.site.root.display().to_string())
    );
    site_keys(&mut text, plan);
    let rules = rules(plan);
    text.push_str(
        "# Rules and databases of another site at the top of the file do not count here.\nchange = []\n",
    );
    if rules.is_empty() {
        text.push_str("rule = []\n");
    }
    if has_http_origin(plan) {
        text.push_str("php = {}\n");
    }
    text.push_str(match &plan.following {
        DatabaseFollowing::Ready(_) => "",
        DatabaseFollowing::Prepared(_) => {
            "# Remove the next two lines when the database below has no # any more.\ndatabase = []\n\
             automatic = { enabled = false }\n"
        }
        DatabaseFollowing::Not(_) => "database = []\nautomatic = { enabled = false }\n",
    });
    let mut tables = php(plan);
    if let Some(children) = children(plan) {
        let _ = writeln!(
            tables,
            "# The pool has {children} children: origin_connections in [limits] counts for each site's php-fpm."
        );
    }
    if let Some(size) = plan.body_bytes() {
        let _ = writeln!(
            tables,
            "# nginx accepts contents of {size} for this host: body_bytes in [limits] must be as large."
        );
    }
    tables.push_str(&rules);
    tables.push_str(&database(plan, &format!("/run/{}", own_directory(plan))));
    for line in tables.lines() {
        text.push_str(&line_of_site(line));
        text.push('\n');
    }
    text
}

/// The directory for the capture of one of several sites, below `/run`: in one directory, the site that starts last
/// would take the socket of the others.
#[must_use]
pub fn own_directory(plan: &SetupPlan) -> String {
    let host = plan.host.as_deref().and_then(|host| host.split(':').next());
    format!("pagewell/{}", host.unwrap_or("site"))
}

/// A line of a table, also as a comment, in the form for one of several sites: `[php]` becomes `[site.php]`.
fn line_of_site(line: &str) -> String {
    let header = line.trim_start_matches('#');
    let marks = &line[..line.len() - header.len()];
    match (header.strip_prefix("[["), header.strip_prefix('[')) {
        (Some(name), _) => format!("{marks}[[site.{name}"),
        (None, Some(name)) => format!("{marks}[site.{name}"),
        (None, None) => line.to_owned(),
    }
}

/// The rules of the application, and its keys; empty if it needs none.
fn rules(plan: &SetupPlan) -> String {
    let mut text = String::new();
    if let Some(directory) = uploads(plan.site.kind).filter(|_| !has_http_origin(plan)) {
        let _ = write!(
            text,
            "\n# A PHP file that a visitor has uploaded does not run.\n[[rule]]\npath = \"{directory}**\"\nphp = false\n"
        );
    }
    if plan.site.kind == SiteKind::Drupal && !has_http_origin(plan) {
        text.push_str(DRUPAL);
    }
    // A server in front has its own fields.
    if plan.site.kind == SiteKind::WordPress && plan.front == FrontServer::Nobody {
        text.push_str(WORDPRESS);
    }
    if plan.site.kind == SiteKind::Magento {
        text.push_str(MAGENTO);
    }
    text
}

/// The tables of the followed database, as a comment until its commands have been run. `capture`: the directory in
/// which PHP finds the socket of the capture.
fn database(plan: &SetupPlan, capture: &str) -> String {
    let mut text = String::new();
    match &plan.following {
        DatabaseFollowing::Ready(database) => {
            text.push_str(
                "\n# Pages depend on the rows that they read; a changed row purges them.\n",
            );
            text.push_str(&following(database, capture));
        }
        DatabaseFollowing::Prepared(database) => {
            text.push_str(
                "\n# Follow the database: remove the first # of these lines when its account exists and its \
                 change stream\n# is on. `pagewell init` prints the commands.\n",
            );
            for line in following(database, capture).lines() {
                let _ = writeln!(
                    text,
                    "{}",
                    if line.is_empty() { String::new() } else { format!("#{line}") }
                );
            }
        }
        DatabaseFollowing::Not(_) => {}
    }
    text
}

fn addresses(text: &mut String, plan: &SetupPlan) {
    let listen = toml_string(&plan.listen);
    let trusted = "# That server says which address and scheme a visitor has.\ntrusted_proxies = [\"127.0.0.1\"]\n";
    let behind = |program: &str| {
        format!(
            "# {program} keeps its ports, and passes requests to this address.\nlisten = {listen}\n{trusted}"
        )
    };
    let _ = match &plan.front {
        FrontServer::Nginx(_) => text.write_str(&behind("nginx")),
        FrontServer::Other(program) => text.write_str(&behind(program)),
        FrontServer::Apache(_) => write!(
            text,
            "# For a first test beside Apache. When Apache has left the ports: listen = \":80\", and the lines of the\n\
             # guide to HTTPS.\nlisten = {listen}\n"
        ),
        FrontServer::Nobody if has_public_name(plan) => write!(
            text,
            "# Every IPv4 address; \"[::]:80\" is IPv6 as well.\nlisten = {listen}\n\
             listen_tls = \":443\"\nhttps_redirect = 308\n"
        ),
        FrontServer::Nobody if plan.listen.starts_with(':') => write!(
            text,
            "# Every IPv4 address; \"[::]:80\" is IPv6 as well.\nlisten = {listen}\n\
             # HTTPS, with a certificate and a key that the user pagewell can read:\n\
             #listen_tls = \":443\"\n#https_redirect = 308\n"
        ),
        FrontServer::Nobody => writeln!(text, "listen = {listen}"),
    };
    if let Some(admin) = &plan.admin {
        let admin = toml_string(admin);
        let _ = write!(
            text,
            "# The default port of the control interface is in use.\nadmin = {admin}\n"
        );
    }
}

/// Whether Pagewell can obtain certificates: visitors connect to it, by a public name.
#[must_use]
pub fn has_public_name(plan: &SetupPlan) -> bool {
    let host = plan.host.as_deref();
    plan.front == FrontServer::Nobody
        && plan.listen == ":80"
        && host.is_some_and(|host| config::name_refusal(host).is_none())
}

fn certificates(text: &mut String, plan: &SetupPlan) {
    if has_public_name(plan) {
        text.push_str(
            "\n# Certificates of Let's Encrypt; this table is your agreement to its terms. Other files: [[tls]].\n[acme]\n",
        );
    } else if plan.listen.starts_with(':') {
        text.push_str(
            "\n#[[tls]]\n#certificate = \"/etc/pagewell/tls/fullchain.pem\"\n#key = \"/etc/pagewell/tls/privkey.pem\"\n",
        );
    }
}

/// The keys of the table of the site.
fn site_keys(text: &mut String, plan: &SetupPlan) {
    let is_http = has_http_origin(plan);
    if !is_http {
        let _ = writeln!(text, "root = {}", toml_string(&plan.site.root.display().to_string()));
    }
    match &plan.host {
        Some(host) => {
            let _ = writeln!(text, "host = {}", toml_string(host));
        }
        None => text.push_str("# The site's host; `aliases` names those that share its pages.\n#host = \"example.org\"\n"),
    }
    if !plan.aliases.is_empty() {
        let all: Vec<_> = plan.aliases.iter().map(|alias| toml_string(alias)).collect();
        let _ = writeln!(text, "aliases = [{}]", all.join(", "));
    }
    if is_http {
        let _ = writeln!(text, "origin = {}", toml_string(HTTP_ORIGIN));
        return;
    }
    let scripts = entry_points(plan.site.kind);
    if !scripts.is_empty() {
        let all: Vec<_> = scripts.iter().map(|script| toml_string(script)).collect();
        let _ = write!(
            text,
            "# No other script runs. For one of your own, add its path.\nentry_points = [{}]\n",
            all.join(", ")
        );
    }
}

/// The table of php-fpm; empty if another web server renders the pages.
fn php(plan: &SetupPlan) -> String {
    if has_http_origin(plan) {
        return String::new();
    }
    let mut text = String::from("\n[php]\n");
    if let Some(pool) = &plan.pool {
        let (name, user) = (plain_text(&pool.name), plain_text(&pool.user));
        let _ = writeln!(text, "# php-fpm's pool {name}; its scripts run as the user {user}.");
    }
    let _ = writeln!(text, "at = {}", toml_string(&plan.php));
    text
}

/// The table of limits; empty if the defaults are right.
fn limits(plan: &SetupPlan) -> String {
    let mut text = String::new();
    if let Some(children) = children(plan) {
        let _ = write!(
            text,
            "# As many as the pool has children (pm.max_children): further requests wait here, and visitors go first.\n\
             origin_connections = {children}\n"
        );
    }
    if let Some(size) = plan.body_bytes() {
        let size = toml_string(&size);
        let _ =
            write!(text, "# As large as in nginx (client_max_body_size).\nbody_bytes = {size}\n");
    }
    if text.is_empty() { text } else { format!("\n[limits]\n{text}") }
}

/// The number of children of the site's pool, if it is known.
fn children(plan: &SetupPlan) -> Option<usize> {
    let pool = plan.pool.as_ref().filter(|pool| pool.children > 0 && !has_http_origin(plan));
    pool.map(|pool| pool.children)
}

/// The directory of uploads below the document root, if the application has one.
#[must_use]
pub fn uploads(kind: SiteKind) -> Option<&'static str> {
    match kind {
        SiteKind::WordPress => Some("/wp-content/uploads/"),
        SiteKind::MediaWiki => Some("/images/"),
        SiteKind::Drupal => Some("/sites/default/files/"),
        SiteKind::Magento => Some("/media/"),
        SiteKind::Laravel | SiteKind::Symfony | SiteKind::Php => None,
    }
}

/// Whether another web server renders the pages.
#[must_use]
pub fn has_http_origin(plan: &SetupPlan) -> bool {
    plan.site.kind == SiteKind::Magento || matches!(plan.front, FrontServer::Apache(_))
}

fn following(database: &FollowedDatabase, capture: &str) -> String {
    let FollowedDatabase { url, prefix, .. } = database;
    let prefix = if prefix == "wp_" {
        String::new()
    } else {
        format!("table_prefix = {}\n", toml_string(prefix))
    };
    format!(
        "[[database]]\nurl = {}\npassword_file = {}\n\n[automatic]\nenabled = true\n\
         application = \"wordpress\"\n{prefix}capture_directory = {}\n",
        toml_string(url),
        toml_string(PASSWORD_FILE),
        toml_string(capture)
    )
}
