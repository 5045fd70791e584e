//! The place of a token: a node of the tree of elements, members or fields of one response.
//!
//! A place is shown as a path such as `html > body > div > input[value]`, word 3. Its hash is the same for the same
//! path in every render of every process, and does not depend on the text of the response. Names are bounded in
//! length and number, and a name that looks like a secret is shown as `*`.

use crate::pattern::is_token_like;
use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Places of one response: 2 MiB of the shortest elements have more, and are compared by hash.
pub(crate) const MAX_PLACES: usize = 65_536;
/// Elements or members inside of each other that a path names; those below count for the last.
pub(crate) const MAX_DEPTH: usize = 64;
/// A longer name is cut: the names of HTML have at most 20 letters.
const MAX_NAME_BYTES: usize = 40;
/// Children of a place whose names are counted apart; all further ones have the number of the last.
const MAX_ORDINALS: u32 = 1_000_000;

/// Places whose text is not read by visitors: these elements, and everything at the top that is no HTML.
const UNREAD: [&str; 5] = ["comment", "script", "style", "template", "textarea"];
const UNREAD_AT_TOP: [&str; 5] = [HEADER, "status", "json", "text", "content"];
/// The place of the header section.
const HEADER: &str = "header";

/// A node: its parent, the index of its name, and how many siblings of that name are before it.
#[derive(Clone, Copy, Debug)]
struct PlaceNode {
    parent: u32,
    name: u32,
    ordinal: u32,
    hash: u64,
}

/// The places of one response.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlaceTree {
    nodes: Vec<PlaceNode>,
    names: Vec<Box<str>>,
}

/// The state of the search for places.
#[derive(Debug, Default)]
pub(crate) struct PlaceBuilder {
    tree: PlaceTree,
    known_names: HashMap<Box<str>, u32>,
    siblings: HashMap<(u32, u32), u32>,
    nodes: HashMap<(u32, u32, u32), u32>,
    is_full: bool,
}

/// The parent of places at the top.
pub(crate) const ROOT: u32 = u32::MAX;

impl PlaceBuilder {
    /// Returns another child of `parent`: the next of its name.
    pub(crate) fn child(&mut self, parent: u32, name: &str) -> u32 {
        let name = self.name(name);
        let count = self.siblings.entry((parent, name)).or_insert(0);
        let ordinal = *count;
        *count = (*count + 1).min(MAX_ORDINALS);
        self.node(parent, name, ordinal)
    }

    /// Returns the one child of `parent` with this name: it is the same at each call.
    pub(crate) fn only(&mut self, parent: u32, name: &str) -> u32 {
        let name = self.name(name);
        self.node(parent, name, 0)
    }

    fn node(&mut self, parent: u32, name: u32, ordinal: u32) -> u32 {
        if let Some(known) = self.nodes.get(&(parent, name, ordinal)) {
            return *known;
        }
        if self.tree.nodes.len() >= MAX_PLACES {
            self.is_full = true;
            return 0;
        }
        let above = if parent == ROOT { 0 } else { self.tree.hash(parent) };
        let text = self.tree.names[name as usize].as_bytes();
        let hash = xxh3_64_with_seed(text, above ^ u64::from(ordinal).wrapping_mul(0x9E37_79B9));
        let place = self.tree.nodes.len() as u32;
        self.tree.nodes.push(PlaceNode { parent, name, ordinal, hash });
        self.nodes.insert((parent, name, ordinal), place);
        place
    }

    fn name(&mut self, name: &str) -> u32 {
        let name = shown_name(name);
        if let Some(known) = self.known_names.get(name.as_str()) {
            return *known;
        }
        let number = self.tree.names.len() as u32;
        let name: Box<str> = name.into();
        self.tree.names.push(name.clone());
        self.known_names.insert(name, number);
        number
    }

    /// Whether a place was not found because there were too many.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(crate) fn finish(self) -> PlaceTree {
        self.tree
    }
}

impl PlaceTree {
    pub(crate) fn hash(&self, place: u32) -> u64 {
        self.nodes.get(place as usize).map_or(0, |node| node.hash)
    }

