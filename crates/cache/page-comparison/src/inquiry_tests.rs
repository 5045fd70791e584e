//! The judgement of pages whose truth is known: each class, each draw, and every order of the samples.
//!
//! The oracle is the generator of the pages; the judgement sees only their tokens.

use super::*;
use crate::noise::PatternNoise;
use crate::tokens::TokenSecret;
use proptest::prelude::*;

fn page(content: &str) -> PageTokens {
    let fields = [("content-type", &b"text/html"[..])];
    let content =
        format!("<body><h1>Our news</h1><p>{content}</p><p>Some more text for all</p></body>");
    PageTokens::of(TokenSecret::of(3), 200, fields, content.as_bytes(), true)
}

/// Judges a stored page of second 0 against renders; `render` gets the time in milliseconds.
fn judge(
    stored: &str,
    circumstances: &Circumstances,
    mut render: impl FnMut(u64) -> String,
) -> (Conclusion, u64) {
    let (mut noise, mut now) = (PageNoise::default(), 10_000);
    let mut inquiry = Inquiry::new(page(stored), 0);
    let mut samples = 0;
    while let InquiryStep::Sample { after } = inquiry.step(&noise) {
        now += after.max(100);
        samples += 1;
        assert!(samples <= 12, "a judgement ends");
        inquiry.add(PageSample { begun: now, tokens: page(&render(now)) });
    }
    (inquiry.conclude(&mut noise, circumstances), samples)
}

fn class_of(conclusion: Conclusion) -> Option<DifferenceClass> {
    match conclusion {
        Conclusion::Differs { class, .. } => Some(class),
        Conclusion::Same => None,
        Conclusion::Unjudged(reason) => panic!("no verdict: {reason:?}"),
    }
}

fn followed() -> Circumstances {
    Circumstances::of(PageDependence::Followed)
}

#[test]
fn a_verdict_is_decided_at_the_end_of_the_first_of_its_five_samples() {
    let mut inquiry = Inquiry::of_suspect(page("old"), 0);
    for (at, text) in [(10, "old"), (20, "new"), (30, "new"), (40, "new"), (50, "new")] {
        assert_eq!(inquiry.decided_at(), None);
        inquiry.add(PageSample { begun: at, tokens: page(text) });
    }
    assert_eq!(inquiry.decided_at(), Some(20));
    inquiry.add(PageSample { begun: 60, tokens: page("new") });
    assert_eq!(inquiry.decided_at(), Some(30));
}

#[test]
fn samples_of_a_page_that_was_replaced_decide_nothing_and_teach_nothing() {
    let mut noise = PageNoise::default();
    let mut inquiry = Inquiry::of_suspect(page("version 1"), 0);
    for at in 0..5 {
        let tokens = page(&format!("version {}", at + 2));
        inquiry.add(PageSample { begun: at, tokens });
    }
    assert_eq!(inquiry.step(&noise), InquiryStep::Conclude);
    let gone = Circumstances { was_replaced: true, ..followed() };
    let changed = Conclusion::Unjudged(UnjudgedReason::ChangedMeanwhile);
    assert_eq!(inquiry.conclude(&mut noise, &gone), changed);
    let later = differing(&page("version 1"), &page("version 9"));
    assert!(!noise.without_noise(&later).is_empty(), "it would hide a later difference");
    // The same samples of a page that nothing has ended.
    let class = class_of(inquiry.conclude(&mut noise, &followed()));
    assert_eq!(class, Some(DifferenceClass::ByTheClock));
}

#[test]
fn an_equal_render_ends_the_judgement_at_once() {
    assert_eq!(judge("one", &followed(), |_| "one".into()), (Conclusion::Same, 1));
}

#[test]
fn a_suspect_that_equals_the_first_sample_is_looked_at_further() {
    let mut noise = PageNoise::default();
    let mut inquiry = Inquiry::of_suspect(page("red"), 0);
    for at in 0..5 {
        assert_ne!(inquiry.step(&noise), InquiryStep::Conclude);
        let draw = ["red", "blue"][at % 2];
        inquiry.add(PageSample { begun: at as u64, tokens: page(draw) });
    }
    assert_eq!(inquiry.step(&noise), InquiryStep::Conclude);
    assert_eq!(class_of(inquiry.conclude(&mut noise, &followed())), Some(DifferenceClass::Random));
}

