//! The target `redirect_lines` for libFuzzer: `cargo +nightly fuzz run redirect_lines`.
//! Its assertions are in `fuzz/targets/src/redirect_lines.rs`; the corpus is `fuzz/corpus/redirect_lines`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::redirect_lines::run(data));
