//! `docs/images/cost-of-a-hit.svg`: the chart of the front page, drawn from a table of
//! docs/internals/measurements.md, which `cargo measure o1` prints.
//!
//! The cheapest server is on top. The chart is text, so it needs no library, and the same table gives
//! the same bytes. Its colours can be read on light and on dark ground. Not here: the plots of a
//! measurement with the spread of its rounds (`tools/bench/src/plot.rs`).

use std::fmt::Write as _;

/// The path of the chart in the repository.
pub(super) const CHART: &str = "docs/images/cost-of-a-hit.svg";
/// The page with the table, and the heading before it.
pub(super) const PAGE: &str = "docs/internals/measurements.md";
const HEADING: &str = "### O1: a page of 2,042 bytes, 50 connections, bare";
/// The columns of the table that are drawn.
const COLUMNS: [&str; 2] = ["Server", "Server CPU"];

const WIDTH: f64 = 760.0;
const LEFT: f64 = 250.0;
const ROW: f64 = 26.0;
const TOP: f64 = 44.0;
/// The space for a number behind the longest bar.
const NUMBER: f64 = 90.0;

/// Draws the chart from the text of [`PAGE`].
///
/// # Errors
/// The page has no such table, or a cost is not a number in µs.
pub(super) fn chart(page: &str) -> Result<String, String> {
    let mut rows = rows(page)?;
    rows.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    Ok(svg(&rows))
}

/// The servers of the table, each with its CPU time for a hit in microseconds.
fn rows(page: &str) -> Result<Vec<(String, f64)>, String> {
    let wrong = |what: &str| format!("gen-docs: {PAGE}: {what}, in the table of {HEADING:?}");
    let mut lines = page.lines().skip_while(|line| *line != HEADING).skip(1);
    let lines = lines.by_ref().skip_while(|line| line.is_empty());
    let mut table = lines.take_while(|line| line.starts_with('|')).map(cells);
    let head = table.next().ok_or_else(|| wrong("there is no row"))?;
    if !head.starts_with(&COLUMNS.map(str::to_owned)) {
        return Err(wrong(&format!("the first columns are not {}", COLUMNS.join(" and "))));
    }
    let row = |cells: Vec<String>| {
        let [server, cost, ..] = cells.as_slice() else { return Err(wrong("a row is too short")) };
        let micros = cost.strip_suffix(" µs").and_then(|micros| micros.parse::<f64>().ok());
        let micros = micros.filter(|micros| micros.is_finite() && *micros > 0.0);
        let micros = micros.ok_or_else(|| wrong(&format!("{cost:?} is not a time in µs")))?;
        Ok((server.trim_matches('*').to_owned(), micros))
    };
    let rows: Vec<_> = table.skip(1).map(row).collect::<Result<_, _>>()?;
    if rows.is_empty() { Err(wrong("there is no server")) } else { Ok(rows) }
}

fn cells(line: &str) -> Vec<String> {
    line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

#[allow(clippy::cast_precision_loss, reason = "a handful of rows")]
fn svg(rows: &[(String, f64)]) -> String {
    let most = rows.last().map_or(1.0, |(_, micros)| *micros);
    let height = TOP + ROW * rows.len() as f64 + 12.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#777\" role=\"img\" aria-labelledby=\"t\">\n\
         <title id=\"t\">Server CPU for each cache hit of a 2 KB page, in microseconds</title>\n\
         <text x=\"8\" y=\"24\" font-size=\"15\">A page of 2,042 bytes, 50 connections: server CPU for each \
         request, in µs</text>\n"
    );
    for (row, (name, micros)) in rows.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        let width = micros / most * (WIDTH - LEFT - NUMBER);
        let colour = if name == "Pagewell" { "#d9542b" } else { "#8fa3b5" };
        let _ = writeln!(
            text,
            "<text x=\"{x}\" y=\"{base}\" text-anchor=\"end\">{name}</text>\
             <rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"18\" fill=\"{colour}\"/>\
             <text x=\"{after:.1}\" y=\"{base}\">{micros:.2}</text>",
            x = LEFT - 8.0,
            base = y + 14.0,
            after = LEFT + width + 8.0,
            name = name.replace('&', "&amp;").replace('<', "&lt;"),
        );
    }
    text + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: &str) -> String {
        format!(
            "a\n\n{HEADING}\n\n| Server | Server CPU | × |\n|---|---|---|\n{rows}\n| no | 1 |\n"
        )
    }

    #[test]
    fn the_cheapest_is_on_top() {
        let drawn =
            chart(&page("| a<b | 10.00 µs | |\n| **Pagewell** | 5.86 µs | |\n")).expect("a chart");
        let at = |part: &str| drawn.find(part).unwrap_or_else(|| panic!("{part}: {drawn}"));
        assert!(at(">Pagewell</text>") < at("width=\"246.1\"") && at(">5.86<") < at(">a&lt;b<"));
        assert!(at("width=\"420.0\"") < at(">10.00<") && !drawn.contains(">no<"));
    }

    #[test]
    fn the_front_page_has_the_figures_of_the_chart() {
        let read = |path| {
            std::fs::read_to_string(harness::root::repository().join(path)).expect("it can be read")
        };
        let (front, rows) = (read("README.md"), rows(&read(PAGE)).expect("a table"));
        for server in ["Pagewell", "Varnish"] {
            let micros = rows.iter().find(|(name, _)| name == server).expect("a row").1;
            assert!(front.contains(&format!("{server} {micros:.2}")), "{server}: {micros:.2}");
        }
    }

    #[test]
    fn a_wrong_table_is_an_error() {
        for (rows, why) in [
            ("", "no server"),
            ("| a | 5 ms | |", "not a time"),
            ("| a | NaN µs | |", "not a time"),
            ("| a |", "too short"),
        ] {
            let error = chart(&page(rows)).expect_err(rows);
            assert!(error.contains(why) && error.contains(PAGE), "{error}");
        }
        assert!(chart("").is_err_and(|error| error.contains("no row")));
        let other = page("| a | 1.00 µs | |").replace("Server CPU", "CPU");
        assert!(chart(&other).is_err_and(|error| error.contains("columns")));
    }
}
