//! Tests of a trial: restarts, other rules, files that cannot be written, bounds, and shares.
//!
//! The record itself is tested in `page_comparison`. Not here: what feeds a trial.
//! Each test has a directory of its own below that of the system's temporary files.

use super::*;
use page_comparison::{RequestPart, TrialOutcome};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A directory that is removed at the end of its test.
pub(crate) struct OwnDirectory(PathBuf);

impl OwnDirectory {
    pub(crate) fn new(name: &str) -> OwnDirectory {
        let path = std::env::temp_dir().join(format!("trial-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the directory is created");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("it is ours");
        OwnDirectory(path)
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn settings(&self, rules: u64) -> TrialSettings {
        let file = Some(self.0.join("example.org.trial"));
        TrialSettings { rules, file, accepted: Vec::new(), serve: 500 }
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn leak() -> FoundDifference {
    FoundDifference {
        class: DifferenceClass::Leak,
        places: vec!["body > p, word 2".into()],
        cause: Some(DifferenceCause::One(RequestPart::Cookie("currency".into()))),
        late_ms: 0,
        text: DifferingText { stored: None, render: Some("canary".into()) },
    }
}

fn with_counts(settings: TrialSettings) -> SiteTrial {
    let trial = SiteTrial::default();
    trial.begin(settings, 1_000);
    trial.request(Some(Duration::from_millis(80)));
    trial.request(None);
    trial.rendered(Duration::from_millis(40));
    trial.compared("/shop/7?utm_source=alice", Some(trial.version_of(b"/shop/7", b"text")));
    trial.compared("/shop/8", Some(trial.version_of(b"/shop/8", b"text")));
    trial.compared("/shop/8", Some(trial.version_of(b"/shop/8", b"text")));
    trial.found("/shop/7?utm_source=alice", leak(), 1_010);
    trial.unjudged("/a", UnjudgedReason::CauseUnknown, true);
    trial
}

fn report(trial: &SiteTrial) -> TrialReport {
    trial.status().expect("the trial is on").report
}

#[test]
fn the_worst_problem_of_a_page_is_named_while_the_trial_is_on() {
    let directory = OwnDirectory::new("problem");
    let trial = with_counts(directory.settings(7));
    let late = FoundDifference { class: DifferenceClass::Late, cause: None, ..leak() };
    trial.found("/shop/8", late, 1_020);
    trial.found("/b", FoundDifference { class: DifferenceClass::Noise, ..leak() }, 1_020);
    let text = "`/shop/:n` is `leak`, differs by cookie `currency`";
    assert_eq!(trial.problem_of("/shop/9").as_deref(), Some(text));
    assert_eq!(trial.problem_of("/b"), None, "a notice");
    assert_eq!(trial.problem_of("/a"), None, "no problem");
    trial.end();
    assert_eq!(trial.problem_of("/shop/9"), None);
}

/// A path whose pattern is itself.
fn own_path(n: u64) -> String {
    let letter = |digit: u8| char::from(digit - b'0' + b'a');
    format!("/{}", n.to_string().bytes().map(letter).collect::<String>())
}

#[test]
fn a_record_goes_on_after_a_restart_with_the_same_secret() {
    let directory = OwnDirectory::new("restart");
    let before = with_counts(directory.settings(7));
    before.save();
    let file = directory.0.join("example.org.trial");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("currency") && !text.contains("alice"), "{text}");
    assert!(!text.contains("canary") && !report(&before).json().contains("canary"), "{text}");

    let after = SiteTrial::default();
    after.begin(directory.settings(7), 2_000);
    let (was, is) = (report(&before), report(&after));
    assert_eq!(is.json(), was.json());
    assert_eq!((is.requests, is.compared, is.versions, is.since), (2, 3, 2, 1_000));
    assert_eq!(is.suspects, ["/a"]);
    assert_eq!(is.problems[0].url, "/shop/7?utm_source=");
    let address = "192.0.2.7".parse().unwrap();
    assert_eq!(after.share_of(address), before.share_of(address));
    after.compared("/shop/8", Some(after.version_of(b"/shop/8", b"text")));
    assert_eq!(report(&after).versions, 2, "the version is known");
    after.compared("/shop/8", Some(after.version_of(b"/shop/8", b"other")));
    assert_eq!(report(&after).versions, 3);
}

#[test]
fn the_directory_of_the_record_is_created_at_the_start() {
    let directory = OwnDirectory::new("start");
    let below = directory.0.join("below");
    let file = Some(below.join("example.org.trial"));
    SiteTrial::default().begin(TrialSettings { file, ..directory.settings(7) }, 1);
    assert!(below.is_dir());
}

#[test]
fn other_rules_and_the_operator_begin_a_new_record() {
    let directory = OwnDirectory::new("rules");
    let trial = with_counts(directory.settings(7));
    let address = "2001:db8::1".parse().unwrap();
    let share = trial.share_of(address);
    trial.save();
    trial.begin(TrialSettings { serve: 900, ..directory.settings(7) }, 1_500);
    assert_eq!((report(&trial).requests, trial.status().unwrap().serve), (2, 900));
    trial.begin(directory.settings(8), 2_000);
    assert_eq!((report(&trial).requests, report(&trial).since), (0, 2_000));
    trial.request(None);
    let before = trial.generation();
    trial.notice(TrialNotice::WritesAtEachView, true);
    assert!(trial.restart(3_000));
    assert!(trial.generation() > before && trial.status().unwrap().notices.is_empty());
    assert_eq!((report(&trial).requests, report(&trial).since), (0, 3_000));
    trial.save();

    let after = SiteTrial::default();
    after.begin(directory.settings(9), 4_000);
    assert_eq!(report(&after).since, 4_000);
    assert_eq!(after.share_of(address), share, "the secret outlives the record");
    assert_eq!(after.share_of("2001:db8::ffff".parse().unwrap()), share, "64 bits count");
}

#[test]
fn words_are_given_on_request_only_and_end_with_the_trial_and_the_record() {
    let words = |trial: &SiteTrial| {
        let status = trial.status_with_text().expect("it is on");
        let lines = status.report.problems.into_iter();
        lines.filter_map(|line| line.text?.render).collect::<Vec<_>>()
    };
    let trial = with_counts(TrialSettings::default());
    assert!(report(&trial).problems.iter().all(|line| line.text.is_none()));
    assert_eq!(words(&trial), ["canary"]);
    assert!(!trial.lacks_text(DifferenceClass::Leak, "/shop/9"), "it is the same pattern");
    assert!(trial.lacks_text(DifferenceClass::Aged, "/shop/9"));
    trial.begin(TrialSettings { serve: 900, ..TrialSettings::default() }, 1_500);
    assert_eq!(words(&trial), ["canary"], "a reload");
    trial.end();
    trial.begin(TrialSettings::default(), 2_000);
    assert!(words(&trial).is_empty() && !report(&trial).problems.is_empty());
    trial.found("/shop/7", leak(), 2_010);
    assert_eq!(words(&trial), ["canary"]);
    assert!(trial.restart(3_000));
    trial.found("/shop/7", FoundDifference { text: DifferingText::default(), ..leak() }, 3_010);
    assert!(words(&trial).is_empty(), "a new record");
}

#[test]
fn an_advice_that_was_withdrawn_stays_so_after_a_restart_until_a_new_record() {
    let directory = OwnDirectory::new("withdrawn");
    let refused = || FoundDifference { class: DifferenceClass::RefusedButSame, ..leak() };
    let enough = ComparedVisitors { clients: 10, agents: 3, cookies: 3, without_cookies: 1 };
    let trial = SiteTrial::default();
    trial.begin(directory.settings(7), 1_000);
    let advised = |trial: &SiteTrial| {
        trial.found("/post-5/", refused(), 1_010);
        trial.refused("/post-5/", Some(Duration::from_millis(80)), enough);
        report(trial).problems.len()
    };
    assert_eq!(advised(&trial), 1);
    trial.withdraw("/post-5/");
    assert_eq!((advised(&trial), trial.is_withdrawn("/post-5/")), (0, true));
    trial.save();
    let after = SiteTrial::default();
    after.begin(directory.settings(7), 2_000);
    assert_eq!(advised(&after), 0);
    assert!(after.restart(3_000) && !after.is_withdrawn("/post-5/"));
    assert_eq!(advised(&after), 1);
}

#[test]
fn nothing_stored_is_a_notice_until_something_is_compared() {
    let directory = OwnDirectory::new("nothing");
    let trial = SiteTrial::default();
    trial.begin(directory.settings(7), 1_000);
    trial.notice(TrialNotice::NothingStored, true);
    assert_eq!(trial.status().unwrap().notices, [TrialNotice::NothingStored]);
    trial.compared("/", None);
    assert!(trial.status().unwrap().notices.is_empty());
}

#[test]
fn no_advice_lets_a_cache_in_front_store_a_page() {
    let trial = SiteTrial::default();
    trial.begin(TrialSettings::default(), 1_000);
    let class = DifferenceClass::RefusedButSame;
    trial.found("/post-5/", FoundDifference { class, cause: None, ..leak() }, 1_010);
    let visitors = ComparedVisitors { clients: 10, agents: 3, cookies: 3, without_cookies: 1 };
    trial.refused("/post-5/", None, visitors);
    let is_for_pagewell = || report(&trial).problems[0].remedy.contains("with Pagewell alone");
    for notice in [TrialNotice::CdnInFront, TrialNotice::TrustedCache] {
        assert!(!is_for_pagewell());
        trial.notice(notice, true);
        assert!(is_for_pagewell(), "{notice:?}");
        trial.notice(notice, false);
    }
}

#[test]
fn a_full_origin_is_a_notice_until_a_render_gets_a_place() {
    let directory = OwnDirectory::new("full");
    let trial = SiteTrial::default();
    trial.begin(directory.settings(7), 1_000);
    trial.notice(TrialNotice::OriginFull, true);
    trial.compared("/", None);
    assert_eq!(trial.status().unwrap().notices, [TrialNotice::OriginFull], "no render was needed");
    trial.rendered(Duration::from_millis(20));
    assert!(trial.status().unwrap().notices.is_empty());
}

#[test]
fn a_trial_that_is_off_counts_nothing() {
    let trial = SiteTrial::default();
    trial.request(None);
    assert!(!trial.is_on() && trial.status().is_none() && !trial.restart(1));
    trial.begin(TrialSettings::default(), 1);
    trial.request(None);
    trial.end();
    trial.request(None);
    trial.notice(TrialNotice::OriginFull, true);
    trial.begin(TrialSettings::default(), 2);
    assert_eq!((report(&trial).requests, report(&trial).since), (1, 1));
    assert_eq!(trial.status().unwrap().notices, [TrialNotice::NoDirectory], "there is no file");
}

#[test]
fn a_suspect_without_a_render_ends_with_a_pause_and_not_with_other_settings() {
    let trial = SiteTrial::default();
    trial.begin(TrialSettings::default(), 1);
    trial.unjudged("/a", UnjudgedReason::CauseUnknown, true);
    trial.unjudged("/b", UnjudgedReason::NoBudget, true);
    trial.begin(TrialSettings { serve: 900, ..TrialSettings::default() }, 2);
    assert_eq!(report(&trial).suspects, ["/a", "/b"]);
    trial.end();
    trial.begin(TrialSettings::default(), 3);
    assert_eq!(report(&trial).suspects, ["/a"]);
}

#[test]
fn a_suspect_of_an_earlier_process_is_not_explained_with_another_page_of_its_pattern() {
    let directory = OwnDirectory::new("inherited");
    let before = SiteTrial::default();
    before.begin(directory.settings(7), 1_000);
    before.unjudged("/shop/1", UnjudgedReason::CauseUnknown, true);
    before.save();
    let after = SiteTrial::default();
    after.begin(directory.settings(7), 2_000);
    after.inherit_suspects();
    let explain = |page: &str| {
        after.unjudged(page, UnjudgedReason::NoBudget, true);
        after.explained(page, true);
    };
    explain("/shop/2");
    explain("/a");
    assert_eq!(report(&after).suspects, ["/shop/:n"], "one of this process is explained");
    assert!(after.restart(3_000));
    explain("/shop/2");
    assert_eq!(report(&after).suspects, [""; 0], "a new record");
}

#[test]
fn a_suspect_beyond_the_bound_of_patterns_is_not_explained_with_another() {
    let trial = SiteTrial::default();
    trial.begin(TrialSettings::default(), 1);
    (0..1_002).for_each(|n| trial.unjudged(&own_path(n), UnjudgedReason::CauseUnknown, true));
    let has = |pattern: &str| report(&trial).suspects.iter().any(|suspect| suspect == pattern);
    assert!(has(&own_path(999)) && !has(&own_path(1_000)) && has("(other)"));
    trial.explained(&own_path(1_001), false);
    assert!(has("(other)"), "the other one is not explained");
    trial.explained(&own_path(999), false);
    assert!(!has(&own_path(999)) && has("(other)"));
    trial.explained(&own_path(1_001), true);
    assert!(!has("(other)"), "no difference is left");
}

#[test]
fn paths_for_which_nothing_is_counted_take_no_room_from_others() {
    let trial = SiteTrial::default();
    trial.begin(TrialSettings::default(), 1);
    for page in (0..1_002).map(own_path) {
        trial.compared(&page, None);
        trial.unjudged(&page, UnjudgedReason::NoBudget, false);
        trial.explained(&page, true);
        let class = DifferenceClass::Leak;
        assert!(!trial.is_withdrawn(&page) && !trial.accepts(class, &page));
        assert!(trial.lacks_text(class, &page));
        trial.refused(&page, None, ComparedVisitors::default());
    }
    trial.compared("/shop/7", Some(7));
    assert!(trial.state().record.versions.contains_key("/shop/:n"));
}

#[test]
fn a_file_that_cannot_be_used_does_not_end_the_trial() {
    let directory = OwnDirectory::new("unusable");
    let mut settings = directory.settings(7);
    let below = directory.0.join("below");
    settings.file = Some(below.join("example.org.trial"));
    fs::write(&below, "no directory").unwrap();
    let trial = with_counts(settings.clone());
    assert!(trial.status().unwrap().notices.is_empty());
    trial.save();
    trial.save();
    assert_eq!(trial.status().unwrap().notices, [TrialNotice::NotSaved]);
    // The next attempt writes everything.
    fs::remove_file(&below).unwrap();
    trial.save();
    assert_eq!(fs::metadata(&below).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(trial.status().unwrap().notices.is_empty());
    let after = SiteTrial::default();
    after.begin(settings.clone(), 2_000);
    assert_eq!(report(&after).requests, 2);

    for text in ["", "{", "{}\n{}", "nothing"] {
        fs::write(settings.file.as_ref().unwrap(), text).unwrap();
        let after = SiteTrial::default();
        after.begin(settings.clone(), 2_000);
        assert_eq!(report(&after).requests, 0, "{text}");
    }
}

#[test]
fn the_record_of_another_process_is_not_replaced() {
    let directory = OwnDirectory::new("two");
    let (one, other) = (with_counts(directory.settings(7)), with_counts(directory.settings(7)));
    one.save();
    other.save();
    assert_eq!(other.status().unwrap().notices, [TrialNotice::NotSaved]);
    one.request(None);
    let file = directory.0.join("example.org.trial");
    // Another mode is no other record.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).unwrap();
    one.save();
    assert!(one.status().unwrap().notices.is_empty());
    let after = SiteTrial::default();
    after.begin(directory.settings(7), 2_000);
    assert_eq!(report(&after).requests, 3);
    // Where the other's file is gone, there is nothing to lose.
    fs::remove_file(file).unwrap();
    other.save();
    assert!(other.status().unwrap().notices.is_empty());
}

#[test]
fn a_record_that_is_handed_over_is_written_by_the_successor_only() {
    let directory = OwnDirectory::new("hand-over");
    let old = with_counts(directory.settings(7));
    let (new, is_over) = (SiteTrial::default(), AtomicBool::new(false));
    let notices = std::thread::scope(|threads| {
        // Some of these saves are in progress at the hand-over, others begin after it.
        for _ in 0..2 {
            threads.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    old.request(None);
                    old.save();
                }
            });
        }
        old.hand_over();
        new.begin(directory.settings(7), 2_000);
        let notices: Vec<_> = (0..20)
            .flat_map(|_| {
                new.request(None);
                new.save();
                new.status().map(|status| status.notices).unwrap_or_default()
            })
            .collect();
        is_over.store(true, Ordering::Release);
        notices
    });
    assert!(notices.is_empty(), "another process has written the file: {notices:?}");
    let after = SiteTrial::default();
    after.begin(directory.settings(7), 3_000);
    assert_eq!(report(&after).json(), report(&new).json());
    assert!(report(&new).requests >= 22, "{}", report(&new).requests);
}

#[test]
fn a_record_that_is_taken_back_is_saved_again() {
    let directory = OwnDirectory::new("take-back");
    let trial = with_counts(directory.settings(7));
    let saved = || {
        let after = SiteTrial::default();
        after.begin(directory.settings(7), 2_000);
        report(&after).requests
    };
    trial.hand_over();
    assert_eq!(saved(), 2);
    trial.request(None);
    trial.hand_over();
    trial.save();
    assert_eq!(saved(), 2);
    trial.take_back();
    trial.save();
    assert_eq!((saved(), trial.status().unwrap().notices), (3, Vec::new()));
}

#[test]
fn a_full_disk_leaves_the_last_complete_file() {
    let directory = OwnDirectory::new("full");
    let trial = with_counts(directory.settings(7));
    trial.save();
    let file = directory.0.join("example.org.trial");
    let before = fs::read(&file).unwrap();
    // The new file cannot be created: a directory is in its place.
    fs::create_dir(directory.0.join("example.org.trial.new")).unwrap();
    trial.request(None);
    trial.save();
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(report(&trial).requests, 3);
}

#[test]
fn everything_is_bounded_and_counted() {
    let trial = SiteTrial::default();
    trial.begin(TrialSettings::default(), 1);
    let empty = trial.bytes();
    for n in 0..20_000_u64 {
        let page = format!("{}/{}?{}=x", own_path(n), "long/".repeat(20), "p".repeat(900));
        trial.compared(&page, Some(n));
        if n > 1_500 {
            continue;
        }
        trial.unjudged(&page, UnjudgedReason::CauseUnknown, true);
        let places = vec!["ü".repeat(500); 50];
        let text = DifferingText { stored: None, render: Some("x".repeat(2_000)) };
        trial.found(&page, FoundDifference { places, text, ..leak() }, n);
    }
    assert_eq!(trial.state().texts.len(), TEXTS_MAX);
    let bytes = trial.bytes();
    assert!(bytes > empty && bytes < 6 << 20, "{bytes}");
    let report = report(&trial);
    assert_eq!((report.compared, report.outcome), (20_000, TrialOutcome::NotSafe));
    assert!(report.versions <= VERSIONS_MAX as u64 && report.problems.len() <= 1_000);
    assert!(report.problems.iter().all(|line| line.places.len() == PLACES_MAX));
}

#[test]
fn shares_are_even() {
    let trial = SiteTrial::default();
    let below = |serve: u32| {
        let address = |n: u32| IpAddr::from(n.to_be_bytes());
        (0..20_000).filter(|n| trial.share_of(address(*n)) < serve).count()
    };
    assert_eq!((below(0), below(SHARES)), (0, 20_000));
    assert!((800..1_200).contains(&below(500)), "{}", below(500));
    let mapped = "::ffff:192.0.2.7".parse().unwrap();
    assert_eq!(trial.share_of(mapped), trial.share_of("192.0.2.7".parse().unwrap()));
}
