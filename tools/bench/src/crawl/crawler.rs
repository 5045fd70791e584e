//! The crawlers of the design's section 2. Each is a process of its own, as it would be another machine: it shares
//! neither locks nor memory with the visitors, and has the last priority.
//!
//! A crawler asks for cold URLs at its rate, whatever is answered. So it has a thread for each request that may be in
//! progress, also of a server that answers no request.

use super::clients::{AGAIN_AFTER, PATIENCE, RunTime};
use super::connection::ProxiedConnection;
use super::figures::CrawlerCounts;
use super::priority::{CRAWLER_NICE, set_nice};
use super::site::{ARTICLES, CHILDREN};
use super::{STACK_BYTES, system};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How long a crawler like a browser waits before a page, after the files and hits.
const READS_FOR: Duration = Duration::from_secs(2);
/// A crawler like a browser asks so often for a page.
const TRIES_OF_E: u32 = 4;
/// More threads at once would need more memory and sockets than the figures are worth.
const THREADS_MAX: u64 = 8_000;

/// A crawler of the design, by its letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Crawler {
    /// None: the quiet site.
    None,
    /// 2,000 addresses.
    A,
    /// Each request from another address, half of them of IPv6.
    B,
    /// As A, with a file before each page.
    C,
    /// 50,000 addresses, three files and three hits before each page, cookies, three more tries.
    E,
}

impl Crawler {
    /// All, in the order of the table.
    pub const ALL: [Crawler; 5] = [Crawler::None, Crawler::A, Crawler::B, Crawler::C, Crawler::E];

    /// The name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Crawler::None => "none",
            Crawler::A => "A",
            Crawler::B => "B",
            Crawler::C => "C",
            Crawler::E => "E",
        }
    }

    /// Whether its addresses have hits, and so the level of visitors.
    pub fn is_adapted(self) -> bool {
        matches!(self, Crawler::C | Crawler::E)
    }

    /// The places at PHP that rationing leaves it under overload beside a signed-in visitor's request: one less than the
    /// quarter of unknown clients, or than the third of known ones, which is two at least.
    pub fn places(self) -> usize {
        match self {
            Crawler::None => 0,
            Crawler::A | Crawler::B => (CHILDREN as usize / 4).saturating_sub(1),
            Crawler::C | Crawler::E => (CHILDREN as usize / 3).max(2) - 1,
        }
    }

    /// The files before each page.
    fn files(self) -> u32 {
        match self {
            Crawler::C => 1,
            Crawler::E => 3,
            _ => 0,
        }
    }

    /// Addresses of 198.18.0.0/15, and of subscribers of 2001:db8::/32.
    fn address(self, number: u64) -> IpAddr {
        let count = match self {
            Crawler::B => 1 << 17,
            Crawler::E => 50_000,
            _ => 2_000,
        };
        // Each has many neighbours, but no two of them follow each other.
        let place = (number.wrapping_mul(7_919) % count) as u32;
        if self == Crawler::B && !number.is_multiple_of(2) {
            let subscriber = u128::from(place) << 64 | 1;
            return Ipv6Addr::from_bits(0x2001_0db8_u128 << 96 | subscriber).into();
        }
        Ipv4Addr::from_bits(u32::from(Ipv4Addr::new(198, 18, 0, 0)) + place).into()
    }

    /// The longest time from the first request for a page to the last response.
    fn longest(self) -> Duration {
        match self {
            Crawler::E => READS_FOR + PATIENCE + AGAIN_AFTER * (TRIES_OF_E - 1),
            _ => PATIENCE,
        }
    }
}

/// The crawl of one run.
#[derive(Debug, Clone, clap::Args)]
pub struct CrawlOrder {
    /// The server under test
    #[arg(long)]
    pub server: SocketAddr,
    /// The kind of the crawler
    #[arg(long, value_enum, ignore_case = true)]
    pub crawler: Crawler,
    /// The cold pages that it asks for each second
    #[arg(long)]
    pub rate: u64,
    /// How long the run lasts, in seconds. The crawl begins after a tenth, and is counted after a fifth.
    #[arg(long)]
    pub seconds: u64,
}

/// The process of a crawler. It ends itself with the run.
pub struct CrawlerProcess(Child);

