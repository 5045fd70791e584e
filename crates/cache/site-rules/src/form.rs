//! The normal form of a URL's path and query: by it a page is stored, found and invalidated.
//!
//! | step | by default |
//! |---|---|
//! | tracking parameters are dropped | yes, see [`TRACKING`] |
//! | empty parameters (`a=1&&b=2`, a `?` with nothing behind) are dropped | yes |
//! | parameters are put in order, those of one name staying in theirs | yes |
//! | path in small letters; slash at the end; index file | as they are |
//!
//! The origin is sent the parameters in the order in which they were written, without those that are
//! dropped: so nothing that is not in the key can show in the page. Order alone cannot change a page
//! for the worse, and an application that redirects to an order of its own is not sent in circles.
//!
//! Parameters are not put in order where that could change their meaning to PHP: where a name has
//! characters other than letters, digits, `_`, `-` and `~` before its brackets, for PHP turns some of
//! them into others, and the last of two equal names counts.
//!
//! Invariant: the normal form of a normal form is itself.

use crate::cookies::Names;
use crate::known::TRACKING;
use crate::raw;
use std::borrow::Cow;

/// How many parameters are put in order; a query with more stays as it is.
const PARAMETERS_MAX: usize = 256;

/// How the normal form is made.
#[derive(Clone, Debug)]
pub struct KeyForm {
    dropped: Names,
    kept: Names,
    sort: bool,
    lower_case: bool,
    slash: Slash,
    index: Vec<String>,
    /// Whether every path stays as it is.
    keeps_paths: bool,
}

/// The slash at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slash {
    Keep,
    /// Paths whose last segment has no dot get one.
    Add,
    Remove,
}

/// A path and query in the two forms that matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Normal<'a> {
    /// As it goes to the origin.
    pub sent: Cow<'a, str>,
    /// The page's name: what the key and the dependencies are made from.
    pub page: Cow<'a, str>,
}

impl KeyForm {
    /// Reads the choices.
    ///
    /// # Errors
    /// The key, and what is wrong with it.
    pub fn read(raw: &raw::Keys) -> Result<KeyForm, String> {
        let drop: Vec<&str> = match &raw.drop {
            Some(words) => words.iter().map(String::as_str).collect(),
            None => TRACKING.to_vec(),
        };
        let also = raw.drop_also.iter().map(String::as_str);
        let slash = match raw.trailing_slash.as_deref() {
            None | Some("keep") => Slash::Keep,
            Some("add") => Slash::Add,
            Some("remove") => Slash::Remove,
            Some(other) => return Err(format!("trailing_slash: {other:?}: keep, add or remove")),
        };
        if let Some(bad) = raw.index.iter().find(|name| name.is_empty() || name.contains('/')) {
            return Err(format!("index: {bad:?} is no file name"));
        }
        Ok(KeyForm {
            dropped: Names::read(drop.into_iter().chain(also)).map_err(|e| format!("drop: {e}"))?,
            kept: Names::read(raw.keep.iter().map(String::as_str))
                .map_err(|e| format!("keep: {e}"))?,
            sort: raw.sort.unwrap_or(true),
            lower_case: raw.lower_case,
            slash,
            index: raw.index.clone(),
            keeps_paths: !raw.lower_case && slash == Slash::Keep && raw.index.is_empty(),
        })
    }

