//! The search for the part of a request that a response depends on.
//!
//! | Step | Render | If it shows the difference | If not |
//! |---|---|---|---|
//! | control | all parts | the search begins | the cause is unknown |
//! | groups | the cookies; the `User-Agent`; the language; other fields; the address | that group is halved | the next group |
//! | halves | the first half, then the second | that half is halved | a combination of both |
//!
//! The search is a state machine without I/O: `next_render` says which parts to send, `answer` takes whether the
//! response had the difference. At most twelve renders are asked for. Parts that may not be replayed never get here:
//! [`RequestPart::is_replayable`] and [`is_replayable_url`] decide.

use crate::class::DifferenceClass;
use crate::pattern::{is_token_like, parameter_name};
use crate::place::shown_name;
use http_fields::percent::decode;
use serde::{Deserialize, Serialize};

/// Renders of one search: a control, five groups, and three halvings of a group of eight.
const MAX_RENDERS: u32 = 12;
/// Parts that are searched; further ones are left out, and then the control may not show the difference.
const MAX_PARTS: usize = 64;
/// Parts that a combination names.
const MAX_NAMED: usize = 6;
/// The dependencies of a page that have no tag.
const WITHOUT_TAG: &str = "data without a tag (a file, a remote call), or the clock";

/// The place of a line that helps for some paths only.
pub(crate) const IN_A_RULE: &str = "in a rule for this path";
/// The line that stores no page of some paths, with its place.
pub(crate) const BYPASS_IN_A_RULE: &str = "`bypass = true` in a rule for this path";

/// The field that names the device.
const AGENT: &str = "user-agent";
/// The field that names the language.
const LANGUAGE: &str = "accept-language";

/// A part of a request that a response can depend on: by name, never by value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestPart {
    /// A cookie.
    Cookie(String),
    /// A header field.
    Field(String),
    /// A parameter of the query that Pagewell removes.
    Parameter(String),
    /// The address of the client.
    Address,
}

/// Words in names of cookies and fields whose values are credentials.
const CREDENTIALS: [&str; 15] = [
    "sess",
    "sid",
    "token",
    "auth",
    "login",
    "logged",
    "remember",
    "csrf",
    "xsrf",
    "nonce",
    "secret",
    "jwt",
    "password",
    "key",
    "signature",
];

impl RequestPart {
    /// The cookie of this name, if a second request may send it: it is no session or credential by its name
    /// (`is_session`: the site's rules say that it is), its value does not look like one, and the response does not
    /// set it again.
    pub fn cookie(
        name: &str,
        value: &str,
        is_session: bool,
        is_set_again: bool,
    ) -> Option<RequestPart> {
        let is_allowed = !is_session && !is_set_again && RequestPart::is_replayable(name, value);
        is_allowed.then(|| RequestPart::Cookie(shown_name(name)))
    }

    /// The field of this name, if a second request may send it.
    pub fn field(name: &str, value: &str) -> Option<RequestPart> {
        let name = name.to_ascii_lowercase();
        // A browser's own fields have long values with digits among letters.
        let is_browsers = name.starts_with("accept") || name.starts_with("sec-") || name == AGENT;
        let is_never =
            matches!(name.as_str(), "authorization" | "proxy-authorization" | "cookie" | "range")
                || name.starts_with("if-");
        let is_allowed = !is_never && (is_browsers || RequestPart::is_replayable(&name, value));
        is_allowed.then(|| RequestPart::Field(shown_name(&name)))
    }

    /// The parameter of a pair `name=value`, if a second request may send it. Without a value, the name may be one.
    pub fn parameter(pair: &str) -> Option<RequestPart> {
        let (name, value) = pair.split_once('=').filter(|(_, value)| !value.is_empty())?;
        let is_allowed = RequestPart::is_replayable(name, value);
        is_allowed.then(|| RequestPart::Parameter(parameter_name(pair)))
    }