#[test]
fn five_samples_that_agree_decide_against_the_page() {
    let (conclusion, samples) = judge("old", &followed(), |_| "new".into());
    assert_eq!(samples, 5);
    let Conclusion::Differs { class, places, .. } = conclusion else { panic!("it differs") };
    assert_eq!(class, DifferenceClass::BrokenPromise);
    assert_eq!(places, ["body > p, word 1"]);
    let lifetime = Circumstances::of(PageDependence::LifetimeOnly);
    assert_eq!(class_of(judge("old", &lifetime, |_| "new".into()).0), Some(DifferenceClass::Aged));
    let leak = Circumstances { matched_when_stored: Some(false), ..followed() };
    assert_eq!(class_of(judge("old", &leak, |_| "new".into()).0), Some(DifferenceClass::Leak));
    let gone = Circumstances { was_replaced: true, ..followed() };
    let changed = Conclusion::Unjudged(UnjudgedReason::ChangedMeanwhile);
    assert_eq!(judge("old", &gone, |_| "new".into()).0, changed);
}

#[test]
fn a_change_while_samples_are_taken_decides_only_after_five_of_them() {
    let mut count = 0;
    let render = |_| {
        count += 1;
        if count <= 1 { "new" } else { "newer" }.to_owned()
    };
    let (conclusion, samples) = judge("old", &followed(), render);
    assert_eq!((class_of(conclusion), samples), (Some(DifferenceClass::BrokenPromise), 6));
}

#[test]
fn a_replica_that_lags_is_the_applications() {
    let mut count = 0;
    let render = |_| {
        count += 1;
        if count <= 3 { "old" } else { "new" }.to_owned()
    };
    assert_eq!(
        class_of(judge("new", &followed(), render).0),
        Some(DifferenceClass::OldApplication)
    );
}

#[test]
fn a_replica_that_lags_is_not_told_apart_on_a_page_that_draws_text() {
    // The first sample has another word than the page and the others; `beside` differs each time.
    let lagging = |beside: fn(u64) -> String| {
        move |count: u64| {
            format!("<b>{}</b> {}", if count == 1 { "old" } else { "new" }, beside(count))
        }
    };
    let class_beside = |beside: fn(u64) -> String| {
        let (render, mut count) = (lagging(beside), 0);
        let of_sample = |_| {
            count += 1;
            render(count)
        };
        class_of(judge(&render(0), &followed(), of_sample).0)
    };
    fn word(count: u64) -> String {
        char::from(b'a' + count as u8).to_string().repeat(4)
    }
    type Words = fn(u64) -> String;
    let draw = |count: u64| ["red", "blue"][(count % 2) as usize].to_owned();
    let rows: [(Words, DifferenceClass); 5] = [
        (draw, DifferenceClass::Random),
        (word, DifferenceClass::Random),
        (
            |count| format!("<input name=csrf value={}>", word(count)),
            DifferenceClass::OldApplication,
        ),
        (|count| format!("at {}", 100 + count), DifferenceClass::ByTheClock),
        (|_| String::new(), DifferenceClass::OldApplication),
    ];
    for (beside, class) in rows {
        assert_eq!(class_beside(beside), Some(class), "{}", beside(0));
    }
    // The places of the draw are known now: only the word beside them differs.
    let (mut noise, render) = (PageNoise::default(), lagging(draw));
    for _ in 0..2 {
        let (mut inquiry, mut count) = (Inquiry::new(page(&render(0)), 0), 0);
        while let InquiryStep::Sample { .. } = inquiry.step(&noise) {
            count += 1;
            inquiry.add(PageSample { begun: count, tokens: page(&render(count)) });
        }
        let class = class_of(inquiry.conclude(&mut noise, &followed()));
        assert_eq!(class, Some(DifferenceClass::Random));
    }
}

