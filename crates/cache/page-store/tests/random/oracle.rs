//! The oracle: all events in lists, and the rules in their simplest form.
//!
//! Names are plain text (`tag:p`, `url:/a`, `below:/a/`, `own-tag:ann p`, `all`); nothing is hashed,
//! indexed or forgotten. A predicate is "the URL contains this".

use page_store::{ChangeTarget, StoreRefusal, Strength};

struct Page {
    variant: u32,
    made_from: MadeFrom,
    lease: u64,
    render: u64,
    marked: bool,
    /// The number of scans since the last request.
    rounds: u64,
}

struct Change {
    number: u64,
    names: Vec<String>,
    in_url: Option<String>,
}

impl Change {
    fn touches(&self, made_from: &MadeFrom) -> bool {
        let named = touches(&self.names, &made_from.names());
        named || self.in_url.as_ref().is_some_and(|part| made_from.url.contains(part))
    }
}

/// The dependencies of a page.
#[derive(Clone, Debug)]
pub struct MadeFrom {
    pub url: &'static str,
    pub tags: Vec<&'static str>,
    /// The owner of the page, and its tags in the owner's scope.
    pub owner: Option<(&'static str, Vec<&'static str>)>,
}

/// An open change: unsettled from `number` until `settled`.
struct Open {
    number: u64,
    names: Vec<String>,
    settled: Option<u64>,
    abandoned: bool,
}

/// Stands for every variant in the variants of a response.
pub const EVERY: u32 = 3;

/// A final response of the origin that was not stored.
struct Answer {
    number: u64,
    url: &'static str,
    variants: Vec<u32>,
}

impl Answer {
    fn is_about(&self, url: &str, variant: u32) -> bool {
        self.url == url && [variant, EVERY].iter().any(|about| self.variants.contains(about))
    }
}

/// The oracle; see the top of the file.
pub struct Oracle {
    variants_max: usize,
    pages: Vec<Page>,
    changes: Vec<Change>,
    opens: Vec<Open>,
    answers: Vec<Answer>,
    renders: u64,
    last_reasons: Vec<StoreRefusal>,
}

impl MadeFrom {
    /// The names on which the page depends.
    fn names(&self) -> Vec<String> {
        let url = self.url;
        let path = url.split('?').next().expect("split gives one part at least");
        let mut names: Vec<String> = self.tags.iter().map(|tag| format!("tag:{tag}")).collect();
        names.extend(["all".to_string(), format!("url:{url}"), format!("path:{path}")]);
        // Every prefix of whole segments.
        let ends = path.char_indices().filter(|(at, c)| *c == '/' && *at > 0);
        names.extend(ends.map(|(at, _)| format!("below:{}", &path[..=at])));
        if let Some((owner, tags)) = &self.owner {
            names.extend([format!("owner:{owner}"), format!("own-url:{owner} {url}")]);
            names.extend(tags.iter().map(|tag| format!("own-tag:{owner} {tag}")));
        }
        names
    }
}

