//! The commands that `pagewell init` does not run itself, in the order in which they are run, and the plugin
//! or library that it recommends.
//!
//! They are copied into a shell of root. So values are plain names, or paths in quotes ([`crate::plan`]).

mod database;
mod socket;

use crate::existing::ExistingConfiguration;
use crate::facts::{CONFIG, MachineFacts};
use crate::file_text::own_directory;
use crate::machine::ExaminedMachine;
use crate::php_pools::PhpPool;
use crate::plan::{DatabaseFollowing, FrontServer, SetupPlan, plain_name, plugins, shell_path};
use command_line::options::SiteKind;
use database::{capture_step, database_steps, grant_step};
use socket::socket_step;
use std::path::Path;

/// The checkout of Pagewell, as the guides name it.
const CHECKOUT: &str = "/opt/pagewell";
/// The additions to the unit of the service.
const DROP_INS: &str = "/etc/systemd/system/pagewell.service.d";
/// Tests and applies the configuration of nginx.
const NGINX_RELOAD: &str = "sudo nginx -t && sudo systemctl reload nginx";

/// A step that the operator takes: its purpose, and the lines to run or to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStep {
    /// The purpose, as a sentence.
    pub title: String,
    /// Commands, or lines of a file.
    pub lines: Vec<String>,
}

fn step(title: impl Into<String>, lines: &[&str]) -> NextStep {
    NextStep { title: title.into(), lines: lines.iter().map(ToString::to_string).collect() }
}

/// The beginning of the section of a pool in its file, as a regular expression of `sed`.
fn section_of(pool: &PhpPool) -> String {
    format!("^[[:space:]]*\\[{}\\]", pool.name.replace('.', "\\."))
}

/// The command that appends to the value of a setting in the section of a pool. `key`: an extended regular expression.
fn append_to_setting(pool: &PhpPool, key: &str, appended: &str) -> String {
    // Behind the last character of the value, which may be in quotes and before a comment.
    let setting = format!("^([[:space:]]*{key}[[:space:]]*=[[:space:]]*\"?[^\";]*[^\";[:space:]])");
    let (section, file) = (section_of(pool), shell_path(&pool.file));
    format!("sudo sed -i -E '/{section}/,/^[[:space:]]*\\[/s#{setting}#&{appended}#' {file}")
}

/// The command that succeeds if a setting in the section of a pool has this text in its value, and is no comment. `key`
/// and `part`: regular expressions.
fn has_in_setting(pool: &PhpPool, key: &str, part: &str) -> String {
    let (section, file) = (section_of(pool), shell_path(&pool.file));
    format!("sudo sed -n '/{section}/,/^[[:space:]]*\\[/p' {file} | grep -q '^[^;]*{key}.*{part}'")
}

/// The command that adds a line to the section of a pool.
fn add_setting(pool: &PhpPool, line: &str) -> String {
    format!("sudo sed -i '/{}/a {line}' {}", section_of(pool), shell_path(&pool.file))
}

/// The command of root that adds a user to a group.
#[must_use]
pub fn join_group(machine: &ExaminedMachine, user: &str, group: &str) -> String {
    // Its busybox has no `usermod`.
    if machine.is_file(Path::new("/etc/alpine-release")) {
        format!("addgroup {user} {group}")
    } else {
        format!("usermod --append --groups {group} {user}")
    }
}

