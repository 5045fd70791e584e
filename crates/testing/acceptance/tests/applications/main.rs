//! Whole applications behind Pagewell: the example site, WordPress with and without the plugin, and the
//! contract with the PHP library.
//!
//! One program for many tests: a change of the server relinks a few programs, not one for each file.

mod news;
mod php_contract;
mod wordpress;
