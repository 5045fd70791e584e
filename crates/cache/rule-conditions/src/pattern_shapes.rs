//! The shapes of regular expressions by which a path is compared without a search: the bytes at both ends of the path,
//! and a simple pattern for all of it, as most of those for redirects are (`^/archives/(\d+)$`).
//!
//! Each request is compared with all patterns of a site, and nearly every path differs from each of them at one of its
//! ends.
//!
//! Invariant: the result is that of a search (`regexes`, whose tests compare both).

use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Class, ClassBytes, Hir, HirKind, Look};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The number of bytes at each end of a path that are compared: one bit each.
const PLACES_MAX: usize = 8;

/// The bytes at both ends of the paths that a pattern matches.
#[derive(Clone, Default)]
pub(crate) struct PathEnds {
    first: Option<PossibleBytes>,
    last: Option<PossibleBytes>,
}

impl PathEnds {
    pub(crate) fn of(hir: &Hir) -> PathEnds {
        PathEnds {
            first: PossibleBytes::of(hir, ExtractKind::Prefix),
            last: PossibleBytes::of(hir, ExtractKind::Suffix),
        }
    }

    /// Whether a path with these ends may match the pattern.
    #[inline]
    pub(crate) fn allow(&self, path: &[u8]) -> bool {
        self.first.as_ref().is_none_or(|first| first.allow(path.iter()))
            && self.last.as_ref().is_none_or(|last| last.allow(path.iter().rev()))
    }
}

/// The bytes that a path can have at its first places, or at its last, if a pattern matches it.
#[derive(Clone)]
struct PossibleBytes {
    /// For each byte, bit `n` says whether it is possible at the place `n`, counted from the end of the path at which
    /// the pattern is anchored.
    places: Arc<[u8; 256]>,
    count: usize,
}

impl PossibleBytes {
    /// `kind` is the end of the path. `None` if the pattern is not anchored there, or says nothing about its bytes.
    fn of(hir: &Hir, kind: ExtractKind) -> Option<PossibleBytes> {
        let (properties, is_prefix) = (hir.properties(), kind.is_prefix());
        let is_anchored = if is_prefix {
            properties.look_set_prefix().contains(Look::Start)
        } else {
            properties.look_set_suffix().contains(Look::End)
        };
        if !is_anchored {
            return None;
        }
        let literals = Extractor::new().kind(kind).extract(hir);
        let count = literals.min_literal_len().filter(|count| *count > 0)?.min(PLACES_MAX);
        let mut places = [0; 256];
        for bytes in literals.literals()?.iter().map(|literal| literal.as_bytes()) {
            for place in 0..count {
                let at = if is_prefix { place } else { bytes.len() - 1 - place };
                places[usize::from(bytes[at])] |= 1 << place;
            }
        }
        Some(PossibleBytes { places: Arc::new(places), count })
    }

    /// Whether these bytes of a path, from its end, are possible.
    fn allow<'p>(&self, mut path: impl Iterator<Item = &'p u8>) -> bool {
        (0..self.count).all(|place| {
            path.next().is_some_and(|byte| self.places[usize::from(*byte)] & 1 << place != 0)
        })
    }
}

/// A pattern for the whole path: a run of bytes of one class, between two texts.
#[derive(Clone)]
pub(crate) struct RunBetween {
    before: Box<[u8]>,
    after: Box<[u8]>,
    /// Whether a byte belongs to the class.
    class: Arc<[bool; 256]>,
    /// The possible lengths of the run.
    lengths: RangeInclusive<usize>,
}

