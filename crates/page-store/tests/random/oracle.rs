//! The oracle: everything that was ever said, in lists, and the rules as they are written.
//!
//! Names are plain text (`tag:p`, `url:/a`, `path:/a`, `all`); nothing is hashed, indexed or forgotten.

use page_store::{Refused, Strength, Target};

struct Page {
    url: String,
    variant: u64,
    names: Vec<String>,
    lease: u64,
    render: u64,
    marked: bool,
}

struct Change {
    number: u64,
    names: Vec<String>,
}

/// An open change: unsettled from `number` until `settled`.
struct Open {
    number: u64,
    names: Vec<String>,
    settled: Option<u64>,
    abandoned: bool,
}

/// See the file's head.
pub struct Oracle {
    variants_max: usize,
    pages: Vec<Page>,
    changes: Vec<Change>,
    opens: Vec<Open>,
    renders: u64,
    last_reasons: Vec<Refused>,
}

/// What a page at `url` with these tags depends on.
pub fn names(url: &str, tags: &[&str]) -> Vec<String> {
    let path = url.split('?').next().expect("split gives one part at least");
    let mut names: Vec<String> = tags.iter().map(|tag| format!("tag:{tag}")).collect();
    names.extend(["all".to_string(), format!("url:{url}"), format!("path:{path}")]);
    names
}

fn changed(targets: &[Target<'_>]) -> Vec<String> {
    let text =
        |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("names in these tests are text");
    let name = |target: &Target<'_>| match target {
        Target::Tag(tag) => format!("tag:{}", text(tag)),
        Target::Url(url) => format!("url:{}", text(url)),
        Target::Path(path) => {
            format!("path:{}", text(path).split('?').next().expect("split gives one part at least"))
        }
        Target::Everything => "all".to_string(),
    };
    targets.iter().map(name).collect()
}

fn touches(one: &[String], other: &[String]) -> bool {
    one.iter().any(|name| other.contains(name))
}

impl Oracle {
    pub fn new(variants_max: usize) -> Self {
        let (pages, changes, opens) = (Vec::new(), Vec::new(), Vec::new());
        Self { variants_max, pages, changes, opens, renders: 0, last_reasons: Vec::new() }
    }

    /// The number of the next render.
    pub fn renders(&self) -> u64 {
        self.renders
    }

    /// Why a render must not be stored.
    pub fn reasons_to_refuse(
        &self,
        url: &str,
        variant: u64,
        tags: &[&str],
        lease: u64,
    ) -> Vec<Refused> {
        let names = names(url, tags);
        let mut reasons = Vec::new();
        if self.opens.iter().any(|open| open.settled.is_none() && touches(&open.names, &names)) {
            reasons.push(Refused::Unsettled);
        }
        if self.changes.iter().any(|change| change.number > lease && touches(&change.names, &names))
        {
            reasons.push(Refused::ChangedSince);
        }
        let newer = |page: &Page| page.url == url && page.variant == variant && page.lease > lease;
        if reasons.is_empty() && self.pages.iter().any(newer) {
            reasons.push(Refused::Superseded);
        }
        reasons
    }

    pub fn reasons_before_last_insert(&self) -> &[Refused] {
        &self.last_reasons
    }

    pub fn insert(&mut self, url: &str, variant: u64, tags: &[&str], lease: u64, render: u64) {
        self.last_reasons = self.reasons_to_refuse(url, variant, tags, lease);
        self.renders += 1;
        self.pages.retain(|page| page.url != url || page.variant != variant);
        let variants: Vec<u64> =
            self.pages.iter().filter(|page| page.url == url).map(|page| page.variant).collect();
        if variants.len() >= self.variants_max {
            self.pages.retain(|page| page.url != url || page.variant != variants[0]);
        }
        let names = names(url, tags);
        self.pages.push(Page { url: url.into(), variant, names, lease, render, marked: false });
    }

    /// Applies a change; returns how many pages it dropped and marked.
    pub fn change(
        &mut self,
        number: u64,
        targets: &[Target<'_>],
        strength: Strength,
    ) -> (u64, u64) {
        let names = changed(targets);
        let (mut dropped, mut marked) = (0, 0);
        self.pages.retain_mut(|page| {
            let touched = touches(&page.names, &names);
            match strength {
                Strength::Drop => dropped += u64::from(touched),
                Strength::Mark => {
                    marked += u64::from(touched && !page.marked);
                    page.marked |= touched;
                }
            }
            strength == Strength::Mark || !touched
        });
        self.changes.push(Change { number, names });
        (dropped, marked)
    }

    pub fn open(&mut self, number: u64, targets: &[Target<'_>]) -> usize {
        let names = changed(targets);
        self.opens.push(Open { number, names, settled: None, abandoned: false });
        self.opens.len() - 1
    }

    pub fn settle(&mut self, number: u64, open: usize) {
        let open = &mut self.opens[open];
        open.settled = Some(number);
        self.changes.push(Change { number, names: open.names.clone() });
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

    pub fn remove(&mut self, render: u64) {
        self.pages.retain(|page| page.render != render);
    }

    /// The pages at `url`, oldest first: variant, render, lease, mark.
    pub fn pages(&self, url: &str) -> Vec<(u64, u64, u64, bool)> {
        let at_url = self.pages.iter().filter(|page| page.url == url);
        at_url.map(|page| (page.variant, page.render, page.lease, page.marked)).collect()
    }

    /// Rule 2, exactly: what forbids a request of `arrival` to share a render of `lease`.
    pub fn why_not_share(&self, names: &[String], lease: u64, arrival: u64) -> Option<String> {
        let between = |number: u64| lease < number && number <= arrival;
        for change in &self.changes {
            if between(change.number) && touches(&change.names, names) {
                return Some(format!("change {}", change.number));
            }
        }
        for open in &self.opens {
            let unsettled =
                open.number <= lease && open.settled.is_none_or(|number| number > lease);
            if unsettled && touches(&open.names, names) {
                return Some(format!("open {}, settled {:?}", open.number, open.settled));
            }
        }
        None
    }

    /// Whether nothing touched `names` since `lease`, and nothing is open.
    pub fn nothing_since(&self, names: &[String], lease: u64) -> bool {
        let changed = |change: &Change| change.number > lease && touches(&change.names, names);
        let open = |open: &Open| open.settled.is_none() && touches(&open.names, names);
        !self.changes.iter().any(changed) && !self.opens.iter().any(open)
    }
}
