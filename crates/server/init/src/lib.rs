//! `pagewell init`: recognises the site in a directory and what its machine has, and writes a configuration.
//! `--verify` then looks at the running site from outside.
//!
//! Start at [`run`]. Files are read as text and never executed ([`machine`]); facts become decisions in
//! [`mod@plan`]; [`mod@file_text`] has the template of each application. It never overwrites a file, stops no
//! server, and prints the commands that need an operator. Passwords are neither printed nor written.
//!
//! Not here: the parser of the configuration (`config`), and the checks as the user of the service
//! (`pagewell check`).

pub mod application;
pub mod change_stream;
pub mod existing;
pub mod facts;
pub mod file_text;
pub mod http;
pub mod listeners;
pub mod machine;
pub mod memory;
pub mod php_pools;
pub mod php_source;
pub mod plan;
pub mod report;
pub mod steps;
pub mod verify;
pub mod web_server;
pub mod write;

use application::{FoundSite, recognise};
use command_line::options::InitArgs;
use existing::ServiceAddresses;
use facts::{CONFIG, MachineFacts};
use machine::{ExaminedMachine, without_dots};
use plan::{
    DatabaseFollowing, FrontServer, OperatorAnswers, SetupPlan, likely_pool, plain_name, plan,
};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use web_server::{WebServer, accepted_bytes};

/// Asks the operator: the question and the default in, the answer out. An empty answer is the default.
pub type Ask<'a> = &'a mut dyn FnMut(&str, &str) -> String;

/// Runs `pagewell init`, and returns the text to print. Without `ask` (no terminal, or `--yes`), every answer
/// is the default.
///
/// # Errors
/// No site was recognised, or the file cannot be written: a sentence for the operator.
pub fn run(args: &InitArgs, ask: Option<Ask<'_>>) -> Result<String, String> {
    let machine = ExaminedMachine::new(args.machine.clone());
    let dir = absolute(args.dir.as_deref().unwrap_or(Path::new(".")))?;
    let site = recognise(&machine, &dir, args.application)?;
    let facts = MachineFacts::of(&machine);
    let owner = machine.metadata(&site.root).ok().and_then(|found| facts.user_name(found.uid()));
    let is_asked = ask.is_some();
    let answers = answers(args, &site, &facts, owner.as_deref(), ask)?;
    let mut plan = plan(site, &facts, &answers, owner.as_deref());
    let other = existing::other_site(&machine, &plan);
    let mut doubts = match other.as_ref().and_then(|other| other.addresses.clone()) {
        // A further site has the addresses of the first.
        Some(ServiceAddresses { listen, admin }) => {
            (plan.listen, plan.admin) = (listen, admin);
            Vec::new()
        }
        None => used_ports(&plan, &facts),
    };
    doubts.extend(other_doubts(&plan, &facts));
    doubts.extend(lost_settings(&plan));
    doubts.extend(guessed_pool(&plan, &facts, owner.as_deref()).filter(|_| !is_asked));
    let text = match &other {
        None => file_text::file_text(&plan),
        Some(_) => file_text::site_text(&plan),
    };
    let mut said = report::report(&plan, &facts, &doubts);
    let output = output(args, &machine)?;
    if args.dry_run {
        let exists = machine.real(&output).symlink_metadata().is_ok();
        let note = if exists {
            " exists, and is not overwritten. Another file, named by --output,"
        } else {
            ""
        };
        said.push_str(&format!("\n{}{note} would have:\n\n{text}", output.display()));
    } else {
        write::write_new(&machine.real(&output), &output, &text)?;
        said.push_str(&format!("\nWritten: {}\n", output.display()));
    }
    let steps = steps::next_steps(&plan, &facts, &machine, &output, other.as_ref());
    said.push_str(&report::steps_text(&steps));
    Ok(said)
}

