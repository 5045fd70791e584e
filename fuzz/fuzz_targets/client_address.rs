//! The target `client_address` for libFuzzer: `cargo +nightly fuzz run client_address`.
//! Its assertions are in `fuzz/targets/src/client_address.rs`; the corpus is `fuzz/corpus/client_address`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::client_address::run(data));
