//! Classes of clients by User-Agent: crawler, phone, tablet, desktop.
//!
//! The field itself is never part of a key, because it has nearly as many values as there are clients. A
//! page that is cached per class is rendered with a representative User-Agent of the class. It therefore
//! contains nothing specific to the client that requested it first.

use http_fields::Fields;
use std::sync::LazyLock;

/// A class of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// A program that reads pages: search engines, feed readers, link previews, monitors.
    Crawler,
    /// A phone.
    Phone,
    /// A tablet.
    Tablet,
    /// Any other client, including one without User-Agent.
    Desktop,
}

const CRAWLERS: &[&[u8]] = &[
    b"bot",
    b"crawl",
    b"spider",
    b"slurp",
    b"facebookexternalhit",
    b"mediapartners",
    b"feedfetcher",
    b"bingpreview",
    b"yandex",
    b"baidu",
    b"duckduck",
    b"archiver",
    b"lighthouse",
    b"pingdom",
    b"uptime",
    b"validator",
    b"curl/",
    b"wget/",
    b"python-",
    b"go-http-client",
    b"headlesschrome",
    b"whatsapp",
    b"embedly",
    b"quora link preview",
    b"google-",
];
const TABLETS: &[&[u8]] = &[b"ipad", b"tablet", b"kindle", b"silk/", b"playbook"];
const PHONES: &[&[u8]] =
    &[b"mobi", b"iphone", b"ipod", b"windows phone", b"opera mini", b"blackberry", b"webos"];

impl Agent {
    /// The name of the class, as in rules and keys.
    #[inline]
    pub fn as_str(self) -> &'static str {
        match self {
            Agent::Crawler => "crawler",
            Agent::Phone => "phone",
            Agent::Tablet => "tablet",
            Agent::Desktop => "desktop",
        }
    }

    /// The class with this name.
    pub(crate) fn from_name(name: &str) -> Option<Agent> {
        [Agent::Crawler, Agent::Phone, Agent::Tablet, Agent::Desktop]
            .into_iter()
            .find(|agent| agent.as_str() == name)
    }

    /// The class of the client that sent a request.
    pub fn of(fields: &dyn Fields) -> Agent {
        let mut agent = Agent::Desktop;
        fields.values("user-agent", &mut |value| agent = Agent::of_value(value));
        agent
    }

    fn of_value(value: &[u8]) -> Agent {
        let said = said(value);
        let says = |class: u8| said & class != 0;
        if says(CRAWLER) {
            Agent::Crawler
        } else if says(TABLET) || (says(ANDROID) && !says(MOBILE)) {
            Agent::Tablet
        } else if says(PHONE) {
            Agent::Phone
        } else {
            Agent::Desktop
        }
    }

    /// The device class for which a page is rendered: crawlers get desktop pages.
    #[inline]
    pub fn device(self) -> Agent {
        match self {
            Agent::Crawler => Agent::Desktop,
            agent => agent,
        }
    }

    /// The representative User-Agent of the class.
    #[inline]
    pub fn user_agent(self) -> &'static str {
        match self {
            Agent::Phone => {
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 Mobile/15E148 Safari/604.1"
            }
            Agent::Tablet => {
                "Mozilla/5.0 (iPad; CPU OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 Mobile/15E148 Safari/604.1"
            }
            Agent::Crawler | Agent::Desktop => {
                "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
            }
        }
    }
}

/// The meanings of words in User-Agent, as bits.
const CRAWLER: u8 = 1;
const TABLET: u8 = 2;
const PHONE: u8 = 4;
const ANDROID: u8 = 8;
const MOBILE: u8 = 16;

/// The words by their first letter, each with its bits.
type WordsByLetter = [Vec<(&'static [u8], u8)>; 256];

/// The bits of all words that occur in the text, in any case. One pass, because hits on pages with automatic
/// dependencies run this.
fn said(text: &[u8]) -> u8 {
    static WORDS: LazyLock<WordsByLetter> = LazyLock::new(|| {
        let mut by_letter: WordsByLetter = std::array::from_fn(|_| Vec::new());
        let lists = [(CRAWLERS, CRAWLER), (TABLETS, TABLET), (PHONES, PHONE)];
        let listed = lists.iter().flat_map(|(words, bits)| words.iter().map(|word| (*word, *bits)));
        for (word, bits) in listed.chain([(&b"android"[..], ANDROID), (b"mobile", MOBILE)]) {
            by_letter[usize::from(word[0])].push((word, bits));
        }
        by_letter
    });
    let mut said = 0;
    for (at, byte) in text.iter().enumerate() {
        for (word, bits) in &WORDS[usize::from(byte.to_ascii_lowercase())] {
            let here = text.get(at..at + word.len());
            if here.is_some_and(|here| here.eq_ignore_ascii_case(word)) {
                said |= bits;
            }
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        for (value, class) in [
            (
                "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
                Agent::Crawler,
            ),
            (
                "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X) Mobile (compatible; bingbot/2.0)",
                Agent::Crawler,
            ),
            (
                "Mozilla/5.0 (Linux; Android 14; Pixel 8) Chrome/126 Mobile Safari/537.36",
                Agent::Phone,
            ),
            ("Mozilla/5.0 (Linux; Android 14; SM-X200) Chrome/126 Safari/537.36", Agent::Tablet),
            ("Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/126 Safari/537.36", Agent::Desktop),
            ("", Agent::Desktop),
        ] {
            assert_eq!(Agent::of_value(value.as_bytes()), class, "{value}");
        }
    }

    #[test]
    fn the_user_agent_of_a_class_belongs_to_it() {
        for agent in [Agent::Phone, Agent::Tablet, Agent::Desktop] {
            assert_eq!(Agent::of_value(agent.user_agent().as_bytes()), agent);
        }
    }
}
