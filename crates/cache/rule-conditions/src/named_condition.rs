//! A condition on something that has a name: a query parameter, a cookie or a header line.
//!
//! Of several conditions, one must match, and none of those written with `!`. Not here: the other
//! conditions of a rule (`conditions`).

use crate::glob::Glob;
use http_fields::Fields;
use http_fields::cookies::pairs;

/// A parameter, cookie or header line by name, optionally with a value.
#[derive(Clone, Debug)]
pub struct NamedCondition {
    /// The pattern of the name.
    pub name: Glob,
    /// The pattern of the value; without it, every value fits.
    pub value: Option<Glob>,
    /// Written with `!`: it must be absent.
    pub absent: bool,
}

impl NamedCondition {
    /// Whether at least one of the required ones is present, and none of the forbidden ones.
    #[inline]
    pub fn fit(all: &[NamedCondition], is_there: impl Fn(&NamedCondition) -> bool) -> bool {
        // As in nearly all rules; each request is compared with all of them.
        if all.is_empty() {
            return true;
        }
        let mut wanted = all.iter().filter(|named| !named.absent).peekable();
        (wanted.peek().is_none() || wanted.any(&is_there))
            && !all.iter().any(|named| named.absent && is_there(named))
    }

    /// Whether this name and this value match.
    #[inline]
    pub fn fits(&self, name: &[u8], value: &[u8]) -> bool {
        self.name.fits(name) && self.value.as_ref().is_none_or(|glob| glob.fits(value))
    }

    /// Whether a parameter of the query matches.
    pub fn fits_query(&self, query: Option<&str>) -> bool {
        query.is_some_and(|query| {
            query.split('&').any(|parameter| {
                let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
                self.fits(name.as_bytes(), value.as_bytes())
            })
        })
    }

    pub(crate) fn fits_cookie(&self, fields: &dyn Fields) -> bool {
        let mut found = false;
        fields.values("cookie", &mut |line| {
            // By the written name: a cookie with another spelling of the name makes the request bypass the
            // cache.
            found |= pairs(line).any(|pair| self.fits(pair.name.whole(), pair.value));
        });
        found
    }

    pub(crate) fn fits_header(&self, fields: &dyn Fields) -> bool {
        let mut found = false;
        // The name of a header line has no wildcards.
        fields.values(self.name.as_str(), &mut |value| {
            found |= self.value.as_ref().is_none_or(|glob| glob.fits(value.trim_ascii()));
        });
        found
    }
}