/// The absolute path of the site, without `.` and `..`.
fn absolute(dir: &Path) -> Result<PathBuf, String> {
    let path = std::path::absolute(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let plain = without_dots(&path);
    if plain.to_str().is_none_or(|text| text.contains(char::is_control)) {
        return Err(format!(
            "{}: a path of a configuration is UTF-8 without control characters",
            plain.display()
        ));
    }
    Ok(plain)
}

/// The file to write: the one that is named, or that of the service, or one beside it if that exists.
fn output(args: &InitArgs, machine: &ExaminedMachine) -> Result<PathBuf, String> {
    let usual = Path::new(CONFIG);
    Ok(match &args.output {
        Some(output) => absolute(output)?,
        None if machine.real(usual).symlink_metadata().is_ok() => usual.with_extension("new.toml"),
        None => usual.to_owned(),
    })
}

/// The answers that the machine cannot show, from the options or by questions.
fn answers(
    args: &InitArgs,
    site: &FoundSite,
    facts: &MachineFacts,
    owner: Option<&str>,
    ask: Option<Ask<'_>>,
) -> Result<OperatorAnswers, String> {
    let mut answers =
        OperatorAnswers { host: args.name.as_deref().map(host).transpose()?, php: None };
    let Some(ask) = ask else { return Ok(answers) };
    let seen = plan(site.clone(), facts, &answers, owner);
    if seen.host.is_none() {
        let answer = ask("The site's host, such as example.org (empty: any host)", "");
        answers.host = if answer.is_empty() { None } else { Some(host(&answer)?) };
    }
    let is_certain = matches!(&seen.front, FrontServer::Nginx(served) if served.php.is_some());
    let likely = likely_pool(facts, owner);
    if let Some(likely) = likely.filter(|_| facts.pools.len() > 1 && !is_certain) {
        let all: Vec<_> =
            facts.pools.iter().map(|pool| format!("{} ({})", pool.at, pool.user)).collect();
        let answer = ask(&format!("The site's php-fpm: {}", all.join(", ")), &likely.at);
        let known = facts.pools.iter().any(|pool| pool.at == answer);
        if !known && !answer.is_empty() {
            return Err(format!("{answer}: no pool of php-fpm has this address"));
        }
        answers.php = Some(answer).filter(|answer| !answer.is_empty());
    }
    Ok(answers)
}

fn host(text: &str) -> Result<String, String> {
    let name = text.trim().to_ascii_lowercase();
    if web_server::is_host(&name) {
        Ok(name)
    } else {
        Err(format!("--name {text}: write a host, such as example.org"))
    }
}

/// The addresses that are not the usual ones, because other programs use those.
fn used_ports(plan: &SetupPlan, facts: &MachineFacts) -> Vec<String> {
    let mut all = Vec::new();
    let usual = ["127.0.0.1:8080", ":80"];
    if !usual.contains(&plan.listen.as_str()) {
        all.push(format!(
            "port 8080 is used by {}, so Pagewell gets {}",
            facts.other_program(8080).unwrap_or("another program"),
            plan.listen
        ));
    }
    if let Some(admin) = &plan.admin {
        all.push(format!(
            "port 8081 is used by {}, so the control interface gets {admin}: set PAGEWELL_ADMIN={admin} for PHP, and \
             write --admin {admin} after the commands",
            facts.other_program(8081).unwrap_or("another program")
        ));
    }
    all
}

/// The doubts of the site, and what else of the machine needs attention.
fn other_doubts(plan: &SetupPlan, facts: &MachineFacts) -> Vec<String> {
    let mut all = plan.site.doubts.clone();
    all.extend(unknown_programs(facts));
    all.extend(missing_pool(plan));
    if ["/home", "/root"].iter().any(|home| plan.site.root.starts_with(home)) {
        all.push(format!(
            "the site is below a home directory, which the unit hides (ProtectHome): move it to /var/www, or `sudo \
             systemctl edit pagewell` with [Service], ProtectHome=tmpfs and BindReadOnlyPaths={}, or a directory \
             above it",
            plan.site.root.display()
        ));
    }
    if let FrontServer::Nginx(served) | FrontServer::Apache(served) = &plan.front
        && served.ports().iter().all(|port| facts.other_program(*port).is_none())
    {
        let ports: Vec<String> = served.ports().iter().map(ToString::to_string).collect();
        all.push(format!(
            "{} is configured for this host, but nothing listens at port {}: start it (`sudo systemctl start {}`), or \
             remove {} and run this command again",
            served.server,
            ports.join(" or "),
            if served.server == WebServer::Nginx { "nginx" } else { "apache2" },
            served.file.display()
        ));
    }
    all.extend(missing_https(plan, facts));
    all.extend(unlimited_content(plan));
    all.extend(missing_port(plan));
    if plan.host.is_none() {
        all.push(
            "the host is unknown, so each host name has pages of its own: --name HOST sets it"
                .into(),
        );
    }
    if let DatabaseFollowing::Ready(database) | DatabaseFollowing::Prepared(database) =
        &plan.following
        && database.stream.as_ref().is_some_and(|stream| stream.is_mysql)
    {
        all.push(
            "MySQL was tried with version 9.7 only: with an older one (`mysqld --version`), leave [[database]] out"
                .into(),
        );
    }
    if plan.has_distant_database() {
        all.push("the database is on another machine: `pagewell check` asks it whether it can be followed".into());
    }
    all
}

/// The port that the host may lack, because nginx answers at no port that URLs need not name.
fn missing_port(plan: &SetupPlan) -> Option<String> {
    let FrontServer::Nginx(served) = &plan.front else { return None };
    // The application knows its own URL.
    let is_known = |host: &str| host.contains(':') || plan.site.host.as_deref() == Some(host);
    let host = plan.host.as_deref().filter(|host| !is_known(host) && !served.has_default_port())?;
    let port = served.other_port()?;
    Some(format!(
        "nginx answers at port {port} for this host: if the URLs of visitors have it, write --name {host}:{port}"
    ))
}

/// The consequence, if nginx limits no request's content.
fn unlimited_content(plan: &SetupPlan) -> Option<String> {
    let is_unlimited = plan.body_size().and_then(accepted_bytes) == Some(u64::MAX);
    is_unlimited.then(|| {
        "nginx accepts request content of any size (`client_max_body_size 0`), and Pagewell refuses more than 64M: \
         write body_bytes in [limits] for larger uploads"
            .into()
    })
}

/// The settings of nginx for PHP that Pagewell's requests to PHP do not have.
fn lost_settings(plan: &SetupPlan) -> Vec<String> {
    let mut all = Vec::new();
    let FrontServer::Nginx(served) = &plan.front else { return all };
    if file_text::has_http_origin(plan) {
        return all;
    }
    if !served.parameters.is_empty() {
        all.push(format!(
            "nginx sends parameters to PHP that Pagewell does not send ({}): set them in the pool of php-fpm as \
             env[NAME], and the settings in PHP_VALUE as php_value[NAME]",
            served.parameters.join(", ")
        ));
    }
    let is_other = |time: &&str| plain_name(time) && !["60", "60s", "1m"].contains(time);
    if let Some(time) = served.waits_for_php.as_deref().filter(is_other) {
        all.push(format!(
            "nginx has `fastcgi_read_timeout {time}`, and Pagewell waits for PHP for 60s: write origin_timeout in \
             [limits], and `proxy_read_timeout {time};` below proxy_pass"
        ));
    }
    all
}

/// The choice among several pools, if neither a web server nor the owner of the site's files names one.
fn guessed_pool(plan: &SetupPlan, facts: &MachineFacts, owner: Option<&str>) -> Option<String> {
    let pool = plan.pool.as_ref().filter(|_| !file_text::has_http_origin(plan))?;
    let of_owner = facts.pools.iter().filter(|pool| Some(pool.user.as_str()) == owner);
    if facts.pools.len() < 2 || plan.php_of_server().is_some() || of_owner.count() == 1 {
        return None;
    }
    let others = facts.pools.iter().filter(|other| other.at != pool.at);
    let others: Vec<_> = others.map(|other| format!("{} ({})", other.at, other.name)).collect();
    Some(format!(
        "there are several pools of php-fpm, and nothing says which one runs the site: the file has that of {} ({}), not \
         {}",
        pool.at,
        pool.name,
        others.join(", ")
    ))
}

/// The ports in use whose program this user may not know: Pagewell's own look like those of another program.
fn unknown_programs(facts: &MachineFacts) -> Option<String> {
    let unknown = facts.listeners.iter().filter(|listener| listener.program.is_none());
    let ports: Vec<String> = unknown.map(|listener| listener.port.to_string()).collect();
    (!ports.is_empty()).then(|| {
        format!(
            "the programs at these ports are unknown to this user, and one may be Pagewell itself ({}): run it with \
             sudo, or the addresses in the file are wrong",
            ports.join(", ")
        )
    })
}

/// The consequence, if no pool has the address of php-fpm.
fn missing_pool(plan: &SetupPlan) -> Option<String> {
    if plan.pool.is_some() || file_text::has_http_origin(plan) {
        return None;
    }
    let places = "below /etc/php or /etc/php-fpm.d";
    Some(match plan.php_of_server() {
        Some((at, file)) => format!(
            "no pool of php-fpm {places} has the address {at}, which {} names: its user is unknown, and `sudo pagewell \
             check` says whether the service can connect",
            file.display()
        ),
        None => format!(
            "no pool of php-fpm was found {places}, so the file names {}: `sudo apt-get install -y php-fpm` installs it",
            plan.php
        ),
    })
}

/// The way to HTTPS, if no certificate was found and no program listens at port 443.
fn missing_https(plan: &SetupPlan, facts: &MachineFacts) -> Option<String> {
    const LINES: &str =
        "four lines (listen = \":80\", listen_tls = \":443\", https_redirect = 308, [acme])";
    let of_front = |program: &str| {
        format!("give {program} one, or give its ports to Pagewell, which obtains one by {LINES}")
    };
    let (has_certificate, remedy) = match &plan.front {
        FrontServer::Nginx(served) => (served.certificate.is_some(), of_front("nginx")),
        FrontServer::Apache(served) => (
            served.certificate.is_some(),
            format!("when Pagewell has the ports of Apache, it obtains one by {LINES}"),
        ),
        FrontServer::Other(program) => (false, of_front(program)),
        FrontServer::Nobody => (
            file_text::has_public_name(plan),
            format!("for a public name, {LINES} obtain one; for any other, name it in [[tls]]"),
        ),
    };
    let is_missing = !has_certificate && facts.other_program(443).is_none();
    let why = "no certificate was found, so there is no HTTPS";
    is_missing.then(|| format!("{why}: {remedy}. See docs/guide/tls.md"))
}
