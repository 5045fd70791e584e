//! The target `changed_rows` for libFuzzer: `cargo +nightly fuzz run changed_rows`.
//! Its assertions are in `fuzz/targets/src/changed_rows.rs`; the corpus is `fuzz/corpus/changed_rows`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::changed_rows::run(data));
