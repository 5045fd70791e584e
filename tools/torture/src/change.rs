//! A change: the changed data, and the requests that publish it, in each of the available ways
//! ([`super::publication`]).
//!
//! It is generated from a seed. Nothing is sent here; the sender of the requests checks the
//! responses.

use super::publication::{By, Publication, Strength};
use super::site::{Site, tag};
use harness::Chance;
use harness::Request;
use serde_json::{Value, json};

/// A change to be made.
#[derive(Debug)]
pub struct Change {
    /// The cells that are changed, where the request itself does not change them.
    pub cells: Vec<usize>,
    /// How the change is made known.
    pub way: Way,
}

/// How a change is made known.
#[derive(Debug)]
pub enum Way {
    /// A request that goes through to the origin, which changes something and says so.
    Through(Request),
    /// Something is committed, and then each of these requests is sent.
    Tell(ChangeRecipient, Strength, Vec<Request>),
}

/// The address to which a change is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeRecipient {
    /// The control interface.
    Control,
    /// The address where visitors are served.
    Front,
}

impl Change {
    /// Draws a change that is published in this way.
    pub fn draw(site: &Site, publication: Publication, chance: &mut Chance) -> Change {
        let item = chance.below(site.items);
        let several = [item, chance.below(site.items), chance.below(site.items)];
        let items = if chance.one_in(8) { &several[..] } else { &several[..1] };
        let tags: Vec<String> = items.iter().map(|item| tag(*item)).collect();
        let page = &site.pages[chance.below(site.pages.len())];
        let own = [page.own()];
        let path = page.target.split('?').next().unwrap_or_default();
        let purge = |target: &str| Request::new("PURGE", target);
        match publication {
            Publication::Through | Publication::Get => through(publication, items, chance),
            Publication::Target => {
                // By the page's own target, or from elsewhere with a Location that names it.
                let elsewhere = format!("/write?page={}", page.number);
                let target = if chance.one_in(2) { &page.target } else { &elsewhere };
                Change { cells: own.to_vec(), way: Way::Through(Request::form(target, "text=new")) }
            }
            Publication::Tags => call(site, items, json!({ "tags": tags })),
            Publication::HardTags => {
                let call = vec![api(&json!({ "tags": tags }))];
                let way = Way::Tell(ChangeRecipient::Control, Strength::Hard, call);
                Change { cells: items.to_vec(), way }
            }
            Publication::Urls => call(site, &[item], json!({ "urls": site.pages_with(item) })),
            Publication::OwnUrl => call(site, &own, json!({ "urls": [page.target] })),
            Publication::Prefix => call(site, &own, json!({ "prefixes": [path] })),
            Publication::All => call(site, &several, json!({ "all": true })),
            Publication::PurgeUrls => {
                front(&[item], site.pages_with(item).into_iter().map(purge).collect())
            }
            Publication::PurgeOwn => front(&own, vec![purge(&page.target)]),
            Publication::PurgeTags => {
                front(items, vec![purge("/").header("Surrogate-Key", &tags.join(" "))])
            }
            Publication::PurgeAll => front(&several, vec![purge("/.*")]),
            Publication::BanTags => front(items, vec![by_expression(&tags, chance.one_in(2))]),
            Publication::Keys => {
                let keys = Request::new("PURGEKEYS", "/").header("xkey-purge", &tags.join(" "));
                front(items, vec![keys])
            }
            Publication::TagsMethod => {
                let tags = Request::new("PURGETAGS", "/").header("X-Cache-Tags", &tags.join(","));
                front(items, vec![tags])
            }
            Publication::BanUrl => {
                let pattern = format!("^{path}(\\?|$)");
                front(&own, vec![Request::new("BAN", "/").header("X-Url", &pattern)])
            }
        }
    }
}

/// A POST, or a GET as scheduled tasks send it, whose response names the items.
fn through(publication: Publication, items: &[usize], chance: &mut Chance) -> Change {
    let names: Vec<String> = items.iter().map(usize::to_string).collect();
    let target = format!("/write?items={}", names.join(","));
    let request = match publication {
        // Two that change the same at once are two.
        Publication::Get => Request::get(&format!("{target}&draw={}", chance.below(usize::MAX))),
        _ => Request::form(&target, "text=new"),
    };
    Change { cells: items.to_vec(), way: Way::Through(request) }
}

/// A call of the control interface, as strong as the mode has it.
fn call(site: &Site, cells: &[usize], mut what: Value) -> Change {
    let strength = match site.by {
        By::Soft => {
            what["soft"] = Value::Bool(true);
            Strength::Soft
        }
        _ => Strength::Hard,
    };
    let way = Way::Tell(ChangeRecipient::Control, strength, vec![api(&what)]);
    Change { cells: cells.to_vec(), way }
}

/// Requests to where visitors are served.
fn front(cells: &[usize], requests: Vec<Request>) -> Change {
    Change {
        cells: cells.to_vec(),
        way: Way::Tell(ChangeRecipient::Front, Strength::Hard, requests),
    }
}

fn api(what: &Value) -> Request {
    let call = Request::new("POST", "/v1/invalidate").header("Content-Type", "application/json");
    call.content(what.to_string().as_bytes())
}

/// In the words of Drupal's purger, or of FOSHttpCache's.
fn by_expression(tags: &[String], as_drupal: bool) -> Request {
    let request = Request::new("BAN", "/");
    if as_drupal {
        return request.header("Cache-Tags", &tags.join("|"));
    }
    let escaped: Vec<String> = tags.iter().map(|tag| tag.replace(':', "\\:")).collect();
    request.header("X-Cache-Tags", &format!("(^|,)({})(,|$)", escaped.join("|")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_banned_as_programs_do() {
        let tags = [String::from("item:1"), String::from("item:2")];
        let text = |request: &Request| String::from_utf8(request.to_bytes("a.test")).expect("text");
        assert!(text(&by_expression(&tags, true)).contains("Cache-Tags: item:1|item:2\r\n"));
        let fos = text(&by_expression(&tags, false));
        assert!(fos.contains("X-Cache-Tags: (^|,)(item\\:1|item\\:2)(,|$)\r\n"));
    }

    #[test]
    fn a_change_names_its_cells() {
        let site = Site::new(1, 60, 50);
        for publication in Publication::ALL {
            let Change { cells, way } = Change::draw(&site, publication, &mut Chance::new(1, 1));
            assert!(!cells.is_empty() && cells.iter().all(|cell| *cell < 110), "{publication:?}");
            let requests = match way {
                Way::Through(request) => vec![request],
                Way::Tell(_, strength, requests) => {
                    assert_eq!(strength, Strength::Hard);
                    requests
                }
            };
            assert!(!requests.is_empty(), "{publication:?}");
        }
    }
}
