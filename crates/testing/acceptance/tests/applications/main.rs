//! Complete applications behind Pagewell: the example site, WordPress with and without the plugin, and the
//! contract with the PHP library.
//!
//! One program contains many tests, so that a change of the server relinks a few programs instead of one per
//! file.

mod news;
mod php_contract;
mod wordpress;
