//! Reads the configuration of a recognised application: `wp-config.php`, `LocalSettings.php`, `.env`,
//! `settings.php`, `env.php`.
//!
//! Each file is optional. One that exists and cannot be read is a doubt of the site, and so is a setting
//! that is not a literal.

use super::dotenv::DotEnv;
use super::{DatabaseProduct, FoundSite, SiteDatabase};
use crate::machine::ExaminedMachine;
use crate::php_pools::{PREPEND_FILE, basedir_setting, prepend_file};
use crate::php_source::{PhpSource, PhpValue, Setting};
use command_line::options::SiteKind;
use std::path::{Path, PathBuf};

/// Completes `site` by what the files of its project say.
pub(super) fn read(machine: &ExaminedMachine, project: &Path, site: &mut FoundSite) {
    match site.kind {
        SiteKind::WordPress => wordpress(machine, project, site),
        SiteKind::MediaWiki => mediawiki(machine, site),
        SiteKind::Laravel => laravel(machine, project, site),
        SiteKind::Symfony => symfony(machine, project, site),
        SiteKind::Drupal => drupal(machine, site),
        SiteKind::Magento => magento(machine, project, site),
        SiteKind::Php => {}
    }
    let Some(database) = &site.database else { return };
    let settings =
        [("host", &database.host), ("name", &database.name), ("table prefix", &database.prefix)];
    let unknown: Vec<&str> =
        settings.iter().filter(|(_, is)| **is == Setting::Unknown).map(|(name, _)| *name).collect();
    if !unknown.is_empty() {
        site.doubts.push(format!(
            "the database's {} is not a plain value in the application's configuration, so it is unknown here",
            unknown.join(" and ")
        ));
    }
}

/// The first of these files that can be read, as PHP. `missing`: the meaning if none of them exists, if that is a doubt.
fn php(
    machine: &ExaminedMachine,
    paths: &[PathBuf],
    missing: Option<&str>,
    site: &mut FoundSite,
) -> Option<PhpSource> {
    let mut exists = false;
    for path in paths {
        match machine.site_text(path) {
            Ok(Some(text)) => {
                let source = PhpSource::read(&text);
                if let Some(line) = source.unfinished() {
                    let path = path.display();
                    site.doubts.push(format!(
                        "{path}, line {line}: a text or comment begins here and does not end, so PHP cannot read \
                         this file either; `php -l {path}` says more"
                    ));
                }
                return Some(source);
            }
            Ok(None) => {}
            Err(error) => {
                exists = true;
                site.doubts.push(error.to_string());
            }
        }
    }
    if let (false, Some(first), Some(missing)) = (exists, paths.first(), missing) {
        site.doubts.push(format!("{} does not exist: {missing}", first.display()));
    }
    None
}

fn wordpress(machine: &ExaminedMachine, project: &Path, site: &mut FoundSite) {
    let inner = site.root.join("wp");
    let is_inner = !machine.is_file(&site.root.join("wp-includes/version.php"));
    let core = if is_inner { inner } else { site.root.clone() };
    let version = machine.site_text(&core.join("wp-includes/version.php")).ok().flatten();
    site.version = version.and_then(|text| known(PhpSource::read(&text).variable("wp_version")));
    let content = if is_inner { "app" } else { "wp-content" };
    let content = site.root.join(content);
    site.has_shop = machine.is_dir(&content.join("plugins/woocommerce"));
    site.has_plugin = machine.is_dir(&content.join("plugins/pagewell"));
    let user_ini = site.root.join(".user.ini");
    let text = machine.site_text(&user_ini).ok().flatten().unwrap_or_default();
    site.basedir_setting = basedir_setting(&text).map(|_| user_ini.clone());
    site.prepend_setting = sets_prepend(&text).then_some(user_ini);
    site.has_persistent_cache = machine.is_file(&content.join("object-cache.php"));
    let mut places = vec![core.join("wp-config.php")];
    places.extend(core.parent().map(|above| above.join("wp-config.php")));
    if is_inner {
        places.insert(0, project.join("config/application.php"));
        let env = env(machine, project, &[".env", ".env.local"], site);
        site.host = env.get("WP_HOME").known().and_then(host_of);
        site.database = Some(SiteDatabase {
            host: env.get("DB_HOST").or(Setting::Is("localhost".into())),
            name: env.get("DB_NAME"),
            user: env.get("DB_USER"),
            prefix: env.get("DB_PREFIX").or(Setting::Is("wp_".into())),
            ..SiteDatabase::default()
        });
        return;
    }
    let missing = "WordPress is not installed yet; open its address after Pagewell has started";
    let Some(source) = php(machine, &places, Some(missing), site) else { return };
    let home = source.constant("WP_HOME").or(source.constant("WP_SITEURL"));
    site.host = home.known().and_then(host_of);
    site.is_network = source.constant("MULTISITE").known() == Some("true");
    site.database = Some(SiteDatabase {
        host: source.constant("DB_HOST").or(Setting::Is("localhost".into())),
        name: source.constant("DB_NAME").or(Setting::Unknown),
        user: source.constant("DB_USER"),
        prefix: source.variable("table_prefix").or(Setting::Unknown),
        ..SiteDatabase::default()
    });
}