    /// The forms of a path and query. Allocates only where they differ from what is written.
    pub fn normal<'a>(&self, path_and_query: &'a str) -> Normal<'a> {
        let (path, query) = match path_and_query.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            // The way of nearly every hit.
            None if self.keeps_paths => {
                let as_it_is = Cow::Borrowed(path_and_query);
                return Normal { sent: as_it_is.clone(), page: as_it_is };
            }
            None => (path_and_query, None),
        };
        if self.keeps_paths && query.is_some_and(|query| self.is_normal(query)) {
            let as_it_is = Cow::Borrowed(path_and_query);
            return Normal { sent: as_it_is.clone(), page: as_it_is };
        }
        let path = self.path(path);
        let as_written = |query: &str| -> Option<String> {
            let kept = || query.split('&').filter(|parameter| self.keeps(parameter));
            let same = kept().count() == query.split('&').count() && !query.is_empty();
            (!same).then(|| kept().collect::<Vec<_>>().join("&"))
        };
        let sent_query =
            query.map(|query| as_written(query).map_or(Cow::Borrowed(query), Cow::Owned));
        let page_query = sent_query.as_ref().map(|query| self.in_order(query));
        let untouched = |query: &Option<Cow<'_, str>>| !matches!(query, Some(Cow::Owned(_)));
        let joined = |query: Option<&str>| match query {
            None | Some("") => Cow::Owned(path.clone().into_owned()),
            Some(query) => Cow::Owned(format!("{path}?{query}")),
        };
        let same_path = matches!(path, Cow::Borrowed(_));
        let sent = match same_path && untouched(&sent_query) {
            true => Cow::Borrowed(path_and_query),
            false => joined(sent_query.as_deref()),
        };
        let page = match page_query {
            Some(Some(ordered)) => joined(Some(&ordered)),
            _ => sent.clone(),
        };
        Normal { sent, page }
    }

    /// Whether a query is one parameter, as nearly every query is, that stays: there is nothing to be put
    /// in order.
    fn is_normal(&self, query: &str) -> bool {
        !query.as_bytes().contains(&b'&') && self.keeps(query)
    }

    fn keeps(&self, parameter: &str) -> bool {
        let parameter = parameter.as_bytes();
        let end = parameter.iter().position(|byte| *byte == b'=').unwrap_or(parameter.len());
        let name = &parameter[..end];
        !parameter.is_empty() && (!self.dropped.have(name) || self.kept.have(name))
    }

    /// The query in order; `None` when it is, or must stay as it is.
    fn in_order(&self, query: &str) -> Option<String> {
        let parameters = || query.split('&').map(base_name);
        let sortable = self.sort && parameters().all(is_plain) && query.len() > 1;
        if !sortable || parameters().is_sorted() || parameters().count() > PARAMETERS_MAX {
            return None;
        }
        let mut ordered: Vec<&str> = query.split('&').collect();
        ordered.sort_by_key(|parameter| base_name(parameter));
        Some(ordered.join("&"))
    }

    fn path<'a>(&self, path: &'a str) -> Cow<'a, str> {
        let mut path = Cow::Borrowed(path);
        if self.keeps_paths {
            return path;
        }
        if self.lower_case && path.bytes().any(|byte| byte.is_ascii_uppercase()) {
            path = Cow::Owned(path.to_ascii_lowercase());
        }
        // Each step may leave something for the other; both only shorten, but for a slash once.
        loop {
            let length = path.len();
            if let Some(at) = self.index_at(&path) {
                path.to_mut().truncate(at);
            }
            self.put_slash(&mut path);
            if path.len() >= length {
                return path;
            }
        }
    }

    fn put_slash(&self, path: &mut Cow<'_, str>) {
        let last = path.rsplit('/').next().unwrap_or_default();
        match self.slash {
            Slash::Add if !last.is_empty() && !last.contains('.') => path.to_mut().push('/'),
            Slash::Remove if last.is_empty() && path.len() > 1 => {
                let at = path.trim_end_matches('/').len().max(1);
                path.to_mut().truncate(at);
            }
            _ => {}
        }
    }

    /// Where the name of an index file begins, if the path ends in one.
    fn index_at(&self, path: &str) -> Option<usize> {
        let at = path.rfind('/')? + 1;
        self.index.iter().any(|index| path[at..] == **index).then_some(at)
    }
}

/// What a parameter is put in order by: its name up to a bracket, so that the members of an array
/// keep their order.
fn base_name(parameter: &str) -> &str {
    let name = parameter.split('=').next().unwrap_or_default();
    let bracket = name.find('[').or_else(|| name.find("%5B")).or_else(|| name.find("%5b"));
    bracket.map_or(name, |at| &name[..at])
}