impl CrawlerProcess {
    /// Starts it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(order: &CrawlOrder) -> Result<CrawlerProcess, String> {
        let mut command = Command::new(std::env::current_exe().map_err(system)?);
        command.arg("crawler").args(["--server", &order.server.to_string()]);
        command.args(["--crawler", order.crawler.name(), "--rate", &order.rate.to_string()]);
        command.args(["--seconds", &order.seconds.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.spawn().map(CrawlerProcess).map_err(system)
    }

    /// Waits for its end. Returns its counts.
    ///
    /// # Errors
    /// It failed.
    pub fn counts(self) -> Result<CrawlerCounts, String> {
        let output = self.0.wait_with_output().map_err(system)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let counts = text.trim().split_once(' ').and_then(|(came, refused)| {
            Some(CrawlerCounts { came: came.parse().ok()?, refused: refused.parse().ok()? })
        });
        counts.ok_or_else(|| format!("bench: the crawler failed: {}", output.status))
    }
}

/// Crawls in this process. Prints how many pages came, and how many did not.
///
/// # Errors
/// Those of the system.
pub fn run(order: &CrawlOrder) -> Result<(), String> {
    set_nice(CRAWLER_NICE);
    let lasts = Duration::from_secs(order.seconds);
    let crawl = Crawl {
        order: order.clone(),
        time: RunTime::start(lasts),
        lasts,
        sent: AtomicU64::new(0),
        came: AtomicU64::new(0),
        refused: AtomicU64::new(0),
    };
    let threads = (order.rate * order.crawler.longest().as_secs()).min(THREADS_MAX);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, || crawl.requests()).map_err(system)?;
        }
        Ok::<(), String>(())
    })?;
    println!("{} {}", crawl.came.load(Relaxed), crawl.refused.load(Relaxed));
    Ok(())
}

/// The state that all threads of a crawler share.
struct Crawl {
    order: CrawlOrder,
    time: RunTime,
    lasts: Duration,
    sent: AtomicU64,
    came: AtomicU64,
    refused: AtomicU64,
}

impl Crawl {
    /// One of the threads that send requests, each at its time.
    fn requests(&self) {
        loop {
            let number = self.sent.fetch_add(1, Relaxed);
            let due = Duration::from_micros(number * 1_000_000 / self.order.rate);
            let due = self.lasts / 10 + due;
            if due >= self.lasts {
                return;
            }
            self.time.sleep(due.saturating_sub(self.time.elapsed()));
            let came = self.page(number).unwrap_or(false);
            let is_measured = self.time.elapsed() >= self.lasts / 5 && self.time.goes_on();
            if is_measured {
                let count = if came { &self.came } else { &self.refused };
                count.fetch_add(1, Relaxed);
            }
        }
    }

    /// Asks for a page. Returns whether it came.
    fn page(&self, number: u64) -> io::Result<bool> {
        let (crawler, time) = (self.order.crawler, &self.time);
        let address = crawler.address(number);
        let mut connection = ProxiedConnection::open(self.order.server, address, time.patience())?;
        let target = match number % 10 {
            0 => format!("/article/{}/", 1_000_000 + number),
            _ => format!("/shop/?colour=c{number}&size={number}"),
        };
        for file in 0..crawler.files() {
            connection.send(&format!("/file-{file}.css"), "", None)?;
        }
        if crawler == Crawler::E {
            for article in 0..3 {
                let article = (number + article) % u64::from(ARTICLES);
                connection.send(&format!("/article/{article}/"), "", None)?;
            }
            time.sleep(READS_FOR);
        }
        let mut cookie = String::new();
        for _ in 0..if crawler == Crawler::E { TRIES_OF_E } else { 1 } {
            connection.set_patience(time.patience())?;
            let answer = connection.send(&target, &cookie, None)?;
            match answer.status {
                200 => return Ok(true),
                503 if crawler == Crawler::E => {
                    if let Some(ticket) = answer.cookies.first() {
                        cookie = format!("Cookie: {ticket}\r\n");
                    }
                    time.sleep(AGAIN_AFTER);
                }
                _ => return Ok(false),
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn the_command_line_has_the_names_of_the_table() {
        for crawler in Crawler::ALL {
            assert_eq!(Crawler::from_str(crawler.name(), true), Ok(crawler));
        }
    }

    #[test]
    fn addresses_are_of_the_test_network_and_seldom_repeat() {
        let of = |crawler: Crawler, count| {
            let all = (0..count).map(|number| crawler.address(number));
            all.collect::<std::collections::BTreeSet<_>>()
        };
        for (crawler, addresses) in [(Crawler::A, 2_000), (Crawler::B, 9_999), (Crawler::E, 9_999)]
        {
            let all = of(crawler, 9_999);
            assert_eq!(all.len(), addresses, "{}", crawler.name());
            let is_of_test = |address: &IpAddr| match address {
                IpAddr::V4(address) => matches!(address.octets(), [198, 18 | 19, ..]),
                IpAddr::V6(address) => matches!(address.segments(), [0x2001, 0xdb8, ..]),
            };
            assert!(all.iter().all(is_of_test), "{}", crawler.name());
        }
    }
}
