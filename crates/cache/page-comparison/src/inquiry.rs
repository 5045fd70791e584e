//! The judgement of one stored page that differs from a render.
//!
//! | The samples at a place | Result |
//! |---|---|
//! | the same as the stored page | no difference |
//! | a value that returns after another | random |
//! | a new value in each sample | a nonce; random if it is text that a visitor reads |
//! | the same of content that is compared by its hash | none: it may be a nonce, or all that a visitor reads |
//! | numbers that grow with time in three samples, or begin again before that as those of a clock do | by the clock |
//! | one value in five samples in a row, another in the stored page | a verdict against the page |
//! | another value at first, then in five in a row that of the stored page | the application was old |
//! | the same on a page that draws text | random |
//! | another age ("2 minutes ago") on a page that may lag | no difference |
//!
//! A sample is a render that began after all changes before it were applied and settled, and after all writes in
//! flight had ended; the caller waits for this. If the page was replaced before the judgement, a dependency changed at
//! an unknown time: then samples that differ decide nothing, and teach no noise.
//!
//! Memory: at most ten samples of at most 8 MiB, usually some hundred kilobytes each; see `bytes`.

use crate::class::{Circumstances, DifferenceClass, PageDependence, UnjudgedReason};
use crate::difference::{PageDifference, differing, spot, spots_beside};
use crate::noise::PageNoise;
use crate::tokens::PageTokens;
use std::collections::{BTreeMap, BTreeSet};

/// Two samples agree by accident too often (a choice of two: one in four); five seldom.
pub const SAMPLES_BEFORE_VERDICT: usize = 5;
/// After so many samples the judgement is made from what there is.
const MAX_SAMPLES: usize = 10;
/// Places that are shown for one difference.
const SHOWN_PLACES: usize = 3;
/// Pages with fewer common tokens, in percent, are random as a whole.
const LITTLE_IN_COMMON: u8 = 50;
/// The words on each side of a number that may change with it: "right now", "1 minute ago", "2 minutes ago".
const WORDS_BESIDE: u32 = 2;
/// The numbers of a clock, and those of days and months, are below this one.
const CLOCK_NUMBERS: u64 = 60;
/// The shortest wait for a sample that shows whether the text follows the clock: the page may be much younger than a step
/// of that clock. Milliseconds.
const MIN_CLOCK_WAIT: u64 = 10_000;
/// The longest one. Milliseconds.
const MAX_CLOCK_WAIT: u64 = 60_000;

/// A render to compare with: Pagewell's own, or an answer that a visitor received.
#[derive(Clone, Debug)]
pub struct PageSample {
    /// When it began, in milliseconds since any fixed moment.
    pub begun: u64,
    /// The response of this sample, as tokens.
    pub tokens: PageTokens,
}

/// The next step of a judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InquiryStep {
    /// Another sample, begun not before this many milliseconds have passed since the last.
    Sample {
        /// The least distance to the last sample.
        after: u64,
    },
    /// Nothing: the judgement can be made.
    Conclude,
}

/// The result of a judgement.
#[derive(Clone, Debug, PartialEq)]
pub enum Conclusion {
    /// The page is right.
    Same,
    /// There is no verdict.
    Unjudged(UnjudgedReason),
    /// The page differs.
    Differs {
        /// The class of the difference.
        class: DifferenceClass,
        /// Where it is: at most three places, without text.
        places: Vec<String>,
        /// The same places as numbers, to compare them with the noise of other pages.
        spots: Vec<u64>,
        /// How many tokens differ.
        tokens: usize,
        /// How many samples agreed.
        samples: usize,
        /// How late the page was purged, in milliseconds, for the class `late`.
        late_by: Option<u64>,
        /// Whether all of it are numbers that have grown, and words beside them, as of an age or the time of day.
        is_age: bool,
    },
}