fn mediawiki(machine: &ExaminedMachine, site: &mut FoundSite) {
    let defines = machine.site_text(&site.root.join("includes/Defines.php")).ok().flatten();
    site.version = defines.and_then(|text| known(PhpSource::read(&text).constant("MW_VERSION")));
    site.has_plugin = machine.is_dir(&site.root.join("extensions/Pagewell"));
    let place = site.root.join("LocalSettings.php");
    let missing = Some("MediaWiki is not installed yet");
    let Some(source) = php(machine, &[place], missing, site) else { return };
    site.host = source.variable("wgServer").known().and_then(host_of);
    site.database = Some(SiteDatabase {
        product: product(source.variable("wgDBtype").known().unwrap_or("mysql")),
        host: source.variable("wgDBserver").or(Setting::Is("localhost".into())),
        name: source.variable("wgDBname").or(Setting::Unknown),
        user: source.variable("wgDBuser"),
        prefix: source.variable("wgDBprefix").or(Setting::Is(String::new())),
    });
}

/// Whether a `.user.ini` has another file loaded before each script than Pagewell's.
fn sets_prepend(text: &str) -> bool {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let mut values = lines.filter(|(key, _)| key.trim() == "auto_prepend_file");
    values.any(|(_, value)| {
        let file = prepend_file(value.trim().trim_matches(['"', '\'']));
        !file.is_empty() && file != PREPEND_FILE
    })
}

/// The `.env` files of a project.
fn env(machine: &ExaminedMachine, project: &Path, names: &[&str], site: &mut FoundSite) -> DotEnv {
    let mut env = DotEnv::default();
    for name in names {
        match machine.site_text(&project.join(name)) {
            Ok(Some(text)) => env.add(&text),
            Ok(None) => {}
            Err(error) => site.doubts.push(error.to_string()),
        }
    }
    env
}

fn laravel(machine: &ExaminedMachine, project: &Path, site: &mut FoundSite) {
    site.has_plugin = machine.is_dir(&project.join("vendor/pagewell/laravel"));
    let env = env(machine, project, &[".env"], site);
    site.host = env.get("APP_URL").known().and_then(host_of);
    let Some(name) = env.get("DB_CONNECTION").known().map(str::to_owned) else { return };
    let host = env.get("DB_HOST").or(Setting::Is("127.0.0.1".into()));
    let port = env.get("DB_PORT").known().map(|port| format!(":{port}")).unwrap_or_default();
    let at = |host: &str| match env.get("DB_SOCKET").known() {
        Some(socket) => format!("localhost:{socket}"),
        None => format!("{host}{port}"),
    };
    site.database = Some(SiteDatabase {
        product: product(&name),
        host: host.known().map_or(Setting::Unknown, |host| Setting::Is(at(host))),
        name: env.get("DB_DATABASE").or(Setting::Unknown),
        user: env.get("DB_USERNAME"),
        prefix: env.get("DB_PREFIX").or(Setting::Is(String::new())),
    });
}