fn is_plain(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn form(text: &str) -> KeyForm {
        KeyForm::read(&toml::from_str(text).unwrap()).unwrap()
    }

    fn page(text: &str, url: &str) -> String {
        form(text).normal(url).page.into_owned()
    }

    #[test]
    fn tracking_parameters_are_dropped() {
        for (url, right) in [
            ("/a", "/a"),
            ("/a?", "/a"),
            ("/a?utm_source=x", "/a"),
            ("/a?id=4&utm_source=x&fbclid=y", "/a?id=4"),
            ("/a?UTM_Source=x&id=4", "/a?id=4"),
            ("/a?gclid&b=1", "/a?b=1"),
            ("/a?&b=1&&", "/a?b=1"),
            ("/a?xutm_source=1", "/a?xutm_source=1"),
            ("/a?x=utm_source", "/a?x=utm_source"),
        ] {
            assert_eq!(page("", url), right, "{url}");
        }
        assert_eq!(page("keep = [\"gclid\"]", "/a?gclid=1&utm_x=2"), "/a?gclid=1");
        assert_eq!(page("drop = [\"ref\"]", "/a?ref=1&utm_x=2"), "/a?utm_x=2");
        assert_eq!(page("drop_also = [\"ref\"]", "/a?ref=1&utm_x=2"), "/a");
    }

    #[test]
    fn order_is_the_pages_and_the_origin_gets_what_was_written() {
        let form = form("");
        let normal = form.normal("/a?c=3&b[]=2&a=1&utm_id=0&b[]=1");
        assert_eq!(normal.sent, "/a?c=3&b[]=2&a=1&b[]=1");
        assert_eq!(normal.page, "/a?a=1&b[]=2&b[]=1&c=3");
        let encoded = form.normal("/a?b%5B%5D=2&b%5Bx%5D=1&a=1");
        assert_eq!(encoded.page, "/a?a=1&b%5B%5D=2&b%5Bx%5D=1");
        // PHP takes these names for the same; the last counts.
        for url in ["/a?b.c=1&b_c=2&a=3", "/a?%62=1&b=2&a=3", "/a?b+c=1&a=2"] {
            assert_eq!(form.normal(url).page, url);
        }
        assert_eq!(page("sort = false", "/a?b=1&a=2"), "/a?b=1&a=2");
    }

    #[test]
    fn case_slash_and_index_by_choice() {
        assert_eq!(page("lower_case = true", "/A/B?C=D"), "/a/b?C=D");
        assert_eq!(page("trailing_slash = \"add\"", "/a?x=1"), "/a/?x=1");
        assert_eq!(page("trailing_slash = \"add\"", "/a.html"), "/a.html");
        assert_eq!(page("trailing_slash = \"remove\"", "/a//"), "/a");
        assert_eq!(page("trailing_slash = \"remove\"", "/"), "/");
        assert_eq!(page("index = [\"index.php\"]", "/a/index.php?x=1"), "/a/?x=1");
        assert_eq!(page("index = [\"index.php\"]", "/a/myindex.php"), "/a/myindex.php");
        let wrong: raw::Keys = toml::from_str("trailing_slash = \"maybe\"").unwrap();
        assert!(KeyForm::read(&wrong).unwrap_err().contains("keep, add or remove"));
    }

    #[test]
    fn what_is_normal_is_not_copied() {
        let form = form("");
        for url in ["/", "/a/b", "/a?x=1", "/a?a=1&b=2&b=1"] {
            let normal = form.normal(url);
            assert!(matches!(normal.sent, Cow::Borrowed(_)), "{url}");
            assert!(matches!(normal.page, Cow::Borrowed(_)), "{url}");
        }
    }

    proptest! {
        #[test]
        fn the_normal_form_is_its_own(url in "/[aB/.]{0,7}(\\?[ab=&\\[\\].%]{0,12}(utm_a=1)?)?", which in 0..4usize) {
            let text = ["", "trailing_slash = \"add\"", "trailing_slash = \"remove\"\nindex = [\"a\"]", "lower_case = true"][which];
            let form = form(text);
            let normal = form.normal(&url);
            prop_assert_eq!(form.normal(&normal.page).page, normal.page.clone());
            prop_assert_eq!(form.normal(&normal.sent).page, normal.page);
        }
    }
}