impl Conclusion {
    /// The same difference, in another class: something became of the page after the samples.
    #[must_use]
    pub fn classified(self, class: DifferenceClass, late_by: Option<u64>) -> Conclusion {
        match self {
            Conclusion::Differs { places, spots, tokens, samples, is_age, .. } => {
                Conclusion::Differs { class, places, spots, tokens, samples, late_by, is_age }
            }
            same => same,
        }
    }
}

/// The behaviour of one place over the stored page and all samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpotKind {
    /// The last five samples agree with each other, and not with the stored page.
    Against,
    /// The last five agree with the stored page, and earlier ones agree with each other only.
    WasOlder,
    /// A value returned after another.
    Returning,
    /// Each sample has a new value.
    AlwaysNew,
    /// Too few samples.
    Unknown,
}

/// One stored page under suspicion.
#[derive(Debug)]
pub struct Inquiry {
    stored: PageTokens,
    stored_at: u64,
    samples: Vec<PageSample>,
    /// A sample some time after the others.
    later: Option<PageSample>,
    /// The samples to take in any case.
    least: usize,
    /// For each place that differs anywhere: which responses agree. Response 0 is the stored page.
    labels: BTreeMap<u64, Vec<u8>>,
    least_common: u8,
}

impl Inquiry {
    /// Begins with the stored page and the moment at which it was stored (as samples count time).
    pub fn new(stored: PageTokens, stored_at: u64) -> Inquiry {
        Inquiry {
            stored,
            stored_at,
            samples: Vec::new(),
            later: None,
            least: 1,
            labels: BTreeMap::new(),
            least_common: 100,
        }
    }

    /// The same after a render that differed, and that is no sample because it began before everything was settled: five
    /// samples are taken even if the first is equal, because the page may be drawn at each render.
    pub fn of_suspect(stored: PageTokens, stored_at: u64) -> Inquiry {
        Inquiry { least: SAMPLES_BEFORE_VERDICT, ..Inquiry::new(stored, stored_at) }
    }

    /// The stored page under suspicion, as tokens.
    pub fn stored(&self) -> &PageTokens {
        &self.stored
    }

    /// When the first of the samples had ended at the latest that a verdict against the page needs, if there are so many:
    /// the second began then. The page was wrong at that time.
    pub fn decided_at(&self) -> Option<u64> {
        let first = self.samples.len().checked_sub(SAMPLES_BEFORE_VERDICT)?;
        Some(self.samples[first + 1].begun)
    }

    /// The bytes of memory that the responses occupy, about.
    pub fn bytes(&self) -> usize {
        let samples = self.samples.iter().chain(&self.later).map(|sample| sample.tokens.bytes());
        self.stored.bytes() + samples.sum::<usize>()
    }

    /// Adds a sample to those before.
    pub fn add(&mut self, sample: PageSample) {
        if self.needs_later().is_some() {
            self.later = Some(sample);
            return;
        }
        if self.samples.len() < MAX_SAMPLES {
            self.label(&sample);
            self.samples.push(sample);
        }
    }

    /// The next step. `noise` is what is known about the key already.
    pub fn step(&self, noise: &PageNoise) -> InquiryStep {
        let count = self.samples.len();
        if count >= MAX_SAMPLES || noise.is_random() {
            return InquiryStep::Conclude;
        }
        if count < self.least {
            return InquiryStep::Sample { after: 0 };
        }
        if self.later.is_none()
            && let Some(after) = self.needs_later()
        {
            return InquiryStep::Sample { after };
        }
        let mut kinds = self.kinds(noise).map(|(_, kind)| kind);
        if kinds.any(|kind| kind == SpotKind::Unknown) {
            return InquiryStep::Sample { after: 0 };
        }
        InquiryStep::Conclude
    }

