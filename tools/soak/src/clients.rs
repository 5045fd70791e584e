//! Clients that know the right answers.
//!
//! Every item has a value that only grows. A page says which item it shows and with which value, is as
//! long as the item makes it, and ends with the same words as it begins with. A visitor notes before each
//! request the values that were acknowledged to a writer: a page may show no less, nor more than was ever sent.
//! A visitor's own page must name that visitor.

use super::phases::Fault;
use super::site::{HOST, ITEMS, filler};
use super::tally::{RequestKind, name_of};
use super::{Run, WRITERS};
use harness::Chance;
use harness::{Client, ClientError, Request, Response, Stopwatch};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// How long a visitor waits for an answer before leaving.
const WITHIN: Duration = Duration::from_secs(30);
/// The pause before the next request.
const PAUSE: Duration = Duration::from_millis(10);
/// The pause of a writer.
const WRITE_PAUSE: Duration = Duration::from_millis(60);
/// After a failure nobody asks again at once.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// The value of each item that was acknowledged, and the value that was sent.
pub struct SentValues {
    acknowledged: Vec<AtomicU64>,
    sent: Vec<AtomicU64>,
}

impl SentValues {
    /// So many items, all of value 1.
    pub fn new(items: usize) -> SentValues {
        let ones = || (0..items).map(|_| AtomicU64::new(1)).collect();
        SentValues { acknowledged: ones(), sent: ones() }
    }
}

/// Asks for everything once, so that it is known to work.
///
/// # Errors
/// A page that was not served.
pub fn warm(run: &Run) -> Result<(), String> {
    let mut client = client(run);
    for item in 0..ITEMS {
        let answer = client.get(&format!("/item.php?id={item}"));
        match judge_item(run, item, 1, &answer) {
            AnswerJudgement::Right { .. } => {}
            AnswerJudgement::Failed(name) | AnswerJudgement::Wrong(name) => {
                return Err(format!("soak: {name}"));
            }
        }
    }
    Ok(())
}

/// Whether PHP, the database and all between them answer now.
pub fn is_served(run: &Run) -> bool {
    let answer = client(run).within(Duration::from_secs(5)).get("/fresh.php?id=0");
    matches!(judge_item(run, 0, 1, &answer), AnswerJudgement::Right { .. })
}

fn client(run: &Run) -> Client {
    Client::new(run.address).host(HOST).within(WITHIN)
}

/// A visitor, until the run is over.
pub fn visit(run: &Run, number: usize) {
    let mut chance = run.chance(number);
    let mut client = client(run);
    let own = format!("visitor{number:03}-{:010}", chance.below(1 << 30));
    while !run.is_over() {
        if chance.one_in(20) {
            client.close();
        }
        let item = popular(&mut chance);
        let least = run.values.acknowledged[item].load(SeqCst);
        let (fault, watch) = (run.now(), Stopwatch::start());
        let (asked, judged) = match chance.below(10) {
            0 => (RequestKind::Rendered, judge_own(&own, &client.send(&own_page(&own)))),
            1 => {
                let answer = client.get(&format!("/fresh.php?id={item}"));
                (RequestKind::Rendered, judge_item(run, item, least, &answer))
            }
            _ => {
                let answer = client.get(&format!("/item.php?id={item}"));
                (RequestKind::Page, judge_item(run, item, least, &answer))
            }
        };
        note(run, fault, asked, judged, &watch);
        thread::park_timeout(PAUSE);
    }
}

/// Asks for the own page of a signed-in visitor.
///
/// # Errors
/// It was not served, or is somebody else's.
pub fn session(run: &Run, own: &str) -> Result<(), String> {
    match judge_own(own, &client(run).send(&own_page(own))) {
        AnswerJudgement::Right { .. } => Ok(()),
        AnswerJudgement::Failed(what) | AnswerJudgement::Wrong(what) => {
            Err(format!("a session: {what}"))
        }
    }
}

/// Some items are asked for far more than others.
fn popular(chance: &mut Chance) -> usize {
    let most = chance.below(ITEMS) + 1;
    chance.below(most)
}

fn own_page(own: &str) -> Request {
    Request::get("/me.php").header("Cookie", &format!("PHPSESSID={own}"))
}

/// A visitor that writes, and reads the value back at once, until the run is over.
pub fn write(run: &Run, number: usize) {
    let mut chance = run.chance(1_000 + number);
    let mut client = client(run);
    while !run.is_over() {
        // Each has items of its own, and so knows their order.
        let item = chance.below(ITEMS / WRITERS) * WRITERS + number;
        let value = run.values.sent[item].fetch_add(1, SeqCst) + 1;
        let (fault, watch) = (run.now(), Stopwatch::start());
        let answer = client.post(&format!("/write.php?id={item}&value={value}"), "a=b");
        let judged = judge_write(item, value, &answer);
        if matches!(judged, AnswerJudgement::Right { .. }) {
            run.values.acknowledged[item].fetch_max(value, SeqCst);
            note(run, fault, RequestKind::Write, judged, &watch);
            let watch = Stopwatch::start();
            let answer = client.get(&format!("/item.php?id={item}"));
            note(run, fault, RequestKind::Page, judge_item(run, item, value, &answer), &watch);
        } else {
            // Its outcome is unknown; the value that it sent may be shown from now on.
            note(run, fault, RequestKind::Write, judged, &watch);
        }
        thread::park_timeout(WRITE_PAUSE);
    }
}