#[test]
fn a_clock_is_told_from_a_change_by_a_third_sample() {
    let clock = |now: u64| format!("It is 12:{:02}", now / 10_000);
    let (conclusion, samples) = judge("It is 12:00", &followed(), clock);
    assert_eq!((class_of(conclusion), samples), (Some(DifferenceClass::ByTheClock), 6));
    let raised = |_| "Price: 12 Euro".to_owned();
    let (conclusion, samples) = judge("Price: 10 Euro", &followed(), raised);
    assert_eq!((class_of(conclusion), samples), (Some(DifferenceClass::BrokenPromise), 6));
    for (before, after) in [
        ("2026-11-28T18:28:", "+00:00"),
        ("2026-11-28T18:28:", "Z"),
        ("2026-11-28T18:28:", ".000Z"),
        ("6:28:", "pm"),
        ("6:28:", "\u{202f}PM"),
        ("18h28m", "s"),
        ("\u{201c}18:28:", "\u{201d}"),
        ("\u{6642}\u{523b}18\u{ff1a}28\u{ff1a}", "\u{73fe}\u{5728}"),
        ("2026\u{5e74}11\u{6708}28\u{65e5}18\u{65f6}28\u{5206}", "\u{79d2}"),
        ("<a href='/feed?ver=17645258", "'>feed</a>"),
        ("<a href='/feed?ver=t17645258", "'>feed</a>"),
        ("<a href='/feed_17645258", "-3'>feed</a>"),
    ] {
        let date = |now: u64| format!("{before}{:02}{after}", now / 1_000 % 60);
        let dated = judge(&date(0), &followed(), date).0;
        assert_eq!(class_of(dated), Some(DifferenceClass::ByTheClock), "{before} {after}");
        let may_lag = Circumstances { may_lag: true, ..followed() };
        assert_eq!(class_of(judge(&date(0), &may_lag, date).0), None, "{before} {after}");
    }
    let persian = |now: u64| {
        let digit = |count: u64| char::from_u32(0x6f0 + count as u32).expect("a digit");
        format!("\u{6f1}\u{6f8}:{}{}", digit(now / 10_000 % 6), digit(now / 1_000 % 10))
    };
    let dated = judge(&persian(0), &followed(), persian).0;
    assert_eq!(class_of(dated), Some(DifferenceClass::ByTheClock));
}

#[test]
fn a_clock_that_has_begun_again_is_told_from_a_change_by_its_next_step() {
    for (stored, now) in [
        ("23:59:58", "8:05:"),
        ("12:58:41 pm", "1:01:"),
        ("30 November, 23:59:58", "1 December, 0:07:"),
        ("31.12.2026 9:30:58", "1.1.2027 8:05:"),
    ] {
        let clock = |at: u64| format!("Made at {now}{:02}", at / 1_000 % 60);
        let class = class_of(judge(&format!("Made at {stored}"), &followed(), clock).0);
        assert_eq!(class, Some(DifferenceClass::ByTheClock), "{stored}");
        let (changed, samples) = judge(&format!("Made at {stored}"), &followed(), |_| clock(0));
        let found = (class_of(changed), samples);
        assert_eq!(found, (Some(DifferenceClass::BrokenPromise), 6), "{stored}");
    }
    // Neither a single number nor larger ones are those of a clock.
    type Render = fn(u64) -> String;
    let rows: [(&str, Render); 2] = [
        ("58 items", |at| format!("{} items", at / 1_000)),
        ("70 of 90 items", |at| format!("{} of 80 items", at / 1_000)),
    ];
    for (stored, render) in rows {
        let (changed, samples) = judge(stored, &followed(), render);
        let found = (class_of(changed), samples);
        assert_eq!(found, (Some(DifferenceClass::BrokenPromise), 5), "{stored}");
    }
}

