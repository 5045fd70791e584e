//! What `pagewell init` prints: what it found, what it recommends and why, what needs attention, and the next
//! steps.
//!
//! Every value is printed as one line without control characters, because most come from files of the site.

use crate::application::{DatabaseProduct, FoundSite, SiteDatabase};
use crate::facts::MachineFacts;
use crate::file_text::uploads;
use crate::php_source::Setting;
use crate::plan::{DatabaseFollowing, FrontServer, SetupPlan, plain_text, shell_path};
use crate::steps::NextStep;
use command_line::options::SiteKind;
use std::fmt::Write as _;

/// The text of the report without the next steps.
#[must_use]
pub fn report(plan: &SetupPlan, facts: &MachineFacts, doubts: &[String]) -> String {
    let mut text = String::from("Found\n");
    for (name, value) in found(plan, facts) {
        let _ = writeln!(text, "  {name:<15}{}", plain_text(&value));
    }
    text.push_str("\nRecommended\n");
    for sentence in recommendations(plan) {
        let _ = writeln!(text, "  {sentence}");
    }
    if !doubts.is_empty() {
        text.push_str("\nNeeds attention\n");
        for doubt in doubts {
            let _ = writeln!(text, "  {}", plain_text(doubt));
        }
    }
    text
}

/// The steps as a numbered list.
#[must_use]
pub fn steps_text(steps: &[NextStep]) -> String {
    let mut text = String::from("\nNext\n");
    for (number, step) in steps.iter().enumerate() {
        let _ = writeln!(text, "  {}. {}", number + 1, plain_text(&step.title));
        for line in &step.lines {
            let _ = writeln!(text, "       {line}");
        }
    }
    text
}

fn found(plan: &SetupPlan, facts: &MachineFacts) -> Vec<(&'static str, String)> {
    let site = &plan.site;
    let mut rows = vec![("application", application(site))];
    rows.push(("document root", site.root.display().to_string()));
    rows.push(("host", plan.host.clone().unwrap_or_else(|| "unknown; --name HOST sets it".into())));
    if let Some(database) = &site.database {
        rows.push(("database", shown_database(database)));
    }
    // The option files of this machine say nothing about a server on another one.
    let local = facts.stream.as_ref().filter(|_| !plan.has_distant_database());
    let stream = local.map(|stream| {
        let product = stream.product();
        if stream.missing.is_empty() {
            format!("{product}, which can be followed")
        } else {
            format!("{product}; to follow it: {}", stream.missing.join(", "))
        }
    });
    rows.extend(stream.map(|stream| ("change stream", stream)));
    let pool = plan.pool.as_ref();
    let pool = pool.map(|pool| format!("{} (pool {}, user {})", pool.at, pool.name, pool.user));
    let named = || plan.php_of_server().map(|(at, _)| format!("{at} (its pool was not found)"));
    rows.push(("php-fpm", pool.or_else(named).unwrap_or_else(|| "no pool was found".into())));
    let of_server = match &plan.front {
        FrontServer::Nginx(served) | FrontServer::Apache(served) => served.ports(),
        FrontServer::Other(_) | FrontServer::Nobody => Vec::new(),
    };
    let ports: Vec<String> = facts
        .listeners
        .iter()
        .filter(|listener| [80, 443].contains(&listener.port) || of_server.contains(&listener.port))
        .map(|listener| {
            format!(
                "{} {}",
                listener.port,
                listener.program.as_deref().unwrap_or("(run with sudo to see the program)")
            )
        })
        .collect();
    rows.push((
        "ports",
        if ports.is_empty() { "80 and 443 are free".into() } else { ports.join(", ") },
    ));
    if let FrontServer::Nginx(served) | FrontServer::Apache(served) = &plan.front {
        rows.push(("web server", format!("{}, {}", served.server, served.file.display())));
        let certificate = served.certificate.as_ref();
        rows.extend(certificate.map(|(chain, _)| ("certificate", chain.display().to_string())));
    }
    rows.extend(facts.memory.map(|bytes| ("memory", format!("{} MB", bytes >> 20))));
    rows
}

