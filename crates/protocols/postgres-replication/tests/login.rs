//! Logins to a real PostgreSQL with each authentication method, and the refusals.

mod common;

use common::{Connection, Paper, account};
use harness::{Address, PostgresOptions, free_port};
use postgres_replication::wire::login::{Account, LoginRefused, Purpose};
use std::net::{Ipv4Addr, SocketAddr};

#[test]
fn each_method_and_each_refusal() {
    let port = free_port().expect("a port");
    let hba = "local all plain password\nhost all plain 127.0.0.1/32 password\n\
               local all hashed md5\nlocal all trusted trust\nlocal all barred reject\n";
    let options =
        PostgresOptions { port: Some(port), hba: hba.into(), ..PostgresOptions::default() };
    let paper = Paper::with(
        options,
        "SET password_encryption = 'md5'; CREATE ROLE hashed LOGIN PASSWORD 'secret';
         SET password_encryption = 'scram-sha-256'; CREATE ROLE plain LOGIN PASSWORD 'secret';
         CREATE ROLE trusted LOGIN; CREATE ROLE barred LOGIN;
         CREATE ROLE \"odd user\" LOGIN PASSWORD 'pä''ss wörd';",
    );
    let local = paper.address();
    let tcp = Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let works = |address: &Address, account: Account| {
        let user = account.user.clone();
        let opened = Connection::open(address, account, Purpose::Statements);
        let mut connection = opened.unwrap_or_else(|refused| panic!("{user}: {refused}"));
        assert_eq!(connection.one("SELECT current_user"), user);
        assert!(connection.version.starts_with(|first: char| first.is_ascii_digit()));
    };
    works(&tcp, account("follower"));
    works(&local, account("hashed"));
    works(&local, account("plain"));
    works(&local, Account { password: String::new(), ..account("trusted") });
    works(&tcp, Account { password: "pä'ss wörd".into(), ..account("odd user") });

    let refused = |address: &Address, account: Account, purpose: Purpose| match Connection::open(
        address, account, purpose,
    ) {
        Ok(_) => panic!("it lets anybody in"),
        Err(refused) => refused,
    };
    let name = |account: Account| refused(&local, account, Purpose::Statements).as_str();
    let wrong = || Account { password: "other".into(), ..account("follower") };
    assert_eq!(name(wrong()), "access-denied");
    assert_eq!(name(Account { password: String::new(), ..wrong() }), "access-denied");
    assert_eq!(name(account("nobody")), "access-denied");
    assert_eq!(name(account("barred")), "access-denied");
    assert_eq!(
        name(Account { database: "none".into(), ..account("follower") }),
        "no-such-database"
    );
    let clear = refused(&tcp, account("plain"), Purpose::Statements);
    assert_eq!(clear, LoginRefused::PasswordInTheClear);
    // A role without REPLICATION can log in, but cannot start the stream.
    let writer = refused(&local, account("writer"), Purpose::Replication);
    assert_eq!(writer.as_str(), "not-permitted");
}
