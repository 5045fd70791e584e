//! The format of a report, as `php/capture/wordpress.php` defines it: a line, then records.
//!
//! A record is a letter, a length of four bytes, and the content. The order is T, V, then I, H, or any of D, O,
//! S, P and G, then E. I has the reason why the list is incomplete, H the name of a cache that hides reads. A report
//! that ends without E, has bytes after it, or has an unknown record is refused.
//! Lengths and counts are untrusted.

use super::NotCaptured;
use footprint::{OwnTransaction, SqlMode};

/// The first line of a report.
const HEAD: &[u8] = b"pagewell-capture 1\n";
/// The letter and the length before the content of a record.
const RECORD_HEAD: usize = 5;
/// Maximum length of a report in bytes: the 4 MB of the sender, and room for its other records.
pub const REPORT_BYTES: usize = (4 << 20) + (64 << 10);
/// Maximum number of statements, and of option names.
const STATEMENTS_MAX: usize = 10_000;
const OPTIONS_MAX: usize = 10_000;
/// Maximum number of transactions; `php/capture/statement-count.php` asks for fewer.
const TRANSACTIONS_MAX: usize = 1_000;
/// Maximum length of a token and of a version in bytes.
const NAME_BYTES: usize = 64;
/// Maximum length of PHP's reason in bytes.
const REASON_BYTES: usize = 400;
/// From this version of WordPress on, each `get_option` runs the filter `pre_option`.
const COMPLETE_SINCE: (u32, u32) = (6, 1);

/// The statements and option names of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureReport {
    /// The statements of the page, in the order in which they were sent.
    pub statements: Vec<Box<[u8]>>,
    /// The statements after the end of the script, which may still print.
    pub late_statements: Vec<Box<[u8]>>,
    /// The transactions that the request has committed.
    pub transactions: Vec<OwnTransaction>,
    /// The names of the options that the request asked for.
    pub options: OptionNames,
    /// The version of WordPress, printable.
    pub version: Box<str>,
    /// The mode in which the statements were sent.
    pub mode: SqlMode,
    /// The identifier of the database server, printable; empty if it is the followed one for sure.
    pub server: Box<str>,
}

/// The names of the options that a request asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OptionNames {
    /// The list has all names.
    Complete(Vec<Box<[u8]>>),
    /// WordPress is older than 6.1, or of unknown version: options were asked for that nobody saw.
    #[default]
    Unknown,
}

/// A report with the token of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedCapture {
    /// The token; empty if the report does not even have one.
    pub token: Box<[u8]>,
    /// The content, or why it is not usable.
    pub outcome: Result<CaptureReport, NotCaptured>,
}

/// Reads a whole report.
pub fn parse_capture(bytes: &[u8]) -> ParsedCapture {
    match read_token(bytes) {
        Ok(Some((token, rest))) => {
            ParsedCapture { token: token.into(), outcome: read_content(rest) }
        }
        Ok(None) => ParsedCapture { token: Box::default(), outcome: Err(NotCaptured::CutOff) },
        Err(flaw) => ParsedCapture { token: Box::default(), outcome: Err(flaw) },
    }
}

/// The token of a report, and the bytes after it.
pub type TokenAndRest<'b> = (&'b [u8], &'b [u8]);

/// The token at the start of a report, and the bytes after it. `None` if more bytes are needed.
///
/// # Errors
/// The bytes are not the start of a report.
pub fn read_token(bytes: &[u8]) -> Result<Option<TokenAndRest<'_>>, NotCaptured> {
    let known = bytes.len().min(HEAD.len());
    if bytes[..known] != HEAD[..known] {
        return Err(NotCaptured::Malformed("another format"));
    }
    let mut rest = &bytes[known..];
    let is_token = rest.first().is_none_or(|kind| *kind == b'T');
    let length = rest.get(1..RECORD_HEAD).and_then(be_length);
    if !is_token || length.is_some_and(|length| length > NAME_BYTES) {
        return Err(NotCaptured::Malformed("no token at the start"));
    }
    Ok(take_record(&mut rest).map(|(_, token)| (token, rest)))
}

fn be_length(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_be_bytes(*bytes.first_chunk()?);
    usize::try_from(length).ok()
}

/// The next record: its letter and its content. `None` if the bytes end before it does.
fn take_record<'b>(bytes: &mut &'b [u8]) -> Option<(u8, &'b [u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_at_checked(RECORD_HEAD - 1)?;
    let (content, rest) = rest.split_at_checked(be_length(length)?)?;
    *bytes = rest;
    Some((*kind, content))
}