#[test]
fn a_clock_that_moves_on_during_the_samples_is_told_from_a_change() {
    for first in 0..4 {
        let (mut noise, mut samples, mut now) = (PageNoise::default(), 0, 500);
        let mut inquiry = Inquiry::of_suspect(page("At 18:28:01"), 0);
        while let InquiryStep::Sample { after } = inquiry.step(&noise) {
            now += after.max(1);
            samples += 1;
            let second = 1 + u32::from(samples > first) + u32::from(after > 0);
            let tokens = page(&format!("At 18:28:0{second}"));
            inquiry.add(PageSample { begun: now, tokens });
        }
        let class = class_of(inquiry.conclude(&mut noise, &followed()));
        assert_eq!(class, Some(DifferenceClass::ByTheClock), "{first} samples like the page");
    }
}

#[test]
fn a_clock_that_nobody_sees_is_noise_and_is_known_the_next_time() {
    for (before, after) in
        [("<script>var a = {\"time\":\"", "\"}</script>"), ("<style>/* ", "</style>")]
    {
        for step in [50, 1_000] {
            let render = |now: u64| format!("text {before}{}{after}", now / step);
            let stored = render(5_000);
            let class = class_of(judge(&stored, &followed(), render).0);
            assert_eq!(class, Some(DifferenceClass::Noise), "{before} {step}");
            let (mut noise, mut now) = (PageNoise::default(), 9_990);
            for class in [Some(DifferenceClass::Noise), None] {
                let mut inquiry = Inquiry::new(page(&stored), 0);
                while let InquiryStep::Sample { after } = inquiry.step(&noise) {
                    now += after.max(10);
                    inquiry.add(PageSample { begun: now, tokens: page(&render(now)) });
                }
                assert_eq!(class_of(inquiry.conclude(&mut noise, &followed())), class, "{before}");
            }
        }
    }
    for (content, class) in [
        ("text <!-- made in 1.07ms -->", None),
        ("text <!--esi <b>new</b> -->", Some(DifferenceClass::BrokenPromise)),
        ("text <!--esi <b>1.07</b> -->", Some(DifferenceClass::BrokenPromise)),
        ("text <!-- made for new -->", Some(DifferenceClass::BrokenPromise)),
    ] {
        let stored = content.replace("1.07", "1.13").replace("new", "old");
        let found = judge(&stored, &followed(), |_| content.to_owned()).0;
        assert_eq!(class_of(found), class, "{content}");
    }
    let seen = |now: u64| format!("<p data-made='{now}'>text");
    let class = class_of(judge(&seen(5), &followed(), seen).0);
    assert_eq!(class, Some(DifferenceClass::ByTheClock), "an attribute may be shown");
    let signed = |now: u64| format!("<p data-made='{now}' data-token='t{now}'>text");
    let class = class_of(judge(&signed(5), &followed(), signed).0);
    assert_eq!(class, Some(DifferenceClass::Noise), "a signed time is a nonce");
}

/// A time that has passed, as forums show it.
fn since(seconds: u64) -> String {
    let of =
        |count: u64, unit: &str| format!("{count} {unit}{}", if count == 1 { "" } else { "s" });
    match seconds {
        0..10 => "right now".into(),
        10..60 => format!("{} ago", of(seconds, "second")),
        60..3_600 => format!("{}, {} ago", of(seconds / 60, "minute"), of(seconds % 60, "second")),
        _ => format!("{} ago", of(seconds / 3_600, "hour")),
    }
}