    /// Makes the judgement, and teaches `noise` the places that differ without a cause.
    pub fn conclude(&self, noise: &mut PageNoise, circumstances: &Circumstances) -> Conclusion {
        let was_replaced = circumstances.was_replaced && self.kinds(noise).next().is_some();
        if self.samples.is_empty() || was_replaced {
            // The data may have changed between the samples: how they differ says nothing, and is not learned.
            return Conclusion::Unjudged(UnjudgedReason::ChangedMeanwhile);
        }
        if self.least_common < LITTLE_IN_COMMON && self.differ_among_themselves() {
            noise.learn_random();
            return self.differs(DifferenceClass::Random, |_| true);
        }
        if circumstances.may_lag {
            noise.learn(self.at_ages());
        }
        let kinds: BTreeMap<u64, SpotKind> = self.kinds(noise).collect();
        let of = |wanted: SpotKind| kinds.values().any(|kind| *kind == wanted);
        let is_of = |spot: u64, wanted: SpotKind| kinds.get(&spot) == Some(&wanted);
        let restless = |kind: &SpotKind| !matches!(kind, SpotKind::Against | SpotKind::WasOlder);
        if self.at_whole_content().any(|spot| kinds.get(&spot).is_some_and(restless)) {
            noise.learn_random();
            return Conclusion::Unjudged(UnjudgedReason::Random);
        }
        noise.learn(kinds.iter().filter(|(_, kind)| restless(kind)).map(|(spot, _)| *spot));
        if of(SpotKind::Against) {
            let is_it = |spot| is_of(spot, SpotKind::Against);
            let class = self.class_against(circumstances, noise, &is_it);
            let conclusion = self.differs(class, is_it);
            if let Conclusion::Differs { class: DifferenceClass::Noise, spots, .. } = &conclusion {
                noise.learn(spots.iter().copied());
            }
            return conclusion;
        }
        if kinds.is_empty() { Conclusion::Same } else { self.without_verdict(&kinds, noise) }
    }

    /// The places of content that is compared by its hash.
    fn at_whole_content(&self) -> impl Iterator<Item = u64> {
        let samples = self.samples.iter().chain(&self.later).map(|sample| &sample.tokens);
        let all = std::iter::once(&self.stored).chain(samples);
        all.filter_map(|tokens| Some(spot(tokens, tokens.whole_content()?)))
    }

    /// The difference of a page that no place speaks against.
    fn without_verdict(
        &self,
        kinds: &BTreeMap<u64, SpotKind>,
        noise: &mut PageNoise,
    ) -> Conclusion {
        let of = |wanted: SpotKind| kinds.values().any(|kind| *kind == wanted);
        let was_older = |spot: u64| kinds.get(&spot) == Some(&SpotKind::WasOlder);
        let is_restless = |spot: u64| kinds.contains_key(&spot) && !was_older(spot);
        let class = if self.goes_on_with_time(&is_restless) {
            DifferenceClass::ByTheClock
        } else if of(SpotKind::Returning) {
            DifferenceClass::Random
        } else {
            DifferenceClass::Noise
        };
        let restless = self.differs(class, is_restless);
        let class = match &restless {
            Conclusion::Differs { class, .. } => *class,
            Conclusion::Same | Conclusion::Unjudged(_) => DifferenceClass::Noise,
        };
        if class == DifferenceClass::Random {
            noise.learn_draw();
        }
        // A drawn value that was at another place before moves the words beside it. A nonce never returns.
        if !of(SpotKind::WasOlder) || class != DifferenceClass::Noise {
            return restless;
        }
        let class = if noise.is_drawn() {
            DifferenceClass::Random
        } else {
            DifferenceClass::OldApplication
        };
        self.differs(class, was_older)
    }

    /// The places of ages that differ from the stored page: of numbers, and of the words beside them.
    fn at_ages(&self) -> BTreeSet<u64> {
        let mut spots = BTreeSet::new();
        for sample in self.samples.iter().chain(&self.later).map(|sample| &sample.tokens) {
            self.add_ages(sample, &mut spots);
        }
        spots.retain(|spot| self.labels.contains_key(spot));
        spots
    }

