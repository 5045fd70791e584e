//! The cost of a miss: a page that PHP renders, by way of nginx and by way of Pagewell, which stores it.
//!
//! Every request is for an address that was not asked for before. Counted is the CPU of the web tier and of
//! php-fpm together, for the same PHP answers both; and, over a single connection, how long a request takes.
//! That each was rendered is seen in php-fpm's own log. In turn, round by round, like everything here.
//!
//! The same for both: one php-fpm (eight children, its opcache as the system has it) that is on their core,
//! with as many rounds of work for a page however many children share it; its Unix socket, to which each
//! request makes a connection of its own (neither keeps any, as neither does by itself); answers that are
//! held in memory until they are whole; one worker each; no access log. Pagewell is as it comes: it looks
//! for a file before it asks PHP, which nginx is not set to do, and stores each page, which would be compressed
//! if it were requested again.

use super::compare::{let_php_finish, two_cores};
use super::figures::{Round, Series, Spread, shown};
use super::pages::Pages;
use super::rivals::{Ground, Rival, Server};
use super::{Amount, CaseResult};
use harness::{Load, LoadEnd, cpu};
use serde_json::json;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::Path;

/// A page, and how many of it are asked for in a round.
struct MissCase {
    title: &'static str,
    target: &'static str,
    requests: u64,
}

const PAGES: [MissCase; 2] = [
    MissCase {
        title: "2,042 bytes, a script that does little",
        target: "/p/2042-0",
        requests: 4000,
    },
    MissCase { title: "21 KB, 20 ms of PHP", target: "/p/21000-20", requests: 100 },
];
const CONNECTIONS: [usize; 2] = [1, 8];

/// Measures.
///
/// # Errors
/// A server that did not start; a request that failed, or was not rendered.
pub fn miss(amount: &Amount, binary: &Path) -> Result<CaseResult, String> {
    let title = "A miss: PHP makes the page, Pagewell keeps it";
    let mut text = format!(
        "### {title}\n\n| Page | Connections | CPU with nginx, including PHP | With Pagewell | × nginx | A request takes \
         longer by |\n|---|---|---|---|---|---|\n"
    );
    let mut figures = Vec::new();
    for (page, connections) in PAGES.iter().flat_map(|page| CONNECTIONS.map(|count| (page, count)))
    {
        eprintln!("bench: {title}: {}, {connections} connections", page.title);
        let [nginx, pagewell] = measure(page, connections, amount, binary)?;
        let ratio = pagewell.ratio_to(&nginx);
        let longer = longer_micros(&nginx, &pagewell);
        let _ = writeln!(
            text,
            "| {} | {connections} | {:.0} µs | {:.0} µs | {} | {} |",
            page.title,
            nginx.cpu_micros().median,
            pagewell.cpu_micros().median,
            shown(ratio),
            if connections == 1 { format!("{:.0} µs", longer.median) } else { String::new() },
        );
        figures.push(json!({
            "page": page.title,
            "connections": connections,
            "longer_micros": longer.median,
            "servers": [nginx.json(&nginx), pagewell.json(&nginx)],
        }));
    }
    Ok(CaseResult {
        name: "miss".into(),
        text,
        figures: json!({ "title": title, "pages": figures }),
    })
}

/// How much longer a request takes, one after the other, by round.
fn longer_micros(nginx: &Series, pagewell: &Series) -> Spread {
    let takes = |round: &Round| 1e6 / round.per_second;
    let pairs = nginx.rounds.iter().zip(&pagewell.rounds);
    Spread::of(pairs.map(|(theirs, ours)| takes(ours) - takes(theirs)))
}

/// nginx, and Pagewell.
fn measure(
    page: &MissCase,
    connections: usize,
    amount: &Amount,
    binary: &Path,
) -> Result<[Series; 2], String> {
    let cores = two_cores()?;
    let ground = Ground {
        pages: cpu::on_core(cores.0, || Pages::start(8))
            .map_err(|error| format!("bench: {error}"))??,
        binary: binary.to_owned(),
        core: Some(cores.0),
        load_core: cores.1,
        targets: vec![page.target],
        connections,
        gzip: false,
        certificate: None,
        logs: None,
        log: RefCell::default(),
    };
    let mut servers = [Rival::Php.start(&ground)?, Rival::Pagewell.start(&ground)?];
    for server in &mut servers {
        let php = ground.pages.php.pid();
        server.pids.extend(php.filter(|php| !server.pids.contains(php)));
    }
    let mut series = [Series::new("nginx"), Series::new("Pagewell")];
    let requests = if amount.short { 20 } else { page.requests };
    for round in 0..=amount.rounds {
        for (place, (server, series)) in servers.iter().zip(&mut series).enumerate() {
            let name = format!("{round}-{place}");
            let measured = one_round(page, connections, requests, &name, server, &ground)?;
            // The first round only warms up.
            if round > 0 {
                series.rounds.push(measured);
            }
        }
    }
    Ok(series)
}

fn one_round(
    page: &MissCase,
    connections: usize,
    requests: u64,
    name: &str,
    server: &Server,
    ground: &Ground,
) -> Result<Round, String> {
    let mut load = Load::new(server.address, page.target, connections, LoadEnd::Requests(requests));
    load.core = Some(ground.load_core);
    // As many more as may be begun before the load knows that it is enough.
    let spare = 2 * connections as u64;
    load.targets = (0..requests + spare).map(|n| format!("{}?{name}-{n}", page.target)).collect();
    // It notes a request when it is done with it, which is after the answer.
    let_php_finish(ground);
    let (before, rendered) = (server.cpu_seconds(), ground.pages.php.requests());
    let report = load.run().map_err(|error| format!("bench: {error}"))?;
    let_php_finish(ground);
    let used = server.cpu_seconds() - before;
    let rendered = (ground.pages.php.requests() - rendered) as u64;
    // The last of each connection may be rendered and not be waited for.
    let (answered, failed) = (report.requests, report.failures + report.unexpected);
    if failed > 0 || answered < requests || !(answered..=requests + spare).contains(&rendered) {
        return Err(format!("bench: {answered} answered, {rendered} rendered, {failed} failed"));
    }
    #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52 requests")]
    let cpu_micros = used * 1e6 / rendered as f64;
    Ok(Round { cpu_micros, per_second: report.per_second() })
}