    /// The path as it is shown: the names from the top, at most the last eight. Names of members that `known` does not
    /// have are shown as `*`, if it is given.
    pub(crate) fn path(&self, place: u32, known: Option<&PlaceTree>) -> String {
        let known = known.filter(|_| self.is_json(place));
        let is_known =
            |name: &str| known.is_none_or(|known| known.names.iter().any(|other| **other == *name));
        let mut names = Vec::new();
        let mut at = place;
        while let Some(node) = self.nodes.get(at as usize)
            && names.len() < 8
        {
            let name = &*self.names[node.name as usize];
            let name = if is_known(name) { name } else { "*" };
            let is_first = node.ordinal == 0;
            names.push(if is_first {
                name.to_string()
            } else {
                format!("{name}:{}", node.ordinal + 1)
            });
            at = node.parent;
        }
        names.reverse();
        names.join(" > ").replace(" > [", "[")
    }

    /// Whether this is a member or an element of JSON.
    fn is_json(&self, place: u32) -> bool {
        let (mut at, mut top) = (place, "");
        while let Some(node) = self.nodes.get(at as usize) {
            (at, top) = (node.parent, &*self.names[node.name as usize]);
        }
        top == "json"
    }

    /// Whether a visitor reads the text at this place: it is that of an element of HTML, and none of `UNREAD`.
    pub(crate) fn is_read(&self, place: u32) -> bool {
        let (mut at, mut is_read) = (place, false);
        while let Some(node) = self.nodes.get(at as usize) {
            let name = &*self.names[node.name as usize];
            let is_top = node.parent == ROOT && UNREAD_AT_TOP.contains(&name);
            if is_top || UNREAD.contains(&name) || name.starts_with('[') {
                return false;
            }
            is_read = true;
            at = node.parent;
        }
        is_read
    }

    /// Whether this is in an element of `UNREAD` and no attribute of it, or in the header section.
    pub(crate) fn is_hidden(&self, place: u32) -> bool {
        let mut at = place;
        while let Some(node) = self.nodes.get(at as usize) {
            let name = &*self.names[node.name as usize];
            if name.starts_with('[') {
                return false;
            }
            if UNREAD.contains(&name) || node.parent == ROOT && name == HEADER {
                return true;
            }
            at = node.parent;
        }
        false
    }

    /// The element of a `data-` attribute, as a number that is the same in every response.
    pub(crate) fn element_of_data(&self, place: u32) -> Option<u64> {
        let node = self.nodes.get(place as usize)?;
        let is_data = self.names[node.name as usize].starts_with("[data-");
        is_data.then(|| self.hash(node.parent))
    }

    /// The bytes of memory that the places occupy, about.
    pub(crate) fn bytes(&self) -> usize {
        let names: usize = self.names.iter().map(|name| name.len() + size_of::<Box<str>>()).sum();
        self.nodes.len() * size_of::<PlaceNode>() + names
    }
}

/// A name as it is kept: printable ASCII of a bounded length, and nothing that looks like a secret.
pub(crate) fn shown_name(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_:.[]#@!".contains(&byte);
    let bare = name.trim_matches(['[', ']']);
    if name.is_empty() || !name.bytes().all(is_plain) || is_token_like(bare) || bare.contains('@') {
        return if name.starts_with('[') { "[*]".into() } else { "*".into() };
    }
    name[..name.len().min(MAX_NAME_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_elements_by_their_order_and_no_secret() {
        let mut places = PlaceBuilder::default();
        let body = places.child(ROOT, "body");
        places.child(body, "div");
        let second = places.child(body, "div");
        let value = places.only(second, "[value]");
        let secret = places.only(second, "x-8f3a9c2b77d1");
        assert!(!places.is_full());
        let tree = places.finish();
        assert_eq!(tree.path(value, None), "body > div:2[value]");
        assert_eq!(tree.path(secret, None), "body > div:2 > *");
        assert_ne!(tree.hash(body), tree.hash(second));
    }

    #[test]
    fn nobody_sees_a_script_or_a_header_line() {
        let mut places = PlaceBuilder::default();
        let header = places.only(ROOT, "header");
        let body = places.child(ROOT, "body");
        let script = places.child(body, "script");
        let hidden = [places.child(header, "x-request-id"), script];
        let seen = [body, places.child(body, "header"), places.only(script, "[src]")];
        let tree = places.finish();
        assert!(hidden.iter().all(|place| tree.is_hidden(*place)));
        assert!(!seen.iter().any(|place| tree.is_hidden(*place)));
    }
}