fn application(site: &FoundSite) -> String {
    let version = site.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let parts = [
        (site.has_shop, "WooCommerce"),
        (site.has_persistent_cache, "an object cache"),
        (site.is_network, "several blogs (multisite)"),
        (site.has_plugin, "Pagewell's plugin"),
    ];
    let parts: Vec<&str> = parts.into_iter().filter(|(is, _)| *is).map(|(_, name)| name).collect();
    let parts =
        if parts.is_empty() { String::new() } else { format!(" with {}", parts.join(", ")) };
    format!("{}{version}{parts}", site.kind.title())
}

fn shown_database(database: &SiteDatabase) -> String {
    let shown = |setting: &Setting| setting.known().unwrap_or("(unknown)").to_owned();
    let product = match database.product {
        DatabaseProduct::MySql => "MariaDB or MySQL",
        DatabaseProduct::Postgres => "PostgreSQL",
        DatabaseProduct::Other => "another product",
    };
    let prefix = match database.prefix.known() {
        Some("") => String::new(),
        Some(prefix) => format!(", tables {prefix}*"),
        None => ", table prefix unknown".into(),
    };
    format!(
        "{} at {} ({product}{prefix}, user {})",
        shown(&database.name),
        shown(&database.host),
        shown(&database.user)
    )
}

fn recommendations(plan: &SetupPlan) -> Vec<String> {
    let mut all = vec![front(plan)];
    all.push(
        "A trial first: visitors get the site's own answers, and Pagewell shows what it would have done. Then an \
         audit for ever: it compares one hit in a thousand with a new page."
            .into(),
    );
    all.push(invalidation(plan.site.kind).to_owned());
    all.push(match &plan.following {
        DatabaseFollowing::Ready(_) => "Automatic dependencies beside it: the change stream also shows imports, WP-CLI and \
             SQL, which the plugin cannot see."
            .into(),
        DatabaseFollowing::Prepared(_) => "Automatic dependencies beside it, as soon as the database can be followed: the \
             change stream also shows imports and SQL, which the plugin cannot see. The lines are in the file as a \
             comment."
            .into(),
        DatabaseFollowing::Not(why) => why.clone(),
    });
    all
}

fn front(plan: &SetupPlan) -> String {
    match &plan.front {
        FrontServer::Nginx(_) if plan.has_nginx_in_front() => format!(
            "nginx stays in front: it passes the requests of this host to Pagewell at {} already.",
            plan.reached_at()
        ),
        FrontServer::Nginx(served) if served.rules.is_empty() => {
            "nginx stays in front: it serves this host already, \
             and keeps its ports and certificate."
                .into()
        }
        FrontServer::Nginx(served) => format!(
            "nginx stays in front: it serves this host already, and its rules ({}) would be lost without it. \
             `pagewell import nginx {}` translates them.",
            served.rules.join(", "),
            shell_path(&served.file)
        ),
        FrontServer::Apache(_) => format!(
            "Pagewell goes in front of Apache: Apache keeps its rules and .htaccess files, which Pagewell does not \
             read. `pagewell import htaccess {}` translates them.",
            shell_path(&plan.site.root.join(".htaccess"))
        ),
        FrontServer::Other(program) => {
            format!("{program} stays in front: it uses port 80 or 443, and init stops no server.")
        }
        FrontServer::Nobody => {
            let scripts = match uploads(plan.site.kind) {
                Some(_) => "PHP files below the application's directory of uploads do not run.",
                None => "If visitors upload files, write php = false for their directory.",
            };
            format!(
                "Pagewell takes port 80 itself: no other web server was found. It reads no .htaccess files: \
                 `pagewell import htaccess FILE` translates them. {scripts}"
            )
        }
    }
}

/// The way in which the pages declare their dependencies, and its reason.
fn invalidation(kind: SiteKind) -> &'static str {
    match kind {
        SiteKind::WordPress => {
            "The plugin: it knows which pages show a post, a term or a setting, and purges only these."
        }
        SiteKind::MediaWiki => {
            "Pagewell's extension: it purges the pages that a changed template or file is used in."
        }
        SiteKind::Laravel => "The package pagewell/laravel: it purges after the commit of a model.",
        SiteKind::Symfony => "The bundle pagewell/symfony: it purges after the commit of Doctrine.",
        SiteKind::Drupal => "Pagewell's module: it uses Drupal's own cache tags.",
        SiteKind::Magento => {
            "Magento's own tags, as it sends them to Varnish. Magento itself was never tried: use a copy first."
        }
        SiteKind::Php => {
            "The PHP library: pages name the data that they show, and writes what they change."
        }
    }
}