/// Reads the records after the token.
fn read_content(mut rest: &[u8]) -> Result<CaptureReport, NotCaptured> {
    let mut report = CaptureReport::default();
    let (mut options, mut reason) = (Vec::new(), None);
    match take_record(&mut rest).ok_or(NotCaptured::CutOff)? {
        (b'V', version) if version.len() <= NAME_BYTES => report.version = printable(version),
        _ => return Err(NotCaptured::Malformed("no version after the token")),
    }
    loop {
        let (kind, content) = take_record(&mut rest).ok_or(NotCaptured::CutOff)?;
        match kind {
            b'E' if content.is_empty() && rest.is_empty() => break,
            b'I' if reason.is_none() => {
                reason = Some(NotCaptured::Incomplete(printable(content)));
            }
            b'H' if reason.is_none() && content.len() <= NAME_BYTES => {
                reason = Some(NotCaptured::Hidden(printable(content)));
            }
            // After a reason, only the end may follow.
            b'O' | b'S' | b'P' | b'G' if reason.is_some() => {
                return Err(NotCaptured::Malformed("a list after the reason why it is incomplete"));
            }
            b'D' if content.len() <= NAME_BYTES => report.server = printable(content),
            b'O' => options.push(content.into()),
            b'S' => report.statements.push(content.into()),
            b'P' => report.late_statements.push(content.into()),
            b'G' if content.len() <= NAME_BYTES => {
                // Late statements come after all others.
                let is_late = !report.late_statements.is_empty();
                let after = if is_late { usize::MAX } else { report.statements.len() };
                report.transactions.push(OwnTransaction { id: printable(content), after });
            }
            _ => return Err(NotCaptured::Malformed("an unknown record")),
        }
        if report.statements.len() + report.late_statements.len() > STATEMENTS_MAX {
            return Err(NotCaptured::TooLarge("10,000 statements"));
        }
        if report.transactions.len() > TRANSACTIONS_MAX {
            return Err(NotCaptured::TooLarge("1,000 transactions"));
        }
        if options.len() > OPTIONS_MAX {
            return Err(NotCaptured::TooLarge("10,000 options"));
        }
    }
    if let Some(reason) = reason {
        let lists = [&report.statements, &report.late_statements, &options];
        let are_empty = lists.iter().all(|list| list.is_empty());
        return Err(if are_empty {
            reason
        } else {
            NotCaptured::Malformed("a list before the reason why it is incomplete")
        });
    }
    if version_of(&report.version) >= Some(COMPLETE_SINCE) {
        report.options = OptionNames::Complete(options);
    }
    Ok(report)
}

