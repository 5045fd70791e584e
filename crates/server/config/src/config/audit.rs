//! `audit`: how many cache hits are compared with a render in the background, for ever.
//!
//! Not here: the choice of the hits (`delivery::audit`), and the comparison (the crate `audit`).

use super::resolve::LoadError;

/// The largest share denominator: one hit in a million.
const ONE_IN_MAX: u32 = 1_000_000;

/// The settings of the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audit {
    /// One hit in so many is compared.
    pub one_in: u32,
    /// The share of the numbers of 64 bits.
    below: u64,
}

impl Audit {
    /// Compares one hit in so many.
    fn of(one_in: u32) -> Audit {
        Audit { one_in, below: u64::MAX / u64::from(one_in) }
    }

    /// Whether the hit of the site with this number is compared. Multiples of the golden ratio are distributed evenly,
    /// also over every second or tenth number.
    #[inline]
    pub fn draws(self, number: u64) -> bool {
        number.wrapping_mul(0x9E37_79B9_7F4A_7C15) < self.below
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
    fn one_hit_in_so_many_is_drawn_also_of_each_site() {
        for one_in in [1, 2, 10, 1_000] {
            let audit = Audit::of(one_in);
            // All hits; every second one; every tenth, as of one site of several.
            for step in [1, 2, 10] {
                let drawn = (1..=100_000).filter(|n| audit.draws(n * step)).count() as f64;
                let right = 100_000.0 / f64::from(one_in);
                assert!((drawn - right).abs() <= right * 0.02 + 2.0, "1 in {one_in}: {drawn}");
            }
        }
    }

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
