//! The response fields that a rule ignores: they have no effect on storing.
//!
//! Clients still receive those that are meant for browsers.

use http::header::{CACHE_CONTROL, EXPIRES, PRAGMA, SET_COOKIE};
use http::{HeaderMap, HeaderName};

/// The response fields that a rule ignores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredFields {
    pub(crate) cache_control: bool,
    pub(crate) expires: bool,
    pub(crate) set_cookie: bool,
}

impl IgnoredFields {
    /// Whether no fields are ignored.
    pub fn is_empty(self) -> bool {
        self == IgnoredFields::default()
    }

    /// Removes the ignored fields, so that they have no effect on storing.
    pub fn strip(self, headers: &mut HeaderMap) {
        for name in self.for_clients() {
            headers.remove(name);
        }
        if self.set_cookie {
            headers.remove(SET_COOKIE);
        }
    }

    /// Restores the ignored fields that clients receive: the application's directives for browsers still
    /// apply. A cookie is not restored, because it is for one client.
    pub fn restore(self, from: &HeaderMap, to: &mut HeaderMap) {
        for name in self.for_clients() {
            to.remove(&name);
            for value in from.get_all(&name) {
                to.append(name.clone(), value.clone());
            }
        }
    }

    fn for_clients(self) -> impl Iterator<Item = HeaderName> {
        let cache_control = self.cache_control.then_some([CACHE_CONTROL, PRAGMA]);
        cache_control.into_iter().flatten().chain(self.expires.then_some(EXPIRES))
    }
}
