//! The layout of `pagewell top`: a line per metric, then the lists of `lists` if there is room. The
//! words are those of the dashboard.
//!
//! It is a pure function of the data and the size. The result has at most as many lines as the terminal,
//! and contains no control sequences. Styles and lines are ratatui's. Nothing is written here.

use super::lists;
use super::moments::{Derivation, Moments, Site, core_share, hit_share, mean_ms, rate};
use super::shown::{
    bar, blocks, bytes, count, cut, duration, harmless, milliseconds, per_second, percent,
};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use serde_json::Value;

/// The size of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The number of characters per line.
    pub columns: usize,
    /// The number of lines.
    pub rows: usize,
}

/// The state of the connection to Pagewell.
pub enum Link {
    /// Connected to Pagewell.
    There,
    /// Disconnected, with the reason.
    Lost(String),
}

/// Data in addition to the metrics.
#[derive(Default)]
pub struct TopExtras {
    /// The response of `GET /v1/misses`, or null.
    pub misses: Value,
    /// The response of `GET /v1/changes`, or null.
    pub changes: Value,
    /// The response of `GET /v1/sources`, or null.
    pub sources: Value,
    /// The time of these responses, in milliseconds since 1970.
    pub now_ms: u64,
}

/// The state of the view, apart from the metrics.
pub struct View {
    admin: String,
    /// The host of the selected site; `None`: all sites.
    pub(super) site: Option<String>,
    pub(super) utf8: bool,
    /// Whether colours may be used (`NO_COLOR`).
    has_colours: bool,
    /// Whether the view is interactive, so that keys have an effect.
    pub is_watched: bool,
    /// The state of the connection to Pagewell.
    pub link: Link,
    /// The databases and nodes, the causes of misses, and the recent changes.
    pub extras: TopExtras,
}

impl View {
    /// A view of the Pagewell whose control interface is at `admin`.
    pub fn new(admin: &str, site: Option<String>, utf8: bool) -> View {
        let (admin, extras) = (admin.to_owned(), TopExtras::default());
        let has_colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        View { admin, site, utf8, has_colours, is_watched: false, link: Link::There, extras }
    }

    /// Checks that the selected site exists.
    ///
    /// # Errors
    /// There is no such site: a sentence for the operator.
    pub fn check(&self, moments: &Moments) -> Result<(), String> {
        match &self.site {
            Some(site) if moments.hosts().all(|host| host != site) => {
                let hosts: Vec<_> = moments.hosts().collect();
                let remedy = match hosts.as_slice() {
                    [] => "this Pagewell has one site: leave out --site".to_owned(),
                    hosts => format!("there are {}", hosts.join(", ")),
                };
                Err(format!("no site has the host {site:?}; {remedy}"))
            }
            _ => Ok(()),
        }
    }

    /// Selects the next site; after the last, all sites.
    pub fn next_site(&mut self, moments: &Moments) {
        let mut hosts = moments.hosts();
        self.site = match &self.site {
            None => hosts.next(),
            Some(site) => hosts.find(|host| *host > site.as_str()),
        }
        .map(str::to_owned);
    }

    fn host(&self) -> &str {
        self.site.as_deref().unwrap_or_default()
    }
}

/// The style of an important value.
pub(super) const STRONG: Style = Style::new().bold();
/// The style of a name or a note.
const FAINT: Style = Style::new().dim();
/// The style of the heading.
const HEADING: Style = Style::new().reversed();

/// The style of an error.
fn alarm(view: &View) -> Style {
    if view.has_colours { Style::new().bold().fg(Color::Red) } else { HEADING }
}

/// The text of a line without styles, cut to `columns` characters.
pub fn plain(line: &Line<'_>, columns: usize) -> String {
    let text: String = line.iter().flat_map(|span| span.content.chars()).take(columns).collect();
    text.trim_end().to_owned()
}

