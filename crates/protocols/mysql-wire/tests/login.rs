//! Logins, step by step, with packets of servers that are not available for tests: `caching_sha2_password` of
//! MySQL, TLS, and faulty servers.
//!
//! The authentication responses are tested beside their code, the login to a real MariaDB in
//! `mysql-replication/tests/mariadb.rs`.

use bytes::Bytes;
use mysql_wire::Refusal;
use mysql_wire::auth::Plugin;
use mysql_wire::login::{Account, Channel, Login, LoginRefused, LoginStep, STEPS_MAX};
use mysql_wire::packet::Packet;

const CHALLENGE: &[u8] = b"abcdefghijklmnopqrst";

fn packet(sequence: u8, payload: &[u8]) -> Packet {
    let len = payload.len() as u64;
    Packet { sequence, ..Packet::head_of(Bytes::copy_from_slice(payload), len) }
}

/// A greeting of MySQL 8, with or without TLS.
fn greeting(tls: bool, plugin: &str) -> Packet {
    let mut payload = b"\x0a8.0.36\0\x07\0\0\0abcdefgh\0".to_vec();
    let low: u16 = if tls { 0xffff } else { 0xf7ff };
    payload.extend_from_slice(&low.to_le_bytes());
    payload.extend_from_slice(&[255, 2, 0, 0xff, 0xdf, 21]);
    payload.extend_from_slice(&[0; 10]);
    payload.extend_from_slice(b"ijklmnopqrst\0");
    payload.extend_from_slice(plugin.as_bytes());
    payload.push(0);
    packet(0, &payload)
}

fn login(channel: Channel) -> Login {
    let account =
        Account { user: "replica".into(), password: "secret".into(), database: "news".into() };
    Login::new(account, channel, 1 << 24)
}

fn sent(step: Result<LoginStep, LoginRefused>) -> Vec<u8> {
    match step {
        Ok(LoginStep::Send(bytes)) => bytes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cached_password_needs_one_proof() {
    let mut login = login(Channel::Plain);
    let bytes = sent(login.read(&greeting(false, "caching_sha2_password")));
    assert_eq!(bytes[3], 1, "the packet after the greeting's");
    let proof = Plugin::CachingSha2.proof(b"secret", CHALLENGE);
    assert!(bytes.windows(proof.len()).any(|window| window == proof));
    assert!(bytes.ends_with(b"news\0caching_sha2_password\0"));
    assert_eq!(login.read(&packet(2, &[1, 3])), Ok(LoginStep::Wait));
    assert_eq!(login.read(&packet(3, &[0, 0, 0, 2, 0, 0, 0])), Ok(LoginStep::Done));
    assert_eq!(login.greeting().expect("it greeted").plain_version(), "8.0.36");
}

#[test]
fn the_plain_password_is_sent_only_over_a_secure_channel() {
    let mut local = login(Channel::Local);
    sent(local.read(&greeting(false, "caching_sha2_password")));
    assert_eq!(sent(local.read(&packet(2, &[1, 4]))), b"\x07\0\0\x03secret\0");
    let mut plain = login(Channel::Plain);
    sent(plain.read(&greeting(false, "caching_sha2_password")));
    let refused = plain.read(&packet(2, &[1, 4]));
    assert_eq!(refused, Err(LoginRefused::PasswordInTheClear));
    assert!(!format!("{plain:?}").contains("secret"));
}

#[test]
fn no_account_data_is_sent_before_tls() {
    let mut login = login(Channel::Tls);
    let request = match login.read(&greeting(true, "caching_sha2_password")) {
        Ok(LoginStep::StartTls(bytes)) => bytes,
        other => panic!("{other:?}"),
    };
    assert_eq!((request.len(), request[3]), (4 + 32, 1));
    assert_ne!(request[5] & 0x08, 0, "the flag for TLS");
    // An unencrypted packet when TLS is expected.
    assert!(login.read(&packet(2, &[0])).is_err());
    let bytes = sent(login.tls_is_up());
    assert_eq!((bytes[3], bytes[5] & 0x08 != 0), (2, true));
    assert!(bytes.windows(7).any(|window| window == b"replica"));
    assert_eq!(sent(login.read(&packet(3, &[1, 4]))), b"\x07\0\0\x04secret\0");
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_wanted() {
    let refused = login(Channel::Tls).read(&greeting(false, "mysql_native_password"));
    assert_eq!(refused, Err(LoginRefused::NoTls));
    assert!(login(Channel::Plain).tls_is_up().is_err());
}

#[test]
fn the_plugin_may_be_switched() {
    let mut login = login(Channel::Plain);
    sent(login.read(&greeting(false, "sha256_password")));
    let mut switch = b"\xfemysql_native_password\0".to_vec();
    switch.extend_from_slice(b"tsrqponmlkjihgfedcba\0");
    let bytes = sent(login.read(&packet(2, &switch)));
    assert_eq!(bytes[4..], Plugin::Native.proof(b"secret", b"tsrqponmlkjihgfedcba")[..]);
    let refused = login.read(&packet(4, b"\xfemysql_clear_password\0"));
    assert_eq!(refused, Err(LoginRefused::UnknownPlugin("mysql_clear_password".into())));
    // Only a challenge of 32 bytes is signed.
    let refused = login.read(&packet(4, b"\xfeclient_ed25519\0short"));
    assert_eq!(refused, Err(LoginRefused::Packet(Refusal::BadLength)));
}

#[test]
fn a_login_comes_to_an_end() {
    let mut login = login(Channel::Plain);
    sent(login.read(&greeting(false, "caching_sha2_password")));
    let refused = (0..=STEPS_MAX).find_map(|_| login.read(&packet(2, &[1, 3])).err());
    assert_eq!(refused, Some(LoginRefused::TooManySteps));
    assert_eq!(refused.expect("refused").as_str(), "too-many-steps");
}