/// All steps after the configuration was written to `output`. `other`: the file of the service, if it is not replaced.
#[must_use]
pub fn next_steps(
    plan: &SetupPlan,
    facts: &MachineFacts,
    machine: &ExaminedMachine,
    output: &Path,
    other: Option<&ExistingConfiguration>,
) -> Vec<NextStep> {
    let mut all = Vec::new();
    if facts.service.is_none() {
        all.push(step(
            "Install the package, in a checkout of Pagewell: the user pagewell does not exist yet.",
            &["make package && sudo apt install ./target/package/pagewell_*.deb"],
        ));
    }
    all.extend(socket_step(plan, facts, machine));
    all.extend(place_steps(plan, output, other));
    let curl = curl(plan);
    all.push(step(
        "Check it, start the service, and request a page: 200 is right, or 301 if the site redirects to HTTPS.",
        &[
            &format!("sudo pagewell check --config {CONFIG}"),
            // A reload applies nothing if the file has another site, and returns before it is done.
            "sudo systemctl enable pagewell && sudo systemctl restart pagewell",
            &curl,
        ],
    ));
    all.extend(front_steps(plan));
    all.extend(invalidation_step(plan).map(|step| with_checkout(step, machine)));
    match &plan.following {
        DatabaseFollowing::Prepared(database) => {
            all.extend(database_steps(database, facts.has_password_file));
        }
        DatabaseFollowing::Ready(database) => all.push(grant_step(database)),
        DatabaseFollowing::Not(_) => {}
    }
    if !matches!(plan.following, DatabaseFollowing::Not(_)) {
        all.push(capture_step(plan, other.is_some()));
    }
    all.push(end_step(plan, other.is_some()));
    all
}

/// Puts the new file in its place, and turns the trial on. `other`: the file of the service, if it is not replaced; then
/// the new one, a `[[site]]` under trial, is appended to it, unless it has this site.
fn place_steps(
    plan: &SetupPlan,
    output: &Path,
    other: Option<&ExistingConfiguration>,
) -> Vec<NextStep> {
    let shown = shell_path(output);
    let mut all = Vec::new();
    match other {
        _ if output == Path::new(CONFIG) => {}
        Some(ExistingConfiguration { why, has_site: true, .. }) => {
            let title = format!(
                "{CONFIG} {why}: do not append the new file. Compare it with the [[site]] that is there."
            );
            return vec![step(title, &[])];
        }
        Some(ExistingConfiguration { why, .. }) => {
            let mut title = format!(
                "{CONFIG} {why}: do not replace it. If it has [site], change that to [[site]], which needs a `host` \
                 (guide to several sites). Then append the new [[site]], which is under trial."
            );
            let mut lines = vec![format!("sudo cat {shown} | sudo tee -a {CONFIG} > /dev/null")];
            if !matches!(plan.following, DatabaseFollowing::Not(_)) {
                title.push_str(" systemd makes a directory for its socket, which PHP reports to.");
                lines.extend(directory_lines(&own_directory(plan)));
            }
            return vec![NextStep { title, lines }];
        }
        None => all.push(step(
            "Compare the new file with any old one, then put it in its place. The old one is kept beside it, with the \
             time behind its name.",
            // busybox has no `mv --backup`.
            &[&format!(
                "sudo test ! -e {CONFIG} || sudo cp -p {CONFIG} {CONFIG}.$(date +%s) && sudo mv {shown} {CONFIG}"
            )],
        )),
    }
    all.push(step(
        "Begin with a trial: visitors get the site's own answers, until `pagewell trial` says that the cache is safe.",
        &[&format!("sudo sed -i 's/^#mode = \"trial\"/mode = \"trial\"/' {CONFIG}")],
    ));
    all
}

/// Has systemd create a directory below `/run` for the service, beside those of the unit.
fn directory_lines(directory: &str) -> [String; 2] {
    let file = format!("{DROP_INS}/{}.conf", directory.replace('/', "-"));
    [
        format!("sudo mkdir -p {DROP_INS}"),
        format!(
            "printf '%s\\n' '[Service]' 'RuntimeDirectory={directory}' | sudo tee {file} && sudo systemctl daemon-reload"
        ),
    ]
}

/// Ends the trial. With `has_others`, the operator changes the file of several sites.
fn end_step(plan: &SetupPlan, has_others: bool) -> NextStep {
    let admin = plan.admin.as_ref().map(|admin| format!(" --admin {admin}")).unwrap_or_default();
    let (report, reload) = (format!("pagewell trial{admin}"), format!("pagewell reload{admin}"));
    if has_others {
        let title =
            "When the trial says \"Safe to turn on\", remove `mode` of this site, and reload.";
        return step(title, &[&report, &reload]);
    }
    let end = format!("sudo sed -i 's/^mode = \"trial\"/#&/' {CONFIG} && {reload}");
    step(
        "When the trial says \"Safe to turn on\", end it, and verify the cache from outside.",
        &[&report, &end, "sudo pagewell init --verify"],
    )
}

