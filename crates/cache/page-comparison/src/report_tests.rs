//! Tests of the report of a trial: the verdict and its sentence, the advice, bounds, and how numbers are shown.
//!
//! The groups of problems are tested beside them (`problem_groups`).

use super::*;
use crate::cause::RequestPart;
use crate::class::UnjudgedReason;
use crate::record::FoundProblem;
use rule_conditions::PathGlob;

fn accepted(class: DifferenceClass, pattern: &str) -> AcceptedDifference {
    AcceptedDifference { class, pattern: PathGlob::read(pattern).expect("a pattern") }
}

fn problem(class: DifferenceClass, pattern: &str) -> FoundProblem {
    FoundProblem {
        class,
        pattern: pattern.into(),
        example: pattern.into(),
        places: vec!["body > p, word 2".into()],
        cause: (class == DifferenceClass::Leak)
            .then(|| DifferenceCause::One(RequestPart::Cookie("currency".into()))),
        count: 1,
        late_by: 0,
        last: 0,
        answers: 0,
        php_micros: 0,
        visitors: ComparedVisitors::default(),
    }
}

const VARIED: ComparedVisitors =
    ComparedVisitors { clients: 12, agents: 4, cookies: 3, without_cookies: 5 };

fn enough() -> TrialRecord {
    let mut record = TrialRecord::new(0, 7);
    for _ in 0..ENOUGH_VERSIONS {
        record.request(Some(1_000));
        record.compared("/", true);
    }
    record
}

