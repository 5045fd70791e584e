//! URL normalisation: the form of path and query under which a page is stored, found and invalidated.
//!
//! | step | by default |
//! |---|---|
//! | remove tracking parameters | yes, see [`TRACKING`] |
//! | remove empty parameters (`a=1&&b=2`, a final `?`) | yes |
//! | sort parameters, keeping the order of equal names | yes |
//! | lower-case the path; trailing slash; index file | no |
//!
//! The origin receives the parameters in their written order without the removed ones, so a page never
//! depends on anything outside its key. Order alone does no harm, and an application that redirects to its
//! own order causes no loop. Parameters are not sorted if that could change their meaning in PHP: if a name
//! has characters other than letters, digits, `_`, `-` and `~` before its brackets, or an unclosed one. PHP replaces some of
//! these, and the last of two equal names counts.
//!
//! Invariant: normalising a normalised URL does not change it.

use crate::cookies::Names;
use crate::raw;
use known_names::TRACKING;
use known_names::personal::personal_parameter;
use std::borrow::Cow;

/// The maximum number of parameters that are sorted; a longer query stays as it is.
const PARAMETERS_MAX: usize = 256;

/// The settings of the normalisation.
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

/// The handling of a trailing slash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slash {
    Keep,
    /// Add one to paths whose last segment has no dot.
    Add,
    Remove,
}

/// A path and query in both forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalisedUrl<'a> {
    /// The form that is forwarded to the origin.
    pub sent: Cow<'a, str>,
    /// The normalised form, from which the key and the dependencies are made.
    pub page: Cow<'a, str>,
}

impl KeyForm {
    /// Reads the settings.
    ///
    /// # Errors
    /// A message that names the setting and the error.
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

    /// Normalises a path and query. It allocates only if a form differs from the written one.
    pub fn normal<'a>(&self, path_and_query: &'a str) -> NormalisedUrl<'a> {
        let (path, query) = match path_and_query.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            // Nearly every hit returns here.
            None if self.keeps_paths => {
                let as_it_is = Cow::Borrowed(path_and_query);
                return NormalisedUrl { sent: as_it_is.clone(), page: as_it_is };
            }
            None => (path_and_query, None),
        };
        if self.keeps_paths && query.is_some_and(|query| self.is_normal(query)) {
            let as_it_is = Cow::Borrowed(path_and_query);
            return NormalisedUrl { sent: as_it_is.clone(), page: as_it_is };
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
        let sent = if same_path && untouched(&sent_query) {
            Cow::Borrowed(path_and_query)
        } else {
            joined(sent_query.as_deref())
        };
        let page = match page_query {
            Some(Some(ordered)) => joined(Some(&ordered)),
            _ => sent.clone(),
        };
        NormalisedUrl { sent, page }
    }

    /// The name of the first parameter of a normalised query that has personal data and that `keep` does not
    /// name.
    pub(crate) fn personal_parameter<'q>(&self, query: &'q str) -> Option<&'q str> {
        personal_parameter(query, |name| self.kept.have(name))
    }

    /// Whether `keep` names a parameter.
    pub fn is_kept(&self, name: &str) -> bool {
        self.kept.have(name.as_bytes())
    }

    /// Whether a query is a single parameter that is kept, as nearly every query is. Then there is nothing
    /// to sort.
    fn is_normal(&self, query: &str) -> bool {
        !query.as_bytes().contains(&b'&') && self.keeps(query)
    }

    fn keeps(&self, parameter: &str) -> bool {
        let parameter = parameter.as_bytes();
        let end = parameter.iter().position(|byte| *byte == b'=').unwrap_or(parameter.len());
        let name = &parameter[..end];
        !parameter.is_empty() && (!self.dropped.have(name) || self.kept.have(name))
    }

    /// The sorted query; `None` if it is sorted already, or must not be sorted.
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
        // Each step may require the other. Both only shorten the path, except for one added slash.
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

    /// The position of the name of an index file, if the path ends in one.
    fn index_at(&self, path: &str) -> Option<usize> {
        let at = path.rfind('/')? + 1;
        self.index.iter().any(|index| path[at..] == **index).then_some(at)
    }
}

/// The sort key of a parameter: its name up to a bracket, so that the members of an array keep their order.
/// PHP reads a bracket that is never closed as `_`, so such a name stays whole, and is not plain.
fn base_name(parameter: &str) -> &str {
    let name = parameter.split('=').next().unwrap_or_default();
    let first = |text: &str, all: [&str; 3]| all.iter().filter_map(|one| text.find(one)).min();
    let opened = first(name, ["[", "%5B", "%5b"]);
    let is_closed = |at: &usize| first(&name[*at..], ["]", "%5D", "%5d"]).is_some();
    opened.filter(is_closed).map_or(name, |at| &name[..at])
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
    fn parameters_are_sorted_in_the_key_and_not_for_the_origin() {
        let form = form("");
        let normal = form.normal("/a?c=3&b[]=2&a=1&utm_id=0&b[]=1");
        assert_eq!(normal.sent, "/a?c=3&b[]=2&a=1&b[]=1");
        assert_eq!(normal.page, "/a?a=1&b[]=2&b[]=1&c=3");
        let encoded = form.normal("/a?b%5B%5D=2&b%5Bx%5D=1&a=1");
        assert_eq!(encoded.page, "/a?a=1&b%5B%5D=2&b%5Bx%5D=1");
        // PHP treats these names as equal; the last one counts.
        for url in [
            "/a?b.c=1&b_c=2&a=3",
            "/a?%62=1&b=2&a=3",
            "/a?b+c=1&a=2",
            // A bracket that is not closed is `_`.
            "/a?a_b=2&a[b=1",
            "/a?a[b=1&a_b=2",
            "/a?b=1&a%5Bb=1",
            "/a?b=1&a]%5bb=1",
        ] {
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
    fn a_normalised_url_is_not_copied() {
        let form = form("");
        for url in ["/", "/a/b", "/a?x=1", "/a?a=1&b=2&b=1"] {
            let normal = form.normal(url);
            assert!(matches!(normal.sent, Cow::Borrowed(_)), "{url}");
            assert!(matches!(normal.page, Cow::Borrowed(_)), "{url}");
        }
    }

    proptest! {
        #[test]
        fn normalisation_is_idempotent(url in "/[aB/.]{0,7}(\\?[ab=&\\[\\].%]{0,12}(utm_a=1)?)?", which in 0..4usize) {
            let text = ["", "trailing_slash = \"add\"", "trailing_slash = \"remove\"\nindex = [\"a\"]", "lower_case = true"][which];
            let form = form(text);
            let normal = form.normal(&url);
            prop_assert_eq!(form.normal(&normal.page).page, normal.page.clone());
            prop_assert_eq!(form.normal(&normal.sent).page, normal.page);
        }
    }
}