impl RunBetween {
    /// `None` if the pattern is another one.
    pub(crate) fn of(hir: &Hir) -> Option<RunBetween> {
        let HirKind::Concat(parts) = hir.kind() else { return None };
        let [first, inner @ .., last] = &parts[..] else { return None };
        let is = |part: &Hir, look| matches!(part.kind(), HirKind::Look(found) if *found == look);
        if !is(first, Look::Start) || !is(last, Look::End) {
            return None;
        }
        let (before, run, after) = match inner {
            [run] => (None, run, None),
            [before, run] if text_of(before).is_some() => (text_of(before), run, None),
            [run, after] => (None, run, Some(text_of(after)?)),
            [before, run, after] => (Some(text_of(before)?), run, Some(text_of(after)?)),
            _ => return None,
        };
        let run = match run.kind() {
            HirKind::Capture(capture) => &*capture.sub,
            _ => run,
        };
        let HirKind::Repetition(repetition) = run.kind() else { return None };
        let HirKind::Class(class) = repetition.sub.kind() else { return None };
        let bytes = match class {
            Class::Bytes(class) => class.clone(),
            Class::Unicode(class) => class.to_byte_class()?,
        };
        let most = repetition.max.map_or(usize::MAX, |most| most as usize);
        Some(RunBetween {
            before: before.unwrap_or_default().into(),
            after: after.unwrap_or_default().into(),
            class: Arc::new(table_of(&bytes)),
            lengths: repetition.min as usize..=most,
        })
    }

    /// The run, if the pattern matches the path.
    #[inline]
    pub(crate) fn find<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        let run = path.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        let fits = self.lengths.contains(&run.len())
            && run.iter().all(|byte| self.class[usize::from(*byte)]);
        fits.then_some(run)
    }
}

fn text_of(part: &Hir) -> Option<&[u8]> {
    match part.kind() {
        HirKind::Literal(text) => Some(&text.0),
        _ => None,
    }
}

fn table_of(class: &ClassBytes) -> [bool; 256] {
    let mut table = [false; 256];
    for range in class.ranges() {
        table[usize::from(range.start())..=usize::from(range.end())].fill(true);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex_syntax::ParserBuilder;

    fn hir(written: &str) -> Hir {
        let mut parser = ParserBuilder::new();
        parser.unicode(false).utf8(false).dot_matches_new_line(true);
        parser.build().parse(written).unwrap()
    }

    #[test]
    fn the_ends_of_most_paths_exclude_a_pattern() {
        for (written, path, is_allowed) in [
            ("^/archives/(\\d+)$", "/archives/12", true),
            ("^/archives/(\\d+)$", "/archives/x", false),
            ("^/archives/(\\d+)$", "/old", false),
            ("\\.(sql|bak|log)$", "/a.sql", true),
            ("\\.(sql|bak|log)$", "/a.css", false),
            ("(?i)\\.sql$", "/A.SQL", true),
            ("(?i)\\.sql$", "/a.txt", false),
            ("^/(a|b)/", "/c/", false),
            // Not anchored, or in one branch only.
            ("/admin", "/x", true),
            ("^/a|/b$", "/x", true),
            ("^/?$", "/x", true),
            ("^.*$", "/x", true),
        ] {
            let ends = PathEnds::of(&hir(written));
            assert_eq!(ends.allow(path.as_bytes()), is_allowed, "{written} {path}");
        }
    }

    #[test]
    fn patterns_of_redirects_need_no_search() {
        for (written, path, run) in [
            ("^/archives/(\\d+)$", "/archives/12", Some("12")),
            ("^/archives/(\\d+)$", "/archives/", None),
            ("^/archives/(\\d+)$", "/archives/1x", None),
            ("^/(.*)\\.html$", "/a/b.html", Some("a/b")),
            ("^/(.*)\\.html$", "/.htm", None),
            ("^/([^/]+)/x$", "/a/x", Some("a")),
            ("^/([^/]+)/x$", "/a/b/x", None),
            ("^/\\d{4}$", "/2019", Some("2019")),
            ("^/\\d{4}$", "/20190", None),
            ("^(.*)$", "/", Some("/")),
        ] {
            let simple = RunBetween::of(&hir(written)).unwrap_or_else(|| panic!("{written}"));
            assert_eq!(simple.find(path.as_bytes()), run.map(str::as_bytes), "{written} {path}");
        }
        for written in ["^/(a|b)$", "^/(\\d)+$", "/(\\d+)$", "^/(\\d+)/(\\d+)$", "^/a$", "a|b"] {
            assert!(RunBetween::of(&hir(written)).is_none(), "{written}");
        }
    }
}