    /// Adds those of one sample. A number that fell although its unit is the same is no age: the items of a cart.
    fn add_ages(&self, sample: &PageTokens, spots: &mut BTreeSet<u64>) {
        let difference = differing(&self.stored, sample).tokens;
        let differ: BTreeSet<u64> = difference.iter().map(|token| token.spot).collect();
        let numbers = |is_added: bool| {
            let of = if is_added { sample } else { &self.stored };
            let tokens = difference.iter().filter(move |token| token.is_added == is_added);
            tokens.filter_map(move |token| Some((token, of.number(token.index)?)))
        };
        let before: BTreeMap<u64, u64> =
            numbers(false).map(|(token, number)| (token.spot, number)).collect();
        for (token, number) in numbers(true) {
            let has_grown = before.get(&token.spot).is_none_or(|before| *before < number);
            let has_other_unit = spots_beside(sample, token.index, 1)
                .any(|spot| spot != token.spot && differ.contains(&spot));
            if has_grown || has_other_unit {
                spots.extend(spots_beside(sample, token.index, WORDS_BESIDE));
            }
        }
        // "59 minutes, 58 seconds ago" becomes "1 hour ago".
        for (token, _) in numbers(false) {
            if spots.contains(&token.spot) {
                spots.extend(spots_beside(&self.stored, token.index, WORDS_BESIDE));
            }
        }
    }

    /// The class of a difference that five samples agree about.
    fn class_against(
        &self,
        circumstances: &Circumstances,
        noise: &PageNoise,
        is_it: &dyn Fn(u64) -> bool,
    ) -> DifferenceClass {
        if self.goes_on_with_time(is_it)
            || self.goes_on_since_a_new_day(is_it)
            || self.is_beside_noise(noise, is_it)
        {
            return DifferenceClass::ByTheClock;
        }
        match circumstances.dependence {
            _ if circumstances.matched_when_stored == Some(false) => DifferenceClass::Leak,
            PageDependence::Followed => DifferenceClass::BrokenPromise,
            PageDependence::LifetimeOnly => DifferenceClass::Aged,
        }
    }

    fn differs(&self, class: DifferenceClass, is_it: impl Fn(u64) -> bool) -> Conclusion {
        let with = self
            .samples
            .iter()
            .rev()
            .map(|sample| (sample, differing(&self.stored, &sample.tokens)));
        let found = with.map(|(sample, mut difference)| {
            difference.tokens.retain(|token| is_it(token.spot));
            (sample, difference)
        });
        let Some((sample, difference)) = found.max_by_key(|(_, found)| found.tokens.len()) else {
            return Conclusion::Same;
        };
        let places = difference.places(&self.stored, &sample.tokens, SHOWN_PLACES);
        let is_hidden = difference.is_hidden(&self.stored, &sample.tokens);
        let is_clock = class == DifferenceClass::ByTheClock;
        let is_noise = class == DifferenceClass::Noise;
        let class = if is_clock && is_hidden {
            // Nobody sees the time of the render in a script.
            DifferenceClass::Noise
        } else if is_noise && difference.has_read_text(&self.stored, &sample.tokens) {
            // Text for people is no nonce, also if no value of it has returned yet.
            DifferenceClass::Random
        } else {
            class
        };
        let spots: BTreeSet<u64> = difference.tokens.iter().map(|token| token.spot).collect();
        let is_age = spots.is_subset(&self.at_ages());
        Conclusion::Differs {
            class,
            places,
            spots: spots.into_iter().collect(),
            tokens: difference.tokens.len(),
            samples: self.samples.len(),
            late_by: None,
            is_age,
        }
    }

