//! Complete applications behind Pagewell: the example site and WordPress with what they declare, the example site
//! and MediaWiki without (`automatic`), and the contract with the PHP library.
//!
//! One program contains many tests, so that a change of the server relinks a few programs instead of one per
//! file.

mod automatic;
mod held_place;
mod mediawiki;
mod news;
mod php_contract;
mod wordpress;
