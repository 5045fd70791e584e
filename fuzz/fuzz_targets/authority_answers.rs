//! The target `authority_answers` for libFuzzer: `cargo +nightly fuzz run authority_answers`.
//! Its assertions are in `fuzz/targets/src/authority_answers.rs`; the corpus is `fuzz/corpus/authority_answers`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::authority_answers::run(data));
