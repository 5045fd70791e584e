//! A plot of server CPU for each request, as an SVG: a bar for each server, the middle half of the rounds
//! as a line over its end. Made of text, so that it needs no library; its colours can be read on light
//! and on dark ground. Pagewell's bars have a colour of their own.

use super::Amount;
use super::figures::Series;
use std::fmt::Write as _;
use std::fs;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 250.0;
const ROW: f64 = 26.0;
const TOP: f64 = 44.0;

/// Writes `NAME.svg` beside the figures.
///
/// # Errors
/// When it cannot be written.
pub fn write(amount: &Amount, name: &str, title: &str, series: &[Series]) -> Result<(), String> {
    let path = amount.dir().join(format!("{name}.svg"));
    fs::create_dir_all(amount.dir())
        .and_then(|()| fs::write(&path, svg(title, series)))
        .map_err(|error| format!("bench: {}: {error}", path.display()))
}

#[allow(clippy::cast_precision_loss, reason = "a handful of rows")]
fn svg(title: &str, series: &[Series]) -> String {
    let most = series.iter().map(|one| one.cpu_micros().high).fold(0.0, f64::max).max(0.001);
    let across = |micros: f64| micros / most * (WIDTH - LEFT - 90.0);
    let height = TOP + ROW * series.len() as f64 + 12.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#777\">\n\
         <text x=\"8\" y=\"24\" font-size=\"15\">{}: server CPU for each request, in µs</text>\n",
        escaped(title)
    );
    for (row, one) in series.iter().enumerate() {
        let (cpu, y) = (one.cpu_micros(), TOP + ROW * row as f64);
        let colour = if one.name.starts_with("Pagewell") { "#d9542b" } else { "#8fa3b5" };
        let (low, high) = (LEFT + across(cpu.low), LEFT + across(cpu.high));
        let _ = writeln!(
            text,
            "<text x=\"{x}\" y=\"{base}\" text-anchor=\"end\">{name}</text>\
             <rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"18\" fill=\"{colour}\"/>\
             <line x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{mid}\" y2=\"{mid}\" stroke=\"#333\"/>\
             <text x=\"{after:.1}\" y=\"{base}\">{median:.2}</text>",
            x = LEFT - 8.0,
            base = y + 14.0,
            mid = y + 9.0,
            after = high + 8.0,
            width = across(cpu.median),
            median = cpu.median,
            name = escaped(&one.name),
        );
    }
    text + "</svg>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::super::figures::Round;
    use super::*;

    #[test]
    fn each_server_has_a_bar_as_long_as_it_costs() {
        let mut one = Series::new("a < b");
        one.rounds = vec![Round { cpu_micros: 4.0, per_second: 1.0 }];
        let mut two = Series::new("Pagewell");
        two.rounds = vec![Round { cpu_micros: 2.0, per_second: 1.0 }];
        let text = svg("t", &[one, two]);
        assert!(text.contains("a &lt; b") && text.contains(">4.00<") && text.contains(">2.00<"));
        assert!(text.contains("width=\"420.0\"") && text.contains("width=\"210.0\""), "{text}");
    }
}