#[test]
fn a_report_ends_with_a_sentence_and_a_status() {
    let nothing = TrialReport::of(&TrialRecord::new(0, 7), &[]);
    assert_eq!(nothing.outcome.exit_status(), 2);
    assert_eq!(nothing.sentence, "Not enough yet: 0 of 300 versions of pages were compared.");
    let mut record = enough();
    let safe = TrialReport::of(&record, &[]);
    assert_eq!(safe.outcome.exit_status(), 0);
    assert!(safe.sentence.contains("of 1 kind of paths were"), "{}", safe.sentence);
    assert!(safe.sentence.contains("at least 99 % are right"), "{}", safe.sentence);
    let rows = [
        "requests for shared pages     300\n",
        "would-be hit ratio, at least  100.0 %\n",
        "PHP time saved, at least      300 ms\n",
    ];
    for line in rows {
        assert!(safe.text().contains(line), "{line}: {}", safe.text());
    }
    record.found(problem(DifferenceClass::Leak, "/shop/:n"));
    record.found(problem(DifferenceClass::Leak, "/shop/:n"));
    record.found(problem(DifferenceClass::Noise, "/"));
    let unsafe_now = TrialReport::of(&record, &[]);
    assert_eq!((unsafe_now.outcome.exit_status(), unsafe_now.problems.len()), (1, 2));
    assert_eq!(unsafe_now.problems.iter().map(|line| line.group).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(unsafe_now.sentence, "Not safe: 1 problem.");
    assert_eq!((unsafe_now.unsafe_problems, safe.unsafe_problems), (1, 0));
    let text = unsafe_now.text();
    assert!(
        text.contains("differs by cookie `currency`") && text.contains("vary_cookies"),
        "{text}"
    );
    assert!(text.contains("\nProblems\n\nleak: ") && text.contains("\nNotices\n\nnoise: "));
    assert!(text.contains("/shop/:n (found 2 times), ") && text.contains("/ (found once), "));
    record.found(FoundProblem {
        cause: Some(DifferenceCause::One(RequestPart::Parameter("utm_source".into()))),
        ..problem(DifferenceClass::Loses, "/shop/:n")
    });
    let text = TrialReport::of(&record, &[]).text();
    for line in ["trial.accept = [\"loses /shop/:n\"]", "keys.keep = [\"utm_source\"]"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let report = TrialReport::of(&record, &[accepted(DifferenceClass::Leak, "/shop/*")]);
    assert_eq!(report.outcome, TrialOutcome::Safe);
    let text = report.text();
    assert!(text.contains(", accepted)") && !text.contains("vary_cookies"), "{text}");
}

#[test]
fn a_small_site_is_told_that_all_answers_were_right() {
    let after = |versions: usize| {
        let mut record = TrialRecord::new(0, 7);
        (0..versions).for_each(|_| record.compared("/:n", true));
        // The same versions, compared again and again.
        (0..9_000).for_each(|_| record.compared("/:n", false));
        TrialReport::of(&record, &[])
    };
    let small = after(40);
    assert_eq!(small.outcome, TrialOutcome::NotEnough);
    let right = "all 9,040 compared answers were right, of 40 versions of pages; 300 versions are needed for a \
                     bound. More time, in which pages change, or more pages add some. A site without them is done \
                     when all its kinds of pages were compared for some days.";
    assert_eq!(small.sentence, format!("Not enough yet: {right}"));
    assert!(after(1).sentence.contains("were right, of 1 version of pages"));
    assert!(after(0).sentence.ends_with(": 0 of 300 versions of pages were compared."));
    let mut record = TrialRecord::new(0, 7);
    record.compared("/shop/:n", true);
    record.found(problem(DifferenceClass::Aged, "/shop/:n"));
    let sentence = TrialReport::of(&record, &[accepted(DifferenceClass::Aged, "/shop/*")]).sentence;
    assert!(sentence.contains("were right or accepted, of 1 version"), "{sentence}");
}

#[test]
fn a_page_that_is_refused_is_shown_with_its_php_time_and_a_remedy_for_pagewell_alone() {
    let mut record = enough();
    let refused = |cause| FoundProblem {
        cause,
        places: Vec::new(),
        ..problem(DifferenceClass::RefusedButSame, "/a")
    };
    record.refused("/a", Some(1), VARIED);
    record.found(refused(None));
    record.refused("/a", None, VARIED);
    (0..90).for_each(|_| record.refused("/a", Some(1_400_000), VARIED));
    record.refused("/b", Some(1_000_000), VARIED);
    let report = TrialReport::of(&record, &[]);
    let saving = PossibleSaving { answers: 90, seconds: 126.0 };
    assert_eq!(report.problems[0].could_save, Some(saving));
    let text = report.text();
    assert!(text.contains("PHP time:   2 min 6 s for 90 answers, at least"), "{text}");
    assert!(!text.contains("rendered:") && !report.json().contains("text"), "{text}");
    assert!(!text.contains("differs at"), "{text}");
    assert!(text.contains("rests on:   12 visitors (4 browsers or languages, 3 "), "{text}");
    assert!(text.contains("also hold for other caches"), "{text}");
    let mut with_words = report.clone();
    let words = DifferingText { stored: Some("old".into()), render: Some("new one".into()) };
    with_words.problems[0].text = Some(words);
    let text = with_words.text();
    assert!(text.contains("\n    stored:     old\n    rendered:   new one\n"), "{text}");
    let text = report.behind_cache().text();
    assert!(text.contains("with Pagewell alone") && text.contains("cache in front"), "{text}");
    let mut record = enough();
    record.found(refused(Some(DifferenceCause::OtherCache("age".into()))));
    record.refused("/a", None, VARIED);
    let text = TrialReport::of(&record, &[]).behind_cache().text();
    for part in ["as the field `age` says", "let the cache between Pagewell and PHP pass"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(TrialRecord::read(record.written().as_bytes(), 7), Some(record));
}

#[test]
fn nothing_is_advised_after_a_few_visitors_or_after_one_difference() {
    let found =
        || FoundProblem { cause: None, ..problem(DifferenceClass::RefusedButSame, "/post-5/") };
    let advised = |record: &TrialRecord| !TrialReport::of(record, &[]).problems.is_empty();
    let mut record = enough();
    record.found(found());
    let few = ComparedVisitors { clients: 2, agents: 2, ..ComparedVisitors::default() };
    record.refused("/post-5/", Some(1), few);
    assert!(!advised(&record), "two visitors");
    let without = ComparedVisitors { clients: 10, agents: 3, cookies: 0, without_cookies: 10 };
    record.refused("/post-5/", Some(1), without);
    assert!(advised(&record), "nobody has a cookie");
    record.has_cookies = true;
    assert!(!advised(&record), "somebody has one, and nobody of these");
    record.refused("/post-5/", Some(1), VARIED);
    assert!(advised(&record));
    record.withdraw("/post-5/");
    record.found(found());
    record.refused("/post-5/", Some(1), VARIED);
    assert!(!advised(&record) && record.is_withdrawn("/post-5/"));
    assert!(!record.is_withdrawn("/post-6/"));
    let mut after = TrialRecord::read(record.written().as_bytes(), 7).expect("a record");
    after.found(found());
    after.refused("/post-5/", Some(1), VARIED);
    assert!(!advised(&after), "a restart does not bring it back");
    let mut record = enough();
    record.found(problem(DifferenceClass::Leak, "/post-5/"));
    record.found(found());
    record.refused("/post-5/", Some(1), VARIED);
    let problems = TrialReport::of(&record, &[]).problems;
    assert!(problems.len() == 1 && problems[0].class == DifferenceClass::Leak);
}

#[test]
fn numbers_are_easy_to_read() {
    let counts = [0, 999, 1_000, 12_410, 1_234_567].map(shown_count);
    assert_eq!(counts, ["0", "999", "1,000", "12,410", "1,234,567"]);
    let times = [59.9, 61.0, 9_120.0, 90_000.0].map(shown_time);
    assert_eq!(times, ["59 s", "1 min 1 s", "2 h 32 min", "1 d 1 h"]);
    let short = [0, 1_200, 340_999, 999_999, 4_290_000, 7_000_000, 10_900_000];
    let short = short.map(|micros| shown_time(in_seconds(micros)));
    assert_eq!(short, ["0 s", "1 ms", "340 ms", "999 ms", "4.2 s", "7 s", "10 s"]);
}

#[test]
fn an_unexplained_difference_is_never_safe() {
    let mut record = enough();
    record.unjudged("/a", UnjudgedReason::ChangedMeanwhile, false);
    record.unjudged("/a", UnjudgedReason::CauseUnknown, false);
    assert_eq!(TrialReport::of(&record, &[]).outcome, TrialOutcome::Safe);
    record.unjudged("/a", UnjudgedReason::CauseUnknown, true);
    assert_eq!(TrialReport::of(&record, &[]).outcome, TrialOutcome::NotEnough);
    record.explained("/a");
    assert_eq!(TrialReport::of(&record, &[]).outcome, TrialOutcome::Safe);
}

#[test]
fn a_difference_without_an_explanation_has_a_reason_unless_its_path_is_a_problem() {
    let mut record = enough();
    for pattern in ["/a", "/b", "/c"] {
        record.unjudged(pattern, UnjudgedReason::NoBudget, true);
    }
    record.unjudged("/b", UnjudgedReason::CauseUnknown, true);
    record.found(problem(DifferenceClass::Leak, "/c"));
    let report = TrialReport::of(&record, &[]);
    assert_eq!(report.suspects, ["/a", "/b"]);
    let text = report.text();
    for part in [
        "\n  no-budget: /a\n    reason:     ",
        "trial.budget",
        "\n  cause-unknown: /b\n",
        "    accept it:  `trial.accept = [\"leak /b\"]`, if all may get the same page\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("accept it").count(), 1, "the budget comes back: {text}");
    let report = TrialReport::of(&record, &[accepted(DifferenceClass::Leak, "/c")]);
    assert_eq!(report.suspects, ["/a", "/b"]);
    record.found(problem(DifferenceClass::Aged, "/a"));
    let report = TrialReport::of(&record, &[accepted(DifferenceClass::Leak, "/c")]);
    assert_eq!((report.outcome, report.suspects.len()), (TrialOutcome::NotSafe, 1));
    let report = TrialReport::of(&record, &[accepted(DifferenceClass::Aged, "/a")]);
    assert!(report.suspects.contains(&"/a".to_owned()), "it may be something else");
    let report = TrialReport::of(&record, &[accepted(DifferenceClass::Leak, "/b")]);
    assert_eq!(report.suspects, [""; 0], "an accepted leak is any difference");
}

#[test]
fn a_render_that_failed_is_named_for_a_suspect_only() {
    let mut record = enough();
    for pattern in ["/a", "/b", "/c"] {
        record.render_failed(pattern.into(), "status 503".into());
    }
    record.render_failed("/a".into(), "status 403".into());
    record.unjudged("/a", UnjudgedReason::RenderFailed, true);
    record.unjudged("/b", UnjudgedReason::CauseUnknown, true);
    record.unjudged("/d", UnjudgedReason::RenderFailed, true);
    let report = TrialReport::of(&record, &[]);
    let text = report.text();
    assert!(text.contains("\n  render-failed: /a (status 403), /d\n"), "{text}");
    assert!(!text.contains("503"), "{text}");
    let after = TrialRecord::read(record.written().as_bytes(), 7).expect("a record");
    assert_eq!(TrialReport::of(&after, &[]), report);
}

#[test]
fn a_budget_that_was_used_up_is_named_with_a_larger_one() {
    let mut record = enough();
    record.unjudged("/a", UnjudgedReason::NoBudget, true);
    let text =
        |budget_percent| TrialReport { budget_percent, ..TrialReport::of(&record, &[]) }.text();
    let larger = "raise trial.budget (5 % now), on a small site to `trial.budget = \"50%\"`\n";
    assert!(text(Some(5)).contains(larger), "{}", text(Some(5)));
    assert!(text(Some(80)).contains("raise trial.budget (80 % now)\n"), "{}", text(Some(80)));
    assert!(text(None).contains("raise trial.budget\n"), "{}", text(None));
}

#[test]
fn answers_that_no_render_may_be_compared_with_are_counted_beside_the_verdict() {
    let mut record = enough();
    record.unjudged("/p/:token/", UnjudgedReason::NotRequested, false);
    let report = TrialReport::of(&record, &[]);
    let one =
        "(95 % confidence). 1 answer was not compared, because Pagewell does not request its URL.";
    assert!(report.sentence.ends_with(one), "{}", report.sentence);
    assert!(report.text().contains("1 (not-requested 1)\n"), "{}", report.text());
    (0..1_999).for_each(|_| {
        record.unjudged("/p/:token/", UnjudgedReason::NotRequested, false);
    });
    let many = " 2,000 answers were not compared, because Pagewell does not request their URLs.";
    let report = TrialReport::of(&record, &[]);
    assert!(report.sentence.ends_with(many), "{}", report.sentence);
    record.unjudged("/p/:token/", UnjudgedReason::NotRequested, true);
    let report = TrialReport::of(&record, &[]);
    assert_eq!((report.outcome, report.suspects.len()), (TrialOutcome::NotEnough, 1));
    let report = TrialReport::of(&record, &[accepted(DifferenceClass::Leak, "/p/*/")]);
    assert_eq!((report.outcome, report.suspects.len()), (TrialOutcome::Safe, 0));
}

#[test]
fn kinds_with_few_versions_are_counted_beside_the_verdict() {
    let mut record = enough();
    let sentence = |record: &TrialRecord| TrialReport::of(record, &[]).sentence;
    assert!(sentence(&record).ends_with("are right (95 % confidence)."), "{}", sentence(&record));
    record.compared("/cart", true);
    (1..FEW_VERSIONS).for_each(|_| record.compared("/cart", false));
    let one = "(95 % confidence). Of 1 kind, fewer than 10 versions were compared.";
    assert!(sentence(&record).ends_with(one), "{}", sentence(&record));
    (1..FEW_VERSIONS).for_each(|_| record.compared("/shop/:n", true));
    let two = " Of 2 kinds, fewer than 10 versions each were compared.";
    assert!(sentence(&record).ends_with(two), "{}", sentence(&record));
    record.compared("/shop/:n", true);
    assert!(sentence(&record).ends_with(one), "{}", sentence(&record));
}

#[test]
fn a_remedy_has_the_line_of_the_configuration_that_helps() {
    for (class, lines) in [
        (DifferenceClass::BrokenPromise, ["`bypass = true` in a rule for this path", "declare"]),
        (DifferenceClass::Aged, ["`trial.accept = [\"aged /x/:n\"]`", "-Control: max-age=60');`"]),
        (DifferenceClass::Late, ["`trial.accept = [\"late /x/:n\"]`", "commit and announce"]),
        (DifferenceClass::Noise, ["`trial.accept = [\"noise /x/:n\"]`", "max-age=43200');`"]),
        (DifferenceClass::Random, ["`trial.accept = [\"random /x/:n\"]`", "`bypass = true`"]),
    ] {
        let remedy = class.remedy(None, "/x/:n");
        assert!(lines.iter().all(|line| remedy.contains(line)), "{}: {remedy}", class.name());
    }
    let remedy = DifferenceClass::Aged.remedy(None, "(other)");
    assert!(remedy.ends_with("`trial.accept = [\"aged /path\"]`"), "{remedy}");
}

#[test]
fn a_verdict_by_samples_has_its_error_bound_where_text_is_drawn() {
    let mut record = enough();
    record.found(problem(DifferenceClass::Aged, "/a"));
    record.found(problem(DifferenceClass::Leak, "/b"));
    record.found(problem(DifferenceClass::Random, "/b"));
    let chance = "by chance:  in at most 6.7 % of comparisons, because";
    let exact = TrialReport::of(&record, &[]);
    assert!(!exact.text().contains("by chance") && !exact.json().contains("chance_percent"));
    record.found(problem(DifferenceClass::Random, "/a"));
    let drawn = TrialReport::of(&record, &[]);
    assert_eq!(drawn.text().matches(chance).count(), 1, "{}", drawn.text());
    assert_eq!(drawn.json().matches("\"chance_percent\": 6.7").count(), 1, "{}", drawn.json());
    assert_eq!(drawn.outcome, TrialOutcome::NotSafe, "it is no excuse");
}

#[test]
fn a_full_origin_is_a_reason_of_its_own_and_no_matter_of_the_budget() {
    let mut record = enough();
    record.unjudged("/a", UnjudgedReason::NoPlace, true);
    record.unjudged("/b", UnjudgedReason::NoPlace, false);
    let report = TrialReport::of(&record, &[]);
    assert_eq!(report.outcome, TrialOutcome::NotEnough);
    assert_eq!(report.suspects, ["/a"]);
    let text = report.text();
    for part in ["2 (no-place 2)\n", "\n  no-place: /a\n    reason:     fewer than two origin con"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("limits.origin_connections") && !text.contains("budget"), "{text}");
    assert!(report.json().contains("\"no-place\": 2"), "{}", report.json());
    assert!(UnjudgedReason::NoPlace.is_without_render(), "so the page may be looked into again");
    assert!(!UnjudgedReason::RenderFailed.is_without_render());
}

#[test]
fn a_remedy_names_the_rule_that_already_counts_and_all_cookies_of_its_path() {
    let by_cookie = |name: &str, pattern: &str| FoundProblem {
        cause: Some(DifferenceCause::One(RequestPart::Cookie(name.into()))),
        ..problem(DifferenceClass::Leak, pattern)
    };
    let mut record = enough();
    for (name, pattern) in [("nick", "/shop/"), ("currency", "/shop/"), ("a", "/x")] {
        record.found(by_cookie(name, pattern));
    }
    record.found(FoundProblem { cause: None, ..problem(DifferenceClass::Leak, "/y") });
    let report = TrialReport::of(&record, &[]);
    let named = |rule: Option<bool>| -> Vec<String> {
        let mut lines = report.problems.clone();
        for (line, has_cookies) in lines.iter_mut().zip(rule.into_iter().cycle()) {
            line.name_rule("2 (shop)", has_cookies);
        }
        lines.into_iter().map(|line| line.remedy).collect()
    };
    let both = "key: `vary_cookies = [\"nick\", \"currency\"]` in";
    let (one, counts) =
        ("key: `vary_cookies = [\"a\"]` in", "rule 2 (shop), which already counts for this path");
    let bypass = "bypass: `bypass = true` in a rule for this path";
    let expected = |end: &str| [both, both, one].map(|begin| format!("{begin} {end}"));
    assert_eq!(named(None)[..3], expected("a rule for this path"));
    assert_eq!(named(None)[3], bypass);
    assert_eq!(named(Some(false))[..3], expected(counts));
    let added = format!("key: add `nick`, `currency` to `vary_cookies` of {counts}");
    assert_eq!(named(Some(true))[..2], [added.as_str(); 2]);
    assert_eq!(named(Some(true))[3], format!("{bypass}, before rule 2 (shop)"));
    let accepted = TrialReport::of(&record, &[accepted(DifferenceClass::Leak, "/shop/")]);
    assert!(accepted.problems[0].remedy.contains("[\"nick\"]"), "nothing is joined");
}

#[test]
fn a_record_survives_a_restart_and_not_a_change_of_rules() {
    let mut record = enough();
    record.found(problem(DifferenceClass::Leak, "/shop/:n"));
    record.unjudged("/a", UnjudgedReason::CauseUnknown, true);
    let written = record.written();
    assert_eq!(TrialRecord::read(written.as_bytes(), 7), Some(record));
    assert_eq!(TrialRecord::read(written.as_bytes(), 8), None);
    assert_eq!(TrialRecord::read(b"{", 7), None);
}

#[test]
fn a_restart_drops_the_suspects_for_which_no_render_was_made() {
    use UnjudgedReason::{NoBudget, NoPlace, NotSettled, NotStored, RenderFailed};
    let mut record = enough();
    record.unjudged("/not-stored", NotStored, true);
    record.unjudged("/budget", NoBudget, true);
    record.unjudged("/place", NoPlace, true);
    for reason in [RenderFailed, NoPlace] {
        record.unjudged("/both", reason, true);
    }
    for reason in [NoBudget, NotSettled] {
        record.unjudged("/later", reason, true);
    }
    let reasons = |record: &TrialRecord| TrialReport::of(record, &[]).suspect_reasons;
    assert_eq!(reasons(&record).len(), 5);
    let after = TrialRecord::read(record.written().as_bytes(), 7).expect("a record");
    let left = [("/both".to_owned(), RenderFailed), ("/later".to_owned(), NotSettled)];
    assert_eq!(reasons(&after), BTreeMap::from(left));
    assert_eq!(after.unjudged, record.unjudged, "they have had no verdict");
    record.drop_unrendered();
    assert_eq!(after, record);
}

#[test]
fn the_number_of_problems_is_bounded_and_what_is_left_out_is_no_success() {
    let mut record = enough();
    for n in 0..1_010 {
        record.found(problem(DifferenceClass::Noise, &format!("/{n}")));
    }
    assert_eq!(record.problems().len(), 1_000);
    assert_eq!(TrialReport::of(&record, &[]).outcome, TrialOutcome::Safe, "only notices");
    assert!(TrialReport::of(&record, &[]).json().contains("\"class\": \"noise\""));
    for n in 0..1_010 {
        record.found(problem(DifferenceClass::Aged, &format!("/{n}")));
    }
    assert_eq!((record.problems().len(), record.problems_left_out), (1_000, 10));
    assert!(record.problems().iter().all(|problem| problem.class == DifferenceClass::Aged));
    assert_eq!(TrialReport::of(&record, &[]).outcome, TrialOutcome::NotSafe);
}
