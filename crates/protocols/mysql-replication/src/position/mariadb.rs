//! MariaDB's GTIDs: domain, server, sequence number. A position is the last GTID of each domain.
//!
//! Source: MariaDB's manual, "Global Transaction ID". Within a domain, transactions are in the order of the
//! stream. The server of origin may change; the newer entry then replaces the older. The number of domains is
//! bounded.

use super::{NoPosition, PositionOrder};
use std::fmt;
use std::str::FromStr;

const DOMAINS_MAX: usize = 4096;

/// A GTID of MariaDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MariaDbGtid {
    /// The id of the replication domain.
    pub domain: u32,
    /// The id of the server that committed the transaction.
    pub server: u32,
    /// The sequence number in the domain.
    pub sequence: u64,
}

impl fmt::Display for MariaDbGtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.domain, self.server, self.sequence)
    }
}

impl FromStr for MariaDbGtid {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<MariaDbGtid, NoPosition> {
        let mut parts = text.trim().splitn(3, '-');
        let mut next = || parts.next().and_then(|part| part.parse::<u64>().ok()).ok_or(NoPosition);
        let small = |number: u64| u32::try_from(number).map_err(|_| NoPosition);
        Ok(MariaDbGtid { domain: small(next()?)?, server: small(next()?)?, sequence: next()? })
    }
}

/// The last GTID of each domain, ordered by domain. Empty if nothing was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GtidList {
    last: Vec<MariaDbGtid>,
}

impl GtidList {
    /// The last GTID of each domain.
    #[must_use]
    pub fn last(&self) -> &[MariaDbGtid] {
        &self.last
    }

    /// Records `gtid` as read. Beyond 4,096 domains new ones are not recorded; a resumed stream then repeats
    /// them, which is harmless.
    pub fn advance(&mut self, gtid: MariaDbGtid) {
        match self.last.binary_search_by_key(&gtid.domain, |last| last.domain) {
            Ok(at) => self.last[at] = gtid,
            Err(at) if self.last.len() < DOMAINS_MAX => self.last.insert(at, gtid),
            Err(_) => {}
        }
    }

    /// Whether the list includes everything up to `gtid`.
    #[must_use]
    pub fn has(&self, gtid: MariaDbGtid) -> bool {
        let found = self.last.binary_search_by_key(&gtid.domain, |last| last.domain);
        found.is_ok_and(|at| self.last[at].sequence >= gtid.sequence)
    }

    /// The relation to `other`, by the sequence numbers of each domain.
    #[must_use]
    pub fn compare(&self, other: &GtidList) -> PositionOrder {
        let has_all =
            |first: &GtidList, second: &GtidList| second.last.iter().all(|gtid| first.has(*gtid));
        PositionOrder::of(has_all(self, other), has_all(other, self))
    }
}

impl fmt::Display for GtidList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, gtid) in self.last.iter().enumerate() {
            write!(f, "{}{gtid}", if at > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for GtidList {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<GtidList, NoPosition> {
        let mut list = GtidList::default();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            if list.last.len() >= DOMAINS_MAX {
                return Err(NoPosition);
            }
            list.advance(part.parse()?);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> GtidList {
        text.parse().expect("a list")
    }

    #[test]
    fn lists_go_there_and_back_in_order() {
        assert_eq!(list("7-1-3, 0-2-9").to_string(), "0-2-9,7-1-3");
        assert_eq!(list("").to_string(), "");
        for bad in ["x", "0-1", "0-1-", "0-1-2-3", "4294967296-1-1"] {
            assert!(bad.parse::<GtidList>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_domain_keeps_its_last() {
        let mut position = list("0-1-5");
        position.advance("0-2-6".parse().expect("a GTID"));
        position.advance("3-1-1".parse().expect("a GTID"));
        assert_eq!(position.to_string(), "0-2-6,3-1-1");
        assert!(position.has("0-1-5".parse().expect("a GTID")));
        assert!(!position.has("4-1-1".parse().expect("a GTID")));
    }

    #[test]
    fn lists_are_compared_domain_by_domain() {
        assert_eq!(list("0-1-5").compare(&list("0-1-5")), PositionOrder::Same);
        assert_eq!(list("0-1-6,1-1-1").compare(&list("0-1-5")), PositionOrder::Ahead);
        assert_eq!(list("").compare(&list("0-1-5")), PositionOrder::Behind);
        assert_eq!(list("0-1-6").compare(&list("0-1-5,1-1-1")), PositionOrder::Apart);
    }
}