fn symfony(machine: &ExaminedMachine, project: &Path, site: &mut FoundSite) {
    site.has_plugin = machine.is_dir(&project.join("vendor/pagewell/symfony"));
    let names = [".env", ".env.local", ".env.prod", ".env.prod.local"];
    let env = env(machine, project, &names, site);
    site.host = env.get("DEFAULT_URI").known().and_then(host_of);
    site.database = match env.get("DATABASE_URL") {
        Setting::Missing => None,
        Setting::Unknown => Some(SiteDatabase {
            host: Setting::Unknown,
            name: Setting::Unknown,
            ..SiteDatabase::default()
        }),
        Setting::Is(url) => Some(of_url(&url)),
    };
}

/// The database of a URL, without its password.
fn of_url(url: &str) -> SiteDatabase {
    let (scheme, rest) = url.split_once("://").unwrap_or((url, ""));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, name) = rest.split_once('/').unwrap_or((rest, ""));
    let (account, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let user = account.split(':').next().unwrap_or_default();
    let setting =
        |text: &str| if text.is_empty() { Setting::Unknown } else { Setting::Is(text.to_owned()) };
    SiteDatabase {
        product: product(scheme),
        host: setting(host),
        name: setting(name),
        user: setting(user),
        prefix: Setting::Is(String::new()),
    }
}

fn drupal(machine: &ExaminedMachine, site: &mut FoundSite) {
    let core = machine.site_text(&site.root.join("core/lib/Drupal.php")).ok().flatten();
    site.version = core.and_then(|text| known(PhpSource::read(&text).constant("VERSION")));
    site.has_plugin = machine.is_dir(&site.root.join("modules/custom/pagewell"))
        || machine.is_dir(&site.root.join("modules/contrib/pagewell"));
    let places = ["settings.local.php", "settings.php"]
        .map(|name| site.root.join("sites/default").join(name));
    for place in places {
        let Some(source) = php(machine, &[place], None, site) else { continue };
        // Literals only: `assignments` has one row for the whole array, or one for each part.
        let assigned = source.assignments("databases");
        if assigned.is_empty() {
            continue;
        }
        let get = |name: &str| drupal_setting(&assigned, name);
        site.database = Some(SiteDatabase {
            product: product(get("driver").known().unwrap_or("mysql")),
            host: get("host").or(Setting::Is("localhost".into())),
            name: get("database").or(Setting::Unknown),
            user: get("username"),
            prefix: get("prefix").or(Setting::Is(String::new())),
        });
        return;
    }
}

/// The setting of `$databases['default']['default']`, whole or element by element.
fn drupal_setting(assigned: &[(Vec<String>, PhpValue)], name: &str) -> Setting {
    let path = ["default", "default", name];
    let mut found = Setting::Missing;
    for (keys, value) in assigned {
        let is_above = keys.len() <= path.len() && keys.iter().zip(path).all(|(key, is)| key == is);
        if is_above {
            let here = value.setting(&path[keys.len()..]);
            found = if here == Setting::Missing { found } else { here };
        }
    }
    found
}

fn magento(machine: &ExaminedMachine, project: &Path, site: &mut FoundSite) {
    let place = project.join("app/etc/env.php");
    let Some(source) = php(machine, &[place], None, site) else { return };
    let all = source.returned();
    let get = |name: &str| all.setting(&["db", "connection", "default", name]);
    site.database = Some(SiteDatabase {
        host: get("host").or(Setting::Unknown),
        name: get("dbname").or(Setting::Unknown),
        user: get("username"),
        prefix: all.setting(&["db", "table_prefix"]).or(Setting::Is(String::new())),
        ..SiteDatabase::default()
    });
}

fn known(setting: Setting) -> Option<String> {
    setting.known().map(str::to_owned)
}

fn product(name: &str) -> DatabaseProduct {
    match name.split('+').next().unwrap_or_default() {
        "mysql" | "mysqli" | "mariadb" | "pdo-mysql" | "mysql2" | "pdo_mysql" => {
            DatabaseProduct::MySql
        }
        "pgsql" | "postgres" | "postgresql" | "pdo-pgsql" | "pdo_pgsql" => {
            DatabaseProduct::Postgres
        }
        _ => DatabaseProduct::Other,
    }
}

/// The host of a URL (`https://blog.example/x`, `//wiki.example`), if it is one that visitors could use.
fn host_of(url: &str) -> Option<String> {
    let rest = url.split_once("//").map(|(_, rest)| rest)?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    crate::web_server::is_host(&host).then_some(host)
}