    /// Compares a new sample with all responses before it.
    fn label(&mut self, sample: &PageSample) {
        let number = self.samples.len() + 1;
        let mut differences: Vec<BTreeSet<u64>> = Vec::with_capacity(number);
        let earlier: Vec<&PageTokens> = std::iter::once(&self.stored)
            .chain(self.samples.iter().map(|sample| &sample.tokens))
            .collect();
        for (at, response) in earlier.into_iter().enumerate() {
            let difference: PageDifference = differing(response, &sample.tokens);
            // A stored page that has little in common with all samples may be out of date as a whole.
            if at > 0 {
                self.least_common = self.least_common.min(difference.common_percent);
            }
            differences.push(difference.tokens.iter().map(|token| token.spot).collect());
        }
        for spot in differences.iter().flatten() {
            self.labels.entry(*spot).or_insert_with(|| vec![0; number]);
        }
        for (spot, labels) in &mut self.labels {
            let same = (0..number).find(|earlier| !differences[*earlier].contains(spot));
            let label = same.map_or(number as u8, |earlier| labels[earlier]);
            labels.push(label);
        }
    }

    /// The places that differ anywhere and are no known noise.
    fn kinds<'a>(&'a self, noise: &'a PageNoise) -> impl Iterator<Item = (u64, SpotKind)> + 'a {
        let known = |spot: &u64| !noise.has(*spot);
        self.labels
            .iter()
            .filter(move |(spot, _)| known(spot))
            .map(|(spot, labels)| (*spot, kind(labels)))
    }

    fn differ_among_themselves(&self) -> bool {
        self.labels.values().any(|labels| labels[1..].windows(2).any(|pair| pair[0] != pair[1]))
    }

    /// The first of five samples that agree: those before may be from before the clock moved on.
    fn settled(&self) -> Option<&PageSample> {
        self.samples.get(self.samples.len().checked_sub(SAMPLES_BEFORE_VERDICT)?)
    }

    /// The wait for a sample that shows whether a verdict against the page is the clock's: as long as the page had
    /// existed at the first sample, within limits. None if no number grew or began again.
    fn needs_later(&self) -> Option<u64> {
        if self.later.is_some() {
            return None;
        }
        let settled = self.settled()?;
        let is_against =
            |spot| self.labels.get(&spot).is_some_and(|labels| kind(labels) == SpotKind::Against);
        let is_any = self.labels.keys().any(|spot| is_against(*spot));
        let may_be_clock = || {
            grows(&[&self.stored, &settled.tokens], &is_against) == Some(1)
                || begins_again(&self.stored, &settled.tokens, &is_against)
        };
        let age = settled.begun.saturating_sub(self.stored_at);
        (is_any && may_be_clock()).then(|| age.clamp(MIN_CLOCK_WAIT, MAX_CLOCK_WAIT))
    }

    /// Whether the numbers at these places began again after the page was stored, as those of a clock do at midnight or a
    /// date in a new month, and grew afterwards.
    fn goes_on_since_a_new_day(&self, is_it: &dyn Fn(u64) -> bool) -> bool {
        let Some((settled, later)) = self.settled().zip(self.later.as_ref()) else { return false };
        begins_again(&self.stored, &settled.tokens, is_it)
            && grows(&[&settled.tokens, &later.tokens], is_it) == Some(1)
    }

    /// Whether these places are those of ages or times, each beside one of known noise: the minutes of a clock whose seconds
    /// are always others.
    fn is_beside_noise(&self, noise: &PageNoise, is_it: &dyn Fn(u64) -> bool) -> bool {
        let Some(tokens) = self.settled().map(|sample| &sample.tokens) else { return false };
        let is_beside =
            |index: u32| spots_beside(tokens, index, WORDS_BESIDE).any(|beside| noise.has(beside));
        let numbers = tokens.numbers.iter().filter(|(index, _)| is_beside(*index));
        let beside: BTreeSet<u64> = numbers.map(|(index, _)| spot(tokens, *index)).collect();
        let ages = self.at_ages();
        let mut its = self.labels.keys().filter(|spot| is_it(**spot));
        its.all(|spot| ages.contains(spot) && beside.contains(spot))
    }