    /// Whether neither name nor value looks like a credential, as written and as an application decodes it.
    pub fn is_replayable(name: &str, value: &str) -> bool {
        let name = decoded(name).to_ascii_lowercase();
        let is_secret = is_token_like(value) || is_token_like(&decoded(value));
        !CREDENTIALS.iter().any(|word| name.contains(word)) && !is_secret
    }

    /// Cookies first, because most differences are theirs.
    fn group(&self) -> usize {
        match self {
            RequestPart::Cookie(_) => 0,
            RequestPart::Field(name) if name == AGENT => 1,
            RequestPart::Field(name) if name == LANGUAGE => 2,
            RequestPart::Field(_) => 3,
            RequestPart::Parameter(_) => 4,
            RequestPart::Address => 5,
        }
    }

    /// The part as text: ``cookie `currency` ``.
    pub fn text(&self) -> String {
        match self {
            RequestPart::Cookie(name) => format!("cookie `{name}`"),
            RequestPart::Field(name) => format!("field `{name}`"),
            RequestPart::Parameter(name) => format!("parameter `{name}`"),
            RequestPart::Address => "the client's address".into(),
        }
    }
}

/// Words in a URL that say that a request for it does something. WordPress takes a GET for the method that the parameter
/// `_method` names.
const ACTIONS: [&str; 15] = [
    "add-to-cart",
    "add_to_cart",
    "remove_item",
    "logout",
    "log-out",
    "signout",
    "unsubscribe",
    "delete",
    "_wpnonce",
    "confirm",
    "verify",
    "reset",
    "activate",
    "?_method=",
    "&_method=",
];

/// Values of the parameter `action` that only read, as MediaWiki has them.
const READING_ACTIONS: [&str; 8] =
    ["history", "info", "raw", "render", "query", "parse", "opensearch", "feedrecentchanges"];

/// Whether a URL in lower case names an action: any `action=` may be one, also at the end of a longer name.
fn names_action(url: &str) -> bool {
    ACTIONS.iter().any(|word| url.contains(word))
        || url.match_indices("action=").any(|(at, name)| {
            let value = url[at + name.len()..].split(['&', ';', '#']).next().unwrap_or_default();
            !url[..at].ends_with(['?', '&']) || !READING_ACTIONS.contains(&value)
        })
}

/// Whether a second request for this URL is harmless: it names no action and has nothing that looks like a secret, as
/// written and as an application decodes it.
pub fn is_replayable_url(path_and_query: &str) -> bool {
    let is_harmless = |url: &str| {
        let lower = url.to_ascii_lowercase();
        !names_action(&lower) && !url.split(['?', '&', '/', '=']).any(is_token_like)
    };
    is_harmless(path_and_query)
        && (!path_and_query.contains('%') || is_harmless(&decoded(path_and_query)))
}

pub(crate) fn decoded(text: &str) -> String {
    String::from_utf8_lossy(&decode(text.as_bytes())).into_owned()
}

/// The result of a search for a cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceCause {
    /// One part alone makes the difference.
    One(RequestPart),
    /// One of these makes it; there were too few renders to say which.
    OneOf(Vec<RequestPart>),
    /// Several together make it, and no half of them alone.
    Together(Vec<RequestPart>),
    /// Not even all parts together made it again.
    Unknown,
    /// The page depends on these, and none of them reported a change. Empty if they are too many to help a reader.
    Unreported(Vec<String>),
    /// The page depends on nothing, and lives for so many seconds.
    Lifetime(u64),
    /// A cache behind Pagewell has answered, as this field of the response says.
    OtherCache(String),
}

impl DifferenceCause {
    /// The cause of a page that was made for one class of devices.
    pub fn device() -> DifferenceCause {
        DifferenceCause::One(RequestPart::Field(AGENT.into()))
    }

