//! Accounts and orders as `[acme]` asks for them: bound to an account outside of ACME, and with a profile.

use super::fake::{FakeAuthority, Fault, base64};
use super::{Dir, Node};
use config::{ExternalAccount, SecretBytes};
use ring::hmac;
use serde_json::Value;
use telemetry::clock::Clock;

const HOST: &str = "a.example.org";

#[tokio::test]
async fn an_account_is_bound_to_the_one_outside() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let set = |config: &mut config::Acme, _: &mut _| {
        let key = SecretBytes(b"a key of the authority".to_vec());
        config.eab = Some(ExternalAccount { key_id: "kid-1".into(), key });
    };
    let node = Node::with(&[&authority], dir.storage(), &[HOST], Clock::still(), set).await;
    node.until_ready(HOST).await;
    let bindings = authority.desk.lock().unwrap().bindings.clone();
    let [binding] = &bindings[..] else { panic!("one account: {bindings:?}") };
    let of = |name: &str| binding[name].as_str().unwrap().to_owned();
    let head: Value = serde_json::from_slice(&base64(&of("protected"))).unwrap();
    assert_eq!((&head["kid"], &head["alg"]), (&"kid-1".into(), &"HS256".into()));
    let signed = format!("{}.{}", of("protected"), of("payload"));
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"a key of the authority");
    hmac::verify(&key, signed.as_bytes(), &base64(&of("signature"))).unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_profile_is_ordered_and_an_unknown_one_is_named() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let profile = |name: &'static str| {
        move |config: &mut config::Acme, _: &mut _| config.profile = Some(name.into())
    };
    let authorities = [&authority];
    let start =
        |name| Node::with(&authorities, dir.storage(), &[HOST], Clock::still(), profile(name));
    let node = start("shortlived").await;
    node.until_failed(HOST, 1).await;
    let failure = node.status(HOST).failure.unwrap();
    assert_eq!(failure.cause.as_str(), "refused");
    assert!(failure.text.contains("\"shortlived\" is none of its profiles"), "{}", failure.text);
    assert_eq!(authority.orders(HOST), 0);
    node.stop().await;
    authority.set(|desk| desk.nodes.clear());
    let node = start("short").await;
    node.clock.advance(std::time::Duration::from_secs(70));
    node.until_ready(HOST).await;
    assert_eq!(authority.desk.lock().unwrap().profiles, ["short"]);
    node.stop().await;
}

#[tokio::test]
async fn an_account_that_the_authority_has_lost_is_replaced() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    authority.set(|desk| desk.fault = Fault::NoAccount);
    let node = Node::start(&[&authority], dir.storage(), &[HOST], Clock::still()).await;
    node.until_failed(HOST, 1).await;
    let failure = node.status(HOST).failure.unwrap();
    assert!(failure.text.contains("accountDoesNotExist"), "{}", failure.text);
    authority.set(|desk| desk.fault = Fault::None);
    node.clock.advance(std::time::Duration::from_secs(70));
    node.until_ready(HOST).await;
    let accounts = authority.desk.lock().unwrap().accounts;
    assert_eq!((accounts, authority.issued(HOST)), (2, 1));
    node.stop().await;
}

#[tokio::test]
async fn a_damaged_account_is_replaced() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let node = Node::start(&[&authority], dir.storage(), &[HOST], Clock::still()).await;
    node.until_ready(HOST).await;
    node.stop().await;
    let file = std::fs::read_dir(dir.0.join("accounts")).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read_to_string(&file).unwrap();
    let mut json: Value = serde_json::from_str(&whole).unwrap();
    json["credentials"]["key_pkcs8"] = "AAAA".into();
    for (accounts, damaged) in [(2, whole[..40].to_owned()), (3, json.to_string())] {
        std::fs::write(&file, damaged).unwrap();
        authority.set(|desk| desk.nodes.clear());
        let host = format!("a{accounts}.example.org");
        let node = Node::start(&[&authority], dir.storage(), &[&host], Clock::still()).await;
        node.until_ready(&host).await;
        assert_eq!(authority.desk.lock().unwrap().accounts, accounts);
        node.stop().await;
    }
}