/// The description of a metric's line. `seconds` is the interval over which `made` derives the value;
/// `shown` formats it; `top` is the minimum for the top of the scale.
struct Row {
    name: &'static str,
    seconds: usize,
    made: Derivation,
    shown: fn(f64) -> String,
    top: f64,
    note: fn(&Moments, Site<'_>) -> String,
}

fn requests(before: &super::moments::Moment, now: &super::moments::Moment) -> Option<f64> {
    rate("requests")(before, now)
}

fn renders(before: &super::moments::Moment, now: &super::moments::Moment) -> Option<f64> {
    rate("renders")(before, now)
}

fn changes(before: &super::moments::Moment, now: &super::moments::Moment) -> Option<f64> {
    rate("invalidations")(before, now)
}

fn accepted(before: &super::moments::Moment, now: &super::moments::Moment) -> Option<f64> {
    rate("connections_accepted")(before, now)
}

const ROWS: [Row; 6] = [
    Row {
        name: "Requests",
        seconds: 2,
        made: requests,
        shown: per_second,
        top: 0.0,
        note: |_, site| format!("{} since the start", count(site.now("requests"))),
    },
    Row {
        name: "Hit ratio",
        seconds: 10,
        made: hit_share,
        shown: percent,
        top: 1.0,
        note: |_, site| {
            let not_stored = site.over(60, rate("not_stored")).unwrap_or(0.0);
            format!("{} not stored", per_second(not_stored))
        },
    },
    Row {
        name: "CPU",
        seconds: 3,
        made: core_share,
        shown: percent,
        top: 0.02,
        note: |moments, site| {
            let resident = bytes(site.now("process_resident_bytes"));
            format!("of one core (of {}); {resident} RSS", moments.process.cores)
        },
    },
    Row {
        name: "Renders",
        seconds: 2,
        made: renders,
        shown: per_second,
        top: 0.0,
        note: |_, site| {
            let [running, queued] =
                ["origin_places_taken", "origin_queue"].map(|name| site.now(name));
            format!("{} at the origin, {} queued", count(running), count(queued))
        },
    },
    Row {
        name: "Origin",
        seconds: 10,
        made: mean_ms,
        shown: milliseconds,
        top: 0.0,
        note: |_, site| {
            let late = site.quantile(0.95).map_or("-".to_owned(), milliseconds);
            format!("95 % in {late}; {} failures", count(site.now("origin_failures")))
        },
    },
    Row {
        name: "Changes",
        seconds: 10,
        made: changes,
        shown: per_second,
        top: 0.0,
        note: |_, site| {
            let dropped = site.over(60, rate("dropped")).unwrap_or(0.0);
            let lag = match site.now("database_lag_us") {
                0 => String::new(),
                lag_us => format!("; lag {}", milliseconds(lag_us as f64 / 1000.0)),
            };
            format!("{} pages purged{lag}", per_second(dropped))
        },
    },
];

/// The width of the name and of the value, in characters.
const NAME: usize = 12;
const VALUE: usize = 11;

/// All lines of the view, at most `size.rows`.
pub fn lines(view: &View, moments: &Moments, size: Size) -> Vec<Line<'static>> {
    let site = moments.of(view.host());
    let mut lines = vec![heading(view, moments, size.columns), state(view, moments)];
    for row in &ROWS {
        lines.push(figure(row, view, moments, site, size.columns));
    }
    // Connections are counted before the site is known, so their number is the same for all sites.
    lines.insert(5, memory(view, site, size.columns));
    lines.push(connections(moments.of("")));
    let room = size.rows.saturating_sub(lines.len() + 1);
    lines.extend(lists::lists(view, size.columns, room));
    if view.is_watched {
        lines.resize_with(size.rows.saturating_sub(1), Line::default);
        lines.push(Line::styled(" q: quit   s: next site", FAINT));
    }
    lines
}

fn heading(view: &View, moments: &Moments, columns: usize) -> Line<'static> {
    let site = match &view.site {
        Some(site) => harmless(site),
        None if moments.hosts().next().is_some() => {
            format!("all {} sites", moments.hosts().count())
        }
        None => String::new(),
    };
    let process = &moments.process;
    let text = format!(
        " Pagewell {}  {}  up {}  {site}",
        harmless(&process.version),
        harmless(&view.admin),
        duration(process.uptime)
    );
    Line::styled(format!("{:columns$}", cut(&text, columns, view.utf8)), HEADING)
}

fn state(view: &View, moments: &Moments) -> Line<'static> {
    match (&view.link, moments.process.not_ready.as_slice()) {
        (Link::Lost(why), _) => {
            Line::styled(format!(" {}: trying again", harmless(why)), alarm(view))
        }
        (Link::There, []) => Line::default(),
        (Link::There, reasons) => {
            Line::styled(format!(" not ready: {}", harmless(&reasons.join(", "))), alarm(view))
        }
    }
}