fn note(run: &Run, fault: usize, asked: RequestKind, judged: AnswerJudgement, watch: &Stopwatch) {
    let took = watch.elapsed();
    // A request that began before a fault may fail by it.
    let now = run.now();
    let is_failed = matches!(judged, AnswerJudgement::Failed(_));
    let fault = if is_failed && Fault::ALL[now].may_be_noticed() { now } else { fault };
    let mut tally = run.tally(fault);
    match judged {
        AnswerJudgement::Right { is_hit } => tally.right(asked, is_hit, took),
        AnswerJudgement::Wrong(what) => tally.wrong(what),
        AnswerJudgement::Failed(name) => {
            tally.failed(match asked {
                RequestKind::Write => format!("{name} to a write"),
                _ => name,
            });
            drop(tally);
            thread::park_timeout(AFTER_FAILURE);
        }
    }
}

/// The judgement of an answer.
#[derive(Debug)]
enum AnswerJudgement {
    Right {
        is_hit: bool,
    },
    /// The visitor sees that the request failed.
    Failed(String),
    /// The visitor does not see that it is wrong.
    Wrong(String),
}

type Answer = Result<Response, ClientError>;

fn whole(answer: &Answer) -> Result<&Response, AnswerJudgement> {
    match answer {
        Ok(response) if response.status == 200 => Ok(response),
        Ok(response) => Err(AnswerJudgement::Failed(shown(response))),
        Err(error) => Err(match name_of(error) {
            Some(name) => AnswerJudgement::Failed(name.to_owned()),
            None => AnswerJudgement::Wrong(format!("unreadable: {error}")),
        }),
    }
}

fn judge_item(run: &Run, item: usize, least: u64, answer: &Answer) -> AnswerJudgement {
    let response = match whole(answer) {
        Ok(response) => response,
        Err(judged) => return judged,
    };
    let text = response.text();
    let words: Vec<&str> = text.lines().next().unwrap_or_default().split(' ').collect();
    let (shown, value) = match words.as_slice() {
        ["item", shown, value] => (shown.parse::<usize>().ok(), value.parse::<u64>().ok()),
        _ => (None, None),
    };
    let (Some(shown), Some(value)) = (shown, value) else {
        return AnswerJudgement::Wrong(format!("torn: item {item} begins {:?}", start(&text)));
    };
    let most = run.values.sent[item].load(SeqCst);
    let status = response.header("cache-status").unwrap_or_default();
    if shown != item {
        AnswerJudgement::Wrong(format!("foreign: item {shown} for item {item} ({status})"))
    } else if value < least {
        AnswerJudgement::Wrong(format!(
            "outdated: {value} for item {item}, after {least} ({status})"
        ))
    } else if value > most {
        AnswerJudgement::Wrong(format!(
            "from nowhere: {value} for item {item}, of {most} ({status})"
        ))
    } else if text != page(item, value) {
        AnswerJudgement::Wrong(format!("torn: item {item} has {} bytes ({status})", text.len()))
    } else {
        AnswerJudgement::Right { is_hit: status.starts_with("pagewell; hit") }
    }
}

/// The page of an item, as the script makes it.
fn page(item: usize, value: u64) -> String {
    format!("item {item} {value}\n{}\nend {item} {value}\n", "x".repeat(filler(item)))
}

fn judge_own(own: &str, answer: &Answer) -> AnswerJudgement {
    match whole(answer) {
        Ok(response) if response.text() == format!("me {own}\n") => {
            AnswerJudgement::Right { is_hit: false }
        }
        Ok(response) => {
            let text = response.text();
            AnswerJudgement::Wrong(format!("foreign: {:?} for {own}", start(&text)))
        }
        Err(judged) => judged,
    }
}

fn judge_write(item: usize, value: u64, answer: &Answer) -> AnswerJudgement {
    match whole(answer) {
        Ok(response) if response.text() == format!("written {item} {value}\n") => {
            AnswerJudgement::Right { is_hit: false }
        }
        Ok(response) => {
            let text = response.text();
            AnswerJudgement::Wrong(format!("foreign: {:?} for a write of {item}", start(&text)))
        }
        Err(judged) => judged,
    }
}

fn start(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Its status, and Pagewell's reason where it has one (`pagewell: reason` is its content).
fn shown(response: &Response) -> String {
    let content = response.text();
    let reason = content.trim().strip_prefix("pagewell: ").filter(|reason| reason.len() < 40);
    reason.map_or(response.status.to_string(), |reason| format!("{} {reason}", response.status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn answered(text: &str) -> Answer {
        Ok(Response::new(200, &[], text.as_bytes()))
    }

    #[test]
    fn wrong_answers_are_found() {
        let run = Run::new(SocketAddr::from(([127, 0, 0, 1], 1)), 1);
        run.values.sent[3].store(7, SeqCst);
        let wrong = |text: &str| match judge_item(&run, 3, 5, &answered(text)) {
            AnswerJudgement::Wrong(what) => what.split(':').next().unwrap_or_default().to_owned(),
            other => format!("{other:?}"),
        };
        for value in 5..=7 {
            let judged = judge_item(&run, 3, 5, &answered(&page(3, value)));
            assert!(matches!(judged, AnswerJudgement::Right { .. }), "{judged:?}");
        }
        assert_eq!(wrong(&page(3, 4)), "outdated");
        assert_eq!(wrong(&page(3, 8)), "from nowhere");
        assert_eq!(wrong(&page(2, 6)), "foreign");
        assert_eq!(wrong(&page(3, 6)[..900]), "torn");
        assert_eq!(wrong(""), "torn");
        assert!(matches!(judge_own("a", &answered("me b\n")), AnswerJudgement::Wrong(_)));
        let cut = Err(ClientError::Closed { after_bytes: 9 });
        assert!(matches!(judge_item(&run, 3, 5, &cut), AnswerJudgement::Failed(_)));
    }
}
