//! The target `http2_frames` for libFuzzer: `cargo +nightly fuzz run http2_frames`.
//! Its assertions are in `fuzz/targets/src/http2_frames.rs`; the corpus is `fuzz/corpus/http2_frames`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::http2_frames::run(data));
