//! `[misses]`: whether requests that need the origin are rationed while it is overloaded.
//!
//! All other figures are constants of the crate `miss-control`, with their reasons there.

use super::raw;
use super::resolve::LoadError;
use crate::networks::Networks;

/// How requests that need the origin are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissesMode {
    /// First come, first served, without reports.
    Off,
    /// First come, first served; reports show what is requested, and by which clients.
    #[default]
    Observe,
    /// By level and group; requests are deferred while the origin is overloaded.
    Protect,
}

impl MissesMode {
    /// The mode as it is configured.
    pub fn as_str(self) -> &'static str {
        match self {
            MissesMode::Off => "off",
            MissesMode::Observe => "observe",
            MissesMode::Protect => "protect",
        }
    }
}

/// The settings for requests that need the origin.
#[derive(Clone, Debug, Default)]
pub struct Misses {
    /// How they are treated.
    pub mode: MissesMode,
    /// The clients whose requests are never deferred.
    pub exempt: Networks,
}

/// Checks and completes `[misses]`.
pub(super) fn resolve(raw: &raw::MissesKeys) -> Result<Misses, LoadError> {
    let mode = match raw.mode.as_deref() {
        None => MissesMode::default(),
        Some("off") => MissesMode::Off,
        Some("observe") => MissesMode::Observe,
        Some("protect") => MissesMode::Protect,
        Some(other) => {
            let text = format!("misses.mode: {other:?} must be off, observe or protect");
            return Err(LoadError(text));
        }
    };
    let exempt =
        Networks::read(&raw.exempt).map_err(|why| LoadError(format!("misses.exempt: {why}")))?;
    Ok(Misses { mode, exempt })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_one_of_three_words() {
        let read = |mode: Option<&str>| {
            resolve(&raw::MissesKeys { mode: mode.map(str::to_owned), ..Default::default() })
        };
        assert_eq!(read(None).unwrap().mode, MissesMode::Observe);
        assert_eq!(read(Some("off")).unwrap().mode, MissesMode::Off);
        assert_eq!(read(Some("protect")).unwrap().mode, MissesMode::Protect);
        assert!(read(Some("on")).unwrap_err().0.contains("off, observe or protect"));
    }
}
