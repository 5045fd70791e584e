//! The values in `.env` files, as Laravel, Symfony and Bedrock have them. The files are read as text.
//!
//! A value that refers to another one is unknown. Not here: which files an application reads, and the
//! meaning of its names.

use crate::php_source::Setting;
use std::collections::BTreeMap;

/// The settings of `.env` files; a later file overrides an earlier one.
#[derive(Debug, Default)]
pub(super) struct DotEnv(BTreeMap<String, Setting>);

impl DotEnv {
    /// Adds the lines of a file.
    pub(super) fn add(&mut self, text: &str) {
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            let Some((name, value)) = line.split_once('=') else { continue };
            let name = name.strip_prefix("export ").unwrap_or(name).trim();
            self.0.insert(name.to_owned(), setting(value.trim()));
        }
    }

    /// The value of a name; an empty one counts as missing.
    pub(super) fn get(&self, name: &str) -> Setting {
        match self.0.get(name) {
            Some(Setting::Is(value)) if value.is_empty() => Setting::Missing,
            found => found.cloned().unwrap_or_default(),
        }
    }
}

fn setting(value: &str) -> Setting {
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''));
    let value = match quote {
        Some(quote) => match value[1..].split_once(quote) {
            Some((value, _)) => value,
            None => return Setting::Unknown,
        },
        None => value.split(" #").next().unwrap_or_default().trim(),
    };
    if quote != Some('\'') && value.contains('$') {
        Setting::Unknown
    } else {
        Setting::Is(value.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        let mut env = DotEnv::default();
        env.add("# A=1\nA=2 # two\nexport B=\"b c\"\nC='$x'\nD=${A}\nE=\nF=\"open\nnonsense\n");
        env.add("A=3");
        let is = |text: &str| Setting::Is(text.to_owned());
        assert_eq!((env.get("A"), env.get("B"), env.get("C")), (is("3"), is("b c"), is("$x")));
        assert_eq!((env.get("D"), env.get("F")), (Setting::Unknown, Setting::Unknown));
        assert_eq!((env.get("E"), env.get("G")), (Setting::Missing, Setting::Missing));
    }
}