    /// The cause of a page that depends on these tags, and if it depends on statements, on these tables. Names are given
    /// only if there are few: none of them is more likely than the others.
    pub fn unreported<'a>(
        tags: impl Iterator<Item = &'a str>,
        tables: Option<&[String]>,
    ) -> DifferenceCause {
        let tags = tags.map(|tag| format!("tag `{}`", shown_name(tag)));
        let unknown = tables.is_some_and(<[String]>::is_empty).then(|| "its SQL statements".into());
        let tables = tables.unwrap_or_default().iter();
        let tables = tables.map(|table| format!("table `{}`", shown_name(table)));
        let names: Vec<String> = tags.chain(unknown).chain(tables).take(MAX_NAMED + 1).collect();
        DifferenceCause::Unreported(if names.len() > MAX_NAMED { Vec::new() } else { names })
    }

    /// The cause as text: ``differs by cookie `currency` ``.
    pub fn text(&self) -> String {
        let list = |parts: &[RequestPart]| {
            let shown: Vec<String> = parts.iter().take(MAX_NAMED).map(RequestPart::text).collect();
            let more = if parts.len() > MAX_NAMED { ", …" } else { "" };
            shown.join(", ") + more
        };
        match self {
            DifferenceCause::One(part) => format!("differs by {}", part.text()),
            DifferenceCause::OneOf(parts) => format!("differs by one of: {}", list(parts)),
            DifferenceCause::Together(parts) => {
                format!("differs by a combination of: {}", list(parts))
            }
            DifferenceCause::Unknown => "cause unknown".into(),
            DifferenceCause::Unreported(names) if names.is_empty() => {
                format!("none of its tags changed: {WITHOUT_TAG}")
            }
            DifferenceCause::Unreported(names) => {
                format!("no change was reported for {}: or {WITHOUT_TAG}", names.join(", "))
            }
            DifferenceCause::Lifetime(seconds) => {
                format!("stored for {seconds} s, and no change ends it")
            }
            DifferenceCause::OtherCache(field) => {
                format!("another cache is behind Pagewell, as the field `{field}` says")
            }
        }
    }

    /// The cause of a difference of this class as text. Where neither a part of the request nor data makes it, the class
    /// is the cause. `late_ms`: how late the page was purged.
    pub fn shown(
        cause: Option<&DifferenceCause>,
        class: DifferenceClass,
        late_ms: u64,
    ) -> Option<String> {
        use DifferenceClass::{ByTheClock, Late, OldApplication, Random};
        match (cause, class) {
            (Some(cause), _) => Some(cause.text()),
            (None, Late) => Some(format!("late by up to {:.1} s", late_ms as f64 / 1_000.0)),
            (None, ByTheClock | OldApplication | Random) => Some(class.meaning().into()),
            (None, _) => None,
        }
    }

    /// The line of the configuration that helps, for a single part.
    pub(crate) fn setting(&self) -> Option<String> {
        match self {
            DifferenceCause::One(RequestPart::Cookie(name)) => {
                Some(format!("key: {} {IN_A_RULE}", cookie_line(std::slice::from_ref(name))))
            }
            DifferenceCause::One(RequestPart::Field(name)) if name == AGENT => {
                Some(format!("key: `device_classes = true` {IN_A_RULE}"))
            }
            DifferenceCause::One(RequestPart::Field(name)) if name == LANGUAGE => Some(format!(
                "key: `language = [\"en\", \"de\"]`, with the languages of the site, {IN_A_RULE}"
            )),
            DifferenceCause::One(RequestPart::Field(name)) => {
                Some(format!("key: let the application send `Vary: {name}`"))
            }
            DifferenceCause::One(RequestPart::Parameter(name)) => {
                Some(format!("key: `keys.keep = [\"{name}\"]`"))
            }
            DifferenceCause::One(RequestPart::Address) => {
                Some(format!("bypass: {BYPASS_IN_A_RULE}, or move this part to a fragment"))
            }
            _ => None,
        }
    }

    /// The cookie that makes the difference, if it is a single one.
    pub(crate) fn cookie(&self) -> Option<&str> {
        match self {
            DifferenceCause::One(RequestPart::Cookie(name)) => Some(name),
            _ => None,
        }
    }
}