fn figure(
    row: &Row,
    view: &View,
    moments: &Moments,
    site: Site<'_>,
    columns: usize,
) -> Line<'static> {
    let value = site.over(row.seconds, row.made).map_or("-".to_owned(), row.shown);
    let note = (row.note)(moments, site);
    let width = columns.saturating_sub(NAME + VALUE + 38).clamp(8, 60);
    let series = site.series(width, row.seconds, row.made);
    let line = blocks(&series, row.top, view.utf8);
    named(row.name, &value, format!("  {line:>width$}  "), note)
}

fn memory(view: &View, site: Site<'_>, columns: usize) -> Line<'static> {
    let [held, budget] = ["memory_bytes", "memory_budget_bytes"].map(|name| site.now(name));
    let width = columns.saturating_sub(NAME + VALUE + 38).clamp(8, 60);
    let share = held as f64 / budget.max(1) as f64;
    let pages = site.now("pages");
    let unit = if pages == 1 { "page" } else { "pages" };
    let note = format!("{} {unit}; budget {}", count(pages), bytes(budget));
    named("Memory", &bytes(held), format!("  {}  ", bar(share, width, view.utf8)), note)
}

fn connections(default_site: Site<'_>) -> Line<'static> {
    let new = default_site.over(10, accepted).unwrap_or(0.0);
    let note = format!("{} new", per_second(new));
    named("Connections", &count(default_site.now("connections")), "  ".to_owned(), note)
}

/// The line of a metric: name, value, a bar or sparkline, and a note.
fn named(name: &str, value: &str, graph: String, note: String) -> Line<'static> {
    Line::from(vec![
        Span::styled(format!(" {name:NAME$}"), FAINT),
        Span::styled(format!("{value:>VALUE$}"), STRONG),
        Span::raw(graph),
        Span::styled(note, FAINT),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn known() -> (View, Moments) {
        let mut moments = Moments::default();
        for at_ms in [1000, 2000] {
            moments.add(&json!({
                "at_ms": at_ms, "version": "1.2", "cores": 4, "not_ready": [],
                "figures": {
                    "requests": at_ms, "memory_bytes": 1 << 20, "memory_budget_bytes": 4 << 20,
                    "sites": { "b.test": { "requests": 7 }, "a.test": {} }
                },
                "origin_times": {},
            }));
        }
        let mut view = View::new("127.0.0.1:1", None, true);
        view.is_watched = true;
        view.extras.misses = json!({ "not_stored": [
            { "reason": "set-cookie", "count": 12, "url": "http://a.test/\u{1b}[2J" },
        ] });
        let changes: Vec<_> = (0..99).map(|number| json!({
            "number": number, "at_ms": 0, "site": "a.test", "strength": "drop", "dropped": 3, "by": { "text": "control" },
            "names": [{ "kind": "tag", "name": "news:4" }, { "kind": "everything", "name": "" }],
        })).collect();
        view.extras.changes = json!({ "changes": changes });
        (view, moments)
    }

    #[test]
    fn it_fits_into_any_terminal() {
        let (view, moments) = known();
        for (columns, rows) in [(80, 24), (200, 60), (40, 10), (1, 1), (0, 0)] {
            let lines = lines(&view, &moments, Size { columns, rows });
            assert!(lines.len() <= rows.max(1), "{columns}x{rows}");
            for line in lines {
                let text = plain(&line, columns);
                assert!(text.chars().count() <= columns && !text.contains('\u{1b}'), "{text:?}");
            }
        }
    }

    #[test]
    fn it_says_what_is_known() {
        let (view, moments) = known();
        let text: Vec<_> = lines(&view, &moments, Size { columns: 80, rows: 24 })
            .iter()
            .map(|line| plain(line, 80))
            .collect();
        let text = text.join("\n");
        for part in [
            "Requests        1,000/s",
            "all 2 sites",
            "████░",
            "0 pages; budget 4.00 MiB",
            "of one core (of 4)",
            "12  Not stored: set-cookie",
            "3 purged: news:4 everything  (control)",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert_eq!(text.lines().count(), 24, "{text}");
    }

    #[test]
    fn sites_come_one_after_the_other() {
        let (mut view, moments) = known();
        for host in [Some("a.test"), Some("b.test"), None] {
            view.next_site(&moments);
            assert_eq!(view.site.as_deref(), host);
        }
        view.site = Some("c.test".into());
        assert!(view.check(&moments).is_err_and(|why| why.contains("a.test, b.test")));
    }
}