fn curl(plan: &SetupPlan) -> String {
    let address = plan.reached_at();
    let address = address.trim_end_matches(":80");
    let host = plan.host.as_ref().map(|host| format!(" -H 'Host: {host}'")).unwrap_or_default();
    let secure = match &plan.front {
        FrontServer::Nginx(served) if served.certificate.is_some() => {
            " -H 'X-Forwarded-Proto: https'"
        }
        _ => "",
    };
    format!("curl -si http://{address}/{host}{secure} | head -1")
}

/// Lets the server in front pass requests to Pagewell. For nginx, a step has either commands or lines of a file, so that
/// all of it can be copied at once.
fn front_steps(plan: &SetupPlan) -> Vec<NextStep> {
    match &plan.front {
        FrontServer::Nginx(_) if plan.has_nginx_in_front() => Vec::new(),
        FrontServer::Nginx(served) => {
            let file = served.file.display();
            let copy = served
                .file
                .file_name()
                .map(|name| format!("/root/{}.before-pagewell", name.display()));
            let copy = copy.unwrap_or_default();
            let (file_arg, copy) = (shell_path(&served.file), shell_path(Path::new(&copy)));
            vec![
                step(
                    format!(
                        "Save nginx's file, unless it was saved before. To undo the next step: sudo cp {copy} {file_arg} \
                         && sudo systemctl reload nginx"
                    ),
                    &[&format!("sudo test -e {copy} || sudo cp {file_arg} {copy}")],
                ),
                NextStep {
                    title: format!(
                        "In {file}, replace `location /` and the `location` that runs PHP by this block, and keep all \
                         others (their `deny` rules, certificates). Remove `fastcgi_cache` and `proxy_cache`."
                    ),
                    lines: nginx_lines(plan),
                },
                step("Apply it.", &[NGINX_RELOAD]),
            ]
        }
        FrontServer::Apache(served) => vec![step(
            format!(
                "Let Apache serve this host at port 8000 of this machine as well: `Listen 127.0.0.1:8000`, and a second \
                 VirtualHost in {}. The guide to Apache has the change of the ports. Then:",
                served.file.display()
            ),
            &["sudo apache2ctl configtest && sudo systemctl reload apache2"],
        )],
        FrontServer::Other(program) => vec![other_front_step(plan, program)],
        FrontServer::Nobody => Vec::new(),
    }
}

/// The `location` of nginx that passes requests to Pagewell. No directive is outside of it, where the `server` block may
/// have the same one already.
fn nginx_lines(plan: &SetupPlan) -> Vec<String> {
    let size = format!("    client_max_body_size {};", plan.body_size().unwrap_or("64m"));
    let pass = format!("    proxy_pass http://{};", plan.reached_at());
    let host = format!("    proxy_set_header Host {};", host_variable(plan));
    let lines = [
        "location / {",
        size.as_str(),
        pass.as_str(),
        "    proxy_http_version 1.1;",
        "    proxy_set_header Connection \"\";",
        host.as_str(),
        "    proxy_set_header X-Forwarded-For $remote_addr;",
        "    proxy_set_header X-Forwarded-Proto $scheme;",
        "}",
    ];
    lines.map(str::to_owned).into()
}

/// The variable of nginx with the host that a visitor has requested. `$host` has no port, and `$http_host` is empty for
/// clients that send no Host.
fn host_variable(plan: &SetupPlan) -> &'static str {
    let has_port = plan.host.as_ref().is_some_and(|host| host.contains(':'));
    let has_other_port =
        matches!(&plan.front, FrontServer::Nginx(served) if served.other_port().is_some());
    if has_port || has_other_port { "$http_host" } else { "$host" }
}