    /// Whether the numbers at these places grew at least twice over the responses in order of time, and never fell.
    fn goes_on_with_time(&self, is_it: &dyn Fn(u64) -> bool) -> bool {
        let samples = self.samples.iter().chain(&self.later).map(|sample| &sample.tokens);
        let responses: Vec<&PageTokens> = std::iter::once(&self.stored).chain(samples).collect();
        grows(&responses, is_it).is_some_and(|steps| steps >= 2)
    }
}

/// How often the numbers at these places grew from one response to the next; none if they fell once, or if a response
/// has no numbers there. The first number that differs decides, so that hours come before minutes.
fn grows(responses: &[&PageTokens], is_it: &dyn Fn(u64) -> bool) -> Option<usize> {
    let all: Vec<SpotNumbers> = responses.iter().map(|tokens| numbers_at(tokens, is_it)).collect();
    let mut steps = 0;
    for pair in all.windows(2) {
        let mut order: Vec<(u32, u64)> =
            pair[1].iter().map(|(spot, (index, _))| (*index, *spot)).collect();
        order.sort_unstable();
        if order.is_empty() {
            return None;
        }
        let values = |numbers: &BTreeMap<u64, (u32, u64)>| -> Vec<u64> {
            order
                .iter()
                .filter_map(|(_, spot)| numbers.get(spot).map(|(_, value)| *value))
                .collect()
        };
        match values(&pair[0]).cmp(&values(&pair[1])) {
            std::cmp::Ordering::Less => steps += 1,
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => return None,
        }
    }
    Some(steps)
}

/// The numbers at some places of a response, each with the index of its token.
type SpotNumbers = BTreeMap<u64, (u32, u64)>;

fn numbers_at(tokens: &PageTokens, is_it: &dyn Fn(u64) -> bool) -> SpotNumbers {
    let numbers = tokens.numbers.iter();
    let numbers = numbers.map(|(index, value)| (spot(tokens, *index), (*index, *value)));
    numbers.filter(|(spot, _)| is_it(*spot)).collect()
}

/// Whether all numbers at these places, at least two, are another time of a clock or another day of a calendar: each has
/// grown, or is below 60 in both responses.
fn begins_again(before: &PageTokens, after: &PageTokens, is_it: &dyn Fn(u64) -> bool) -> bool {
    let (before, after) = (numbers_at(before, is_it), numbers_at(after, is_it));
    let is_later = |(spot, (_, after)): (&u64, &(u32, u64))| {
        let before = before.get(spot).map(|(_, value)| *value);
        before.is_some_and(|before| *after >= before || before < CLOCK_NUMBERS)
    };
    after.len() >= 2 && before.len() == after.len() && after.iter().all(is_later)
}

/// The behaviour of one place: `labels` has a number for each response, and equal ones agree.
fn kind(labels: &[u8]) -> SpotKind {
    let samples = &labels[1..];
    let is_settled = samples.len() >= SAMPLES_BEFORE_VERDICT
        && samples[samples.len() - SAMPLES_BEFORE_VERDICT..]
            .windows(2)
            .all(|pair| pair[0] == pair[1]);
    let returns = |labels: &[u8]| {
        (1..labels.len())
            .any(|at| labels[at] != labels[at - 1] && labels[..at].contains(&labels[at]))
    };
    let last = labels[labels.len() - 1];
    if is_settled && !returns(samples) {
        if last != labels[0] {
            // The value of the stored page that was seen in a sample is that of the data before; or a draw.
            return if returns(labels) { SpotKind::Returning } else { SpotKind::Against };
        }
        return SpotKind::WasOlder;
    }
    if returns(samples) {
        return SpotKind::Returning;
    }
    let is_new_each_time = samples.windows(2).all(|pair| pair[0] != pair[1]);
    if is_new_each_time && samples.len() >= SAMPLES_BEFORE_VERDICT {
        return SpotKind::AlwaysNew;
    }
    if samples.len() >= MAX_SAMPLES { SpotKind::Returning } else { SpotKind::Unknown }
}

#[cfg(test)]
#[path = "inquiry_tests.rs"]
mod tests;