/// The first two numbers of a version: `6.4-beta1` is (6, 4).
fn version_of(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Text for a log: bounded, on one line, without control characters.
fn printable(bytes: &[u8]) -> Box<str> {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(REASON_BYTES)]);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &[u8] = b"00112233445566778899aabbccddeeff";

    fn bytes(records: &[(u8, &[u8])]) -> Vec<u8> {
        let mut bytes = HEAD.to_vec();
        for (kind, content) in records {
            bytes.push(*kind);
            bytes.extend_from_slice(&(content.len() as u32).to_be_bytes());
            bytes.extend_from_slice(content);
        }
        bytes
    }

    fn whole() -> Vec<u8> {
        bytes(&[
            (b'T', TOKEN),
            (b'V', b"6.1.6"),
            (b'D', b"17"),
            (b'S', b"SELECT '\0'"),
            (b'O', b"home"),
            (b'S', b""),
            (b'G', b"0-17-4"),
            (b'P', b"UPDATE a"),
            (b'G', b"0-17-5"),
            (b'E', b""),
        ])
    }

    #[test]
    fn a_whole_report_is_read() {
        let parsed = parse_capture(&whole());
        assert_eq!(&*parsed.token, TOKEN);
        let report = parsed.outcome.expect("a report");
        assert_eq!(report.statements, [Box::from(*b"SELECT '\0'"), Box::default()]);
        assert_eq!(&*report.server, "17");
        assert_eq!(report.late_statements, [Box::from(*b"UPDATE a")]);
        assert_eq!(report.options, OptionNames::Complete(vec![Box::from(*b"home")]));
        let own = |id: &str, after| OwnTransaction { id: id.into(), after };
        assert_eq!(report.transactions, [own("0-17-4", 2), own("0-17-5", usize::MAX)]);
    }

    #[test]
    fn a_report_that_ends_early_is_cut_off_wherever_it_ends() {
        let whole = whole();
        for length in 0..whole.len() {
            assert_eq!(
                parse_capture(&whole[..length]).outcome,
                Err(NotCaptured::CutOff),
                "{length}"
            );
        }
        let longer = [whole.as_slice(), b"E"].concat();
        assert_eq!(
            parse_capture(&longer).outcome,
            Err(NotCaptured::Malformed("an unknown record"))
        );
    }

    #[test]
    fn the_token_is_refused_before_it_has_arrived() {
        let start = |rest: &[u8]| read_token(&[HEAD, rest].concat()).map(|token| token.is_some());
        for more in [b"".as_slice(), b"T", b"T\0\0\0", b"T\0\0\0\x20", b"T\0\0\0\x40abc"] {
            assert_eq!(start(more), Ok(false), "{more:?}");
        }
        for bad in [b"V".as_slice(), b"S\0\0", b"T\0\0\0\x41", b"T\xff\xff\xff\xff"] {
            assert!(start(bad).is_err(), "{bad:?}");
        }
        assert!(read_token(b"pagewell-capture 2").is_err());
        assert_eq!(read_token(b"pagewell-"), Ok(None));
    }

    #[test]
    fn option_names_are_complete_from_one_version_on() {
        for (version, is_complete) in [
            ("6.1", true),
            ("6.1.6", true),
            ("6.10-beta1", true),
            ("10.0", true),
            ("6.0.9", false),
            ("5.9", false),
            ("6", false),
            ("", false),
            ("x.1", false),
            ("99999999999.1", false),
        ] {
            let bytes = bytes(&[(b'T', TOKEN), (b'V', version.as_bytes()), (b'E', b"")]);
            let report = parse_capture(&bytes).outcome.expect(version);
            assert_eq!(report.options != OptionNames::Unknown, is_complete, "{version}");
        }
    }

    #[test]
    fn a_reason_is_bounded_and_printable() {
        let reason = [b"a\x1b[31m\n\xff".as_slice(), &[b'x'; 1000]].concat();
        let bytes = bytes(&[(b'T', TOKEN), (b'V', b""), (b'I', &reason), (b'E', b"")]);
        let error = parse_capture(&bytes).outcome.expect_err("an error");
        let NotCaptured::Incomplete(text) = &error else { panic!("{error:?}") };
        assert!(text.starts_with("a [31m \u{fffd}x") && text.len() < 410, "{text}");
        assert!(error.to_string().ends_with(&**text));
    }

    #[test]
    fn a_cache_that_hides_reads_has_a_name() {
        let hidden = bytes(&[(b'T', TOKEN), (b'V', b""), (b'H', b"apcu"), (b'E', b"")]);
        assert_eq!(parse_capture(&hidden).outcome, Err(NotCaptured::Hidden("apcu".into())));
        let (hidden, statement) = ((b'H', &b"apcu"[..]), (b'S', &b"true"[..]));
        for [one, other] in [[hidden, statement], [statement, hidden], [hidden, hidden]] {
            let all = [(b'T', TOKEN), (b'V', b""), one, other, (b'E', b"")];
            let outcome = parse_capture(&bytes(&all)).outcome;
            assert!(matches!(outcome, Err(NotCaptured::Malformed(_))), "{outcome:?}");
        }
    }

    /// Damaged reports and random bytes: no panic, and what is accepted is within the limits.
    #[test]
    fn damaged_reports_are_refused_or_bounded() {
        let mut state: u64 = 7;
        let mut drawn = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let (whole, mut refused) = (whole(), 0);
        for round in 0..20_000 {
            let mut bytes = if round % 4 == 0 {
                let length = drawn(64);
                [HEAD, &(0..length).map(|_| drawn(256) as u8).collect::<Vec<_>>()].concat()
            } else {
                whole.clone()
            };
            for _ in 0..drawn(4) {
                let at = drawn(bytes.len());
                bytes[at] = [0, 255, b'S', b'E', drawn(256) as u8][drawn(5)];
            }
            match parse_capture(&bytes).outcome {
                Ok(report) => {
                    let statements = report.statements.iter().chain(&report.late_statements);
                    assert!(statements.map(|text| text.len()).sum::<usize>() < bytes.len());
                }
                Err(_) => refused += 1,
            }
        }
        assert!((5_000..20_000).contains(&refused), "{refused}");
    }
}
