//! A login and a stream over TLS, with rustls on the caller's side: MariaDB accepts the request, and an account
//! that requires TLS can log in.
//!
//! The server's certificate is made for the test, and no other certificate is trusted.

mod common;

use common::{Connection, account, server};
use harness::{Address, PrivateDir};
use mysql_replication::position::Start;
use mysql_replication::{Limits, Step, Transactions};
use mysql_wire::login::LoginRefused;
use mysql_wire::response::ServerErrorKind;
use rustls::pki_types::ServerName;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

#[test]
fn a_stream_over_tls() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let dir = PrivateDir::temporary("tls").expect("a directory");
    let write = |name: &str, text: String| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        let mode = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&path, mode).expect("its mode");
        path.display().to_string()
    };
    let cert = format!("--ssl-cert={}", write("cert.pem", made.cert.pem()));
    let key = format!("--ssl-key={}", write("key.pem", made.signing_key.serialize_pem()));
    let server = server(&[&cert, &key]);
    server
        .sql(
            "CREATE USER replica@'127.0.0.1' IDENTIFIED BY 'secret' REQUIRE SSL;
              GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO replica@'127.0.0.1';
              GRANT SELECT ON news.* TO replica@'127.0.0.1'; CREATE TABLE news.t (a INT)",
        )
        .expect("an account");
    let port: u16 = server.sql("SELECT @@port").expect("a port").trim().parse().expect("a number");
    let address = Address::Tcp(([127, 0, 0, 1], port).into());
    match Connection::open(&address, account("news")) {
        Err(LoginRefused::Server(error)) => assert_eq!(error.kind(), ServerErrorKind::AccessDenied),
        other => panic!("without TLS: {:?}", other.map(|_| ())),
    }
    let mut trusted = rustls::RootCertStore::empty();
    trusted.add(made.cert.der().clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(trusted)
        .with_no_client_auth();
    let tls = rustls::ClientConnection::new(
        Arc::new(config),
        ServerName::try_from("localhost").expect("a name"),
    )
    .expect("a client");
    let mut connection = Connection::open_tls(&address, account("news"), tls).expect("a login");
    assert!(!connection.one("SHOW STATUS LIKE 'Ssl_cipher'").is_empty());
    let list = connection.one("SELECT @@gtid_current_pos");
    let start = Start::MariaDb(list.parse().expect("a list"));
    connection.start_stream(7001, &start);
    server.sql("INSERT INTO news.t VALUES (1)").expect("a row");
    let mut transactions = Transactions::new(&start, Limits::default(), common::News::default());
    let read = loop {
        let packet = connection.receive();
        if let Step::Transaction(read) = transactions.read(&packet).expect("an event") {
            break read;
        }
    };
    assert_eq!(read.changes.len(), 1);
}
