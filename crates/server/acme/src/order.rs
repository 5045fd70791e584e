//! One order at one authority (RFC 8555 section 7.1.3): account, order, challenge, certificate.
//!
//! | step | stored before the next one |
//! |---|---|
//! | account | its key |
//! | order | its URL and the key of the certificate: a node that continues after a crash does not order again |
//! | challenge | token and answer: every node answers, this one from memory |
//! | certificate | checked for key and host; its caller stores it |
//!
//! Invariant: the lock of the host is held, and verified before each step that changes something at the authority.

use crate::account;
use crate::answers::{HostChallenge, OwnChallenge};
use crate::client::AuthorityClient;
use crate::failure::OrderFailure;
use crate::leaf::Bundle;
use crate::record::{ChallengeKind, ChallengeRecord, NameRecord, OrderRecord};
use crate::schedule::{bounded, last_tenth, renewal};
use crate::storage::{HeldLock, Storage, StorageKey, ValueKind};
use certificates::FailureCause;
use config::Acme;
use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeType, Error, Identifier,
    NewOrder, Order, OrderStatus,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use std::sync::Arc;
use std::time::Duration;

/// How long the authority may take to validate a host, and then to issue the certificate.
const DECIDED_WITHIN: Duration = Duration::from_secs(90);
/// A clock is wrong if it differs by more than this, in milliseconds, from the authority's.
pub const CLOCK_MS: u64 = 3_600_000;
/// The first and the longest pause between two looks at an order.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// An order for a host at one authority.
#[derive(Clone, Copy)]
pub struct OrderTask<'a> {
    /// The settings in `[acme]`.
    pub config: &'a Acme,
    /// The storage that nodes share.
    pub storage: &'a Storage,
    /// The lock of the host.
    pub lock: &'a HeldLock,
    /// The host that needs a certificate.
    pub host: &'a str,
    /// The directory of the authority.
    pub directory: &'a str,
    /// The directory of its server for rehearsals, if a new order needs one.
    pub rehearsal: Option<&'a str>,
    /// The challenge to use.
    pub kind: ChallengeKind,
    /// The pending challenge of the host in memory.
    pub pending: &'a Arc<HostChallenge>,
    /// The client for the authority.
    pub client: &'a AuthorityClient,
    /// The certificate in use with its text, if there is one.
    pub current: Option<(&'a Bundle, &'a [u8])>,
    /// The time of this machine, in milliseconds since 1970.
    pub now_ms: u64,
}