/// The same as social networks show it.
fn short_since(seconds: u64) -> String {
    match seconds {
        0..10 => "now".into(),
        10..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m ago", seconds / 60),
        3_600..86_400 => format!("{}h ago", seconds / 3_600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

/// The same with all units together.
fn exact_since(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{}s", seconds / 60, seconds % 60),
        _ => format!("{}h{}m", seconds / 3_600, seconds / 60 % 60),
    }
}

/// The same with spaces that do not break, and digits of Persian.
fn persian_since(seconds: u64) -> String {
    let digit = |letter: char| letter.to_digit(10).and_then(|digit| char::from_u32(0x6f0 + digit));
    let letters = since(seconds).replace(' ', "&nbsp;");
    letters.chars().map(|letter| digit(letter).unwrap_or(letter)).collect()
}

/// The same in Chinese, which has no spaces.
fn chinese_since(seconds: u64) -> String {
    let (just_now, published) = ("\u{521a}\u{521a}", "\u{53d1}\u{5e03}\u{4e8e}");
    let (hour, minute) = ("\u{5c0f}\u{65f6}", "\u{5206}\u{949f}\u{524d}");
    match seconds {
        0..60 => just_now.into(),
        60..3_600 => format!("{published}{}{minute}", seconds / 60),
        _ => format!("{published}{}{hour}{}{minute}", seconds / 3_600, seconds / 60 % 60),
    }
}

#[test]
fn an_age_on_a_page_that_may_lag_is_no_difference_and_hides_none_beside_it() {
    let may_lag = Circumstances { may_lag: true, ..followed() };
    for (age, speed) in [(0, 1), (9, 3), (55, 1), (130, 7), (3_597, 2), (3_597, 60), (86_000, 900)]
    {
        let forms: [fn(u64) -> String; 5] =
            [since, short_since, exact_since, persian_since, chinese_since];
        for (since, is_once) in forms.into_iter().flat_map(|form| [(form, false), (form, true)]) {
            let render = |now: u64| {
                let passed = if is_once { 11 } else { now / 1_000 };
                format!("<b>{}</b> by Ada", since(age + passed * speed))
            };
            let stored = format!("<b>{}</b> by Ada", since(age));
            let of = format!("{stored}, by {speed} s, once: {is_once}");
            assert_eq!(class_of(judge(&stored, &may_lag, render).0), None, "{of}");
            let changed = |now: u64| render(now).replace("Ada", "Eve");
            let class = class_of(judge(&stored, &may_lag, changed).0);
            assert_eq!(class, Some(DifferenceClass::BrokenPromise), "{of}");
        }
    }
    for (stored, now) in
        [("3 items", "0 items"), ("Customer 4711", "Guest"), ("3 items", "no items")]
    {
        let class = class_of(judge(stored, &may_lag, |_| now.to_owned()).0);
        assert_eq!(class, Some(DifferenceClass::BrokenPromise), "{stored} is of a visitor");
    }
    let (conclusion, _) = judge("5 posts", &followed(), |_| "6 posts".to_owned());
    assert_eq!(class_of(conclusion), Some(DifferenceClass::BrokenPromise), "it may not lag");
}

#[test]
fn a_clock_with_a_longer_step_than_the_page_is_old_is_no_leak() {
    let render = |now: u64| format!("Weather at {}", 100 + now / 10_000);
    let (mut noise, mut now) = (PageNoise::default(), 10_000);
    let mut inquiry = Inquiry::of_suspect(page(&render(4_000)), 4_000);
    while let InquiryStep::Sample { after } = inquiry.step(&noise) {
        now += after.max(10);
        inquiry.add(PageSample { begun: now, tokens: page(&render(now)) });
    }
    let young = Circumstances {
        matched_when_stored: Some(false),
        ..Circumstances::of(PageDependence::LifetimeOnly)
    };
    let class = class_of(inquiry.conclude(&mut noise, &young));
    assert_eq!(class, Some(DifferenceClass::ByTheClock));
}

#[test]
fn a_nonce_is_noise_and_is_known_the_next_time() {
    let mut count = 0_u32;
    let mut render = |_: u64| {
        count += 1;
        format!("text <input name=csrf value=x{:x}>", count.wrapping_mul(0x9E37_79B9))
    };
    let stored = render(0);
    assert_eq!(class_of(judge(&stored, &followed(), &mut render).0), Some(DifferenceClass::Noise));
    let mut noise = PageNoise::default();
    let mut inquiry = Inquiry::new(page(&stored), 0);
    while let InquiryStep::Sample { .. } = inquiry.step(&noise) {
        inquiry.add(PageSample { begun: 0, tokens: page(&render(0)) });
    }
    inquiry.conclude(&mut noise, &followed());
    let mut again = Inquiry::new(page(&stored), 0);
    again.add(PageSample { begun: 0, tokens: page(&render(0)) });
    assert_eq!(again.step(&noise), InquiryStep::Conclude);
    assert_eq!(again.conclude(&mut noise, &followed()), Conclusion::Same);
    // The noise hides nothing else.
    let mut changed = Inquiry::new(page(&stored), 0);
    changed.add(PageSample { begun: 0, tokens: page(&render(0).replace("text", "new")) });
    assert_ne!(changed.step(&noise), InquiryStep::Conclude);
}

#[test]
fn content_that_is_compared_by_hash_and_is_another_at_each_render_is_not_judged() {
    let many_words = "many words ".repeat(200_000);
    let judged = |kind: &str, content: &dyn Fn(u64) -> String, id: &dyn Fn(u64) -> String| {
        let response = |at: u64| {
            let (content, id) = (many_words.clone() + &content(at), id(at));
            let fields = [("content-type", kind.as_bytes()), ("x-request-id", id.as_bytes())];
            PageTokens::of(TokenSecret::of(3), 200, fields, content.as_bytes(), true)
        };
        let (mut noise, mut at) = (PageNoise::default(), 0);
        let mut inquiry = Inquiry::of_suspect(response(at), 0);
        while let InquiryStep::Sample { .. } = inquiry.step(&noise) {
            at += 1;
            inquiry.add(PageSample { begun: at, tokens: response(at) });
        }
        (inquiry.conclude(&mut noise, &followed()), noise)
    };
    let word = |at: u64| char::from(b'a' + at as u8).to_string().repeat(8);
    let draw = |at: u64| word(at % 2);
    let (same, changed) = (|_: u64| word(0), |at: u64| word(at.min(1)));
    for kind in ["text/html", "application/pdf"] {
        for content in [&word as &dyn Fn(u64) -> String, &draw] {
            let (conclusion, noise) = judged(kind, content, &same);
            assert_eq!(conclusion, Conclusion::Unjudged(UnjudgedReason::Random));
            assert!(noise.is_random());
            // Other pages of the pattern are judged.
            let (mut pattern, mut other) = (PatternNoise::default(), PageNoise::default());
            (0..9).for_each(|_| pattern.learn(&PageNoise::default(), &noise));
            pattern.add_to(&mut other);
            assert!(other.is_empty());
        }
        let (conclusion, noise) = judged(kind, &same, &word);
        assert_eq!(class_of(conclusion), Some(DifferenceClass::Noise), "only a field differs");
        assert!(!noise.is_random());
        let (conclusion, noise) = judged(kind, &changed, &word);
        assert_eq!(class_of(conclusion), Some(DifferenceClass::BrokenPromise));
        assert!(!noise.is_random());
    }
}

#[test]
fn numbers_that_are_drawn_for_readers_are_random_and_not_nonces() {
    let mut count = 0_u64;
    let mut draw = || {
        count += 1;
        count.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
    };
    let posts = |mut number: Box<dyn FnMut() -> u64 + '_>| {
        (0..80).map(|_| format!("<p>{}", number())).collect::<String>()
    };
    let stored = posts(Box::new(&mut draw));
    let render = |_| posts(Box::new(&mut draw));
    assert_eq!(class_of(judge(&stored, &followed(), render).0), Some(DifferenceClass::Random));
    for (before, after) in [("<script>var n = ", "</script>"), ("<a href='/", "'>x</a>")] {
        let text = |number| format!("{before}{number}{after}");
        let stored = text(draw());
        let render = |_| text(draw());
        let class = class_of(judge(&stored, &followed(), render).0);
        assert_eq!(class, Some(DifferenceClass::Noise), "{before}");
    }
}

#[test]
fn a_page_of_random_posts_is_random_as_a_whole() {
    let mut count = 0_u64;
    let render = |_| {
        count += 1;
        let word = |n: u64| format!("w{} ", (count * 7_919 + n * n) % 9_973);
        (0..60).map(word).collect::<String>()
    };
    assert_eq!(
        class_of(judge("another text", &followed(), render).0),
        Some(DifferenceClass::Random)
    );
}

proptest! {
    /// A choice of two is called a fault at most as often as the stated bound allows.
    #[test]
    fn a_draw_that_is_seen_to_return_is_never_a_verdict(draws in prop::collection::vec(0..2u8, 11..12)) {
        let mut at = 0;
        let render = |_| {
            at += 1;
            format!("draw {}", ["red", "blue"][usize::from(draws[at.min(10)])])
        };
        let stored = format!("draw {}", ["red", "blue"][usize::from(draws[0])]);
        let (conclusion, samples) = judge(&stored, &followed(), render);
        let seen = &draws[1..=samples as usize];
        let agree = seen.len() >= 5 && seen[seen.len() - 5..].iter().all(|draw| *draw == seen[seen.len() - 1]);
        match class_of(conclusion) {
            None => prop_assert!(seen.iter().all(|draw| *draw == draws[0])),
            Some(DifferenceClass::Random) => prop_assert!(seen.iter().any(|draw| *draw != draws[0])),
            Some(_) => prop_assert!(agree, "{draws:?}"),
        }
    }

    /// For all samples, the judgement ends, and a page that all samples equal is right.
    #[test]
    fn every_judgement_ends(texts in prop::collection::vec("[ab12:]{0,6}( [ab12:]{0,4}){0,3}", 13..14)) {
        let mut at = 0;
        let render = |_| {
            at += 1;
            texts[at.min(12)].clone()
        };
        let (conclusion, samples) = judge(&texts[0], &followed(), render);
        if texts[1..=samples as usize].iter().all(|text| *text == texts[0]) {
            prop_assert_eq!(conclusion, Conclusion::Same);
        }
    }
}

#[test]
fn a_difference_of_grown_numbers_and_the_words_beside_them_is_an_age() {
    for (stored, now, expected) in [
        ("59 minutes ago", "1 hour ago", true),
        ("Posted 3527 minutes", "Posted 3528 minutes", true),
        ("At 18:28", "At 18:29", true),
        ("3 items", "0 items", false),
        ("3 items <b>by Ada</b>", "4 items <b>by Eve</b>", false),
        ("old text", "new text", false),
    ] {
        let found = judge(stored, &followed(), |_| now.to_owned()).0;
        let Conclusion::Differs { is_age, .. } = found else { panic!("{stored}: {found:?}") };
        assert_eq!(is_age, expected, "{stored}");
    }
}

#[test]
fn the_minutes_of_a_clock_are_known_by_its_seconds() {
    let minutes = |minute: u32, second: u32, price: u32| {
        format!("<b>Made at 18:{minute:02}:{second:02}</b> {price} Euro")
    };
    let (mut noise, mut second) = (PageNoise::default(), 0);
    for (minute, price, class) in [
        (7, 3, DifferenceClass::ByTheClock),
        (8, 3, DifferenceClass::ByTheClock),
        (9, 4, DifferenceClass::BrokenPromise),
    ] {
        let mut inquiry = Inquiry::of_suspect(page(&minutes(7, 1, 3)), 0);
        while let InquiryStep::Sample { .. } = inquiry.step(&noise) {
            second += 1;
            let tokens = page(&minutes(minute, second % 60, price));
            inquiry.add(PageSample { begun: u64::from(second), tokens });
        }
        let found = class_of(inquiry.conclude(&mut noise, &followed()));
        assert_eq!(found, Some(class), "minute {minute}, {price} Euro");
    }
}

#[test]
fn a_page_that_is_another_as_a_whole_is_out_of_date_and_not_random() {
    let (mut noise, mut nonce) = (PageNoise::default(), 0);
    let long: String = (0..200).map(|word| format!("word{word} ")).collect();
    let mut inquiry = Inquiry::of_suspect(page(&long), 0);
    while let InquiryStep::Sample { .. } = inquiry.step(&noise) {
        nonce += 1;
        let tokens = page(&format!("Not found <input name=n value=q{nonce}x>"));
        inquiry.add(PageSample { begun: nonce, tokens });
    }
    let class = class_of(inquiry.conclude(&mut noise, &followed()));
    assert_eq!(class, Some(DifferenceClass::BrokenPromise));
}
