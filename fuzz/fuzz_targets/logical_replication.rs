//! The target `logical_replication` for libFuzzer: `cargo +nightly fuzz run logical_replication`.
//! Its assertions are in `fuzz/targets/src/logical_replication.rs`; the corpus is `fuzz/corpus/logical_replication`.
//! Nothing else is decided here.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::logical_replication::run(data));
