//! The visitors whose answers an advice rests on, if it would let more be stored or shared.
//!
//! An advice that is wrong makes a leak, so a few visitors prove nothing: they may have had the same cookies, or none.
//! Not here: how visitors are distinguished (the crate `audit`).

use serde::{Deserialize, Serialize};

/// Different clients that an advice needs.
const ENOUGH_CLIENTS: u64 = 10;
/// Different browsers, or languages of them.
const ENOUGH_AGENTS: u64 = 3;
/// Different values of cookies, where visitors of the site have any.
const ENOUGH_COOKIES: u64 = 3;

/// Numbers of different visitors who got the same. From some number on, no further ones are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedVisitors {
    /// Different addresses of clients.
    pub clients: u64,
    /// Different pairs of `User-Agent` and `Accept-Language`.
    pub agents: u64,
    /// Different values of the cookies that can make a difference.
    pub cookies: u64,
    /// The clients without such a cookie.
    pub without_cookies: u64,
}

impl ComparedVisitors {
    /// Whether an advice may rest on them. `has_cookies`: whether any visitor of the site has had such a cookie.
    pub fn are_enough(self, has_cookies: bool) -> bool {
        let are_varied = self.cookies >= ENOUGH_COOKIES && self.without_cookies > 0;
        self.clients >= ENOUGH_CLIENTS
            && self.agents >= ENOUGH_AGENTS
            && (are_varied || !has_cookies)
    }

    /// The larger number of each kind: what was counted before a restart stays.
    #[must_use]
    pub fn or(self, other: ComparedVisitors) -> ComparedVisitors {
        ComparedVisitors {
            clients: self.clients.max(other.clients),
            agents: self.agents.max(other.agents),
            cookies: self.cookies.max(other.cookies),
            without_cookies: self.without_cookies.max(other.without_cookies),
        }
    }

    /// The numbers as text: `12 visitors (4 browsers or languages, 3 values of cookies)`.
    pub fn text(self) -> String {
        let ComparedVisitors { clients, agents, cookies, .. } = self;
        format!("{clients} visitors ({agents} browsers or languages, {cookies} values of cookies)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_visitors_and_visitors_who_are_alike_are_not_enough() {
        let enough = ComparedVisitors { clients: 10, agents: 3, cookies: 3, without_cookies: 1 };
        assert!(enough.are_enough(true) && enough.are_enough(false));
        for few in
            [ComparedVisitors { clients: 9, ..enough }, ComparedVisitors { agents: 2, ..enough }]
        {
            assert!(!few.are_enough(true) && !few.are_enough(false), "{few:?}");
        }
        for alike in [
            ComparedVisitors { cookies: 2, ..enough },
            ComparedVisitors { without_cookies: 0, ..enough },
        ] {
            assert!(!alike.are_enough(true) && alike.are_enough(false), "{alike:?}");
        }
        let later = ComparedVisitors { clients: 2, agents: 9, ..ComparedVisitors::default() };
        assert_eq!(later.or(enough), ComparedVisitors { agents: 9, ..enough });
        assert_eq!(enough.text(), "10 visitors (3 browsers or languages, 3 values of cookies)");
    }
}