fn changed(targets: &[ChangeTarget<'_>]) -> Vec<String> {
    let text =
        |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("names in these tests are text");
    let path =
        |bytes: &[u8]| text(bytes).split('?').next().expect("split gives a part").to_string();
    let mut names = Vec::new();
    for target in targets {
        match target {
            ChangeTarget::Tag(tag) => names.push(format!("tag:{}", text(tag))),
            ChangeTarget::Url(url) => names.push(format!("url:{}", text(url))),
            ChangeTarget::Path(bytes) => names.push(format!("path:{}", path(bytes))),
            ChangeTarget::Prefix(b"/") | ChangeTarget::Everything => names.push("all".to_string()),
            ChangeTarget::Prefix(prefix) if path(prefix).ends_with('/') => {
                names.push(format!("below:{}", path(prefix)));
            }
            ChangeTarget::Prefix(prefix) => {
                let path = path(prefix);
                names.extend([format!("path:{path}"), format!("below:{path}/")]);
            }
            ChangeTarget::Owner(owner) => names.push(format!("owner:{}", text(owner))),
            ChangeTarget::OwnerTag { owner, tag } => {
                names.push(format!("own-tag:{} {}", text(owner), text(tag)));
            }
            ChangeTarget::OwnerUrl { owner, url } => {
                names.push(format!("own-url:{} {}", text(owner), text(url)));
            }
        }
    }
    names
}

fn touches(one: &[String], other: &[String]) -> bool {
    one.iter().any(|name| other.contains(name))
}

impl Page {
    fn is_variant(&self, url: &str, variant: u32) -> bool {
        self.made_from.url == url && self.variant == variant
    }
}

impl Oracle {
    pub fn new(variants_max: usize) -> Self {
        let (pages, changes, opens) = (Vec::new(), Vec::new(), Vec::new());
        let (answers, last_reasons) = (Vec::new(), Vec::new());
        Self { variants_max, pages, changes, opens, answers, renders: 0, last_reasons }
    }

    /// The number of the next render.
    pub fn renders(&self) -> u64 {
        self.renders
    }

    /// The reasons for which a render must not be stored.
    pub fn reasons_to_refuse(
        &self,
        variant: u32,
        made_from: &MadeFrom,
        lease: u64,
    ) -> Vec<StoreRefusal> {
        let (url, names) = (made_from.url, made_from.names());
        let mut reasons = Vec::new();
        if self.opens.iter().any(|open| open.settled.is_none() && touches(&open.names, &names)) {
            reasons.push(StoreRefusal::Unsettled);
        }
        let since = |change: &Change| change.number > lease && change.touches(made_from);
        if self.changes.iter().any(since) {
            reasons.push(StoreRefusal::ChangedSince);
        }
        let newer = |page: &Page| page.is_variant(url, variant) && page.lease > lease;
        let answered = |answer: &Answer| answer.number > lease && answer.is_about(url, variant);
        if reasons.is_empty() && self.pages.iter().any(newer) || self.answers.iter().any(answered) {
            reasons.push(StoreRefusal::Superseded);
        }
        reasons
    }

    pub fn reasons_before_last_insert(&self) -> &[StoreRefusal] {
        &self.last_reasons
    }

    pub fn insert(&mut self, variant: u32, made_from: &MadeFrom, lease: u64, render: u64) {
        let url = made_from.url;
        self.last_reasons = self.reasons_to_refuse(variant, made_from, lease);
        self.renders += 1;
        self.pages.retain(|page| !page.is_variant(url, variant));
        let of_url = self.pages.iter().filter(|page| page.made_from.url == url);
        let variants: Vec<u32> = of_url.map(|page| page.variant).collect();
        if variants.len() >= self.variants_max {
            self.pages.retain(|page| !page.is_variant(url, variants[0]));
        }
        let made_from = made_from.clone();
        self.pages.push(Page { variant, made_from, lease, render, marked: false, rounds: 0 });
    }

    /// Applies a change; returns the numbers of pages dropped and marked.
    pub fn change(
        &mut self,
        number: u64,
        targets: &[ChangeTarget<'_>],
        strength: Strength,
    ) -> (u64, u64) {
        self.apply(Change { number, names: changed(targets), in_url: None }, strength)
    }

    /// Applies a change of every page whose URL contains `part`.
    pub fn change_where(&mut self, number: u64, part: &str, strength: Strength) -> (u64, u64) {
        let in_url = Some(part.to_string());
        self.apply(Change { number, names: Vec::new(), in_url }, strength)
    }

    fn apply(&mut self, change: Change, strength: Strength) -> (u64, u64) {
        let (mut dropped, mut marked) = (0, 0);
        self.pages.retain_mut(|page| {
            let touched = change.touches(&page.made_from);
            match strength {
                Strength::Drop => dropped += u64::from(touched),
                Strength::Mark => {
                    marked += u64::from(touched && !page.marked);
                    page.marked |= touched;
                }
            }
            strength == Strength::Mark || !touched
        });
        self.changes.push(change);
        (dropped, marked)
    }

    pub fn open(&mut self, number: u64, targets: &[ChangeTarget<'_>]) -> usize {
        let names = changed(targets);
        self.opens.push(Open { number, names, settled: None, abandoned: false });
        self.opens.len() - 1
    }

    pub fn settle(&mut self, number: u64, open: usize) {
        let open = &mut self.opens[open];
        open.settled = Some(number);
        self.changes.push(Change { number, names: open.names.clone(), in_url: None });
    }

    pub fn abandon(&mut self, open: usize) {
        self.opens[open].abandoned = true;
    }

    pub fn settle_abandoned(&mut self, number: u64) {
        for at in 0..self.opens.len() {
            if self.opens[at].abandoned && self.opens[at].settled.is_none() {
                self.settle(number, at);
            }
        }
    }

    /// Records a response that is not stored; returns the renders that it has removed, in the given order.
    pub fn supersede(
        &mut self,
        number: u64,
        url: &'static str,
        variants: &[u32],
        lease: u64,
        older: &[u64],
    ) -> Vec<u64> {
        let removed = |render: &u64| {
            self.pages.iter().any(|page| page.render == *render && page.lease <= lease)
        };
        let removed: Vec<u64> = older.iter().copied().filter(removed).collect();
        self.pages.retain(|page| !removed.contains(&page.render));
        self.answers.push(Answer { number, url, variants: variants.to_vec() });
        removed
    }

    pub fn remove(&mut self, render: u64) {
        self.pages.retain(|page| page.render != render);
    }

    pub fn asked(&mut self, url: &str) {
        let at_url = self.pages.iter_mut().filter(|page| page.made_from.url == url);
        at_url.for_each(|page| page.rounds = 0);
    }

    /// A scan that stands for `by` scans. A page requested since the last scan may have been requested just
    /// now.
    pub fn grow_older(&mut self, by: u8) {
        for page in &mut self.pages {
            page.rounds += if page.rounds == 0 { 1 } else { by.into() };
        }
    }

    /// Drops the pages without a request in eight scans; returns their number.
    pub fn remove_inactive(&mut self) -> u64 {
        let before = self.pages.len();
        self.pages.retain(|page| page.rounds < 9);
        (before - self.pages.len()) as u64
    }

    /// The pages at `url`, oldest first: variant, render, lease, mark.
    pub fn pages(&self, url: &str) -> Vec<(u64, u64, u64, bool)> {
        let at_url = self.pages.iter().filter(|page| page.made_from.url == url);
        at_url.map(|page| (page.variant.into(), page.render, page.lease, page.marked)).collect()
    }

    /// Rule 2, exactly: the reason why a request of `arrival` must not share a render of `lease`.
    pub fn why_not_share(&self, made: &MadeFrom, lease: u64, arrival: u64) -> Option<String> {
        let names = made.names();
        let between = |number: u64| lease < number && number <= arrival;
        for change in &self.changes {
            if between(change.number) && change.touches(made) {
                return Some(format!("change {}", change.number));
            }
        }
        for answer in &self.answers {
            if between(answer.number) && answer.is_about(made.url, 0) {
                return Some(format!("answer {}", answer.number));
            }
        }
        for open in &self.opens {
            let unsettled =
                open.number <= lease && open.settled.is_none_or(|number| number > lease);
            if unsettled && touches(&open.names, &names) {
                return Some(format!("open {}, settled {:?}", open.number, open.settled));
            }
        }
        None
    }

    /// Whether no change has affected such a page since `lease`, and none is open. Predicates are not
    /// evaluated for sharing: each of them counts.
    pub fn nothing_since(&self, made: &MadeFrom, lease: u64) -> bool {
        let changed = |change: &Change| {
            change.number > lease && (change.in_url.is_some() || change.touches(made))
        };
        let open = |open: &Open| open.settled.is_none() && touches(&open.names, &made.names());
        let answered = |answer: &Answer| answer.number > lease && answer.is_about(made.url, 0);
        !self.changes.iter().any(changed)
            && !self.opens.iter().any(open)
            && !self.answers.iter().any(answered)
    }
}
