//! The proof by a number of comparisons: an upper bound for the share of wrong pages, with 95 % confidence.
//!
//! Without any wrong page among `n` this is the rule of three, 3 ÷ n; with some, Wilson's upper limit. The lower
//! bound of consistency is shown in nines: 99.97 %.

/// 95 % of all such bounds are true: the one-sided quantile of the normal distribution.
const QUANTILE: f64 = 1.645;

/// The share of wrong pages, at most, after so many comparisons.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfidenceBound {
    /// The comparisons that ended with a verdict.
    pub compared: u64,
    /// Those that found a wrong page.
    pub wrong: u64,
}

impl ConfidenceBound {
    /// The largest share of wrong pages that agrees with the comparisons, from 0 to 1.
    pub fn upper(self) -> f64 {
        let (n, wrong) = (self.compared as f64, self.wrong.min(self.compared) as f64);
        if self.compared == 0 {
            return 1.0;
        }
        if self.wrong == 0 {
            return (3.0 / n).min(1.0);
        }
        let (share, z) = (wrong / n, QUANTILE * QUANTILE);
        let spread = (share * (1.0 - share) / n + z / (4.0 * n * n)).sqrt();
        ((share + z / (2.0 * n) + QUANTILE * spread) / (1.0 + z / n)).min(1.0)
    }

    /// The share of right pages, at least, as text: `99.97 %`. It is rounded down.
    pub fn right_percent(self) -> String {
        let wrong = self.upper() * 100.0;
        if wrong >= 100.0 {
            return "0 %".into();
        }
        let digits = (-wrong.log10().floor()).clamp(0.0, 9.0) as usize;
        let unit = 10_f64.powi(digits as i32);
        let right = ((100.0 - wrong) * unit + 1e-6).floor() / unit;
        format!("{right:.digits$} %")
    }

    /// The number of nines of that share: 3.5 for 99.97 %.
    pub fn nines(self) -> f64 {
        -self.upper().log10()
    }
}

/// How often, at most, a verdict against a page that draws its text is an accident: the page shows a rare draw, and
/// all samples agree with each other by chance. The worst draw has the probability `n / (n + 1)`. A page that is a
/// function of its key and of data has no such error. Returns a share from 0 to 1.
pub(crate) fn error_bound(samples: u32) -> f64 {
    let n = f64::from(samples);
    (n / (n + 1.0)).powi(samples.min(1_000) as i32) / (n + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_wrong_is_the_rule_of_three() {
        let bound = ConfidenceBound { compared: 10_000, wrong: 0 };
        assert_eq!(bound.right_percent(), "99.97 %");
        assert!((bound.nines() - 3.52).abs() < 0.01);
        assert_eq!(ConfidenceBound { compared: 0, wrong: 0 }.right_percent(), "0 %");
        let some = ConfidenceBound { compared: 10_000, wrong: 5 };
        assert!(some.upper() > 0.0005 && some.upper() < 0.002, "{}", some.upper());
        assert!((error_bound(5) - 0.067).abs() < 0.001);
    }

    proptest! {
        #[test]
        fn a_bound_is_above_the_share_and_below_one(compared in 1..1_000_000u64, wrong in 0..1_000u64) {
            let bound = ConfidenceBound { compared, wrong: wrong.min(compared) };
            let share = bound.wrong as f64 / compared as f64;
            prop_assert!((share..=1.0).contains(&bound.upper()));
            let more = ConfidenceBound { compared: compared * 2, wrong: bound.wrong };
            prop_assert!(more.upper() <= bound.upper() + 1e-12);
        }
    }
}
