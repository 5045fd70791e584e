//! Tests of a trial: restarts, other rules, files that cannot be written, bounds, and shares.
//!
//! The record itself is tested in `page_comparison`. Not here: what feeds a trial.
//! Each test has a directory of its own below that of the system's temporary files.

use super::*;
use page_comparison::{RequestPart, TrialOutcome};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A directory that is removed at the end of its test.
struct OwnDirectory(PathBuf);

impl OwnDirectory {
    fn new(name: &str) -> OwnDirectory {
        let path = std::env::temp_dir().join(format!("trial-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the directory is created");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("it is ours");
        OwnDirectory(path)
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
    }
}

fn with_counts(settings: TrialSettings) -> SiteTrial {
    let trial = SiteTrial::default();
    trial.begin(settings, 1_000);
    trial.request(Some(Duration::from_millis(80)));
    trial.request(None);
    trial.rendered(Duration::from_millis(40));
    trial.compared("/shop/7?utm_source=alice", trial.version_of(b"/shop/7", b"text"));
    trial.compared("/shop/8", trial.version_of(b"/shop/8", b"text"));
    trial.compared("/shop/8", trial.version_of(b"/shop/8", b"text"));
    trial.found("/shop/7?utm_source=alice", leak(), 1_010);
    trial.unjudged("/a", UnjudgedReason::NoBudget, true);
    trial
}

fn report(trial: &SiteTrial) -> TrialReport {
    trial.status().expect("the trial is on").report
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

    let after = SiteTrial::default();
    after.begin(directory.settings(7), 2_000);
    let (was, is) = (report(&before), report(&after));
    assert_eq!(is.json(), was.json());
    assert_eq!((is.requests, is.compared, is.versions, is.since), (2, 3, 2, 1_000));
    assert_eq!(is.suspects, ["/a"]);
    assert_eq!(is.problems[0].url, "/shop/7?utm_source=");
    let address = "192.0.2.7".parse().unwrap();
    assert_eq!(after.share_of(address), before.share_of(address));
    after.compared("/shop/8", after.version_of(b"/shop/8", b"text"));
    assert_eq!(report(&after).versions, 2, "the version is known");
    after.compared("/shop/8", after.version_of(b"/shop/8", b"other"));
    assert_eq!(report(&after).versions, 3);
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
fn a_trial_that_is_off_counts_nothing() {
    let trial = SiteTrial::default();
    trial.request(None);
    assert!(!trial.is_on() && trial.status().is_none() && !trial.restart(1));
    trial.begin(TrialSettings::default(), 1);
    trial.request(None);
    trial.end();
    trial.request(None);
    trial.begin(TrialSettings::default(), 2);
    assert_eq!((report(&trial).requests, report(&trial).since), (1, 1));
    assert_eq!(trial.status().unwrap().notices, [TrialNotice::NotSaved], "there is no file");
}

#[test]
fn a_file_that_cannot_be_used_does_not_end_the_trial() {
    let directory = OwnDirectory::new("unusable");
    let mut settings = directory.settings(7);
    settings.file = Some(directory.0.join("missing/example.org.trial"));
    let trial = with_counts(settings.clone());
    assert!(trial.status().unwrap().notices.is_empty());
    trial.save();
    trial.save();
    assert_eq!(trial.status().unwrap().notices, [TrialNotice::NotSaved]);
    // The next attempt writes everything.
    fs::create_dir(directory.0.join("missing")).unwrap();
    trial.save();
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
    let letter = |digit: u8| char::from(digit - b'0' + b'a');
    for n in 0..20_000_u64 {
        let name: String = n.to_string().bytes().map(letter).collect();
        let page = format!("/{name}/{}?{}=x", "long/".repeat(20), "p".repeat(900));
        trial.compared(&page, n);
        if n > 1_500 {
            continue;
        }
        trial.unjudged(&page, UnjudgedReason::CauseUnknown, true);
        let places = vec!["ü".repeat(500); 50];
        trial.found(&page, FoundDifference { places, ..leak() }, n);
    }
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
