//! The target `proxy_protocol` for libFuzzer: `cargo +nightly fuzz run proxy_protocol`.
//! Its assertions are in `fuzz/targets/src/proxy_protocol.rs`; the corpus is `fuzz/corpus/proxy_protocol`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::proxy_protocol::run(data));
