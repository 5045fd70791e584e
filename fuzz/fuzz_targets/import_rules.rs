//! The target `import_rules` for libFuzzer: `cargo +nightly fuzz run import_rules`.
//! Its assertions are in `fuzz/targets/src/import_rules.rs`; the corpus is `fuzz/corpus/import_rules`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::import_rules::run(data));
