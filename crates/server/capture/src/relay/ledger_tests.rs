//! Requests, workers and connections in every order.

use super::*;

fn statement(text: &str) -> RelayEvent {
    RelayEvent::Statement(text.as_bytes().to_vec(), SessionMode::default())
}

impl Ledger {
    fn say(&mut self, connection: LedgerId, text: &str) {
        self.record(connection, statement(text));
    }

    fn captured_on(&mut self, slot: usize) -> LedgerId {
        let capture = self.begin();
        self.send(slot, Some(capture));
        capture
    }

    fn texts(&mut self, capture: LedgerId) -> Result<Vec<String>, NotCaptured> {
        let report = self.end(capture)?;
        let texts = report.statements.into_iter().map(|text| String::from_utf8(text.into_vec()));
        Ok(texts.collect::<Result<_, _>>().expect("UTF-8"))
    }
}

#[test]
fn two_requests_at_a_time_are_never_mixed() {
    let mut books = Ledger::new(2);
    let (a, b) = (books.lease(), books.lease());
    let (one, other) = (books.captured_on(a), books.captured_on(b));
    let (first, second) = (books.accept(a, Some(10)), books.accept(b, Some(11)));
    books.say(first, "1");
    books.say(second, "2");
    books.close(first);
    assert_eq!(books.texts(one), Ok(vec!["1".to_owned()]));
    assert_eq!(books.texts(other), Ok(vec!["2".to_owned()]));
    // A request without a capture, then one whose connection was opened before it.
    books.send(b, None);
    books.say(second, "3");
    let later = books.captured_on(b);
    books.say(second, "4");
    assert_eq!(books.texts(later), Ok(vec!["4".to_owned()]));
    books.say(second, "late");
    let none = books.captured_on(b);
    assert_eq!(books.texts(none), Err(NotCaptured::NoConnection));
}

#[test]
fn a_connection_of_an_earlier_tenancy_counts_for_all() {
    let mut books = Ledger::new(2);
    let a = books.lease();
    let kept = books.accept(a, Some(10));
    books.release(a);
    let (b, c) = (books.lease(), books.lease());
    let (one, other) = (books.captured_on(b), books.captured_on(c));
    let unsent = books.begin();
    books.say(kept, "1");
    // A new connection of the same worker may be for either request, too.
    let new = books.accept(b, Some(10));
    books.say(new, "2");
    let own = books.accept(c, Some(11));
    books.say(own, "3");
    assert_eq!(books.texts(one), Ok(vec!["1".to_owned(), "2".to_owned()]));
    assert_eq!(books.texts(other), Ok(["1", "2", "3"].map(str::to_owned).to_vec()));
    assert_eq!(books.texts(unsent), Err(NotCaptured::NoConnection));
}

#[test]
fn connections_whose_request_is_not_known_count_for_all() {
    let mut books = Ledger::new(1);
    let a = books.lease();
    let one = books.captured_on(a);
    for (number, (slot, process)) in [(SHARED_SLOT, Some(9)), (a, None)].into_iter().enumerate() {
        let connection = books.accept(slot, process);
        books.say(connection, &number.to_string());
    }
    assert_eq!(books.texts(one), Ok(vec!["0".to_owned(), "1".to_owned()]));
    // No slot is left.
    assert_eq!(books.lease(), SHARED_SLOT);
    let shared = books.captured_on(SHARED_SLOT);
    assert!(matches!(books.texts(shared), Err(NotCaptured::Incomplete(_))));
    books.release(SHARED_SLOT);
    books.release(a);
    assert_eq!((books.lease(), books.lease()), (a, SHARED_SLOT));
}

/// The script of an earlier request still runs when its slot has another tenant, and connects.
#[test]
fn a_worker_in_two_tenancies_makes_both_requests_incomplete() {
    let mut books = Ledger::new(2);
    let (a, b) = (books.lease(), books.lease());
    let (one, other) = (books.captured_on(a), books.captured_on(b));
    let late = books.accept(a, Some(20));
    books.say(late, "1");
    books.accept(b, Some(20));
    for capture in [one, other] {
        assert!(matches!(books.texts(capture), Err(NotCaptured::Incomplete(_))));
    }
    let (one, other) = (books.captured_on(a), books.captured_on(b));
    books.say(late, "2");
    assert_eq!(books.texts(one), Ok(vec!["2".to_owned()]));
    assert_eq!(books.texts(other), Ok(vec!["2".to_owned()]));
}

#[test]
fn limits_and_reasons() {
    let mut books = Ledger::new(1);
    let slot = books.lease();
    let connection = books.accept(slot, Some(1));
    let ansi = SessionMode { has_ansi_quotes: true, ..SessionMode::default() };
    let mut ended = |events: Vec<RelayEvent>| {
        let capture = books.captured_on(slot);
        events.into_iter().for_each(|event| books.record(connection, event));
        books.end(capture)
    };
    assert_eq!(ended(vec![RelayEvent::Connected]), Ok(CaptureReport::default()));
    let large = statement(&"x".repeat(1 << 20));
    assert_eq!(ended(vec![large; 5]), Err(NotCaptured::TooLarge("4 MB")));
    let many = vec![statement("SELECT 1"); 10_001];
    assert_eq!(ended(many), Err(NotCaptured::TooLarge("10,000 statements")));
    assert_eq!(
        ended(vec![RelayEvent::Unknown("why"), statement("SELECT 1")]),
        Err(NotCaptured::Incomplete("why".into()))
    );
    let quoted = |mode| RelayEvent::Statement(b"SELECT \"a\"".to_vec(), mode);
    let report = ended(vec![statement("SELECT 1"), quoted(ansi), statement("SELECT 2")]);
    let report = report.expect("a report");
    assert!(report.mode.has_ansi_quotes && report.statements.len() == 3);
    assert!(ended(vec![quoted(SessionMode::default()), quoted(ansi)]).is_err());
}