/// The line of the configuration that adds these cookies to the key.
pub(crate) fn cookie_line(names: &[String]) -> String {
    format!("`vary_cookies = {names:?}`")
}

/// A render that the search wants: with these parts of the visitor's request, and without all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlRender {
    /// The indices of the parts to send, among those that the search was given.
    pub parts: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SearchState {
    Control,
    /// The groups that are not tried yet, the next one first.
    Groups(Vec<Vec<usize>>),
    /// These parts together make the difference; the first or the second half is tried.
    Halves {
        among: Vec<usize>,
        is_second: bool,
    },
    Ended(DifferenceCause),
}

/// The search; see the table at the top.
#[derive(Clone, Debug)]
pub struct CauseSearch {
    parts: Vec<RequestPart>,
    state: SearchState,
    renders: u32,
}

impl CauseSearch {
    /// Begins a search among the parts of a visitor's request that may be sent again.
    pub fn new(mut parts: Vec<RequestPart>) -> CauseSearch {
        parts.truncate(MAX_PARTS);
        let state = if parts.is_empty() {
            SearchState::Ended(DifferenceCause::Unknown)
        } else {
            SearchState::Control
        };
        CauseSearch { parts, state, renders: 0 }
    }

    /// The render that is needed next; none if the search has ended.
    pub fn next_render(&self) -> Option<ControlRender> {
        let parts = match &self.state {
            SearchState::Control => (0..self.parts.len()).collect(),
            SearchState::Groups(groups) => groups.first().cloned().unwrap_or_default(),
            SearchState::Halves { among, is_second } => half(among, *is_second).to_vec(),
            SearchState::Ended(_) => return None,
        };
        Some(ControlRender { parts })
    }

    /// The result, once there is one.
    pub fn cause(&self) -> Option<&DifferenceCause> {
        match &self.state {
            SearchState::Ended(cause) => Some(cause),
            _ => None,
        }
    }

    /// How many renders were used.
    pub fn renders(&self) -> u32 {
        self.renders
    }

    /// Takes the result of the render: whether it had the difference, as the visitor's answer did.
    pub fn answer(&mut self, shows: bool) {
        self.renders += 1;
        let state = std::mem::replace(&mut self.state, SearchState::Control);
        self.state = match state {
            SearchState::Control if shows => self.groups(),
            SearchState::Control => SearchState::Ended(DifferenceCause::Unknown),
            SearchState::Groups(mut groups) => {
                let tried = if groups.is_empty() { Vec::new() } else { groups.remove(0) };
                if shows {
                    self.halved(tried)
                } else if groups.is_empty() {
                    self.ended(
                        DifferenceCause::Together,
                        &(0..self.parts.len()).collect::<Vec<_>>(),
                    )
                } else {
                    SearchState::Groups(groups)
                }
            }
            SearchState::Halves { among, is_second } if shows => {
                self.halved(half(&among, is_second).to_vec())
            }
            SearchState::Halves { among, is_second: false } => {
                SearchState::Halves { among, is_second: true }
            }
            SearchState::Halves { among, .. } => self.ended(DifferenceCause::Together, &among),
            SearchState::Ended(cause) => SearchState::Ended(cause),
        };
        if self.renders >= MAX_RENDERS && self.cause().is_none() {
            let left: Vec<usize> = match &self.state {
                SearchState::Halves { among, .. } => among.clone(),
                SearchState::Groups(groups) => groups.concat(),
                _ => (0..self.parts.len()).collect(),
            };
            self.state = self.ended(DifferenceCause::OneOf, &left);
        }
    }