impl OrderTask<'_> {
    /// Obtains a certificate: the bundle and its text. An order that goes on counts against no limit of the authority, so
    /// only a new one is rehearsed.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn run(&self, record: &mut NameRecord) -> Result<(Bundle, String), OrderFailure> {
        let account = account::open(self.config, self.directory, self.storage, self.client).await?;
        self.check_clock(record)?;
        self.check_lock().await?;
        let unfinished = self.unfinished(&account, record).await;
        let is_resumed = unfinished.is_some();
        let (mut order, key) = match unfinished {
            Some(unfinished) => unfinished,
            None => {
                if let Some(rehearsal) = self.rehearsal {
                    self.rehearse(rehearsal, record).await?;
                    self.check_lock().await?;
                }
                self.begin(&account, record).await?
            }
        };
        let issued = self.complete(&mut order, &key, is_resumed).await;
        // The next round begins with an order of its own, unless the authority was not reached.
        match &issued {
            Err(failure) if failure.cause == FailureCause::Authority => {}
            _ => record.order = None,
        }
        let chain = issued?;
        let text = format!("{}{chain}", key.serialize_pem());
        let bundle = Bundle::read(self.host, text.as_bytes()).map_err(|why| {
            let why = format!("{}: its certificate cannot be used: {why}", self.directory);
            OrderFailure::of(FailureCause::Authority, &why)
        })?;
        // Such a certificate would be due at once: an order would follow the other.
        if self.theirs_ms() >= last_tenth(bundle.lifetime) {
            let why = format!("{}: its certificate ends already", self.directory);
            return Err(OrderFailure::of(FailureCause::Authority, &why));
        }
        Ok((bundle, text))
    }

    /// Orders at the server for rehearsals, which must not refuse. A server that is away, or counts its own requests,
    /// says nothing about the host, and must not keep it from a certificate. If it asks for time, it is not called until
    /// then.
    ///
    /// # Errors
    /// The server refuses.
    async fn rehearse(&self, directory: &str, record: &mut NameRecord) -> Result<(), OrderFailure> {
        if record.asked_wait_ms(directory, self.now_ms).is_some() {
            return Ok(());
        }
        let client = self.client.apart();
        let task = OrderTask { directory, rehearsal: None, client: &client, ..*self };
        // The future of `run` contains this one.
        let rehearsed = Box::pin(task.run(record)).await;
        if let (Err(_), Some(asked_ms)) = (&rehearsed, client.noted().retry_after_ms) {
            let until_ms = self.now_ms.saturating_add(bounded(asked_ms));
            record.refused_until_ms.insert(directory.to_owned(), until_ms);
        }
        match rehearsed {
            Err(failure) if !is_about_server(failure.cause) => Err(failure),
            // Its certificate is of no use.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The order that an earlier round has begun, if it can still be completed.
    async fn unfinished(&self, account: &Account, record: &NameRecord) -> Option<(Order, KeyPair)> {
        let known = record.order.as_ref().filter(|order| order.directory == self.directory)?;
        // The order of the certificate in use is finished.
        if self.current.is_some_and(|(_, text)| text.starts_with(known.key_pem.as_bytes())) {
            return None;
        }
        let key = KeyPair::from_pem(&known.key_pem).ok()?;
        let mut order = account.order(known.url.clone()).await.ok()?;
        (order.state().status != OrderStatus::Invalid).then_some((order, key))
    }

    async fn begin(
        &self,
        account: &Account,
        record: &mut NameRecord,
    ) -> Result<(Order, KeyPair), OrderFailure> {
        let identifiers = [Identifier::Dns(self.host.to_owned())];
        let mut new = NewOrder::new(&identifiers);
        if let Some(profile) = &self.config.profile {
            let known: Vec<&str> = account.profiles().map(|profile| profile.name).collect();
            if !known.contains(&profile.as_str()) {
                let why = format!("acme.profile: {profile:?} is none of its profiles: {known:?}");
                return Err(OrderFailure::of(FailureCause::Refused, &why));
            }
            new = new.profile(profile);
        }
        let key = KeyPair::generate().map_err(of_key)?;
        let is_same = record.issued_by.as_deref() == Some(self.directory);
        let before = self.current.filter(|_| is_same);
        let before =
            before.and_then(|(before, _)| CertificateIdentifier::try_from(before.leaf()).ok());
        let order = match before {
            None => account.new_order(&new).await,
            Some(before) => {
                let mut replacing = NewOrder::new(&identifiers).replaces(before);
                if let Some(profile) = &self.config.profile {
                    replacing = replacing.profile(profile);
                }
                match account.new_order(&replacing).await {
                    // The authority does not know that certificate, or has replaced it already (RFC 9773 section 5).
                    Err(error) if is_about_replacing(&error) => account.new_order(&new).await,
                    order => order,
                }
            }
        };
        if order.as_ref().is_err_and(is_about_account) {
            account::forget(self.directory, self.storage).await;
        }
        let order = order.map_err(|error| OrderFailure::of_error(&error, None))?;
        let (url, directory) = (order.url().to_owned(), self.directory.to_owned());
        record.order = Some(OrderRecord { url, directory, key_pem: key.serialize_pem() });
        self.save(record).await?;
        Ok((order, key))
    }

    /// Leads an order to its certificate chain.
    async fn complete(
        &self,
        order: &mut Order,
        key: &KeyPair,
        is_resumed: bool,
    ) -> Result<String, OrderFailure> {
        let failed = |error: Error| OrderFailure::of_error(&error, Some(self.kind));
        if order.state().status == OrderStatus::Pending {
            let validated = self.validate(order, is_resumed).await;
            let challenge = StorageKey { kind: ValueKind::Challenge, name: self.host };
            // A challenge that stays is answered, which does no harm.
            let _ = self.storage.remove(challenge).await;
            validated?;
        }
        if order.state().status == OrderStatus::Ready {
            self.check_lock().await?;
            let mut wanted = CertificateParams::new(vec![self.host.to_owned()]).map_err(of_key)?;
            wanted.distinguished_name = DistinguishedName::new();
            let request = wanted.serialize_request(key).map_err(of_key)?;
            order.finalize_csr(request.der()).await.map_err(failed)?;
        }
        self.wait(order, |status| status != OrderStatus::Processing).await?;
        let state = order.state();
        if let Some(problem) = &state.error {
            return Err(OrderFailure::of_problem(problem, None));
        }
        match order.certificate().await {
            Ok(Some(chain)) => Ok(chain),
            Ok(None) => Err(self.undecided()),
            Err(error) => Err(OrderFailure::of_error(&error, None)),
        }
    }

    /// Proves the control over the host. Until it returns, or is dropped, this node answers from memory.
    async fn validate(&self, order: &mut Order, is_resumed: bool) -> Result<(), OrderFailure> {
        let failed = |error: Error| OrderFailure::of_error(&error, Some(self.kind));
        let own = OwnChallenge::begin(self.pending);
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(failed)?;
            if authorization.status != AuthorizationStatus::Pending {
                continue;
            }
            let wanted = match self.kind {
                ChallengeKind::Http01 => ChallengeType::Http01,
                ChallengeKind::TlsAlpn01 => ChallengeType::TlsAlpn01,
            };
            let Some(mut challenge) = authorization.challenge(wanted) else {
                let why = format!("{} does not offer this kind of challenge", self.directory);
                return Err(OrderFailure::of(FailureCause::Refused, &why));
            };
            let (token, authorization) =
                (challenge.token.clone(), challenge.key_authorization().as_str().to_owned());
            let pending = ChallengeRecord { kind: self.kind, token, authorization };
            let bytes = serde_json::to_vec(&pending).unwrap_or_default();
            let key = StorageKey { kind: ValueKind::Challenge, name: self.host };
            self.storage.write(key, &bytes).await.map_err(of_storage)?;
            own.set(pending);
            match challenge.set_ready().await {
                // An earlier holder of the lock has done that already.
                Err(Error::Api(_)) if is_resumed => {}
                ready => ready.map_err(failed)?,
            }
        }
        self.wait(order, |status| status != OrderStatus::Pending).await?;
        if order.state().status != OrderStatus::Invalid {
            return Ok(());
        }
        Err(self.refusal(order).await)
    }

    /// Why the authority has not validated the host.
    async fn refusal(&self, order: &mut Order) -> OrderFailure {
        let mut authorizations = order.authorizations();
        while let Some(Ok(mut authorization)) = authorizations.next().await {
            let Ok(state) = authorization.refresh().await else { continue };
            let problem = state.challenges.iter().find_map(|challenge| challenge.error.as_ref());
            if let Some(problem) = problem {
                return OrderFailure::of_problem(problem, Some(self.kind));
            }
        }
        match &order.state().error {
            Some(problem) => OrderFailure::of_problem(problem, Some(self.kind)),
            None => OrderFailure::of(FailureCause::Refused, "the order is invalid"),
        }
    }

    /// Looks at the order until its status is as wanted.
    async fn wait(
        &self,
        order: &mut Order,
        is_wanted: impl Fn(OrderStatus) -> bool,
    ) -> Result<(), OrderFailure> {
        let looks = async {
            let mut pause = PAUSES.0;
            while !is_wanted(order.state().status) {
                tokio::time::sleep(pause).await;
                pause = (pause * 3 / 2).min(PAUSES.1);
                order.refresh().await.map_err(|error| OrderFailure::of_error(&error, None))?;
            }
            Ok(())
        };
        match tokio::time::timeout(DECIDED_WITHIN, looks).await {
            Ok(decided) => decided,
            Err(_) => Err(self.undecided()),
        }
    }

    fn undecided(&self) -> OrderFailure {
        let why = format!("{}: no decision within {DECIDED_WITHIN:?}", self.directory);
        OrderFailure::of(FailureCause::Authority, &why)
    }

    /// A clock that is far from the authority's must not lead to orders that it alone makes due.
    fn check_clock(&self, record: &NameRecord) -> Result<(), OrderFailure> {
        let Some(ahead_ms) = self.client.noted().ahead_ms else { return Ok(()) };
        let (Some((current, _)), true) = (self.current, ahead_ms.unsigned_abs() > CLOCK_MS) else {
            return Ok(());
        };
        if self.theirs_ms() >= renewal(record, current.lifetime) {
            return Ok(());
        }
        let hours = (ahead_ms.unsigned_abs() + 1_800_000) / 3_600_000;
        let way = if ahead_ms < 0 { "ahead of" } else { "behind" };
        let why = format!("this machine's clock is {hours} hours {way} that of {}", self.directory);
        Err(OrderFailure::of(FailureCause::Clock, &why))
    }

    /// The time of the authority, as far as it is known, in milliseconds since 1970.
    fn theirs_ms(&self) -> u64 {
        self.now_ms.saturating_add_signed(self.client.noted().ahead_ms.unwrap_or(0))
    }

    async fn check_lock(&self) -> Result<(), OrderFailure> {
        if self.lock.refresh().await.map_err(of_storage)? {
            return Ok(());
        }
        Err(OrderFailure::of(FailureCause::Storage, "another node has the lock"))
    }

    /// Stores the record of the host.
    async fn save(&self, record: &NameRecord) -> Result<(), OrderFailure> {
        let bytes = serde_json::to_vec(record).unwrap_or_default();
        let key = StorageKey { kind: ValueKind::Host, name: self.host };
        self.storage.write(key, &bytes).await.map_err(of_storage)
    }
}

/// Whether a failure says nothing about the host.
fn is_about_server(cause: FailureCause) -> bool {
    matches!(cause, FailureCause::Authority | FailureCause::RateLimited)
}

/// Whether the authority does not know the account.
fn is_about_account(error: &Error) -> bool {
    let Error::Api(problem) = error else { return false };
    problem.r#type.as_deref().is_some_and(|name| name.ends_with(":accountDoesNotExist"))
}

/// Whether an order without `replaces` may succeed.
fn is_about_replacing(error: &Error) -> bool {
    match error {
        Error::Api(problem) => {
            let name = problem.r#type.as_deref().and_then(|name| name.rsplit(':').next());
            matches!(name, Some("alreadyReplaced" | "malformed" | "unauthorized" | "conflict"))
        }
        Error::Unsupported(_) => true,
        Error::Other(other) => other.to_string().starts_with("replaces field mismatch"),
        _ => false,
    }
}

fn of_storage(why: String) -> OrderFailure {
    OrderFailure::of(FailureCause::Storage, &why)
}

fn of_key(error: rcgen::Error) -> OrderFailure {
    OrderFailure::of(FailureCause::Storage, &format!("no key: {error}"))
}