/// The step for a server in whose configuration this site was not found. For nginx it writes a new file.
fn other_front_step(plan: &SetupPlan, program: &str) -> NextStep {
    let host = plan.host.as_deref().filter(|_| program == "nginx");
    let name = host.and_then(|host| host.split(':').next());
    let Some(name) = name else {
        let title = format!(
            "Let {program} pass the requests of this host to http://{}, with the fields Host, X-Forwarded-For and \
             X-Forwarded-Proto.",
            plan.reached_at()
        );
        return step(title, &[]);
    };
    // Within quotes, and not a here-document, whose end may not be indented.
    let mut lines = vec![
        "echo 'server {".to_owned(),
        "    listen 80;".to_owned(),
        format!("    server_name {name};"),
    ];
    lines.extend(nginx_lines(plan).iter().map(|line| format!("    {line}")));
    // Each host has a file of its own: that of another site is not replaced.
    lines.push(format!("}}' | sudo tee /etc/nginx/conf.d/pagewell-{name}.conf"));
    lines.push(NGINX_RELOAD.into());
    NextStep { title: "Give nginx a `server` block for this host: none was found.".into(), lines }
}

/// Adds the line that makes the checkout known by the path that a step names, unless it is there.
fn with_checkout(mut step: NextStep, machine: &ExaminedMachine) -> NextStep {
    let needs_it = step.lines.iter().any(|line| line.contains(CHECKOUT));
    if needs_it && !machine.is_dir(&Path::new(CHECKOUT).join("php")) {
        let link =
            format!("sudo ln -sn \"$PWD\" {CHECKOUT}    # run this in the checkout of Pagewell");
        step.lines.insert(0, link);
    }
    step
}

/// Installs the plugin, extension or library.
fn invalidation_step(plan: &SetupPlan) -> Option<NextStep> {
    let (root, site) = (&plan.site.root, &plan.site);
    if site.has_plugin {
        // Only the database knows whether a plugin of WordPress is active.
        let title = "Activate Pagewell under Plugins, if it is not active: its files are there. Deactivate other page \
                     caches.";
        return (site.kind == SiteKind::WordPress).then(|| step(title, &[]));
    }
    let user = plan.pool.as_ref().map(|pool| pool.user.as_str()).filter(|user| plain_name(user));
    let user = user.unwrap_or("www-data");
    let install = |application: &str, name: &str, to: &Path| {
        let to = shell_path(to);
        [
            format!("sudo {CHECKOUT}/php/build-plugin {application} {to}"),
            format!("sudo chown -R {user}:{user} {to}/{name}"),
        ]
    };
    let composer = |package: &str| {
        [
            format!("composer config repositories.pagewell path '{CHECKOUT}/php/*'"),
            format!("composer require pagewell/{package}"),
        ]
    };
    let (title, lines) = match site.kind {
        SiteKind::WordPress => (
            "Install the plugin from the checkout, and activate Pagewell under Plugins. Deactivate other page caches.",
            install("wordpress", "pagewell", &plugins(root)),
        ),
        SiteKind::MediaWiki => (
            "Install the extension from the checkout, and add its settings to LocalSettings.php (guide to \
             MediaWiki). Move images/deleted out of the document root: Pagewell does not read .htaccess.",
            install("mediawiki", "Pagewell", &root.join("extensions")),
        ),
        SiteKind::Laravel => (
            "Install the package in the application, and name the routes that are public (guide to Laravel).",
            composer("laravel"),
        ),
        SiteKind::Symfony => (
            "Install the bundle in the application, and name what pages depend on (guide to Symfony).",
            composer("symfony"),
        ),
        SiteKind::Drupal => (
            "Install the module, and set the maximum age of pages under Performance (guide to Drupal).",
            composer("bridge"),
        ),
        SiteKind::Magento => {
            let address = plan.reached_at();
            (
                "Choose Varnish as the caching application, and name Pagewell. nginx serves Magento at port 8000 \
                 of this machine (page on shops).",
                [
                    format!("bin/magento setup:config:set --http-cache-hosts={address}"),
                    "bin/magento cache:flush".into(),
                ],
            )
        }
        SiteKind::Php => (
            "Name what a page depends on, and what a write has changed (guide to PHP).",
            [
                "uses('news', 4);       // on a page".into(),
                "changed('news', 4);    // after a write".into(),
            ],
        ),
    };
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    Some(step(title, &lines))
}