    /// The control has shown the difference: the groups that have parts.
    fn groups(&self) -> SearchState {
        let mut groups: Vec<Vec<usize>> = vec![Vec::new(); 6];
        for (index, part) in self.parts.iter().enumerate() {
            groups[part.group()].push(index);
        }
        groups.retain(|group| !group.is_empty());
        if groups.len() == 1 { self.halved(groups.concat()) } else { SearchState::Groups(groups) }
    }

    /// These parts together make the difference.
    fn halved(&self, among: Vec<usize>) -> SearchState {
        if let [only] = among.as_slice() {
            return SearchState::Ended(DifferenceCause::One(self.parts[*only].clone()));
        }
        SearchState::Halves { among, is_second: false }
    }

    fn ended(&self, of: fn(Vec<RequestPart>) -> DifferenceCause, among: &[usize]) -> SearchState {
        SearchState::Ended(of(among.iter().map(|index| self.parts[*index].clone()).collect()))
    }
}

fn half(among: &[usize], is_second: bool) -> &[usize] {
    let (first, second) = among.split_at(among.len() / 2);
    if is_second { second } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dependencies_that_reported_nothing_are_named() {
        let text = |tables: Option<&[String]>| {
            DifferenceCause::unreported(["news"].into_iter(), tables).text()
        };
        let told = |more| format!("no change was reported for tag `news`{more}: or {WITHOUT_TAG}");
        assert_eq!(text(None), told(""));
        assert_eq!(text(Some(&[])), told(", its SQL statements"));
        let tables = ["wp_options".to_owned(), "wp_posts".to_owned()];
        assert_eq!(text(Some(&tables)), told(", table `wp_options`, table `wp_posts`"));
        // Of many, the first ones are no more likely than the others.
        let many = DifferenceCause::unreported(["news"; MAX_NAMED + 1].into_iter(), None).text();
        assert_eq!(many, format!("none of its tags changed: {WITHOUT_TAG}"));
    }

    #[test]
    fn the_remedy_names_the_option_of_a_rule_where_there_is_one() {
        let setting = |name: &str| {
            let cause = DifferenceCause::One(RequestPart::Field(name.into()));
            cause.setting().unwrap_or_default()
        };
        assert!(setting("accept-language").contains("`language = [\"en\", \"de\"]`"));
        assert!(setting("user-agent").contains("`device_classes = true`"));
        assert!(setting("x-shop").contains("`Vary: x-shop`"));
    }

    #[test]
    fn a_parameter_is_named_only_if_it_has_a_value() {
        let named = |pair| RequestPart::parameter(pair).map(|part| part.text());
        assert_eq!(named("utm_source=mail").as_deref(), Some("parameter `utm_source`"));
        assert_eq!((named("alice"), named("alice="), named("token=mail")), (None, None, None));
        assert_eq!(named("8f3a9c2b77d1=mail").as_deref(), Some("parameter `*`"));
    }

    fn cookies(count: usize) -> Vec<RequestPart> {
        (0..count).map(|n| RequestPart::Cookie(format!("c{n}"))).collect()
    }

    /// Runs a search against an application that shows the difference if it gets all of `needed`.
    fn search(parts: Vec<RequestPart>, needed: &[usize]) -> (DifferenceCause, u32) {
        let mut search = CauseSearch::new(parts);
        while let Some(render) = search.next_render() {
            search.answer(needed.iter().all(|part| render.parts.contains(part)));
        }
        let cause = search.cause().cloned().unwrap_or(DifferenceCause::Unknown);
        (cause, search.renders())
    }

    #[test]
    fn one_cookie_among_other_parts_is_found() {
        let mut parts = cookies(6);
        parts.extend([RequestPart::Field("user-agent".into()), RequestPart::Address]);
        let (cause, renders) = search(parts.clone(), &[4]);
        assert_eq!(cause, DifferenceCause::One(RequestPart::Cookie("c4".into())));
        assert!(renders <= 8, "{renders}");
        assert_eq!(search(parts.clone(), &[7]).0, DifferenceCause::One(RequestPart::Address));
        assert!(matches!(search(parts.clone(), &[1, 7]).0, DifferenceCause::Together(_)));
        assert!(matches!(search(parts, &[99]).0, DifferenceCause::Unknown));
        assert_eq!(search(Vec::new(), &[]).0, DifferenceCause::Unknown);
    }

    #[test]
    fn credentials_and_actions_are_never_sent_again() {
        for (name, value) in [
            ("PHPSESSID", "1"),
            ("wordpress_logged_in_x", "1"),
            ("remember_web", "1"),
            ("XSRF-TOKEN", "1"),
            ("a", "8f3a9c2b77d1"),
            ("b", "alice@example.com"),
        ] {
            assert_eq!(RequestPart::cookie(name, value, false, false), None, "{name}");
        }
        assert!(RequestPart::cookie("currency", "EUR", false, false).is_some());
        assert_eq!(RequestPart::cookie("currency", "EUR", true, false), None);
        assert_eq!(RequestPart::cookie("currency", "EUR", false, true), None);
        assert_eq!(RequestPart::field("Authorization", "Basic x"), None);
        assert!(RequestPart::field("User-Agent", "Mozilla/5.0 Gecko/20100101 rv109x7b").is_some());
        assert!(is_replayable_url("/shop/shoes?page=2&colour=red"));
        for url in [
            "/?add-to-cart=7",
            "/logout",
            "/x?_wpnonce=1",
            "/reset/8f3a9c2b77d1",
            "/?t=8f3a9c2b77d1",
            "/l%6Fgout",
            "/?%61dd-to-cart=7",
            "/?t=%38f3a9c2%627d1",
            "/?action=purge&title=a",
            "/?edd_action=query",
            "/?x=action=info",
            "/action=info",
            "/?action=info%26action%3Ddelete",
            "/admin-ajax.php?action=vote",
            "/wp-json/x/v1/like/5?_method=POST",
            "/?rest_route=/x/v1/like/5&_METHOD=put",
            "/wp-json/x/v1/like/5?%5Fmethod=POST",
        ] {
            assert!(!is_replayable_url(url), "{url}");
        }
        assert!(is_replayable_url("/shop?shipping_method=post"));
        assert!(is_replayable_url("/2024/05/caf%C3%A9?s=caf%C3%A9"));
        assert!(is_replayable_url("/index.php?title=Ferry&action=history&feed=atom"));
        assert!(is_replayable_url("/api.php?action=query&list=recentchanges"));
        assert!(!RequestPart::is_replayable("%74oken", "1"));
        assert!(!RequestPart::is_replayable("a", "alice%40example.com"));
    }

    proptest! {
        #[test]
        fn a_search_ends_within_twelve_renders_and_never_names_a_wrong_part(
            count in 1..40usize, needed in prop::collection::btree_set(0..40usize, 1..3),
        ) {
            let needed: Vec<usize> = needed.into_iter().collect();
            let mut parts = cookies(count);
            parts.push(RequestPart::Field("accept-language".into()));
            let (cause, renders) = search(parts.clone(), &needed);
            prop_assert!(renders <= MAX_RENDERS);
            let is_there = needed.iter().all(|part| *part < parts.len());
            match cause {
                DifferenceCause::One(part) => prop_assert!(needed.len() == 1 && parts[needed[0]] == part),
                DifferenceCause::OneOf(among) | DifferenceCause::Together(among) => {
                    prop_assert!(needed.iter().all(|part| among.contains(&parts[*part])));
                }
                DifferenceCause::Unknown => prop_assert!(!is_there),
                DifferenceCause::Unreported(_)
                | DifferenceCause::Lifetime(_)
                | DifferenceCause::OtherCache(_) => prop_assert!(false),
            }
        }
    }
}
