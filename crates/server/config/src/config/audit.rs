//! `audit`: how many cache hits are compared with a render in the background, for ever.
//!
//! Not here: the choice of the hits (`delivery::audit`), and the comparison (the crate `audit`).

use super::resolve::LoadError;

/// The largest share denominator: one hit in a million.
const ONE_IN_MAX: u32 = 1_000_000;

/// The steps of [`Audit`] that stand for one natural unit of an exponential distribution.
pub const AUDIT_UNIT: i64 = 1 << 40;

/// The settings of the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audit {
    /// One hit in so many is compared.
    pub one_in: u32,
    /// The part that each hit takes of the way to the next one that is compared (`delivery::audit::HitDraws`), in units of
    /// [`AUDIT_UNIT`]: the way ends within it with a chance of one in `one_in`.
    pub step: i64,
}

impl Audit {
    /// Compares one hit in so many.
    pub fn of(one_in: u32) -> Audit {
        let way = -(1.0 - 1.0 / f64::from(one_in)).ln();
        // Every hit: an infinite step is the largest number.
        Audit { one_in, step: (way * AUDIT_UNIT as f64) as i64 }
    }
}

/// The questions about a request that may be a plain hit, beside its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitWatch {
    /// Nothing.
    Nothing,
    /// Whether the hit is compared by the audit.
    Audit,
    /// Whether the rules or a trial leave the request to its page; then, as for `Audit`, if there is one.
    Rules,
}

impl HitWatch {
    /// For a site whose rules or trial may answer requests, and with an audit.
    pub(super) fn of(has_rules: bool, has_audit: bool) -> HitWatch {
        if has_rules {
            HitWatch::Rules
        } else if has_audit {
            HitWatch::Audit
        } else {
            HitWatch::Nothing
        }
    }
}

/// Checks `audit`; `None` if it is off.
pub(super) fn resolve(raw: Option<&str>) -> Result<Option<Audit>, LoadError> {
    let Some(text) = raw.filter(|text| *text != "off") else { return Ok(None) };
    let one_in = text.strip_prefix("1 in ").and_then(|number| number.parse().ok());
    match one_in.filter(|one_in| (1..=ONE_IN_MAX).contains(one_in)) {
        Some(one_in) => Ok(Some(Audit::of(one_in))),
        None => {
            let wanted = "must be off, or a share such as \"1 in 1000\", up to 1 in 1000000";
            Err(LoadError(format!("audit: {text:?} {wanted}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_share_or_off() {
        let read = |text| resolve(text).map_err(|error| error.0);
        assert_eq!(read(None).unwrap(), None);
        assert_eq!(read(Some("off")).unwrap(), None);
        assert_eq!(read(Some("1 in 1000")).unwrap(), Some(Audit::of(1_000)));
        for wrong in ["1 in 0", "2 in 5", "on", "1 in -1", ""] {
            assert!(read(Some(wrong)).unwrap_err().contains("1 in 1000"), "{wrong}");
        }
    }
}
